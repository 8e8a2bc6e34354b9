"""The bits of elements as elements of another width."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensor_engine.dtype import DType, dtypes
from tensor_engine.mixin.join import JoinMixin
from tensor_engine.uop.op import Ops

if TYPE_CHECKING:
    from typing_extensions import Self

UNSIGNED = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}


class RegroupMixin(JoinMixin):
    """What `bitcast` does where the widths differ."""

    __slots__ = ()

    def regrouped_bits(self, dtype: DType) -> Self:
        """The bits of the last axis as elements of a wider or narrower type, low bits first.

        Raises ValueError if elements are left over, and for bools, which have no bits to share.
        """
        if "b" in (self.dtype.kind, dtype.kind) or not self.ndim:
            raise ValueError(f"can't bitcast {self.dtype} of shape {self.shape} to {dtype}: they differ in width")
        bits = self.bitcast(UNSIGNED[self.dtype.bits])
        narrower = dtype.bits < self.dtype.bits
        return (bits._parted(dtype.bits) if narrower else bits._grouped(dtype.bits)).bitcast(dtype)

    def _parted(self, width: int) -> Self:
        """Each element as several of `width` bits."""
        shifts = self.counting(self.dtype.bits // width).cast(self.dtype) * width
        return self.unsqueeze(-1).rshift(shifts).cast(UNSIGNED[width]).flatten(-2)

    def _grouped(self, width: int) -> Self:
        """Several elements as one of `width` bits."""
        count, length = width // self.dtype.bits, self.shape[-1]
        if length % count:
            raise ValueError(f"can't bitcast {length} elements of {self.dtype.bits} bits to {width} bits")
        rows = self.unflatten(-1, (length // count, count)).cast(UNSIGNED[width])
        shifts = self.counting(count).cast(rows.dtype) * self.dtype.bits
        return rows.lshift(shifts).reduce_axis(Ops.ADD, (self.ndim,)).squeeze(-1)
