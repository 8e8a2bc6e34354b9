"""exp2, exp and log2 from additions and multiplications, for float32 and float64, scalar or vector.

Each reduces its argument to a small interval and uses the Taylor series there, whose coefficients are written as what
they are. Accurate to one or two units in the last place; exact for NaN, infinities and zeros.
"""
from __future__ import annotations

import math
from typing import NamedTuple

from tensor_engine.dtype import DType, dtypes
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp


class Format(NamedTuple):
    """How a float type is laid out, and how many terms of each series it needs."""

    integer: DType
    mantissa_bits: int
    bias: int
    smallest_exponent: int
    exp2_terms: int
    log2_terms: int


FORMATS = {
    "float32": Format(dtypes.int32, 23, 127, -150, 8, 6),
    "float64": Format(dtypes.int64, 52, 1023, -1075, 14, 12),
}


def format_of(x: UOp) -> Format:
    return FORMATS[x.dtype.name]


def same(x: UOp, value: float) -> UOp:
    """A constant of x's type."""
    return UOp.const(x.dtype, value)


def where(condition: UOp, yes: UOp, no: UOp) -> UOp:
    return condition.alu(Ops.WHERE, yes, no)


def polynomial(x: UOp, coefficients: list[float]) -> UOp:
    """Σ coefficient[k]·xᵏ by Horner's rule."""
    total = same(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + same(x, coefficient)
    return total


def magnitude(x: UOp) -> UOp:
    return where(x.alu(Ops.CMPLT, same(x, 0.0)), same(x, 0.0) - x, x)


def is_nan(x: UOp) -> UOp:
    return x.alu(Ops.CMPNE, x)


def as_int(x: UOp) -> UOp:
    """A cast of a value that is known to fit."""
    return UOp(Ops.CAST, format_of(x).integer.vec(x.dtype.count), (x,))


def as_float(x: UOp, like: UOp) -> UOp:
    """An integer as a float of the other operand's type."""
    return UOp(Ops.CAST, like.dtype, (x,))


def nearest(x: UOp) -> UOp:
    """The nearest integer; halves away from zero. For |x| below half the integer range."""
    return as_int(x + where(x.alu(Ops.CMPLT, same(x, 0.0)), same(x, -0.5), same(x, 0.5)))


def power_of_two(exponent: UOp, like: UOp) -> UOp:
    """2**exponent by writing the exponent's bits, for exponents of normal numbers."""
    fmt = format_of(like)
    bits = (exponent + UOp.const(exponent.dtype, fmt.bias)).alu(
        Ops.SHL, UOp.const(exponent.dtype, fmt.mantissa_bits)
    )
    return bits.bitcast(like.dtype)


def exp2(x: UOp) -> UOp:
    """2**x = 2**n · 2**r with n the nearest integer and |r| ≤ 1/2."""
    return power_in_steps(x, 1.0, 0.0)


# ln 2 in two parts, of which n times the first is exact for all n that occur (W. Cody and W. Waite)
LN2_PARTS = {
    "float32": (45426 / 2**16, math.log(2) - 45426 / 2**16),
    "float64": (0.6931471803691238, 1.9082149292705877e-10),
}


def exp(x: UOp, factor: float) -> UOp:
    """e**(factor · x) where the factor is a power of two, or its opposite. x · log2(e) would be rounded too early."""
    high, low = LN2_PARTS[x.dtype.scalar().name]
    return power_in_steps(x, high / factor, low / factor)


def power_in_steps(x: UOp, high: float, low: float) -> UOp:
    """2**(x / step), where step is high + low: it is 2**n · 2**(r / step) with r = x - n · step."""
    fmt, step = format_of(x), high + low
    smallest, largest = sorted(((fmt.smallest_exponent - 1) * step, (fmt.bias + 2) * step))  # beyond: 0 and inf
    bounded = where(same(x, smallest).alu(Ops.CMPLT, x), x, same(x, smallest))
    bounded = where(bounded.alu(Ops.CMPLT, same(x, largest)), bounded, same(x, largest))
    exponent = nearest(bounded if step == 1 else bounded * same(x, 1 / step))
    whole = as_float(exponent, x)
    rest = bounded - whole * same(x, high) - whole * same(x, low) if low else bounded - whole
    slope = math.log(2) / step
    series = polynomial(rest, [slope**k / math.factorial(k) for k in range(fmt.exp2_terms)])
    # in two steps, because 2**n alone is no normal number at either end
    first = exponent.alu(Ops.SHR, UOp.const(exponent.dtype, 1))
    result = series * power_of_two(first, x) * power_of_two(exponent - first, x)
    return where(is_nan(x), x, result)


def log2(x: UOp) -> UOp:
    """log2(m · 2**e) = e + log2(m) with m between √½ and √2, and log2(m) = 2/ln 2 · artanh((m-1)/(m+1))."""
    fmt = format_of(x)
    tiny = x.alu(Ops.CMPLT, same(x, 2.0 ** (1 - fmt.bias)))  # subnormal: scale up first
    scale = fmt.mantissa_bits + 2
    scaled = where(tiny, x * same(x, 2.0**scale), x)
    bits = scaled.bitcast(fmt.integer.vec(x.dtype.count))
    # subtracting the bits of √½ makes the exponent step at √½·2ᵏ instead of at 2ᵏ
    root = UOp.const(bits.dtype, float_bits(math.sqrt(0.5), fmt))
    exponent = (bits - root).alu(Ops.SHR, UOp.const(bits.dtype, fmt.mantissa_bits))
    mantissa = (bits - exponent.alu(Ops.SHL, UOp.const(bits.dtype, fmt.mantissa_bits))).bitcast(x.dtype)
    ratio = (mantissa - same(x, 1.0)).alu(Ops.FDIV, mantissa + same(x, 1.0))
    series = polynomial(ratio * ratio, [2 / math.log(2) / (2 * k + 1) for k in range(fmt.log2_terms)])
    offset = where(tiny, same(x, -float(scale)), same(x, 0.0))
    result = ratio * series + (as_float(exponent, x) + offset)
    result = where(x.alu(Ops.CMPLT, same(x, math.inf)), result, x)  # inf and NaN are their own logarithm
    result = where(x.alu(Ops.CMPLT, same(x, 0.0)), same(x, math.nan), result)
    return where(x.alu(Ops.CMPEQ, same(x, 0.0)), same(x, -math.inf), result)


def float_bits(value: float, fmt: Format) -> int:
    """The bits of a positive normal number, rounded down."""
    mantissa, exponent = math.frexp(value)
    return ((exponent - 1 + fmt.bias) << fmt.mantissa_bits) + int((2 * mantissa - 1) * 2**fmt.mantissa_bits)
