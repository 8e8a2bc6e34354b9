"""Many elements combined into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensor_engine.dtype import ConstType, DType, dtypes, sum_acc_dtype, to_dtype
from tensor_engine.helpers import prod
from tensor_engine.mixin.padding import PaddingMixin
from tensor_engine.mixin.sizes import larger
from tensor_engine.uop.op import Ops, identity_element

if TYPE_CHECKING:
    from typing_extensions import Self

Axis = int | Sequence[int] | None


class ReduceMixin(PaddingMixin):
    """Sums, extremes, means and what is made of them. `axis` None means all axes."""

    __slots__ = ()

    def resolve_axes(self, axis: Axis) -> tuple[int, ...]:
        """The axes counted from the front, in order. Raises ValueError for one given twice."""
        if axis is None:
            return tuple(range(self.ndim))
        given = (axis,) if isinstance(axis, int) else tuple(axis)
        axes = sorted({self.resolve_axis(a) for a in given})
        if len(axes) != len(given):
            raise ValueError(f"an axis is given twice: {given} for shape {self.shape}")
        return tuple(axes) if self.ndim else ()

    def _reduce(self, op: Ops, axis: Axis, keepdim: bool) -> Self:
        axes = self.resolve_axes(axis)
        if 0 in self.shape and any(self.shape[a] == 0 for a in axes):
            return self._with_one_element(op, axes)._reduce(op, axes, keepdim)
        result = self.reduce_axis(op, axes)
        return result if keepdim else result._drop(axes)

    def _with_one_element(self, op: Ops, axes: tuple[int, ...]) -> Self:
        """No elements and the one that changes nothing: a value that still depends on what is empty."""
        pads = [(0, 1) if i in axes and size == 0 else (0, 0) for i, size in enumerate(self.shape)]
        return self.pad(pads, value=self._identity(op))

    def _identity(self, op: Ops) -> Any:
        """The value that changes nothing under `op`."""
        return identity_element(op, self.dtype)

    def _drop(self, axes: tuple[int, ...]) -> Self:
        """Without these axes, which have size 1."""
        if not axes:
            return self
        return self.movement(Ops.RESHAPE, tuple([size for i, size in enumerate(self.shape) if i not in axes]))

    # ---- sums and products

    def sum(self, axis: Axis = None, keepdim: bool = False, dtype: DType | str | None = None) -> Self:
        """The sum. It is made in at least 32 bits; half and bfloat16 come back in their own type.

        With `dtype` it is made, and given back, in that type.
        """
        return self._accumulate(Ops.ADD, axis, keepdim, dtype)

    def prod(self, axis: Axis = None, keepdim: bool = False, dtype: DType | str | None = None) -> Self:
        """The product, made and given back in types as for `sum`."""
        return self._accumulate(Ops.MUL, axis, keepdim, dtype)

    def _accumulate(self, op: Ops, axis: Axis, keepdim: bool, dtype: DType | str | None) -> Self:
        total = self.cast(to_dtype(dtype or sum_acc_dtype(self.dtype)))._reduce(op, axis, keepdim)
        return total.cast(self.dtype) if dtype is None and self.dtype.kind == "f" else total

    def mean(self, axis: Axis = None, keepdim: bool = False) -> Self:
        """The mean, in floats. Half and bfloat16 are summed in float32."""
        x = self.to_float()
        total = x.sum(axis, keepdim, dtype=sum_acc_dtype(x.dtype))
        return (total / self._count(axis)).cast(x.dtype)

    def _count(self, axis: Axis) -> int:
        """How many elements are combined into one."""
        return prod(self.shape[a] for a in self.resolve_axes(axis))

    def var(self, axis: Axis = None, keepdim: bool = False, correction: int = 1) -> Self:
        """The variance: squared distances from the mean, summed, over (count - correction)."""
        x = self.to_float()
        wide = x.cast(sum_acc_dtype(x.dtype))
        squares = (wide - wide.mean(axis, keepdim=True)).square().sum(axis, keepdim)
        return (squares / larger(self._count(axis) - correction, 0)).cast(x.dtype)

    def std(self, axis: Axis = None, keepdim: bool = False, correction: int = 1) -> Self:
        """The standard deviation: the square root of `var`."""
        x = self.to_float()
        wide = x.cast(sum_acc_dtype(x.dtype))
        return wide.var(axis, keepdim, correction).sqrt().cast(x.dtype)

    def var_mean(self, axis: Axis = None, keepdim: bool = False, correction: int = 1) -> tuple[Self, Self]:
        """The variance, and the mean."""
        return self.var(axis, keepdim, correction), self.mean(axis, keepdim)

    def std_mean(self, axis: Axis = None, keepdim: bool = False, correction: int = 1) -> tuple[Self, Self]:
        """The standard deviation, and the mean."""
        return self.std(axis, keepdim, correction), self.mean(axis, keepdim)

    def normalize(self, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Self:
        """This over its p-norm along an axis, or over `eps` where the norm is smaller. The norm 0 counts what is not 0.

        Raises ValueError for a p below 0.
        """
        if p < 0:
            raise ValueError(f"normalize needs a p that is not negative, not {p}")
        x = self.to_float()
        if p == 0:
            return x / x.ne(0).sum(dim, keepdim=True).maximum(eps)
        norm = x.square().sum(dim, keepdim=True).sqrt() if p == 2 else x.abs().pow(p).sum(dim, keepdim=True).pow(1 / p)
        return x / norm.maximum(eps)

    # ---- extremes

    def max(self, axis: Axis = None, keepdim: bool = False) -> Self:
        """The largest value; nan if there is one."""
        self._need_elements(axis)
        return self._reduce(Ops.MAX, axis, keepdim)

    def min(self, axis: Axis = None, keepdim: bool = False) -> Self:
        """The smallest value; nan if there is one."""
        return self._reverse_order().max(axis, keepdim)._reverse_order()

    def _need_elements(self, axis: Axis) -> None:
        axes = self.resolve_axes(axis)
        if any(self.shape[a] == 0 for a in axes):
            raise ValueError(f"there is no largest or smallest of no elements: shape {self.shape}, axes {axes}")

    def _largest(self, axis: Axis) -> Self:
        """The largest along an axis that stays, to be subtracted before `exp`; -inf of none."""
        return self._reduce(Ops.MAX, axis, keepdim=True)

    def argmax(self, axis: int | None = None, keepdim: bool = False) -> Self:
        """Where the largest value stands first, as int32; where the first nan stands if there is one.

        Without `axis` the place in the flattened tensor.
        """
        if axis is None:
            place = self.flatten().argmax(0)
            return place.reshape((1,) * self.ndim) if keepdim else place
        axis = self.resolve_axis(axis)
        if not self.ndim:
            return self.const_like(0, dtypes.int32)
        is_best = self.eq(self.max(axis, keepdim=True))
        if self.dtype.kind == "f":
            is_best = is_best | self.isnan()
        count = self.shape[axis]
        # the first place has the largest number when counted from the end
        from_end = (count - self.counting(count)).reshape((-1,) + (1,) * (self.ndim - axis - 1))
        return count - is_best.where(from_end, 0).max(axis, keepdim)

    def argmin(self, axis: int | None = None, keepdim: bool = False) -> Self:
        """Where the smallest value stands first, as int32; where the first nan stands if there is one."""
        return self._reverse_order().argmax(axis, keepdim)

    def any(self, axis: Axis = None, keepdim: bool = False) -> Self:
        """True if one element is not zero."""
        return self.cast(dtypes.bool)._reduce(Ops.MAX, axis, keepdim)

    def all(self, axis: Axis = None, keepdim: bool = False) -> Self:
        """True if no element is zero."""
        return self.logical_not()._reduce(Ops.MAX, axis, keepdim).logical_not()

    def allclose(
        self, other: Self | ConstType, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
    ) -> Self:
        """True, as a bool of shape (), if all elements are close; see `isclose`."""
        return self.isclose(other, rtol, atol, equal_nan).all()

    # ---- exponentials

    def logsumexp(self, axis: Axis = None, keepdim: bool = False) -> Self:
        """log(sum(exp(self))), made so that nothing overflows."""
        largest = self._largest(axis)
        shift = largest.isinf().where(0, largest).detach()
        total = (self - shift).exp().sum(axis, keepdim=True).log() + shift
        return total if keepdim else total._drop(self.resolve_axes(axis))

    def softmax(self, axis: int = -1, dtype: DType | str | None = None) -> Self:
        """exp(self) over its sum along an axis, made so that nothing overflows."""
        x = self.to_float() if dtype is None else self.cast(to_dtype(dtype))
        powers = (x - x._largest(axis).detach()).exp()
        return powers / powers.sum(axis, keepdim=True)

    def softmin(self, axis: int = -1, dtype: DType | str | None = None) -> Self:
        """softmax(-self)."""
        return self.neg().softmax(axis, dtype)

    def log_softmax(self, axis: int = -1, dtype: DType | str | None = None) -> Self:
        """log(softmax(self)), without the loss that taking the logarithm afterwards brings."""
        x = self.to_float() if dtype is None else self.cast(to_dtype(dtype))
        shifted = x - x._largest(axis).detach()
        return shifted - shifted.exp().sum(axis, keepdim=True).log()
