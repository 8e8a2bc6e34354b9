"""tensor_engine: from camera bytes to detections in one captured program.

Names are imported when they are first used, so that a part of the engine can be imported without the others.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensor_engine import nn
    from tensor_engine.device import Device
    from tensor_engine.dtype import dtypes
    from tensor_engine.engine.jit import TinyJit
    from tensor_engine.helpers import Context, GlobalCounters
    from tensor_engine.tensor import Tensor
    from tensor_engine.uop.uop import Variable

__all__ = ["Context", "Device", "GlobalCounters", "Tensor", "TinyJit", "Variable", "dtypes", "nn"]

_HOMES = {
    "Context": "tensor_engine.helpers",
    "Device": "tensor_engine.device",
    "GlobalCounters": "tensor_engine.helpers",
    "Tensor": "tensor_engine.tensor",
    "TinyJit": "tensor_engine.engine.jit",
    "Variable": "tensor_engine.uop.uop",
    "dtypes": "tensor_engine.dtype",
}


def __getattr__(name: str) -> Any:
    if name == "nn":
        return importlib.import_module("tensor_engine.nn")
    if name not in _HOMES:
        raise AttributeError(f"module 'tensor_engine' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
