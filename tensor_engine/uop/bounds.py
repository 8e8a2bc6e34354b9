"""Bounds of integer values: what the compiler knows of an index without running anything."""
from __future__ import annotations

import math
from typing import Any

from tensor_engine.dtype import ConstType, dtypes
from tensor_engine.uop.op import Ops

Bounds = tuple[ConstType, ConstType]


def min_max(node: Any) -> Bounds:
    """The smallest interval that we can prove to hold the node's value. Floats are not tracked (NaN has no place)."""
    dtype = node.dtype
    if node.op is Ops.CONST:
        return (node.arg, node.arg) if node.arg == node.arg else (-math.inf, math.inf)
    if dtype.kind in "fv":
        return -math.inf, math.inf
    limits = (dtypes.min(dtype), dtypes.max(dtype))
    rule = _RULES.get(node.op)
    if rule is None:
        return limits
    low, high = rule(node)
    # arithmetic that can leave the type's range wraps: then nothing is known
    return (low, high) if low >= limits[0] and high <= limits[1] else limits


def _corners(node: Any, combine: Any) -> Bounds:
    (a, b), (c, d) = node.src[0].min_max, node.src[1].min_max
    values = [combine(x, y) for x in (a, b) for y in (c, d)]
    return min(values), max(values)


def _range(node: Any) -> Bounds:
    return 0, max(node.src[0].vmax - 1, 0)


def _idiv(node: Any) -> Bounds:
    low, high = node.src[1].min_max
    if low <= 0 <= high:
        return node.dtype.min, node.dtype.max
    return _corners(node, lambda x, y: x // y)


def _mod(node: Any) -> Bounds:
    (low, high), (divisor_low, divisor_high) = node.src[0].min_max, node.src[1].min_max
    if divisor_low <= 0:
        return node.dtype.min, node.dtype.max
    if divisor_low == divisor_high and low // divisor_low == high // divisor_low:
        return low % divisor_low, high % divisor_low
    return 0, min(divisor_high - 1, high) if low >= 0 else divisor_high - 1


def _and(node: Any) -> Bounds:
    (low, high), (mask_low, mask_high) = node.src[0].min_max, node.src[1].min_max
    if node.dtype.kind == "b":
        return low and mask_low, high and mask_high
    if mask_low == mask_high and mask_low >= 0:
        return 0, min(mask_high, high) if low >= 0 else mask_high
    return node.dtype.min, node.dtype.max


def _or(node: Any) -> Bounds:
    (a, b), (c, d) = node.src[0].min_max, node.src[1].min_max
    return (a or c, b or d) if node.dtype.kind == "b" else (node.dtype.min, node.dtype.max)


def _shift(node: Any) -> Bounds:
    low, high = node.src[1].min_max
    if low < 0 or high >= 64:
        return node.dtype.min, node.dtype.max
    return _corners(node, (lambda x, y: x << y) if node.op is Ops.SHL else (lambda x, y: x >> y))


def _less(node: Any) -> Bounds:
    (a, b), (c, d) = node.src[0].min_max, node.src[1].min_max
    if node.src[0].dtype.kind == "f":
        return False, True
    return (True, True) if b < c else (False, False) if a >= d else (False, True)


def _equal(node: Any) -> Bounds:
    x, y = node.src
    (a, b), (c, d) = x.min_max, y.min_max
    if x.dtype.kind == "f":
        return False, True
    same, apart = (x is y or a == b == c == d), (b < c or d < a)
    truth = (True, True) if same else (False, False) if apart else (False, True)
    return truth if node.op is Ops.CMPEQ else (not truth[1], not truth[0])


def _cast(node: Any) -> Bounds:
    if node.src[0].dtype.kind == "f":
        return node.dtype.min, node.dtype.max
    low, high = node.src[0].min_max
    return (bool(low), bool(high)) if node.dtype.kind == "b" and low >= 0 else (int(low), int(high))


def _where(node: Any) -> Bounds:
    (a, b), (c, d) = node.src[1].min_max, node.src[2].min_max
    return min(a, c), max(b, d)


def _lanes(node: Any) -> Bounds:
    return min(s.vmin for s in node.src), max(s.vmax for s in node.src)


_RULES: dict[Ops, Any] = {
    Ops.RANGE: _range,
    Ops.DEFINE_VAR: lambda node: (node.arg[1], node.arg[2]),
    Ops.BIND: lambda node: node.src[0].min_max,  # not the value: one kernel serves all of them
    Ops.ADD: lambda node: (node.src[0].vmin + node.src[1].vmin, node.src[0].vmax + node.src[1].vmax),
    Ops.SUB: lambda node: (node.src[0].vmin - node.src[1].vmax, node.src[0].vmax - node.src[1].vmin),
    Ops.MUL: lambda node: _corners(node, lambda x, y: x * y),
    Ops.NEG: lambda node: (-node.src[0].vmax, -node.src[0].vmin),
    Ops.MAX: lambda node: (max(s.vmin for s in node.src), max(s.vmax for s in node.src)),
    Ops.IDIV: _idiv,
    Ops.MOD: _mod,
    Ops.AND: _and,
    Ops.OR: _or,
    Ops.SHL: _shift,
    Ops.SHR: _shift,
    Ops.CMPLT: _less,
    Ops.CMPEQ: _equal,
    Ops.CMPNE: _equal,
    Ops.CAST: _cast,
    Ops.WHERE: _where,
    Ops.VECTORIZE: _lanes,
    Ops.GEP: lambda node: node.src[0].min_max,
    Ops.AFTER: lambda node: node.src[0].min_max,
}
