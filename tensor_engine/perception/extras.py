"""Optional libraries: the core needs numpy and llvmlite, everything else is asked for here."""

from __future__ import annotations

import importlib
from types import ModuleType

EXTRA = "perception"  # the pip extra that brings them all


class MissingExtra(ImportError):
    """A library that this feature needs is not installed; the message says which pip extra brings it."""


def require(module: str) -> ModuleType:
    """Import an optional library, or raise MissingExtra with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        raise MissingExtra(f"this needs {package}: pip install 'tensor_engine[{EXTRA}]'") from None
