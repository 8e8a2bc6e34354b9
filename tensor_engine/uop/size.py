"""Sizes that depend on variables: n, n + 1, 10 - n, each variable with the value that it is bound to.

A graph with such sizes is made, scheduled and compiled once for all values; what they are comes with each launch.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp, as_size, sint

Values = Mapping[str, int]


def nodes_in(arg: Any) -> Iterator[UOp]:
    """The sizes that are nodes in a shape, or in the argument of a movement operation."""
    if isinstance(arg, tuple):
        for part in arg:
            yield from nodes_in(part)
    elif isinstance(arg, UOp):
        yield arg


def values_in(sizes: Iterable[UOp]) -> dict[str, int]:
    """What the variables in these sizes are bound to. Raises ValueError if one is bound to two values."""
    values: dict[str, int] = {}
    for size in sizes:
        for node in size.toposort():
            if node.op is Ops.BIND:
                add_value(values, node)
    return values


def add_value(values: dict[str, int], bound: UOp) -> None:
    """Note the value of a BIND. Raises ValueError if the variable has another one already."""
    variable, value = bound.unbind()
    name = variable.arg[0]
    if values.setdefault(name, value) != value:
        raise ValueError(f"the variable {name!r} is bound to {values[name]} and to {value} in one computation")


def value_of(size: sint) -> int:
    """The size as it is now. Raises ValueError if it depends on a variable that isn't bound."""
    if isinstance(size, int):
        return size
    bound = {node: node.src[1] for node in size.toposort() if node.op is Ops.BIND}
    known = as_size(size.substitute(bound).simplified)
    if not isinstance(known, int):
        raise ValueError(f"{size!r} has no value yet: bind its variable")
    return known


def with_values(arg: Any, values: Values) -> Any:
    """A size, a shape or the argument of a movement operation with its variables bound to these values."""
    if isinstance(arg, tuple):
        return tuple([with_values(part, values) for part in arg])
    if not isinstance(arg, UOp):
        return arg
    bound = [node for node in arg.toposort() if node.op is Ops.BIND]
    return arg.substitute({node: node.src[0].bind(values[node.src[0].arg[0]]) for node in bound})


def without_values(arg: Any) -> Any:
    """A shape with its variables as such: equal for all values."""
    if isinstance(arg, tuple):
        return tuple([without_values(part) for part in arg])
    if not isinstance(arg, UOp):
        return arg
    return arg.substitute({node: node.src[0] for node in arg.toposort() if node.op is Ops.BIND})
