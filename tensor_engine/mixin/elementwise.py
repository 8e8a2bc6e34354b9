"""Operations on one element at a time, and how two operands meet."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tensor_engine.dtype import ConstType, DType, dtypes, least_upper_dtype, narrowest_int
from tensor_engine.mixin.hooks import Hooks
from tensor_engine.mixin.power import power
from tensor_engine.uop.op import Ops

if TYPE_CHECKING:
    from typing_extensions import Self

NUMBER = (bool, int, float)


# ---- how operands meet ------------------------------------------------------------------------------------------


def dtype_with_scalar(dtype: DType, value: ConstType) -> DType:
    """The type in which a tensor of type `dtype` meets a Python number.

    A Python number is weak: it takes the tensor's type. An integer tensor that meets a float goes to the default
    float, a bool tensor that meets an int to the default int, and an integer type that is too narrow for the number
    gives way to the next that isn't.
    """
    if dtype.kind in "fx" or isinstance(value, bool):
        return dtype
    if isinstance(value, float):
        return dtypes.default_float.vec(dtype.count)
    scalar = dtypes.default_int if dtype.kind == "b" else dtype.scalar()
    if not scalar.min <= value <= scalar.max:
        scalar = least_upper_dtype(scalar, narrowest_int(value))
        if dtypes.is_float(scalar):
            raise OverflowError(f"{value} fits no integer type together with {dtype}")
    return scalar.vec(dtype.count)


def broadcast_shape(*shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shape that all `shapes` expand to, as in numpy. Raises ValueError when there is none."""
    ndim = max(map(len, shapes))
    aligned = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*aligned):
        distinct = set(sizes) - {1}
        if len(distinct) > 1:
            raise ValueError(f"shapes {' and '.join(map(str, shapes))} don't broadcast")
        result.append(distinct.pop() if distinct else 1)
    return tuple(result)


