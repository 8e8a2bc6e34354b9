"""Elements picked by place. Places known when the graph is built are movement; others are a sum with one term.

x[i] with a computed i is the sum over all places of (place == i) ? x[place] : 0. The engine turns that sum into one
load; written so, it needs no operation of its own. An index outside gives 0, where numpy would raise: its value isn't
known when the graph is built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensor_engine.dtype import dtypes
from tensor_engine.helpers import ceildiv
from tensor_engine.mixin.broadcast import broadcast_shape
from tensor_engine.mixin.window import WindowMixin
from tensor_engine.uop.op import Ops

if TYPE_CHECKING:
    from typing_extensions import Self


class IndexingMixin(WindowMixin):
    """x[…], take, gather, scatter."""

    __slots__ = ()

    # ---- x[...]

    def __getitem__(self, indices: Any) -> Self:
        """Ints, slices (steps and negative ones too), None, Ellipsis, and integer tensors, arrays or lists as in numpy.

        Raises IndexError for an int outside or too many indices, and for bool masks, whose result's shape would
        depend on values: use where or masked_fill.
        """
        picks = self._complete(indices)
        value, axis = self, 0
        computed: list[tuple[int, Any]] = []
        for pick in picks:
            if pick is None:
                value = value.unsqueeze(axis)
            elif isinstance(pick, slice):
                value = value._slice(axis, pick)
            elif isinstance(pick, int):
                value = value._part(axis, *value._one_place(axis, pick)).squeeze(axis)
                continue
            else:
                computed.append((axis, pick))
            axis += 1
        if not computed:
            return value
        return value._pick([a for a, _ in computed], [i for _, i in computed], adjacent=_adjacent(picks))

    def _complete(self, indices: Any) -> list[Any]:
        """An index for each axis: Ellipsis and what is missing at the end replaced by whole slices."""
        picks = list(indices) if isinstance(indices, tuple) else [indices]
        picks = [self._as_index(pick) for pick in picks]
        dots = [i for i, pick in enumerate(picks) if pick is Ellipsis]
        if len(dots) > 1:
            raise IndexError("an index can have only one ...")
        used = sum(pick is not None and pick is not Ellipsis for pick in picks)
        if used > self.ndim:
            raise IndexError(f"{used} indices are too many for shape {self.shape}")
        at = dots[0] if dots else len(picks)
        return picks[:at] + [slice(None)] * (self.ndim - used) + picks[at + 1 :]

    def _as_index(self, pick: Any) -> Any:
        """An index of a kind that `__getitem__` knows."""
        if pick is None or pick is Ellipsis or isinstance(pick, slice):
            return pick
        if isinstance(pick, int) and not isinstance(pick, bool):
            return pick
        if hasattr(pick, "__index__") and not isinstance(pick, (bool, IndexingMixin)) and getattr(pick, "ndim", 0) == 0:
            return pick.__index__()
        value = pick if isinstance(pick, IndexingMixin) else self._listed(pick)
        if value.dtype.kind == "b":
            raise IndexError("a bool mask gives a shape that depends on values: use where or masked_fill")
        if value.dtype.kind == "f":
            raise IndexError(f"an index is made of integers, not of {value.dtype}")
        return value

    def _listed(self, pick: Any) -> Any:
        """An index that is a list or an array."""
        try:
            value = self.as_operand(pick)
        except TypeError:
            kinds = "an int, a slice, None, ..., or integers in a Tensor, an array or a list"
            raise IndexError(f"an index is {kinds}, not {pick!r:.80}") from None
        return value if 0 not in value.shape else value.cast(dtypes.int32)

    def _one_place(self, axis: int, place: int) -> tuple[int, int]:
        """(place, place + 1), counted from the front."""
        size = self.shape[axis]
        if not -size <= place < size:
            raise IndexError(f"index {place} is out of range for axis {axis} of shape {self.shape}")
        return place % size, place % size + 1

    def _slice(self, axis: int, pick: slice) -> Self:
        """The places of a Python slice."""
        start, stop, step = pick.indices(self.shape[axis])
        count = len(range(start, stop, step))
        if count == 0:
            return self._part(axis, 0, 0)
        last = start + (count - 1) * step
        part = self._part(axis, min(start, last), max(start, last) + 1)
        if step < 0:
            part = part.flip(axis)
        return part._every(axis, abs(step))

    def _every(self, axis: int, step: int) -> Self:
        """Each `step`-th place of an axis, from the first."""
        if step == 1:
            return self
        count = ceildiv(self.shape[axis], step)
        missing = count * step - self.shape[axis]
        padded = self.pad_zeros([(0, missing if i == axis else 0) for i in range(self.ndim)])
        return padded.unflatten(axis, (count, step))._part(axis + 1, 0, 1).squeeze(axis + 1)

    # ---- places that are computed

    def _pick(self, axes: list[int], indices: list[Self], adjacent: bool) -> Self:
        """The elements at the places that the indices, broadcast together, name in their axes.

        As in numpy the axes of the indices come where the first of them stood, or in front if others lay between.
        """
        shape = broadcast_shape(*[index.shape for index in indices])
        others = [axis for axis in range(self.ndim) if axis not in axes]
        value = self.permute(axes + others)
        value = value.reshape((1,) * len(shape) + value.shape)
        for axis, index in zip(axes, indices):
            value = value._pick_axis(len(shape), self._from_front(index, axis).broadcast_to(shape))
        place = axes[0] if adjacent else 0
        front = list(range(len(shape)))
        rest = [len(shape) + i for i in range(len(others))]
        return value.permute(rest[:place] + front + rest[place:])

    def _from_front(self, index: Self, axis: int) -> Self:
        """Negative places counted from the front."""
        if index.dtype.kind == "u":
            return index
        return index.lt(0).where(index + self.shape[axis], index)

    def _pick_axis(self, axis: int, index: Self) -> Self:
        """Without `axis`: at each of the places before it, which index has too, the element that index names."""
        rest = (1,) * (self.ndim - axis - 1)
        index = index.reshape(index.shape + (1,) + rest)
        return self._at_places(axis, index)

    def _at_places(self, axis: int, index: Self) -> Self:
        """The sum along `axis` of the elements whose place is `index`, which has size 1 there: one element, or 0."""
        dtype = dtypes.int64 if index.dtype in (dtypes.int64, dtypes.uint32, dtypes.uint64) else dtypes.int32
        places = self.counting(self.shape[axis], dtype).reshape((-1,) + (1,) * (self.ndim - axis - 1))
        # bools have no sum: one of them is found as a number
        values = self.cast(dtypes.uint8) if self.dtype.kind == "b" else self
        found = index.cast(dtype).eq(places).where(values, 0).reduce_axis(Ops.ADD, (axis,))
        return found._drop((axis,)).cast(self.dtype)

    def take(self, index: Self, axis: int = 0) -> Self:
        """The slices of an axis that `index` names, in its order; its axes stand where the axis stood."""
        axis = self.resolve_axis(axis)
        return self[(slice(None),) * axis + (index,)]

    def gather(self, dim: int, index: Self) -> Self:
        """out[i][j] = self[index[i][j]][j] for dim 0, out[i][j] = self[i][index[i][j]] for dim 1, and so on.

        Raises ValueError unless `index` has as many axes, none longer than here except `dim`.
        """
        axis = self.resolve_axis(dim)
        longer = [i for i in range(self.ndim) if i != axis and i < index.ndim and index.shape[i] > self.shape[i]]
        if index.ndim != self.ndim or longer:
            raise ValueError(f"gather along axis {axis} of shape {self.shape} doesn't fit an index {index.shape}")
        part = self.shrink([None if i == axis else (0, size) for i, size in enumerate(index.shape)])
        # the axis moves behind all others, and a new one takes its place
        value = part.unsqueeze(axis).movedim(axis + 1, -1)
        index = self._from_front(index, axis).unsqueeze(-1)
        return value._at_places(self.ndim, index)

    # ---- writing to places

    def written(self, indices: Any, value: Self) -> Self:
        """This with `value`, broadcast, at the places that ints, slices and None name as in `x[indices]`.

        Raises IndexError for places that are computed: `scatter` writes to those.
        """
        picks = self._complete(indices)
        if any(isinstance(pick, IndexingMixin) for pick in picks):
            raise IndexError("only ints and slices can be written to; use scatter or where for computed places")
        shape = self[tuple(picks)].shape
        value = value.cast(self.dtype).expand(shape)
        if 0 in shape:
            return self
        picks = [pick for pick in picks if pick is not None]
        places = [
            range(size)[pick] if isinstance(pick, slice) else range(size)[pick % size :][:1]
            for pick, size in zip(picks, self.shape)
        ]
        inside = value.const_like(True, dtypes.bool)
        return inside._placed_in(self.shape, places).where(value._placed_in(self.shape, places), self)

    def _placed_in(self, shape: tuple[int, ...], places: list[range]) -> Self:
        """These elements at the given places of each axis, zeros elsewhere."""
        value = self.reshape([len(line) for line in places])
        for axis, (line, size) in enumerate(zip(places, shape)):
            if line.step < 0:
                value, line = value.flip(axis), line[::-1]
            value = value._spread_axis(axis, line.step)
            value = value._placed(axis, line.start, size - line.start - value.shape[axis])
        return value

    def scatter(self, dim: int, index: Self, src: Any, reduce: str | None = None) -> Self:
        """self with self[index[i][j]][j] = src[i][j] for dim 0, and so on; of several values for one place the last.

        With `reduce` "add", "multiply", "max" or "min" all of them are combined with what is there. The work is the
        number of places times the number of values.
        """
        axis = self.resolve_axis(dim)
        if reduce not in SCATTER_REDUCTIONS:
            raise ValueError(f"scatter's reduce is one of {', '.join(map(str, SCATTER_REDUCTIONS))}, not {reduce!r}")
        if not isinstance(src, IndexingMixin):
            src = index.const_like(src, self.dtype)
        src = src.cast(self.dtype).shrink([(0, size) for size in index.shape])
        hits, values = self._hits(axis, self._from_front(index, axis), src)
        return SCATTER_REDUCTIONS[reduce](self, hits, values)

    def _hits(self, axis: int, index: Self, src: Self) -> tuple[Self, Self]:
        """Which value (last axis) goes to which place of this tensor, and the values."""
        grow = [(0, 0 if i == axis else mine - size) for i, (mine, size) in enumerate(zip(self.shape, index.shape))]
        inside = index.const_like(True, dtypes.bool).pad_zeros(grow)
        index, src = index.pad_zeros(grow), src.pad_zeros(grow)

        def behind(value: Self) -> Self:
            return value.unsqueeze(axis).movedim(axis + 1, -1)

        places = self.counting(self.shape[axis]).reshape((-1,) + (1,) * (self.ndim - axis))
        return behind(index).eq(places) & behind(inside), behind(src)


def _adjacent(picks: list[Any]) -> bool:
    """True if no slice or None stands between computed indices (nor an int, which numpy counts as one of them)."""
    computed = [i for i, pick in enumerate(picks) if not (pick is None or isinstance(pick, slice))]
    return computed[-1] - computed[0] == len(computed) - 1


def _last_value(into: Any, hits: Any, values: Any) -> Any:
    order = into.counting(hits.shape[-1])
    last = hits.where(order, -1).max(-1, keepdim=True)
    chosen = order.eq(last).where(values, 0).sum(-1).cast(into.dtype)
    return last.squeeze(-1).ge(0).where(chosen, into)


SCATTER_REDUCTIONS = {
    None: _last_value,
    "add": lambda into, hits, values: into + hits.where(values, 0).sum(-1).cast(into.dtype),
    "multiply": lambda into, hits, values: into * hits.where(values, 1).prod(-1).cast(into.dtype),
    "max": lambda into, hits, values: into.maximum(hits.where(values, into.dtype.min).max(-1)),
    "min": lambda into, hits, values: into.minimum(hits.where(values, into.dtype.max).min(-1)),
}
