"""The memory plan: one arena a device, in which the memory of a value is reused after its last reader."""
from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tensor_engine.helpers import round_up
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp

# every value begins on a cache line of its own, so that vector loads never straddle two values
ALIGNMENT = 64


class MemoryPlan(NamedTuple):
    """Where each temporary BUFFER lies in its device's arena, in bytes, and how large the arenas are."""

    offsets: dict[UOp, int]
    arena_sizes: dict[str, int]


class FreeList:
    """The gaps of an arena."""

    def __init__(self) -> None:
        self.gaps: list[tuple[int, int]] = []  # (start, size), sorted by start
        self.size = 0

    def take(self, size: int) -> int:
        """The start of the tightest gap that fits; the arena grows if there is none."""
        fitting = [gap for gap in self.gaps if gap[1] >= size]
        if not fitting:
            return self._grow(size)
        start, room = best = min(fitting, key=lambda gap: gap[1])
        self.gaps.remove(best)
        if room > size:
            self._insert(start + size, room - size)
        return start

    def _grow(self, size: int) -> int:
        """Room at the end, where the last gap may already make a part of it."""
        start = self.size
        if self.gaps and sum(self.gaps[-1]) == self.size:
            start, _ = self.gaps.pop()
        self.size = start + size
        return start

    def give_back(self, start: int, size: int) -> None:
        """A gap again, joined with its neighbours."""
        for gap in [gap for gap in self.gaps if sum(gap) == start or gap[0] == start + size]:
            self.gaps.remove(gap)
            start, size = min(start, gap[0]), size + gap[1]
        self._insert(start, size)

    def _insert(self, start: int, size: int) -> None:
        self.gaps.append((start, size))
        self.gaps.sort()


def plan_memory(linear: UOp, keep: Iterable[UOp]) -> MemoryPlan:
    """Offsets for all buffers that only live within `linear`; those in `keep` have memory of their own."""
    kept = set(keep)
    first_write: dict[UOp, int] = {}
    last_use: dict[UOp, int] = {}
    for number, step in enumerate(linear.src):
        for buffer in step.src:
            first_write.setdefault(buffer, number)
            last_use[buffer] = number
    temporary = {b for b in first_write if b.op is Ops.BUFFER and b not in kept}
    return _assign(linear, temporary, first_write, last_use)


def _assign(
    linear: UOp, temporary: set[UOp], first_write: dict[UOp, int], last_use: dict[UOp, int]
) -> MemoryPlan:
    arenas: dict[str, FreeList] = {}
    offsets: dict[UOp, int] = {}
    ending: dict[int, list[UOp]] = {}
    for buffer in temporary:
        ending.setdefault(last_use[buffer], []).append(buffer)
    for number, step in enumerate(linear.src):
        for buffer in dict.fromkeys(step.src):
            if buffer in temporary and first_write[buffer] == number:
                arena = arenas.setdefault(buffer.arg.device, FreeList())
                offsets[buffer] = arena.take(size_in_arena(buffer))
        for buffer in ending.get(number, ()):
            arenas[buffer.arg.device].give_back(offsets[buffer], size_in_arena(buffer))
    return MemoryPlan(offsets, {device: arena.size for device, arena in arenas.items()})


def size_in_arena(buffer: UOp) -> int:
    """The bytes that a buffer takes, rounded up to whole cache lines."""
    return round_up(max(buffer.arg.capacity * buffer.dtype.itemsize, 1), ALIGNMENT)
