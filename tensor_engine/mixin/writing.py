"""Elements written to places. Nothing is overwritten: the result is a tensor of its own."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tensor_engine.dtype import DType, dtypes
from tensor_engine.helpers import prod
from tensor_engine.mixin.broadcast import broadcast_shape
from tensor_engine.mixin.indexing import (
    IndexingMixin,
    adjacent,
    computed_axes,
    is_computed,
    is_place,
)
from tensor_engine.mixin.sizes import as_whole, is_symbolic

if TYPE_CHECKING:
    from typing_extensions import Self


class Line(NamedTuple):
    """Places of an axis in a row: like a range, but its ends may depend on variables."""

    start: Any
    count: Any
    step: int


class WritingMixin(IndexingMixin):
    """What `x[…] = value` does, scatter, scatter_reduce, masked_fill."""

    __slots__ = ()

    # ---- x[...] = value

    def written(self, indices: Any, value: Self) -> Self:
        """This with `value`, broadcast, at the places that `x[indices]` names; of several for one place the last.

        Places that are computed cost the number of places in their axes times the number of indices. A bool mask is
        computed now if `value` differs from place to place.
        """
        value = value.cast(self.dtype)
        mask = self._leading_mask(indices)
        if mask is not None and value.ndim <= self.ndim - mask.ndim:
            rest = (1,) * (self.ndim - mask.ndim)
            return mask.reshape(mask.shape + rest).where(value.expand(self.shape), self)
        picks = self._complete(indices)
        axes = computed_axes(picks)
        if not axes:
            return self._written_to_slices(picks, value)
        basic = tuple(slice(None) if is_computed(pick) else pick for pick in picks)
        places: list[Any] = [pick for pick in picks if is_computed(pick)]
        return self.written(basic, self[basic]._written_at(axes, places, value, adjacent(picks)))

    def _leading_mask(self, indices: Any) -> Self | None:
        """The mask, if one of the first axes is all that `indices` are."""
        pick = indices[0] if isinstance(indices, tuple) and len(indices) == 1 else indices
        if isinstance(pick, (tuple, slice)) or is_place(pick) or pick is None or pick is Ellipsis:
            return None
        index = self._as_index(pick)
        fits = isinstance(index, IndexingMixin) and index.dtype.kind == "b" and self.shape[: index.ndim] == index.shape
        return index if fits else None

    def _written_to_slices(self, picks: list[Any], value: Self) -> Self:
        """`value` at the places that ints, slices and None name."""
        shape = self[tuple(picks)].shape
        value = value.expand(shape)
        if 0 in shape:
            return self
        picks = [pick for pick in picks if pick is not None]
        places = [self._line(axis, pick) for axis, pick in enumerate(picks)]
        inside = value.const_like(True, dtypes.bool)
        return inside._placed_in(self.shape, places).where(value._placed_in(self.shape, places), self)

    def _line(self, axis: int, pick: Any) -> Line:
        """Where one place or a slice points to."""
        size = self.shape[axis]
        if is_place(pick):
            return Line(self._one_place(axis, pick)[0], 1, 1)
        if is_symbolic(size) or is_symbolic(pick.start) or is_symbolic(pick.stop):
            if pick.step not in (None, 1):
                raise IndexError(f"a slice by {pick.step} whose bounds depend on variables can't be written to")
            start, stop = self._bounds(axis, pick)
            return Line(start, as_whole(stop - start), 1)
        line = range(size)[pick]
        return Line(line.start, len(line), line.step)

    def _placed_in(self, shape: tuple[Any, ...], places: list[Line]) -> Self:
        """These elements at the given places of each axis, zeros elsewhere."""
        value = self.reshape([line.count for line in places])
        for axis, (line, size) in enumerate(zip(places, shape)):
            first = line.start
            if line.step < 0:
                value, first = value.flip(axis), first + (line.count - 1) * line.step
            value = value._spread_axis(axis, abs(line.step))
            value = value._placed(axis, first, size - first - value.shape[axis])
        return value

    def _written_at(self, axes: list[int], indices: list[Self], value: Self, is_adjacent: bool) -> Self:
        """`value` at the places that the indices, broadcast together, name in their axes; see `_pick` for its axes."""
        shape = broadcast_shape(*[index.shape for index in indices])
        others = [axis for axis in range(self.ndim) if axis not in axes]
        rest = tuple(self.shape[axis] for axis in others)
        first = axes[0] if is_adjacent else 0
        value = value.expand(rest[:first] + shape + rest[first:])
        if 0 in value.shape:
            return self
        front = list(range(first, first + len(shape)))
        rows = value.permute(front + [axis for axis in range(value.ndim) if axis not in front]).reshape(-1, *rest)
        sizes = [self.shape[axis] for axis in axes]
        table = self.permute(axes + others).reshape(-1, *rest)
        row = self._last_row_for_each(sizes, [index.broadcast_to(shape).flatten() for index in indices])
        is_written = row.ge(0).reshape(-1, *[1] * len(rest))
        new = is_written.where(rows.take(row.maximum(0)), table)
        return new.reshape(*sizes, *rest).unpermute(axes + others)

    def _last_row_for_each(self, sizes: list[int], indices: list[Self]) -> Self:
        """For each place of a grid of these sizes the last number i whose indices name it, or -1."""
        place, is_inside = indices[0].const_like(0, dtypes.int32), indices[0].const_like(True, dtypes.bool)
        for size, index in zip(sizes, indices):
            index = self._counted_from_front(index, size).cast(dtypes.int32)
            is_inside = is_inside & index.ge(0) & index.lt(size)
            place = place * size + index
        numbers = self.counting(place.shape[0])
        hits = self.counting(prod(sizes)).unsqueeze(1).eq(place) & is_inside
        return hits.where(numbers, -1).max(1)

    def masked_fill(self, mask: Self, value: Any) -> Self:
        """`value` where the mask is true."""
        return mask.where(value, self)

    # ---- scatter

    def scatter(self, dim: int, index: Self, src: Any, reduce: str | None = None) -> Self:
        """self with self[index[i][j]][j] = src[i][j] for dim 0, and so on; of several values for one place the last.

        With `reduce` "add", "multiply", "max" or "min" all of them are combined with what is there. The work is the
        number of places times the number of values.
        """
        if reduce not in (None, *SCATTER_NAMES):
            raise ValueError(f"scatter's reduce is None, {', '.join(SCATTER_NAMES)}, not {reduce!r}")
        if not isinstance(src, WritingMixin):
            src = index.const_like(src, self.dtype)
        hits, values = self._hits(dim, index, src)
        if reduce is not None:
            return self._combined_with(SCATTER_NAMES[reduce], hits, values, include_self=True)
        if 0 in hits.shape:
            return self
        order = self.counting(hits.shape[-1])
        last = hits.where(order, -1).max(-1, keepdim=True)
        chosen = order.eq(last).where(values, 0).sum(-1).cast(self.dtype)
        return last.squeeze(-1).ge(0).where(chosen, self)

    def scatter_reduce(self, dim: int, index: Self, src: Self, reduce: str, include_self: bool = True) -> Self:
        """self with all values of `src` for a place combined there, with what is there unless not `include_self`.

        For dim 0 the place of src[i][j] is [index[i][j]][j]. `reduce`: "sum", "prod", "mean" (of integers rounded
        down), "amax", "amin". Places that no value goes to stay as they are. The work is as for `scatter`.
        """
        if reduce not in ("mean", *REDUCTIONS):
            raise ValueError(f"scatter_reduce's reduce is one of mean, {', '.join(REDUCTIONS)}, not {reduce!r}")
        return self._combined_with(reduce, *self._hits(dim, index, src), include_self)

    def _hits(self, dim: int, index: Self, src: Self) -> tuple[Self, Self]:
        """Which value (last axis) goes to which place of this tensor, and the values."""
        axis = self.resolve_axis(dim)
        index = self._counted_from_front(index, self.shape[axis])
        src = src.cast(self.dtype).shrink([(0, size) for size in index.shape])
        grow = [(0, 0 if i == axis else mine - size) for i, (mine, size) in enumerate(zip(self.shape, index.shape))]
        inside = index.const_like(True, dtypes.bool).pad_zeros(grow)
        index, src = index.pad_zeros(grow), src.pad_zeros(grow)

        def behind(value: Self) -> Self:
            return value.unsqueeze(axis).movedim(axis + 1, -1)

        places = self.counting(self.shape[axis]).reshape((-1,) + (1,) * (self.ndim - axis))
        return behind(index).eq(places) & behind(inside), behind(src)

    def _combined_with(self, reduce: str, hits: Self, values: Self, include_self: bool) -> Self:
        """This combined with the values that hit each place; with none of them where none hits."""
        if 0 in hits.shape:
            return self
        if reduce == "mean":
            total = self._combined_with("sum", hits, values, include_self)
            count = (hits.sum(-1) + int(include_self)).maximum(1).cast(self.dtype)
            return total.div(count, rounding_mode=None if self.dtype.kind == "f" else "floor")
        how = REDUCTIONS[reduce]
        combined = how.all(hits.where(values, how.identity(self.dtype))).cast(self.dtype)
        return hits.any(-1).where(how.two(self, combined) if include_self else combined, self)


class Reduction(NamedTuple):
    """How values are combined: all along the last axis, two tensors, and the value of a type that changes nothing."""

    all: Callable[[Any], Any]
    two: Callable[[Any, Any], Any]
    identity: Callable[[DType], Any]


REDUCTIONS = {
    "sum": Reduction(lambda values: values.sum(-1), operator.add, lambda dtype: 0),
    "prod": Reduction(lambda values: values.prod(-1), operator.mul, lambda dtype: 1),
    "amax": Reduction(lambda values: values.max(-1), lambda a, b: a.maximum(b), lambda dtype: dtype.min),
    "amin": Reduction(lambda values: values.min(-1), lambda a, b: a.minimum(b), lambda dtype: dtype.max),
}
SCATTER_NAMES = {"add": "sum", "multiply": "prod", "max": "amax", "min": "amin"}
