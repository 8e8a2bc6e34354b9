"""Optional libraries: the core needs numpy and llvmlite, everything else is asked for here."""

from __future__ import annotations

import importlib
from types import ModuleType


class MissingExtra(ImportError):
    """A library that this feature needs is not installed; the message says which pip extra brings it."""


def require(module: str, extra: str) -> ModuleType:
    """Import a library, or raise MissingExtra with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        message = f"this needs {module}: pip install 'tensor_engine[{extra}]'"
        raise MissingExtra(message) from None
