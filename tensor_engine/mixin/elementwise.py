"""Operations on one element at a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tensor_engine.dtype import ConstType, dtypes
from tensor_engine.mixin.bits import BitsMixin
from tensor_engine.mixin.broadcast import NUMBER, broadcast_shape
from tensor_engine.uop.op import Ops

if TYPE_CHECKING:
    from typing_extensions import Self


class ElementwiseMixin(BitsMixin):
    """Arithmetic, comparison, choice, sign and rounding."""

    __slots__ = ()

    # ---- arithmetic; `reverse` exchanges the operands

    def add(self, x: Self | ConstType, reverse: bool = False) -> Self:
        """self + x."""
        a, b = self.meet(x, reverse)
        return a.alu(Ops.ADD, b)

    def mul(self, x: Self | ConstType, reverse: bool = False) -> Self:
        """self * x."""
        a, b = self.meet(x, reverse)
        return a.alu(Ops.MUL, b)

    def neg(self) -> Self:
        """-self; for bools their opposite."""
        if self.dtype.kind == "b":
            return self.logical_not()
        return self.alu(Ops.MUL, self.const_like(-1))

    def sub(self, x: Self | ConstType, reverse: bool = False) -> Self:
        """self - x."""
        a, b = self.meet(x, reverse)
        if a.dtype.kind == "b":
            raise TypeError("bools can't be subtracted: use ^ or logical_not")
        if isinstance(x, NUMBER):
            return b.neg().alu(Ops.ADD, a) if reverse else a.alu(Ops.ADD, a.const_like(-x))
        return a.alu(Ops.ADD, b.neg())

    def div(self, x: Self | ConstType, reverse: bool = False, rounding_mode: str | None = None) -> Self:
        """self / x, in floats. With `rounding_mode` "trunc" or "floor" rounded towards zero or down, and an integer of
        integers, where division by zero gives 0.
        """
        if rounding_mode not in (None, "trunc", "floor"):
            raise ValueError(f"div's rounding_mode is 'trunc', 'floor' or None, not {rounding_mode!r}")
        a, b = self.meet(x, reverse)
        if rounding_mode == "floor":
            return a._floordiv(b)
        if rounding_mode == "trunc" and a.dtype.kind != "f":
            down = a._floordiv(b)
            return (a._mod(b).ne(0) & a.lt(0).ne(b.lt(0))).where(down + 1, down)
        quotient = a.to_float().alu(Ops.FDIV, b.to_float())
        return quotient if rounding_mode is None else quotient.trunc()

    def floordiv(self, x: Self | ConstType, reverse: bool = False) -> Self:
        """self / x, rounded down. An integer divided by zero gives 0, a float inf or nan.

        For doubles the quotient is rounded before it is rounded down: 1 // 0.1 is 10.
        """
        a, b = self.meet(x, reverse)
        return a._floordiv(b)

    def mod(self, x: Self | ConstType, reverse: bool = False) -> Self:
        """What floor division leaves over; it has the sign of `x`. An integer modulo zero gives 0."""
        a, b = self.meet(x, reverse)
        return a._mod(b)

    def fmod(self, x: Self | ConstType) -> Self:
        """What division rounded towards zero leaves over; it has the sign of this. An integer modulo zero gives 0."""
        a, b = self.meet(x)
        if a.dtype.kind in "bu":
            return a._mod(b)
        rest = a._mod(b)
        return (rest.ne(0) & a.lt(0).ne(b.lt(0))).where(rest - b, rest)

    def _floordiv(self, other: Self) -> Self:
        if self.dtype.kind == "f":
            return self._quotient_and_rest(other)[0]
        if self.dtype.kind == "b":
            return self.cast(dtypes.int8).alu(Ops.IDIV, other.cast(dtypes.int8))
        return self.alu(Ops.IDIV, other)

    def _mod(self, other: Self) -> Self:
        if self.dtype.kind == "b":
            return self.cast(dtypes.int8).alu(Ops.MOD, other.cast(dtypes.int8))
        if self.dtype.kind == "f":
            return self._quotient_and_rest(other)[1]
        return self.alu(Ops.MOD, other)

    def _quotient_and_rest(self, other: Self) -> tuple[Self, Self]:
        """Of floats: the quotient rounded down, and what is left, from 0 to `other`.

        They are made in double precision, in which the product of two smaller floats is exact. The quotient was
        rounded before it was rounded down, and may be one too large.
        """
        a, b = self.cast(dtypes.float64), other.cast(dtypes.float64)
        quotient = a.alu(Ops.FDIV, b).floor()
        # 0 * inf is nan, yet 5 % inf is 5
        rest = a - quotient.eq(0).where(0, quotient.alu(Ops.MUL, b))
        too_large = rest.ne(0) & rest.lt(0).ne(b.lt(0))
        quotient, rest = too_large.where(quotient - 1, quotient), too_large.where(rest + b, rest)
        return quotient.cast(self.dtype), rest.cast(self.dtype)

    def maximum(self, x: Self | ConstType) -> Self:
        """The larger of the two; nan if either is."""
        a, b = self.meet(x)
        return a.alu(Ops.MAX, b)

    def minimum(self, x: Self | ConstType) -> Self:
        """The smaller of the two; nan if either is."""
        a, b = self.meet(x)
        return a._reverse_order().alu(Ops.MAX, b._reverse_order())._reverse_order()

    def _reverse_order(self) -> Self:
        """Values that compare the other way round; twice gives them back, without overflow."""
        if self.dtype.kind == "f":
            return self.neg()
        if self.dtype.kind in "ix":  # ~self, in a form whose bounds are easily known
            return self.neg().alu(Ops.ADD, self.const_like(-1))
        return self.bitwise_not()

    # ---- comparison

    def lt(self, x: Self | ConstType) -> Self:
        """self < x."""
        a, b = self.meet(x)
        return a.alu(Ops.CMPLT, b)

    def gt(self, x: Self | ConstType) -> Self:
        """self > x."""
        a, b = self.meet(x)
        return b.alu(Ops.CMPLT, a)

    def le(self, x: Self | ConstType) -> Self:
        """self <= x."""
        a, b = self.meet(x)
        return b._ge(a)

    def ge(self, x: Self | ConstType) -> Self:
        """self >= x."""
        a, b = self.meet(x)
        return a._ge(b)

    def _ge(self, other: Self) -> Self:
        if self.dtype.kind == "f":  # with nan, "not less" is not "greater or equal"
            return other.alu(Ops.CMPLT, self).alu(Ops.OR, self.alu(Ops.CMPEQ, other))
        return self.alu(Ops.CMPLT, other).logical_not()

    def eq(self, x: Self | ConstType) -> Self:
        """self == x."""
        a, b = self.meet(x)
        return a.alu(Ops.CMPEQ, b)

    def ne(self, x: Self | ConstType) -> Self:
        """self != x."""
        a, b = self.meet(x)
        return a.alu(Ops.CMPNE, b)

    def isnan(self) -> Self:
        """True where the value is nan."""
        return self.alu(Ops.CMPNE, self)

    def isinf(self, detect_positive: bool = True, detect_negative: bool = True) -> Self:
        """True where the value is inf or -inf, or one of them."""
        if self.dtype.kind != "f":
            return self.const_like(False, dtypes.bool)
        found = self.const_like(False, dtypes.bool)
        if detect_positive:
            found = self.eq(math.inf)
        return found | self.eq(-math.inf) if detect_negative else found

    def isfinite(self) -> Self:
        """True where the value is neither inf, -inf nor nan."""
        if self.dtype.kind != "f":
            return self.const_like(True, dtypes.bool)
        return self.abs().lt(math.inf)

    def isclose(self, other: Self | ConstType, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Self:
        """True where |self - other| <= atol + rtol * |other|; infinities are close to themselves."""
        a, b = self.meet(other)
        a, b = a.to_float(), b.to_float()
        near = (a - b).abs().le(b.abs() * rtol + atol) & a.isfinite() & b.isfinite()
        near = near | a.eq(b)
        return near | (a.isnan() & b.isnan()) if equal_nan else near

    # ---- choice

    def where(self, x: Self | ConstType, y: Self | ConstType) -> Self:
        """x where this is true, y where it is false; the three shapes broadcast."""
        condition = self.cast(dtypes.bool)
        x, y = condition._choices(x, y)
        if condition.shape != x.shape:
            shape = broadcast_shape(condition.shape, x.shape)
            condition, x, y = condition.broadcast_to(shape), x.broadcast_to(shape), y.broadcast_to(shape)
        return condition.alu(Ops.WHERE, x, y)

    def _choices(self, x: Self | ConstType, y: Self | ConstType) -> tuple[Self, Self]:
        """x and y in one type and shape. Two Python numbers take this shape."""
        if not isinstance(x, NUMBER):
            x = x if isinstance(x, ElementwiseMixin) else self.as_operand(x)
            return x.meet(y)
        if not isinstance(y, NUMBER):
            y = y if isinstance(y, ElementwiseMixin) else self.as_operand(y)
            y, x = y.meet(x)
            return x, y
        dtype = dtypes.from_py(x, y).vec(self.dtype.count)
        return self.const_like(x, dtype), self.const_like(y, dtype)

    def clamp(self, min_: Self | ConstType | None = None, max_: Self | ConstType | None = None) -> Self:
        """The values cut to at least `min_` and at most `max_`; either may be left out."""
        if min_ is None and max_ is None:
            raise ValueError("clamp needs a minimum or a maximum")
        value = self if min_ is None else self.maximum(min_)
        return value if max_ is None else value.minimum(max_)

    clip = clamp

    # ---- sign and rounding

    def sign(self) -> Self:
        """-1, 0 or 1; nan stays nan."""
        if self.dtype.kind == "b":
            return self
        return self.lt(0).where(self.const_like(-1), self.gt(0).where(self.const_like(1), self.detach()))

    def abs(self) -> Self:
        """The value without its sign; of -0.0 it is 0.0. The slope at 0 is 0."""
        if self.dtype.kind in "bu":
            return self
        size = self.lt(0).where(self.neg(), self)
        return self.eq(0).where(0, size) if self.dtype.kind == "f" else size

    def trunc(self) -> Self:
        """Rounded towards zero."""
        return self.alu(Ops.TRUNC) if self.dtype.kind == "f" else self

    def floor(self) -> Self:
        """Rounded down."""
        cut = self.trunc()
        return cut if cut is self else self.lt(cut).where(cut - 1, cut)

    def ceil(self) -> Self:
        """Rounded up."""
        cut = self.trunc()
        return cut if cut is self else cut.lt(self).where(cut + 1, cut)

    def round(self) -> Self:
        """Rounded to the nearest integer, halves to the even one."""
        cut = self.trunc()
        if cut is self:
            return self
        rest = (self - cut).abs()
        half = cut * 0.5
        odd = half.trunc().ne(half)
        away = rest.gt(0.5) | (rest.eq(0.5) & odd)
        return away.where(cut + self.lt(0).where(self.const_like(-1), self.const_like(1)), cut)

    # ---- Python's operators; == and != stay with each class

    __add__ = __radd__ = add
    __mul__ = __rmul__ = mul
    __sub__, __truediv__, __floordiv__, __mod__ = sub, div, floordiv, mod
    __neg__, __abs__ = neg, abs
    __lt__, __gt__, __le__, __ge__ = lt, gt, le, ge

    def __rsub__(self, x: Self | ConstType) -> Self:
        return self.sub(x, reverse=True)

    def __rtruediv__(self, x: Self | ConstType) -> Self:
        return self.div(x, reverse=True)

    def __rfloordiv__(self, x: Self | ConstType) -> Self:
        return self.floordiv(x, reverse=True)

    def __rmod__(self, x: Self | ConstType) -> Self:
        return self.mod(x, reverse=True)
