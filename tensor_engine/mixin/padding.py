"""Elements before and after: a value, or what is there already mirrored, repeated, or going round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensor_engine.dtype import ConstType, dtypes
from tensor_engine.mixin.regroup import RegroupMixin
from tensor_engine.mixin.sizes import as_sequence, larger

if TYPE_CHECKING:
    from typing_extensions import Self

Pads = list[tuple[int, int]]


class PaddingMixin(RegroupMixin):
    """pad, in all its modes."""

    __slots__ = ()

    def pad(self, padding: Sequence[Any], mode: str = "constant", value: ConstType = 0.0) -> Self:
        """Elements before and after.

        `padding` is a pair or None for each axis, or flat counts from the last axis forward (left, right, top,
        bottom, …). A negative count cuts. `mode`: "constant" fills with `value`, "reflect" mirrors without the edge,
        "replicate" repeats the edge, "circular" goes round.
        Raises ValueError for counts that don't fit the axes, and for what the mode can't give.
        """
        pads = self._pads_per_axis(padding)
        cut = self.shrink([(larger(-a, 0), size - larger(-b, 0)) for size, (a, b) in zip(self.shape, pads)])
        pads = [(larger(a, 0), larger(b, 0)) for a, b in pads]
        if mode == "constant":
            return cut._pad_value(pads, value)
        if mode not in ENDS:
            raise ValueError(f"no padding mode {mode!r}; there are constant, {', '.join(ENDS)}")
        for axis, (before, after) in enumerate(pads):
            cut = cut._pad_axis(axis, before, after, mode)
        return cut

    def pad_to(self, *shape: Any, value: ConstType = 0) -> Self:
        """`value` behind the elements of each axis until it has the size in `shape`; None keeps it as it is."""
        sizes = as_sequence(shape)
        if len(sizes) != self.ndim:
            raise ValueError(f"pad_to needs a size for each axis of shape {self.shape}, got {sizes}")
        return self._pad_value([(0, 0 if new is None else new - old) for old, new in zip(self.shape, sizes)], value)

    def _pads_per_axis(self, padding: Sequence[Any]) -> Pads:
        """Either form of padding as a pair for each axis."""
        if padding and not any(p is None or isinstance(p, (tuple, list)) for p in padding):
            if len(padding) % 2 or len(padding) > 2 * self.ndim:
                raise ValueError(f"pad needs pairs of counts for at most {self.ndim} axes, got {tuple(padding)}")
            pairs = list(zip(padding[::2], padding[1::2]))[::-1]
            return [(0, 0)] * (self.ndim - len(pairs)) + pairs
        if len(padding) != self.ndim:
            raise ValueError(f"pad needs a pair for each axis of shape {self.shape}, got {tuple(padding)}")
        return [(0, 0) if pair is None else (pair[0], pair[1]) for pair in padding]

    def _pad_value(self, pads: Pads, value: ConstType) -> Self:
        """Padded with a value."""
        padded = self.pad_zeros(pads)
        if value == 0 or padded is self:
            return padded
        inside = self.const_like(True, dtypes.bool).pad_zeros(pads)
        return inside.where(padded, value)

    def _pad_axis(self, axis: int, before: int, after: int, mode: str) -> Self:
        """One axis padded with what is there."""
        size = self.shape[axis]
        limit = {"reflect": size - 1, "circular": size}.get(mode)
        if limit is not None and max(before, after) > limit:
            raise ValueError(
                f"{mode} padding gives at most {limit} elements for axis {axis} of shape {self.shape}, not"
                f" {max(before, after)}"
            )
        first, last = ENDS[mode](self, axis, before, after)
        parts = [first] * (before > 0) + [self] + [last] * (after > 0)
        return parts[0].cat(*parts[1:], dim=axis)


def reflect(value: Any, axis: int, before: int, after: int) -> tuple[Any, Any]:
    """Mirrored, without the edge itself."""
    size = value.shape[axis]
    return value._part(axis, 1, before + 1).flip(axis), value._part(axis, size - 1 - after, size - 1).flip(axis)


def replicate(value: Any, axis: int, before: int, after: int) -> tuple[Any, Any]:
    """The first and the last element again and again."""
    size = value.shape[axis]
    first, last = value._part(axis, 0, 1), value._part(axis, size - 1, size)
    return first.repeat_interleave(max(before, 1), axis), last.repeat_interleave(max(after, 1), axis)


def circular(value: Any, axis: int, before: int, after: int) -> tuple[Any, Any]:
    """What lies at the other end."""
    size = value.shape[axis]
    return value._part(axis, size - before, size), value._part(axis, 0, after)


# what stands before and behind the elements in each mode
ENDS = {"reflect": reflect, "replicate": replicate, "circular": circular}
