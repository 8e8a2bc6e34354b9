"""Sizes of axes, and places in them: ints, or nodes where they depend on variables."""

from __future__ import annotations

import operator
from typing import Any

from tensor_engine.uop.op import Ops


def as_sequence(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Whole numbers given one by one, or as one tuple or list. Raises TypeError for what is none."""
    return tuple(map(as_whole, args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args))


def as_whole(number: Any) -> Any:
    """An int as Python's own; None, and a size that depends on variables, as they are."""
    if type(number) is int or number is None:
        return number
    if is_symbolic(number):
        return number.arg if number.op is Ops.CONST else number
    try:
        return operator.index(number)
    except TypeError:
        raise TypeError(f"sizes and axes are whole numbers, not {number!r:.80}") from None


def as_shape(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sizes of something new. Raises TypeError or ValueError for what is no size."""
    shape = as_sequence(args)
    check_sizes(shape)
    return shape


def check_sizes(shape: tuple[Any, ...]) -> None:
    """Raise ValueError for a size that is or may be negative, or none."""
    if any(size is None or (size < 0 if type(size) is int else not certain(size >= 0)) for size in shape):
        raise ValueError(f"a shape has sizes that are not negative, not {shape}")


# ---- sizes that depend on variables -----------------------------------------------------------------------------


def is_symbolic(number: Any) -> bool:
    """True for a size that depends on variables: a node that is its own value, of the type of indices."""
    node: Any = getattr(number, "uop", None)
    return node is not None and node is number and bool(node.dtype.kind == "x")


def certain(condition: Any) -> bool:
    """True for what holds whatever the variables' values are."""
    return condition if isinstance(condition, bool) else bool(condition.vmin)


def fixed(size: Any, what: str) -> int:
    """A size that is an int. Raises NotImplementedError, naming what needs it, for one that depends on variables."""
    if is_symbolic(size):
        raise NotImplementedError(f"{what} needs a size that is known, not {size!r}: its steps would depend on it")
    return size


def larger(a: Any, b: Any) -> Any:
    """The larger of two sizes."""
    if certain(a <= b):
        return b
    if certain(b <= a):
        return a
    return a.maximum(b) if is_symbolic(a) else b.maximum(a)


def smaller(a: Any, b: Any) -> Any:
    """The smaller of two sizes."""
    return -larger(-a, -b)
