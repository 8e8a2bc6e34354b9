"""`tensor-engine devices`: which backends are there, whether they work here, and how each was tested."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from tensor_engine.cli.console import print_json, print_table
from tensor_engine.cli.options import as_json
from tensor_engine.device import RENDERERS, Device
from tensor_engine.helpers import Context
from tensor_engine.tensor import Tensor

TESTED = {
    "CPU:LLVM": "runs in every test, on the chip itself",
    "CPU:C": "runs in tests of code generation, on the chip itself; needs clang or gcc",
    "PYTHON": "the reference interpreter: the oracle of the others",
}


@click.command()
@as_json
def devices(as_json: bool) -> None:
    """List the backends, and try each with a small sum."""
    found = [{"name": name, **trial(name), "tested": TESTED[name]} for name in backend_names()]
    if as_json:
        return print_json({"default": Device.DEFAULT, "devices": found})
    rows = [(d["name"], "works" if d["works"] else d["reason"], d["tested"]) for d in found]
    print_table(f"default: {Device.DEFAULT}", {"device": "left", "here": "left", "tested": "left"}, rows)


def backend_names() -> list[str]:
    """Every device with each of its renderers, as DEV takes them."""
    names = []
    for device, renderers in RENDERERS.items():
        names += [device] if len(renderers) == 1 else [f"{device}:{renderer}" for renderer in renderers]
    return names


def trial(name: str) -> dict[str, Any]:
    """Whether a backend computes a small sum correctly here, and if not, why."""
    values = np.arange(8, dtype=np.float32)
    try:
        with Context(DEV=name):
            result = (Tensor(values) * 2).sum().item()
    except Exception as error:  # whatever keeps a backend from working is the answer to the user's question
        return {"works": False, "reason": f"{type(error).__name__}: {error}"}
    if result != values.sum() * 2:
        return {"works": False, "reason": f"computes {result} where {values.sum() * 2} is right"}
    return {"works": True, "reason": ""}
