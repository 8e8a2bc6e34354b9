"""The reference page: every public name of the library with its signature and docstring.

`python tools/reference.py` writes docs/reference.md anew; a test compares it with the code.
"""
from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from tensor_engine import Tensor
from tensor_engine.mixin.hooks import Hooks

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
HEAD = """\
# Reference

Every public name with its signature and docstring. Made from the code by `python tools/reference.py`.

Tensor's methods are told by family, a file in [`tensor_engine/mixin`](../tensor_engine/mixin) each, those that others
are made of first. [`UOp`](walk.md#2-uop-the-one-node-type) has the same ones.
"""
# what a user imports, and from where; all public names where none are named
PARTS: dict[str, list[str]] = {
    "tensor_engine.engine.jit": ["TinyJit", "JitError"],
    "tensor_engine.dtype": ["dtypes", "DType"],
    "tensor_engine.helpers": ["Context", "GlobalCounters"],
    "tensor_engine.device": ["Device", "Buffer", "Allocator", "Compiler", "Program", "FrameProgram", "DeviceRuntime"],
    "tensor_engine.nn": [],
    "tensor_engine.nn.optim": ["SGD", "Adam", "AdamW", "LAMB", "LARS", "Muon", "Optimizer", "OptimizerGroup"],
    "tensor_engine.nn.state": ["get_state_dict", "get_parameters", "load_state_dict", "safe_save", "safe_load"],
    "tensor_engine.nn.datasets": ["mnist"],
    "tensor_engine.nn.quantize": ["Int4"],
    "tensor_engine.nn.onnx": [],
    "tensor_engine.perception.pipeline": ["Pipeline"],
}


def page() -> str:
    """The whole page."""
    families = [base for base in Tensor.__mro__[:0:-1] if base.__module__.startswith("tensor_engine.mixin.")]
    parts = [HEAD, *section("Tensor", Tensor)]
    for family in families:
        if family is not Hooks and public_members(family):
            parts += section(f"Tensor: {family.__module__.rpartition('.')[2]}", family)
    for name, members in PARTS.items():
        parts += module_section(importlib.import_module(name), members)
    return "\n".join(parts)


def section(title: str, owner: type) -> Iterator[str]:
    """A class: its docstring and its public members."""
    yield f"## {title}\n\n{inspect.cleandoc(owner.__doc__ or '')}\n"
    for name, member in public_members(owner):
        yield entry(name, member)


def module_section(module: ModuleType, names: list[str]) -> Iterator[str]:
    """A module: its docstring, its public functions, and its public classes with their methods."""
    yield f"## {module.__name__}\n\n{inspect.getdoc(module)}\n"
    for name in names or public_names(module):
        member = getattr(module, name)
        yield entry(name, member)
        owner = member if inspect.isclass(member) else type(member)
        if owner.__module__ == module.__name__:
            yield from (entry(f"{name}.{below}", method) for below, method in public_members(owner))


def public_names(module: ModuleType) -> list[str]:
    """The classes and functions for users: those that the module lists, or that it makes."""
    made_here = [
        name
        for name, member in vars(module).items()
        if (inspect.isclass(member) or inspect.isfunction(member)) and member.__module__ == module.__name__
    ]
    listed = getattr(module, "__all__", [name for name in made_here if not name.startswith("_")])
    return [name for name in listed if not inspect.ismodule(getattr(module, name))]


def public_members(owner: type) -> list[tuple[str, Any]]:
    """The documented methods and properties that a class adds to those of its bases."""
    inherited = {name for base in owner.__mro__[1:] for name in vars(base)}
    members = [(name, getattr(value, "__func__", value)) for name, value in vars(owner).items()]
    new = [(name, value) for name, value in members if not name.startswith("_") and name not in inherited]
    return [(name, value) for name, value in new if is_documented(value)]


def is_documented(member: Any) -> bool:
    """Is this a function or property with a docstring of its own?"""
    return (inspect.isfunction(member) or isinstance(member, property)) and bool(member.__doc__)


def entry(name: str, member: Any) -> str:
    """One name: signature and docstring."""
    return f"**`{name}{signature(member)}`**  \n{inspect.getdoc(member)}\n"


def signature(member: Any) -> str:
    """The parameters without their types; nothing for what isn't called, or is an error."""
    if not callable(member) or inspect.isclass(member) and issubclass(member, Exception):
        return ""
    parameters = inspect.signature(member).parameters.values()
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters if p.name not in ("self", "cls")]
    text = str(inspect.Signature(plain))
    return re.sub(r" at 0x[0-9a-f]+", "", text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
