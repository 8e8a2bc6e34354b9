"""Where a frame's time goes: a monotonic stamp at every arrow."""

from __future__ import annotations

import time


class Stopwatch:
    """Seconds per stage, in order. `lap("decode")` ends the stage that has run since the last lap."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self._start = self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.times[stage] = self.times.get(stage, 0.0) + now - self._last
        self._last = now

    def total(self) -> dict[str, float]:
        """The stages so far and `total`, the time since the start."""
        return {**self.times, "total": self._last - self._start}


def percentile(samples: list[float], percent: float) -> float:
    """The smallest sample that at least `percent` of all samples do not exceed (nearest rank)."""
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(int(rank), 1) - 1]