class ElementwiseMixin(Hooks):
    """Arithmetic, comparison, bits, rounding, powers and trigonometry."""

    __slots__ = ()

    def meet(self, other: Self | ConstType) -> tuple[Self, Self]:
        """This and `other` in one type and one shape."""
        if isinstance(other, NUMBER):
            dtype = dtype_with_scalar(self.dtype, other)
            return self.cast(dtype), self.const_like(other, dtype)
        if not isinstance(other, ElementwiseMixin):
            other = self.as_operand(other)
        if self.dtype is other.dtype and self.shape == other.shape:
            return self, other
        dtype = least_upper_dtype(self.dtype.scalar(), other.dtype.scalar())
        shape = broadcast_shape(self.shape, other.shape)
        return self.cast(dtype).broadcast_to(shape), other.cast(dtype).broadcast_to(shape)

    def broadcast_to(self, shape: tuple[Any, ...]) -> Self:
        """These values repeated along new axes in front and along axes of size 1, to fill `shape`."""
        if self.shape == shape:
            return self
        aligned = (1,) * (len(shape) - len(self.shape)) + self.shape
        value = self if aligned == self.shape else self.movement(Ops.RESHAPE, aligned)
        return value if aligned == shape else value.movement(Ops.EXPAND, shape)

    def to_float(self) -> Self:
        """The values as floats: unchanged if they are, else in the default float type."""
        return self if self.dtype.kind == "f" else self.cast(dtypes.default_float)

    def _need(self, kinds: str, what: str) -> None:
        """Raise TypeError unless the type is of one of the kinds."""
        if self.dtype.kind not in kinds:
            raise TypeError(f"{what} needs {'bools or ' * ('b' in kinds)}integers, not {self.dtype}")

    # ---- arithmetic

    def add(self, other: Self | ConstType) -> Self:
        """self + other."""
        a, b = self.meet(other)
        return a.alu(Ops.ADD, b)

    def mul(self, other: Self | ConstType) -> Self:
        """self * other."""
        a, b = self.meet(other)
        return a.alu(Ops.MUL, b)

    def neg(self) -> Self:
        """-self; for bools their opposite."""
        if self.dtype.kind == "b":
            return self.logical_not()
        return self.alu(Ops.MUL, self.const_like(-1))

    def sub(self, other: Self | ConstType) -> Self:
        """self - other."""
        a, b = self.meet(other)
        if a.dtype.kind == "b":
            raise TypeError("bools can't be subtracted: use ^ or logical_not")
        minus_b = a.const_like(-other, a.dtype) if isinstance(other, NUMBER) else b.neg()
        return a.alu(Ops.ADD, minus_b)

    def rsub(self, other: Self | ConstType) -> Self:
        """other - self."""
        a, b = self.meet(other)
        return b.sub(a) if a.dtype.kind == "b" else a.neg().alu(Ops.ADD, b)

    def div(self, other: Self | ConstType) -> Self:
        """self / other, always in floats."""
        a, b = self.meet(other)
        return a.to_float().alu(Ops.FDIV, b.to_float())

    def rdiv(self, other: Self | ConstType) -> Self:
        """other / self, always in floats."""
        a, b = self.meet(other)
        return b.to_float().alu(Ops.FDIV, a.to_float())

    def floordiv(self, other: Self | ConstType) -> Self:
        """self / other, rounded down. An integer divided by zero gives 0, a float inf or nan.

        For doubles the quotient is rounded before it is rounded down: 1 // 0.1 is 10.
        """
        a, b = self.meet(other)
        return a._floordiv(b)

    def mod(self, other: Self | ConstType) -> Self:
        """What floor division leaves over; it has the sign of `other`. An integer modulo zero gives 0."""
        a, b = self.meet(other)
        return a._mod(b)

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

    def maximum(self, other: Self | ConstType) -> Self:
        """The larger of the two; nan if either is."""
        a, b = self.meet(other)
        return a.alu(Ops.MAX, b)

    def minimum(self, other: Self | ConstType) -> Self:
        """The smaller of the two; nan if either is."""
        a, b = self.meet(other)
        return a._reverse_order().alu(Ops.MAX, b._reverse_order())._reverse_order()

    def _reverse_order(self) -> Self:
        """Values that compare the other way round; twice gives them back, without overflow."""
        if self.dtype.kind == "f":
            return self.neg()
        if self.dtype.kind in "ix":  # ~self, in a form whose bounds are easily known
            return self.neg().alu(Ops.ADD, self.const_like(-1))
        return self.bitwise_not()

    # ---- comparison

    def lt(self, other: Self | ConstType) -> Self:
        """self < other."""
        a, b = self.meet(other)
        return a.alu(Ops.CMPLT, b)

    def gt(self, other: Self | ConstType) -> Self:
        """self > other."""
        a, b = self.meet(other)
        return b.alu(Ops.CMPLT, a)

    def le(self, other: Self | ConstType) -> Self:
        """self <= other."""
        a, b = self.meet(other)
        return b._ge(a)

    def ge(self, other: Self | ConstType) -> Self:
        """self >= other."""
        a, b = self.meet(other)
        return a._ge(b)

    def _ge(self, other: Self) -> Self:
        if self.dtype.kind == "f":  # with nan, "not less" is not "greater or equal"
            return other.alu(Ops.CMPLT, self).alu(Ops.OR, self.alu(Ops.CMPEQ, other))
        return self.alu(Ops.CMPLT, other).logical_not()

    def eq(self, other: Self | ConstType) -> Self:
        """self == other."""
        a, b = self.meet(other)
        return a.alu(Ops.CMPEQ, b)

    def ne(self, other: Self | ConstType) -> Self:
        """self != other."""
        a, b = self.meet(other)
        return a.alu(Ops.CMPNE, b)

    def logical_not(self) -> Self:
        """True where the value is zero."""
        value = self.cast(dtypes.bool)
        return value.alu(Ops.CMPNE, value.const_like(True))

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

    # ---- bits

    def bitwise_and(self, other: Self | ConstType) -> Self:
        """self & other, bit by bit."""
        return self._bits(Ops.AND, other)

    def bitwise_or(self, other: Self | ConstType) -> Self:
        """self | other, bit by bit."""
        return self._bits(Ops.OR, other)

    def bitwise_xor(self, other: Self | ConstType) -> Self:
        """self ^ other, bit by bit."""
        return self._bits(Ops.XOR, other)

    def _bits(self, op: Ops, other: Self | ConstType) -> Self:
        a, b = self.meet(other)
        a._need("biux", op.name)
        return a.alu(op, b)

    def bitwise_not(self) -> Self:
        """~self: every bit turned; for bools their opposite."""
        self._need("biux", "~")
        if self.dtype.kind == "b":
            return self.logical_not()
        return self.alu(Ops.XOR, self.const_like(-1))

    def lshift(self, other: Self | ConstType) -> Self:
        """self << other. By less than 0, or by as many bits as the type has or more, it gives 0."""
        a, b = self.meet(other)
        a._need("iux", "<<")
        return a.alu(Ops.SHL, b)

    def rshift(self, other: Self | ConstType) -> Self:
        """self >> other; the sign stays. By less than 0, or by as many bits as there are, it gives 0 or -1."""
        a, b = self.meet(other)
        a._need("iux", ">>")
        return a.alu(Ops.SHR, b)

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

    def copysign(self, other: Self | ConstType) -> Self:
        """The size of this with the sign of `other`, that of -0.0 included."""
        a, b = self.meet(other)
        negative = b.lt(0) | (b.eq(0) & b.reciprocal().lt(0))
        return negative.where(a.abs().neg(), a.abs())

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
        """e ** self. Half is computed in float32: exp2 would magnify the rounding of its argument."""
        x = self.to_float()
        wide = x.cast(least_upper_dtype(x.dtype, dtypes.float32))
        return (wide * (1 / math.log(2))).exp2().cast(x.dtype)

    def log2(self) -> Self:
        """The logarithm to base 2; -inf for 0, nan for negative values."""
        return self.to_float().alu(Ops.LOG2)

    def log(self) -> Self:
        """The natural logarithm; -inf for 0, nan for negative values."""
        return self.log2() * math.log(2)

    def log10(self) -> Self:
        """The logarithm to base 10."""
        return self.log2() * math.log10(2)

    def log1p(self) -> Self:
        """log(1 + self) without loss for small values (W. Kahan's correction of the rounding of 1 + x)."""
        x = self.to_float()
        u = x + 1
        tiny = u.eq(1)
        # at inf the correction is inf / inf, and at -1 it is exactly 1
        correction = (tiny | u.eq(math.inf)).where(1, x / tiny.where(1, u - 1))
        return tiny.where(x, u.log() * correction)

    def pow(self, exponent: Self | ConstType) -> Self:
        """self ** exponent, with numpy's values at zero, infinity and nan.

        Integers to a constant power are exact (modulo the type's width). Integers to a negative power give 0 unless
        the base is 1 or -1, as division that rounds towards zero does.
        """
        return power(self, exponent)

    def rpow(self, base: Self | ConstType) -> Self:
        """base ** self."""
        exponent, base = self.meet(base)
        return base.pow(exponent)

    def lerp(self, end: Self, weight: Self | ConstType) -> Self:
        """From this (weight 0) to `end` (weight 1) along a line."""
        return self + (end - self) * weight

    def logaddexp(self, other: Self | ConstType) -> Self:
        """log(exp(self) + exp(other)), made so that nothing overflows."""
        a, b = self.meet(other)
        largest = a.maximum(b)
        shift = largest.isinf().where(0, largest)
        return ((a - shift).exp() + (b - shift).exp()).log() + shift

    # ---- trigonometry

    def sin(self) -> Self:
        """The sine of an angle in radians."""
        return self.to_float().alu(Ops.SIN)

    def cos(self) -> Self:
        """The cosine of an angle in radians.

        1 - 2 sin(x/2)**2: halving is exact, where adding pi/2 to a large angle would lose its last digits.
        """
        half = (self.to_float() * 0.5).sin()
        return 1 - half * half * 2

    def tan(self) -> Self:
        """The tangent of an angle in radians."""
        return self.sin() / self.cos()

    # ---- Python's operators; == and != stay with each class

    __add__ = __radd__ = add
    __mul__ = __rmul__ = mul
    __sub__, __rsub__ = sub, rsub
    __truediv__, __rtruediv__ = div, rdiv
    __floordiv__, __mod__ = floordiv, mod
    __pow__, __rpow__ = pow, rpow
    __neg__, __invert__, __abs__ = neg, bitwise_not, abs
    __lt__, __gt__, __le__, __ge__ = lt, gt, le, ge
    __and__ = __rand__ = bitwise_and
    __or__ = __ror__ = bitwise_or
    __xor__ = __rxor__ = bitwise_xor
    __lshift__, __rshift__ = lshift, rshift

    def __rfloordiv__(self, other: Self | ConstType) -> Self:
        a, b = self.meet(other)
        return b._floordiv(a)

    def __rmod__(self, other: Self | ConstType) -> Self:
        a, b = self.meet(other)
        return b._mod(a)

    def __rlshift__(self, other: Self | ConstType) -> Self:
        a, b = self.meet(other)
        return b.lshift(a)

    def __rrshift__(self, other: Self | ConstType) -> Self:
        a, b = self.meet(other)
        return b.rshift(a)
