"""Powers: a case for each kind of exponent, so that every one is as exact as it can be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

from tensor_engine.dtype import ConstType, dtypes
from tensor_engine.uop.op import Ops

if TYPE_CHECKING:
    from tensor_engine.mixin.transcendental import TranscendentalMixin

    V = TypeVar("V", bound=TranscendentalMixin)

# exp2 magnifies the rounding of its argument: it is computed in a wider type, if there is one
WIDER = {"float16": dtypes.float32, "bfloat16": dtypes.float32}
LARGEST_WRITTEN_OUT = 64  # beyond this, multiplying is slower and no more exact than exp2 and log2


def power(base: V, exponent: V | ConstType) -> V:
    """base ** exponent."""
    if isinstance(exponent, (bool, int, float)):
        return constant_power(base, exponent)
    base, exponent = base.meet(exponent)
    if base.dtype.kind == "f":
        return float_power(base, exponent)
    return integer_power(base, exponent)


def constant_power(base: V, exponent: ConstType) -> V:
    """A power known when the graph is built."""
    integral = float(exponent).is_integer()
    if isinstance(exponent, float) and base.dtype.kind != "f":
        base = base.to_float()
    if base.dtype.kind in "iubx":
        return constant_integer_power(base, int(exponent))
    if exponent == 0.5:
        return base.sqrt()
    if not integral or abs(exponent) > LARGEST_WRITTEN_OUT:
        return float_power(base, base.const_like(exponent))
    result = multiplied(base, abs(int(exponent)))
    return result.reciprocal() if exponent < 0 else result


def constant_integer_power(base: V, exponent: int) -> V:
    """An integer to an integer power, exact modulo the type's width."""
    if base.dtype.kind == "b":
        base = base.cast(dtypes.default_int)
    if exponent < 0:
        return integer_power(base, base.const_like(exponent))
    return multiplied(base, exponent)


def multiplied(base: V, count: int) -> V:
    """base * base * …, by squaring; 1 for a count of 0."""
    if count == 0:
        return base.const_like(1)
    half = multiplied(base, count // 2) if count > 1 else None
    if half is None:
        return base
    square = half.alu(Ops.MUL, half)
    return square.alu(Ops.MUL, base) if count % 2 else square


def integer_power(base: V, exponent: V) -> V:
    """Integers to integer powers: one multiplication a bit of the exponent, modulo the type's width."""
    result, square = base.const_like(1), base
    for bit in range(base.dtype.bits - (base.dtype.kind != "u")):
        chosen = exponent.bitwise_and(1 << bit).ne(0)
        result = chosen.where(result.alu(Ops.MUL, square), result)
        square = square.alu(Ops.MUL, square)
    if base.dtype.kind == "u":
        return result
    odd = exponent.bitwise_and(1).ne(0)
    reciprocal = base.eq(1).where(1, base.eq(-1).where(odd.where(base, 1), 0))
    return exponent.lt(0).where(reciprocal, result)


def float_power(base: V, exponent: V) -> V:
    """exp2(exponent * log2 |base|), with the sign and the exceptional values of IEEE 754's pow."""
    size = base.abs()
    wide = WIDER.get(base.dtype.name, dtypes.float64)
    magnitude = (exponent.cast(wide) * size.cast(wide).log2()).exp2().cast(base.dtype)
    whole = exponent.trunc().eq(exponent)
    half = exponent * 0.5
    odd = whole & half.trunc().ne(half) & exponent.isfinite()
    negative = base.lt(0)
    signed = (negative & odd).where(magnitude.neg(), magnitude)
    valid = (negative & whole.logical_not() & base.isfinite()).where(math.nan, signed)
    # where the way by logarithms gives 1 it is left alone, for the slope's sake
    one = exponent.eq(0) | base.eq(1) | (size.eq(1) & exponent.isinf())
    return (one & valid.isnan()).where(1.0, valid)
