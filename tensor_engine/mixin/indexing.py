"""Elements picked by place. Places known when the graph is built are movement; others are a sum with one term.

x[i] with a computed i is the sum over all places of (place == i) ? x[place] : 0. The engine turns that sum into one
load; written so, it needs no operation of its own. An index outside gives 0, where numpy would raise: its value isn't
known when the graph is built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensor_engine.dtype import ConstType, dtypes
from tensor_engine.helpers import ceildiv
from tensor_engine.mixin.broadcast import broadcast_shape
from tensor_engine.mixin.sizes import (
    as_whole,
    certain,
    is_symbolic,
    larger,
    smaller,
)
from tensor_engine.mixin.window import WindowMixin
from tensor_engine.uop.op import Ops

if TYPE_CHECKING:
    from typing_extensions import Self


class IndexingMixin(WindowMixin):
    """x[…], take, gather, nonzero, masked_select."""

    __slots__ = ()

    # ---- x[...]

    def __getitem__(self, indices: Any) -> Self:
        """Ints, slices (steps and negative ones too), None, Ellipsis, integer tensors, arrays or lists, and bool masks,
        as in numpy.

        The shape that a mask gives depends on its values: they are computed now. Raises IndexError for an int outside,
        too many indices, or a mask that doesn't fit.
        """
        picks = self._complete(indices)
        value, axis = self, 0
        for pick in picks:
            if pick is None:
                value = value.unsqueeze(axis)
            elif isinstance(pick, slice):
                value = value._slice(axis, pick)
            elif is_place(pick):
                value = value._part(axis, *value._one_place(axis, pick)).squeeze(axis)
                continue
            axis += 1
        computed: list[Any] = [pick for pick in picks if is_computed(pick)]
        return value._pick(computed_axes(picks), computed, adjacent(picks)) if computed else value

    def _complete(self, indices: Any) -> list[Any]:
        """An index for each axis: Ellipsis and what is missing at the end replaced by whole slices, masks by places."""
        picks = list(indices) if isinstance(indices, tuple) else [indices]
        picks = [self._as_index(pick) for pick in picks]
        dots = [i for i, pick in enumerate(picks) if pick is Ellipsis]
        if len(dots) > 1:
            raise IndexError("an index can have only one ...")
        used = sum(map(axes_taken, picks))
        if used > self.ndim:
            raise IndexError(f"{used} indices are too many for shape {self.shape}")
        at = dots[0] if dots else len(picks)
        picks = picks[:at] + [slice(None)] * (self.ndim - used) + picks[at + 1 :]
        axes = [sum(map(axes_taken, picks[:i])) for i in range(len(picks))]
        return [index for axis, pick in zip(axes, picks) for index in self._without_mask(axis, pick)]

    def _without_mask(self, axis: int, pick: Any) -> tuple[Any, ...]:
        """An index as it is, or a mask as the places where it is true, computed now: a tensor for each of its axes."""
        if not isinstance(pick, IndexingMixin) or pick.dtype.kind != "b":
            return (pick,)
        if not pick.ndim or self.shape[axis : axis + pick.ndim] != pick.shape:
            raise IndexError(f"a mask of shape {pick.shape} doesn't fit the axes of {self.shape} from {axis} on")
        return pick.nonzero().unbind(1)

    def _as_index(self, pick: Any) -> Any:
        """An index of a kind that `__getitem__` knows."""
        if pick is None or pick is Ellipsis or isinstance(pick, slice):
            return pick
        if is_place(pick) and not isinstance(pick, bool):
            return pick
        if hasattr(pick, "__index__") and not isinstance(pick, (bool, IndexingMixin)) and getattr(pick, "ndim", 0) == 0:
            return pick.__index__()
        value = pick if isinstance(pick, IndexingMixin) else self._listed(pick)
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
        is_empty_list = 0 in value.shape and value.dtype.kind == "f"
        return value.cast(dtypes.int32) if is_empty_list else value

    def _one_place(self, axis: int, place: Any) -> tuple[Any, Any]:
        """(place, place + 1), counted from the front."""
        size = self.shape[axis]
        first = place if certain(place >= 0) else size + place
        if not (certain(first >= 0) and certain(first < size)):
            raise IndexError(f"index {place} is out of range for axis {axis} of shape {self.shape}")
        return first, first + 1

    def _slice(self, axis: int, pick: slice) -> Self:
        """The places of a Python slice."""
        if is_symbolic(self.shape[axis]) or is_symbolic(pick.start) or is_symbolic(pick.stop):
            return self._symbolic_slice(axis, pick)
        start, stop, step = pick.indices(self.shape[axis])
        count = len(range(start, stop, step))
        if count == 0:
            return self._part(axis, 0, 0)
        last = start + (count - 1) * step
        part = self._part(axis, min(start, last), max(start, last) + 1)
        if step < 0:
            part = part.flip(axis)
        return part._every(axis, abs(step))

    def _symbolic_slice(self, axis: int, pick: slice) -> Self:
        """A slice where a bound, or the size of the axis, depends on variables."""
        step = 1 if pick.step is None else as_whole(pick.step)
        if step < 0 and (pick.start, pick.stop) == (None, None):
            return self.flip(axis)._every(axis, -step)
        if step < 1:
            raise IndexError(f"a slice by {step} can't have bounds on an axis of variable size: use x[start:stop].flip")
        return self._part(axis, *self._bounds(axis, pick))._every(axis, step)

    def _bounds(self, axis: int, pick: slice) -> tuple[Any, Any]:
        """Where a slice starts and stops; no earlier than it starts."""
        start = 0 if pick.start is None else self._bound(axis, pick.start)
        stop = self.shape[axis] if pick.stop is None else self._bound(axis, pick.stop)
        return start, larger(start, stop)

    def _bound(self, axis: int, bound: Any) -> Any:
        """A bound of a slice counted from the front, cut to the axis as Python does."""
        size = self.shape[axis]
        if certain(bound < 0):
            return larger(as_whole(size + bound), 0)
        if not certain(bound >= 0):
            raise IndexError(
                f"the bound {bound!r} of a slice goes from {bound.vmin} to {bound.vmax}: from which end it counts would"
                " change; give its variable another range"
            )
        return smaller(bound, size)

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
            value = value._pick_axis(len(shape), self._counted_from_front(index, self.shape[axis]).broadcast_to(shape))
        place = axes[0] if adjacent else 0
        front = list(range(len(shape)))
        rest = [len(shape) + i for i in range(len(others))]
        return value.permute(rest[:place] + front + rest[place:])

    @staticmethod
    def _counted_from_front(index: Any, size: int) -> Any:
        """Negative places of an axis counted from the front."""
        return index if index.dtype.kind == "u" else index.lt(0).where(index + size, index)

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
        index = self._counted_from_front(index, self.shape[axis]).unsqueeze(-1)
        return value._at_places(self.ndim, index)

    # ---- where something is true

    def nonzero(self, size: int | None = None, fill_value: ConstType = 0) -> Self:
        """Where elements are not zero, in row order: (count, axes), int32.

        The count depends on the values: they are computed now, unless `size` says how many rows to give. Rows that
        are left over hold `fill_value`.
        """
        places, is_found = self.cast(dtypes.bool).flatten()._places_of_true(size)
        columns = []
        for axis_size in reversed(self.shape):
            columns.append(places.mod(axis_size))
            places = places.floordiv(axis_size)
        if not columns:
            return places.reshape(-1, 1)._part(1, 0, 0)
        table = columns[-1].stack(*columns[-2::-1], dim=1)
        return is_found.unsqueeze(1).where(table, fill_value).cast(dtypes.int32)

    def masked_select(self, mask: Self, size: int | None = None, fill_value: ConstType = 0) -> Self:
        """The elements where the mask, broadcast, is true, in row order, as one axis.

        Their number depends on the mask, which is computed now, unless `size` says how many to give. What is left
        over is `fill_value`.
        """
        shape = broadcast_shape(self.shape, mask.shape)
        places, is_found = mask.cast(dtypes.bool).broadcast_to(shape).flatten()._places_of_true(size)
        chosen = self.broadcast_to(shape).flatten().take(places)
        return is_found.where(chosen, fill_value).cast(self.dtype)

    def _places_of_true(self, size: int | None) -> tuple[Self, Self]:
        """For an axis of bools: where the first `size` of them stand that are true, and which of these there are."""
        length = self.shape[0]
        counts = self.cast(dtypes.int32).cumsum().contiguous()
        if size is None:
            counts = counts.realize()
        total = counts._part(0, max(length - 1, 0), length).sum()
        number = self.counting(total.item() if size is None else size)
        # the first place at which more than `number` of them stand so far, by bisection
        low, high = number.const_like(0), number.const_like(length)
        for _ in range(length.bit_length()):
            middle = (low + high).rshift(1)
            is_behind = counts.take(middle).le(number) & low.lt(high)
            low, high = is_behind.where(middle + 1, low), is_behind.where(high, middle)
        is_found = number.lt(total)
        return is_found.where(low, 0), is_found


def axes_taken(pick: Any) -> int:
    """How many axes an index stands for."""
    if pick is None or pick is Ellipsis:
        return 0
    return pick.ndim if isinstance(pick, IndexingMixin) and pick.dtype.kind == "b" else 1


def is_place(pick: Any) -> bool:
    """True for one place of an axis: an int, or what depends on variables."""
    return isinstance(pick, int) or is_symbolic(pick)


def is_computed(pick: Any) -> bool:
    """True for places that are values of a tensor."""
    return isinstance(pick, IndexingMixin) and not is_symbolic(pick)


def computed_axes(picks: list[Any]) -> list[int]:
    """The axes of the computed indices, once None, slices and single places have been applied."""
    kept = [pick for pick in picks if not is_place(pick)]
    return [axis for axis, pick in enumerate(kept) if is_computed(pick)]


def adjacent(picks: list[Any]) -> bool:
    """True if no slice or None stands between computed indices (nor an int, which numpy counts as one of them)."""
    computed = [i for i, pick in enumerate(picks) if not (pick is None or isinstance(pick, slice))]
    return computed[-1] - computed[0] == len(computed) - 1
