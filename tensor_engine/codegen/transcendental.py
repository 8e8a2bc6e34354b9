"""exp2, exp, log2 and sin from additions and multiplications, for float32 and float64, scalar or vector.

Each reduces its argument to a small interval and uses the Taylor series there, whose coefficients are written as what
they are. Accurate to one or two units in the last place; exact for NaN, infinities and zeros.
"""
from __future__ import annotations

import functools
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
    sin_terms: int


FORMATS = {
    "float32": Format(dtypes.int32, 23, 127, -150, 8, 6, 6),
    "float64": Format(dtypes.int64, 52, 1023, -1075, 14, 12, 9),
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


# ---- sine -----------------------------------------------------------------------------------------------------------


class Reduction(NamedTuple):
    """How |x| is reduced to quarter turns: by products with parts of 2/π, `part_bits` each, which are exact in float64.

    `below`: the ends of the segments of |x|; each has parts of its own, for only some digits of 2/π matter in it.
    """

    mantissa_bits: int
    part_bits: int
    parts: int
    below: tuple[int, ...]


# Products with as many parts leave an error of 2**-62 (float32) and 2**-120 (float64) of a quarter turn: enough for the
# number that lies closest to a multiple of π/2 (J.-M. Muller, Elementary Functions, 3rd ed., 11.3).
REDUCTIONS = {
    "float32": Reduction(24, 29, 4, (54, 83, 112, 128)),
    "float64": Reduction(53, 25, 12, (180, 306, 432, 558, 684, 810, 936, 1024)),
}
TWO_BY_PI_BITS = 1300
LARGE = 512  # numbers from a segment above 2**LARGE are made smaller by 2**LARGE, and the parts for them larger


def two_by_pi() -> int:
    """⌊2/π · 2**TWO_BY_PI_BITS⌋; π by Machin's formula in integers."""
    bits = TWO_BY_PI_BITS + 64

    def arctan_of_reciprocal(n: int) -> int:
        total, power, k = 0, (1 << bits) // n, 0
        while power:
            total += (-1) ** k * (power // (2 * k + 1))
            power //= n * n
            k += 1
        return total

    pi = 4 * (4 * arctan_of_reciprocal(5) - arctan_of_reciprocal(239))
    return (1 << (bits + 1 + TWO_BY_PI_BITS)) // pi


@functools.cache
def parts_of_two_by_pi(name: str) -> list[list[float]]:
    """For each segment the parts of 2/π without the digits whose products are whole turns."""
    reduction = REDUCTIONS[name]
    starts = (None, *reduction.below[:-1])
    return [parts_for_segment(reduction, start) for start in starts]


def parts_for_segment(reduction: Reduction, start: int | None) -> list[float]:
    """The parts for |x| from 2**start on; each is rounded, so that the next may be negative."""
    # the last digit of x is worth at least 2**(start + 1 - mantissa_bits): times 2**highest that is 4, a whole turn
    highest = 0 if start is None else 1 + reduction.mantissa_bits - start
    scale = LARGE if start is not None and start >= LARGE else 0
    rest = two_by_pi() & ((1 << (TWO_BY_PI_BITS + highest)) - 1)
    parts = []
    for number in range(reduction.parts):
        lowest = highest - reduction.part_bits * (number + 1)
        place = TWO_BY_PI_BITS + lowest
        part = (rest + (1 << place - 1)) >> place
        rest -= part << place
        parts.append(math.ldexp(part, lowest + scale))
    return parts


def nearest_whole(x: UOp) -> UOp:
    """The nearest integer as a float; halves away from zero."""
    return (x + where(x.alu(Ops.CMPLT, same(x, 0.0)), same(x, -0.5), same(x, 0.5))).alu(Ops.TRUNC)


def without_turns(quarters: UOp) -> UOp:
    """A number of quarter turns without whole turns: between -4 and 4. Exact: no digit comes in."""
    return quarters - (quarters * same(quarters, 0.25)).alu(Ops.TRUNC) * same(quarters, 4.0)


def add_exactly(a: UOp, b: UOp) -> tuple[UOp, UOp]:
    """The sum as it is rounded, and what rounding took (D. Knuth's TwoSum)."""
    total = a + b
    from_b = total - a
    return total, (a - (total - from_b)) + (b - from_b)


def quarter_turns(x: UOp, name: str) -> tuple[UOp, UOp, UOp]:
    """x · 2/π modulo 4: its nearest whole number, what is left, and what rounding took of that.

    The idea is M. Payne's and R. Hanek's ("Radian reduction for trigonometric functions", SIGNUM Newsletter, 1983).
    """
    first, second, *others = map(without_turns, products_with_two_by_pi(x, name))
    total, rest = add_exactly(first, second)
    last = same(x, 0.0)
    for product in others:
        total, error = add_exactly(total, product)
        rest, error = add_exactly(rest, error)
        last = last + error
    total = without_turns(total)
    quarter = nearest_whole(total)
    fraction, lost = add_exactly(total - quarter, rest)
    return quarter, *add_exactly(fraction, lost + last)


def products_with_two_by_pi(x: UOp, name: str) -> list[UOp]:
    """Numbers whose sum is x · 2/π, but for whole turns. All are exact: what is added has the same last digit."""
    reduction, table = REDUCTIONS[name], parts_of_two_by_pi(name)
    size = magnitude(x)
    inside = [size.alu(Ops.CMPLT, same(x, 2.0**end)) for end in reduction.below[:-1]]
    parts = [chosen_part(x, inside, [segment[i] for segment in table]) for i in range(reduction.parts)]
    for end, smaller in zip(reduction.below, inside):
        if end >= LARGE:
            x = where(smaller, x, x * same(x, 2.0**-LARGE))
            break
    if reduction.mantissa_bits + reduction.part_bits <= 53:
        return [x * part for part in parts]
    high, low = halves(x)
    middle = [high * part + low * before for part, before in zip(parts[1:], parts)]
    return [high * parts[0], *middle, low * parts[-1]]


def chosen_part(x: UOp, inside: list[UOp], values: list[float]) -> UOp:
    """The value of the first segment that x is inside of."""
    part = same(x, values[-1])
    for condition, value in zip(inside[::-1], values[-2::-1]):
        part = where(condition, same(x, value), part)
    return part


def halves(x: UOp) -> tuple[UOp, UOp]:
    """A double as a sum of its upper 26 digits and its lower 27."""
    integer = dtypes.int64.vec(x.dtype.count)
    high = (x.bitcast(integer) & UOp.const(integer, -(1 << 27))).bitcast(x.dtype)
    return high, x - high


HALF_PI = (math.pi / 2, 6.123233995736766e-17)  # the second: what the first lacks


def sin(x: UOp) -> UOp:
    """sin(q·π/2 + r) is ±sin r or ±cos r. The reduction is done in float64, whatever x is, and right for every x."""
    fmt, wide = format_of(x), x.cast(dtypes.float64)
    finite = magnitude(wide).alu(Ops.CMPLT, same(wide, math.inf))
    quarter, fraction, lost = quarter_turns(where(finite, wide, same(wide, 0.0)), x.dtype.scalar().name)
    quarter = without_turns(where(quarter.alu(Ops.CMPLT, same(wide, 0.0)), quarter + same(wide, 4.0), quarter))
    angle = fraction * same(wide, HALF_PI[0]) + (fraction * same(wide, HALF_PI[1]) + lost * same(wide, HALF_PI[0]))
    small = magnitude(wide).alu(Ops.CMPLT, same(wide, 0.75))  # nothing to reduce, nothing to lose
    angle = where(small, wide, angle)
    square = angle * angle
    terms = fmt.sin_terms
    sine = angle * polynomial(square, [(-1) ** k / math.factorial(2 * k + 1) for k in range(terms)])
    cosine = polynomial(square, [(-1) ** k / math.factorial(2 * k) for k in range(terms + 1)])
    odd = quarter.alu(Ops.CMPEQ, same(wide, 1.0)) | quarter.alu(Ops.CMPEQ, same(wide, 3.0))
    result = where(odd, cosine, sine)
    result = where(same(wide, 1.5).alu(Ops.CMPLT, quarter), same(wide, 0.0) - result, result)
    return where(finite, result, same(wide, math.nan)).cast(x.dtype)


def magnitude(x: UOp) -> UOp:
    return where(x.alu(Ops.CMPLT, same(x, 0.0)), same(x, 0.0) - x, x)
