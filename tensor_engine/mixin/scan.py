"""Scans: each element combined with all before it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tensor_engine.dtype import ConstType, DType, dtypes, sum_acc_dtype
from tensor_engine.helpers import ceildiv
from tensor_engine.mixin.reduce import ReduceMixin
from tensor_engine.mixin.sizes import certain
from tensor_engine.uop.op import Ops, identity_element

if TYPE_CHECKING:
    from typing_extensions import Self

LONGEST_DIRECT_SCAN = 128  # longer scans are made of chunks of SCAN_CHUNK
SCAN_CHUNK = 64


class Scan(NamedTuple):
    """How elements are combined: all along the last axis, two tensors, and the value that changes nothing."""

    all: Callable[[Any], Any]
    two: Callable[[Any, Any], Any]
    identity: ConstType


def scan_by(op: Ops, dtype: DType) -> Scan:
    """The scan that combines by one operation."""
    return Scan(lambda x: x._reduce(op, -1, False), lambda a, b: a.alu(op, b), identity_element(op, dtype))


LOGSUMEXP = Scan(lambda x: x.logsumexp(-1), lambda a, b: a.logaddexp(b), -math.inf)


class ScanMixin(ReduceMixin):
    """cumsum, cumprod, cummax, cummin, logcumsumexp."""

    __slots__ = ()

    def cumsum(self, axis: int = 0) -> Self:
        """The sum of each element and all before it along an axis, in types as for `sum`."""
        return self._accumulated(Ops.ADD, axis)

    def cumprod(self, axis: int = 0) -> Self:
        """The product of each element and all before it along an axis, in types as for `sum`."""
        return self._accumulated(Ops.MUL, axis)

    def _accumulated(self, op: Ops, axis: int) -> Self:
        wide = sum_acc_dtype(self.dtype)
        total = self.cast(wide)._scan(scan_by(op, wide), axis)
        return total.cast(self.dtype) if self.dtype.kind == "f" else total

    def cummax(self, axis: int = 0) -> tuple[Self, Self]:
        """The largest of each element and all before it along an axis, and where it stands, as int32.

        Of equal elements the last one stands for all; from the first nan on, values are nan.
        """
        values = self._scan(scan_by(Ops.MAX, self.dtype), axis)
        is_new = self.eq(values)
        if self.dtype.kind == "f":
            is_new = is_new | self.isnan()
        if not self.ndim:
            return values, self.const_like(0, dtypes.int32)
        axis = self.resolve_axis(axis)
        places = self.counting(self.shape[axis]).reshape((-1,) + (1,) * (self.ndim - axis - 1))
        return values, is_new.where(places, 0)._scan(scan_by(Ops.MAX, dtypes.int32), axis)

    def cummin(self, axis: int = 0) -> tuple[Self, Self]:
        """The smallest of each element and all before it along an axis, and where it stands, as for `cummax`."""
        values, places = self._reverse_order().cummax(axis)
        return values._reverse_order(), places

    def logcumsumexp(self, axis: int = 0) -> Self:
        """The logarithm of the sum of the exponentials of each element and all before it; nothing overflows."""
        return self.to_float()._scan(LOGSUMEXP, axis)

    def exclusive_scan(self, op: Ops) -> Self:
        """A scan along the last axis without the element itself."""
        return self._exclusive_scan(scan_by(op, self.dtype))

    def _scan(self, how: Scan, axis: int) -> Self:
        axis = self.resolve_axis(axis)
        if not self.ndim or 0 in self.shape:
            return self
        return self.transpose(axis, -1)._scan_last(how).transpose(axis, -1)

    def _scan_last(self, how: Scan) -> Self:
        """A scan along the last axis: direct where it is short, else chunk by chunk and then over the chunks."""
        length = self.shape[-1]
        if certain(length <= LONGEST_DIRECT_SCAN):
            return self._scan_directly(how, inclusive=True)
        chunks = ceildiv(length, SCAN_CHUNK)
        rest = [(0, 0)] * (self.ndim - 1) + [(0, chunks * SCAN_CHUNK - length)]
        inside = self.pad_zeros(rest).unflatten(-1, (chunks, SCAN_CHUNK))._scan_directly(how, inclusive=True)
        before = inside._part(inside.ndim - 1, SCAN_CHUNK - 1, SCAN_CHUNK).squeeze(-1)._exclusive_scan(how)
        whole = how.two(inside, before.unsqueeze(-1).expand(inside.shape)).flatten(-2)
        return whole._part(self.ndim - 1, 0, length)

    def _exclusive_scan(self, how: Scan) -> Self:
        if certain(self.shape[-1] <= LONGEST_DIRECT_SCAN):
            return self._scan_directly(how, inclusive=False)
        scanned = self._scan_last(how)
        first = self.const_like(how.identity)._part(self.ndim - 1, 0, 1)
        return first.cat(scanned._part(self.ndim - 1, 0, self.shape[-1] - 1), dim=-1)

    def _scan_directly(self, how: Scan, inclusive: bool) -> Self:
        """A scan along the last axis that combines for each element all before it anew."""
        length = self.shape[-1]
        here, there = self.counting(length).reshape(length, 1), self.counting(length)
        counts = there.le(here) if inclusive else there.lt(here)
        return how.all(counts.where(self.unsqueeze(-2), how.identity))
