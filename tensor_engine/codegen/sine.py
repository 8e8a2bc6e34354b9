"""sin from additions and multiplications, for float32 and float64, scalar or vector: right for every number.

An angle is first reduced to the nearest quarter turn and a rest. That takes digits of 2/π from a place that depends on
how large the angle is (M. Payne and R. Hanek, "Radian reduction for trigonometric functions", SIGNUM Newsletter, 1983).
What is left has a Taylor series. All is done in float64, whatever the type is. Accurate to two units in the last place.
"""
from __future__ import annotations

import functools
import math
from typing import NamedTuple

from tensor_engine.codegen.transcendental import magnitude, polynomial, same, where
from tensor_engine.dtype import dtypes
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp


class Reduction(NamedTuple):
    """How |x| is reduced to quarter turns: by products with parts of 2/π, `part_bits` each, which are exact in float64.

    `below`: the ends of the segments of |x|; each has parts of its own, for only some digits of 2/π matter in it.
    `terms`: how many terms of its series the sine of what is left needs.
    """

    mantissa_bits: int
    part_bits: int
    parts: int
    below: tuple[int, ...]
    terms: int


# Products with as many parts leave an error of 2**-62 (float32) and 2**-120 (float64) of a quarter turn: enough for the
# number that lies closest to a multiple of π/2 (J.-M. Muller, Elementary Functions, 3rd ed., 11.3).
REDUCTIONS = {
    "float32": Reduction(24, 29, 4, (54, 83, 112, 128), 6),
    "float64": Reduction(53, 25, 12, (180, 306, 432, 558, 684, 810, 936, 1024), 9),
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
    """x · 2/π modulo 4: its nearest whole number, what is left, and what rounding took of that."""
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
    """sin(q·π/2 + r) is ±sin r or ±cos r."""
    name, wide = x.dtype.scalar().name, x.cast(dtypes.float64)
    finite = magnitude(wide).alu(Ops.CMPLT, same(wide, math.inf))
    quarter, fraction, lost = quarter_turns(where(finite, wide, same(wide, 0.0)), name)
    quarter = without_turns(where(quarter.alu(Ops.CMPLT, same(wide, 0.0)), quarter + same(wide, 4.0), quarter))
    angle = fraction * same(wide, HALF_PI[0]) + (fraction * same(wide, HALF_PI[1]) + lost * same(wide, HALF_PI[0]))
    small = magnitude(wide).alu(Ops.CMPLT, same(wide, 0.75))  # nothing to reduce, nothing to lose
    angle = where(small, wide, angle)
    square = angle * angle
    terms = REDUCTIONS[name].terms
    sine = angle * polynomial(square, [(-1) ** k / math.factorial(2 * k + 1) for k in range(terms)])
    cosine = polynomial(square, [(-1) ** k / math.factorial(2 * k) for k in range(terms + 1)])
    odd = quarter.alu(Ops.CMPEQ, same(wide, 1.0)) | quarter.alu(Ops.CMPEQ, same(wide, 3.0))
    result = where(odd, cosine, sine)
    result = where(same(wide, 1.5).alu(Ops.CMPLT, quarter), same(wide, 0.0) - result, result)
    return where(finite, result, same(wide, math.nan)).cast(x.dtype)
