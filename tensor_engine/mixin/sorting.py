"""Order: sort, argsort, topk. Stable, and nan comes last whichever way the order runs.

Values are first mapped to integers that sort the same way (`order_keys`), so that there is one comparison for all
types and directions. Short rows are sorted by counting: an element's place is the number of elements before it.
The best few of a long row are found in chunks, then among the chunks' winners. Very long rows are sorted in chunks,
which are then merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensor_engine.dtype import DType, dtypes
from tensor_engine.helpers import ceildiv
from tensor_engine.mixin.pool import PoolMixin
from tensor_engine.mixin.sizes import certain, is_symbolic
from tensor_engine.uop.op import Ops

if TYPE_CHECKING:
    from typing_extensions import Self

SMALLEST_CHUNK = 256
LONGEST_COUNTED = 16384  # longer rows are merged: counting takes the square of the length, but few kernels

# the integer type that holds the bits of a float
BITS_OF: dict[DType, DType] = {
    dtypes.float16: dtypes.int16,
    dtypes.bfloat16: dtypes.int16,
    dtypes.float32: dtypes.int32,
    dtypes.float64: dtypes.int64,
}


class SortingMixin(PoolMixin):
    """sort, argsort, topk."""

    __slots__ = ()

    def sort(self, dim: int = -1, descending: bool = False) -> tuple[Self, Self]:
        """The values along an axis in order, and where each of them stood, as int32."""
        if not self.ndim:
            return self, self.const_like(0, dtypes.int32)
        axis = self.resolve_axis(dim)
        row = self.transpose(axis, -1)
        places = row._order(descending, row.shape[-1])
        return row._in_order(places).transpose(axis, -1), places.transpose(axis, -1)

    def argsort(self, dim: int = -1, descending: bool = False) -> Self:
        """Where the values along an axis stood that `sort` puts in order, as int32."""
        return self.sort(dim, descending)[1]

    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True) -> tuple[Self, Self]:
        """The k largest (or smallest) values along an axis, best first, and where they stood, as int32.

        They come in order whether asked to or not. Of equal values the first ones are taken.
        Raises ValueError if the axis has fewer than k.
        """
        axis = self.resolve_axis(dim)
        if not self.ndim or not (certain(k >= 0) and certain(k <= self.shape[axis])):
            raise ValueError(f"topk({k}) is out of range for axis {axis} of shape {self.shape}")
        row = self.transpose(axis, -1)
        places = row._order(largest, k)
        return row._in_order(places).transpose(axis, -1), places.transpose(axis, -1)

    def _in_order(self, places: Self) -> Self:
        return self.gather(-1, places)

    def _order(self, descending: bool, k: int) -> Self:
        """Where the first k elements of the order along the last axis stand."""
        keys = self.order_keys(descending).contiguous()
        length = keys.shape[-1]
        if 0 in keys.shape or k == 0:
            return keys._part(keys.ndim - 1, 0, k).cast(dtypes.int32)
        if is_symbolic(length) or is_symbolic(k):  # only counting takes the same steps whatever the length is
            return keys._first_by_counting(k)
        chunk = max(SMALLEST_CHUNK, 1 << (2 * k - 1).bit_length())
        if length >= 2 * chunk:
            return keys._first_by_rounds(k, chunk)
        if length <= LONGEST_COUNTED:
            return keys._first_by_counting(k)
        return keys._order_by_merging()._part(keys.ndim - 1, 0, k)

    def order_keys(self, descending: bool = False) -> Self:
        """Integers in the same order as the values, or in the reverse; nan is the largest in both."""
        if self.dtype.kind != "f":
            keys = self.cast(dtypes.uint8) if self.dtype.kind == "b" else self
            return keys.bitwise_not() if descending else keys
        # -0.0 and 0.0 are equal; the bits of negative floats run backwards
        bits = self.eq(0).where(0.0, self).bitcast(BITS_OF[self.dtype])
        largest = bits.dtype.max
        keys = bits.lt(0).where(bits.bitwise_xor(largest), bits)
        return self.isnan().where(largest, keys.bitwise_not() if descending else keys)

    # ---- short rows: counting

    def _first_by_counting(self, k: int) -> Self:
        """Where the k smallest keys of each row stand, in order."""
        rank = self._ranks().contiguous()
        length = self.shape[-1]
        wanted, here = self.counting(k).reshape(k, 1), self.counting(length)
        # exactly one element has each rank
        return rank.unsqueeze(-2).eq(wanted).where(here, 0).reduce_axis(Ops.ADD, (rank.ndim,)).squeeze(-1)

    def _ranks(self) -> Self:
        """How many keys of the row come before each: the smaller ones, and the equal ones that stand before it."""
        length = self.shape[-1]
        mine, theirs = self.unsqueeze(-1), self.unsqueeze(-2)
        stands_before = self.counting(length).lt(self.counting(length).reshape(length, 1))
        comes_before = theirs.lt(mine) | (theirs.eq(mine) & stands_before)
        return comes_before.cast(dtypes.int32).sum(-1)

    # ---- long rows: rounds of chunks

    def _chunked(self, size: int) -> Self:
        """The last axis as (chunk, place), filled up with the largest key."""
        length = self.shape[-1]
        chunks = ceildiv(length, size)
        missing = [(0, 0)] * (self.ndim - 1) + [(0, chunks * size - length)]
        return self.pad(missing, value=self.dtype.max).unflatten(-1, (chunks, size))

    def _first_by_rounds(self, k: int, chunk: int) -> Self:
        """Where the k smallest keys of each row stand, in order: the k smallest of each chunk, then of what is left.

        Equal keys keep their order, as a chunk's winners stand before those of the chunks behind it. Keys that fill
        up stand behind all others, so that none of them is taken before an equal one.
        """
        keys, places = self, self.counting(self.shape[-1]).expand(self.shape)
        while keys.shape[-1] >= 2 * chunk:
            chunks, origins = keys._chunked(chunk), places._chunked(chunk)
            winners = chunks._first_by_counting(k).contiguous()
            keys = chunks.gather(-1, winners).flatten(-2).contiguous()
            places = origins.gather(-1, winners).flatten(-2).contiguous()
        return places.gather(-1, keys._first_by_counting(k))

    def _order_by_merging(self) -> Self:
        """Where all keys of each row stand, in order: sorted chunks, merged two by two."""
        length = self.shape[-1]
        size, rounds = SMALLEST_CHUNK, (ceildiv(length, SMALLEST_CHUNK) - 1).bit_length()
        keys = self._chunked(size << rounds).squeeze(-2).unflatten(-1, (-1, size))
        order = keys._first_by_counting(size).contiguous()
        first = self.counting(keys.shape[-2]).reshape(-1, 1) * size
        keys, places = keys.gather(-1, order).contiguous(), (order + first).contiguous()
        for _ in range(rounds):
            taken = keys._merge_pairs().contiguous()
            keys = keys.flatten(-2).unflatten(-1, (-1, 2 * size)).gather(-1, taken).contiguous()
            places = places.flatten(-2).unflatten(-1, (-1, 2 * size)).gather(-1, taken).contiguous()
            size *= 2
        return places.squeeze(-2)._part(self.ndim - 1, 0, length)

    def _merge_pairs(self) -> Self:
        """For rows in order, two by two: where in both rows together each element of the merged row stands.

        The first r elements of the merged row are `a` of the left row and r - a of the right one; `a` is found by
        bisection: the largest count such that the left row's last one taken is not behind the right row's next.
        """
        size = self.shape[-1]
        pairs = self.flatten(-2).unflatten(-1, (-1, 2, size))
        left, right = (side.squeeze(-2) for side in pairs.split(1, -2))
        rank = self.counting(2 * size).expand(*left.shape[:-1], 2 * size)
        low, high = (rank - size).maximum(0), rank.minimum(size)
        for _ in range(size.bit_length()):
            middle = (low + high + 1).rshift(1)
            last_left = left.gather(-1, (middle - 1).maximum(0))
            next_right = right.gather(-1, (rank - middle).clamp(0, size - 1))
            # the left one comes first when equal; past the end of the right row nothing stands against it
            fits = last_left.le(next_right) | (rank - middle).ge(size) | middle.eq(low)
            low, high = fits.where(middle, low), fits.where(high, (middle - 1).maximum(low))
        taken_right = rank - low
        from_left = low.lt(size) & (
            taken_right.ge(size)
            | left.gather(-1, low.minimum(size - 1)).le(right.gather(-1, taken_right.minimum(size - 1)))
        )
        return from_left.where(low, taken_right + size)
