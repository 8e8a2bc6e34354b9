"""Many elements combined into one."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

from tensor_engine.dtype import DType, sum_acc_dtype
from tensor_engine.mixin.movement import MovementMixin
from tensor_engine.uop.op import Ops

if TYPE_CHECKING:
    from typing_extensions import Self

Axis = Union[int, Sequence[int], None]


class ReduceMixin(MovementMixin):
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
        result = self.reduce_axis(op, axes)
        return result if keepdim else result._drop(axes)

    def _drop(self, axes: tuple[int, ...]) -> Self:
        """Without these axes, which have size 1."""
        return self.reshape(tuple(size for i, size in enumerate(self.shape) if i not in axes))

    def sum(self, axis: Axis = None, keepdim: bool = False, dtype: DType | None = None) -> Self:
        """The sum. It is made in at least 32 bits; half and bfloat16 come back in their own type.

        With `dtype` it is made, and given back, in that type.
        """
        total = self.cast(dtype or sum_acc_dtype(self.dtype))._reduce(Ops.ADD, axis, keepdim)
        return total.cast(self.dtype) if dtype is None and self.dtype.kind == "f" else total

    def prod(self, axis: Axis = None, keepdim: bool = False, dtype: DType | None = None) -> Self:
        """The product, made and given back in types as for `sum`."""
        product = self.cast(dtype or sum_acc_dtype(self.dtype))._reduce(Ops.MUL, axis, keepdim)
        return product.cast(self.dtype) if dtype is None and self.dtype.kind == "f" else product

    def max(self, axis: Axis = None, keepdim: bool = False) -> Self:
        """The largest value; nan if there is one."""
        return self._reduce(Ops.MAX, axis, keepdim)

    def min(self, axis: Axis = None, keepdim: bool = False) -> Self:
        """The smallest value; nan if there is one."""
        return self._reverse_order()._reduce(Ops.MAX, axis, keepdim)._reverse_order()
