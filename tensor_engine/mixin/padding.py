"""Padding with what is there already: mirrored, the edge repeated, or going round."""
from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tensor_engine.mixin import OpMixin

    V = TypeVar("V", bound=OpMixin)


def pad_with_mode(value: V, pads: list[tuple[int, int]], mode: str) -> V:
    """`value` with elements before and after each axis, taken from the value itself.

    Raises ValueError for an unknown mode, and for counts that the axis can't give.
    """
    if mode not in SIDES:
        raise ValueError(f"no padding mode {mode!r}; there are constant, {', '.join(SIDES)}")
    for axis, (before, after) in enumerate(pads):
        value = pad_axis(value, axis, max(before, 0), max(after, 0), mode)
    cuts = [(max(-a, 0), size - max(-b, 0)) for size, (a, b) in zip(value.shape, pads)]
    return value.shrink(cuts)


def pad_axis(value: V, axis: int, before: int, after: int, mode: str) -> V:
    """One axis padded."""
    size = value.shape[axis]
    limit = {"reflect": size - 1, "circular": size}.get(mode)
    if limit is not None and max(before, after) > limit:
        raise ValueError(f"{mode} padding of axis {axis} with size {size} gives at most {limit}, not {before, after}")
    first, last = SIDES[mode](value, axis, before, after)
    parts = [first] * (before > 0) + [value] + [last] * (after > 0)
    return parts[0].cat(*parts[1:], dim=axis)


def part(value: V, axis: int, start: int, stop: int) -> V:
    """The elements of one axis from start to stop."""
    return value.shrink([(start, stop) if i == axis else None for i in range(value.ndim)])


def reflect(value: V, axis: int, before: int, after: int) -> tuple[V, V]:
    """Mirrored, without the edge itself."""
    size = value.shape[axis]
    return part(value, axis, 1, before + 1).flip(axis), part(value, axis, size - 1 - after, size - 1).flip(axis)


def replicate(value: V, axis: int, before: int, after: int) -> tuple[V, V]:
    """The first and the last element again and again."""
    size = value.shape[axis]
    sizes = [-1] * value.ndim
    first, last = part(value, axis, 0, 1), part(value, axis, size - 1, size)
    sizes[axis] = max(before, 1)
    first = first.expand(sizes)
    sizes[axis] = max(after, 1)
    return first, last.expand(sizes)


def circular(value: V, axis: int, before: int, after: int) -> tuple[V, V]:
    """What lies at the other end."""
    size = value.shape[axis]
    return part(value, axis, size - before, size), part(value, axis, 0, after)


SIDES = {"reflect": reflect, "replicate": replicate, "circular": circular}
