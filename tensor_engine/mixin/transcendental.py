"""Roots, powers, exponentials, logarithms and angles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tensor_engine.dtype import ConstType, dtypes, least_upper_dtype
from tensor_engine.mixin.elementwise import ElementwiseMixin
from tensor_engine.mixin.power import power
from tensor_engine.uop.op import Ops

if TYPE_CHECKING:
    from typing_extensions import Self

SQUARES_ROUND_ABOVE = 1e8  # from here on x * x + 1 is x * x, in double precision too
# asin(x) / x as a power series in x²; up to 1/2, where it is used, these terms are enough for a double
ARCSINE_SERIES = tuple(math.comb(2 * n, n) / (4**n * (2 * n + 1)) for n in range(24))


class TranscendentalMixin(ElementwiseMixin):
    """sqrt, exp, log, pow, sin and their kin, all in floats but for powers of integers."""

    __slots__ = ()

    # ---- roots, powers, exponentials

    def reciprocal(self) -> Self:
        """1 / self."""
        return self.to_float().alu(Ops.RECIPROCAL)

    def square(self) -> Self:
        """self * self."""
        return self.alu(Ops.MUL, self)

    def sqrt(self) -> Self:
        """The square root; nan for negative values."""
        return self.to_float().alu(Ops.SQRT)

    def rsqrt(self) -> Self:
        """1 / the square root."""
        return self.sqrt().reciprocal()

    def exp2(self) -> Self:
        """2 ** self."""
        return self.to_float().alu(Ops.EXP2)

    def exp(self) -> Self:
        """e ** self."""
        x = self._in_steps()
        return (x * (1 / math.log(2))).exp2().cast(self.to_float().dtype)

    def _in_steps(self) -> Self:
        """The values in at least float32, for functions of several steps, of which half would round each."""
        x = self.to_float()
        return x.cast(least_upper_dtype(x.dtype, dtypes.float32))

    def log2(self) -> Self:
        """The logarithm to base 2; -inf for 0, nan for negative values."""
        return self.to_float().alu(Ops.LOG2)

    def log(self) -> Self:
        """The natural logarithm; -inf for 0, nan for negative values."""
        return (self._in_steps().log2() * math.log(2)).cast(self.to_float().dtype)

    def log10(self) -> Self:
        """The logarithm to base 10."""
        return (self._in_steps().log2() * math.log10(2)).cast(self.to_float().dtype)

    def log1p(self) -> Self:
        """log(1 + self) without loss for small values (W. Kahan's correction of the rounding of 1 + x)."""
        x = self.to_float()
        u = x + 1
        tiny = u.eq(1)
        # at inf the correction is inf / inf, and at -1 it is exactly 1
        correction = (tiny | u.eq(math.inf)).where(1, x / tiny.where(1, u - 1))
        return tiny.where(x, u.log() * correction)

    def pow(self, x: Self | ConstType, reverse: bool = False) -> Self:
        """self ** x (x ** self if reversed), with numpy's values at zero, infinity and nan.

        Integers to a constant power are exact (modulo the type's width). Integers to a negative power give 0 unless
        the base is 1 or -1, as division that rounds towards zero does.
        """
        if reverse:
            base, exponent = self.meet(x, reverse)
            return power(base, exponent)
        return power(self, x)

    def lerp(self, end: Self, weight: Self | ConstType) -> Self:
        """From this (weight 0) to `end` (weight 1) along a line."""
        return self + (end - self) * weight

    def logaddexp(self, other: Self | ConstType) -> Self:
        """log(exp(self) + exp(other)), made so that nothing overflows."""
        a, b = self.meet(other)
        largest = a.maximum(b)
        shift = largest.isinf().where(0, largest)
        return ((a - shift).exp() + (b - shift).exp()).log() + shift

    def copysign(self, other: Self | ConstType) -> Self:
        """The size of this with the sign of `other`, that of -0.0 included."""
        a, b = self.meet(other)
        negative = b.lt(0) | (b.eq(0) & b.reciprocal().lt(0))
        return negative.where(a.abs().neg(), a.abs())

    # ---- angles

    def sin(self) -> Self:
        """The sine of an angle in radians."""
        return self.to_float().alu(Ops.SIN)

    def cos(self) -> Self:
        """The cosine of an angle in radians.

        1 - 2 sin(x/2)**2: halving is exact, where adding pi/2 to a large angle would lose its last digits.
        """
        half = (self._in_steps() * 0.5).sin()
        return (1 - half * half * 2).cast(self.to_float().dtype)

    def tan(self) -> Self:
        """The tangent of an angle in radians."""
        return self.sin() / self.cos()

    def asin(self) -> Self:
        """The angle whose sine this is, in radians; nan beyond -1 … 1.

        By its series up to 1/2, and beyond by asin(x) = π/2 - 2 asin(√((1 - x) / 2)).
        """
        x = self._in_steps()
        size = x.distance_from_zero()
        is_large = size.gt(0.5)
        near = is_large.where((is_large.where(1 - size, 1) / 2).sqrt(), size)
        series = near * near.square().polynomial(ARCSINE_SERIES)
        result = is_large.where(math.pi / 2 - 2 * series, series)
        return x.lt(0).where(-result, result).cast(self.to_float().dtype)

    def acos(self) -> Self:
        """The angle whose cosine this is, in radians; nan beyond -1 … 1."""
        return (math.pi / 2 - self._in_steps().asin()).cast(self.to_float().dtype)

    def atan(self) -> Self:
        """The angle whose tangent this is, in radians: from its sine; beyond 1 by atan(x) = π/2 - atan(1 / x)."""
        x = self._in_steps()
        size = x.distance_from_zero()
        is_large = size.gt(1)
        tangent = is_large.where(1 / is_large.where(size, 1), size)
        angle = (tangent / (tangent.square() + 1).sqrt()).asin()
        result = is_large.where(math.pi / 2 - angle, angle)
        return x.lt(0).where(-result, result).cast(self.to_float().dtype)

    # ---- hyperbolic functions

    def sinh(self) -> Self:
        """The hyperbolic sine."""
        return (self.exp() - (-self).exp()) / 2

    def cosh(self) -> Self:
        """The hyperbolic cosine."""
        return (self.exp() + (-self).exp()) / 2

    def asinh(self) -> Self:
        """The inverse hyperbolic sine."""
        size = self.to_float().distance_from_zero()
        root = (size.square() + 1).sqrt()
        near = (size + size.square() / (root + 1)).log1p()
        result = size.gt(SQUARES_ROUND_ABOVE).where(size.log() + math.log(2), near)
        return self.lt(0).where(-result, result)

    def acosh(self) -> Self:
        """The inverse hyperbolic cosine; nan below 1."""
        x = self.to_float()
        above = x - 1
        near = (above + (above * (x + 1)).sqrt()).log1p()
        return x.gt(SQUARES_ROUND_ABOVE).where(x.log() + math.log(2), near)

    def atanh(self) -> Self:
        """The inverse hyperbolic tangent; nan beyond -1 … 1."""
        x = self.to_float()
        return (x * 2 / (1 - x)).log1p() / 2

    # ---- parts of smooth functions: each has the slope at 0 of the side that it is joined to there

    def distance_from_zero(self) -> Self:
        """|self| with slope 1 at 0, where `abs` has slope 0."""
        return self.lt(0).where(-self, self)

    def unless_positive(self) -> Self:
        """The value, or 0 if it is positive; with slope 1 at 0, where `minimum` leaves the tie to the number."""
        return self.gt(0).where(0, self)

    def polynomial(self, coefficients: tuple[float, ...]) -> Self:
        """c0 + c1 * self + c2 * self**2 + …, by Horner's rule."""
        result = self.const_like(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            result = result * self + coefficient
        return result

    __pow__ = pow

    def __rpow__(self, x: Self | ConstType) -> Self:
        return self.pow(x, reverse=True)
