"""How long every stage of the last cycles took."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from tensor_engine.perception.timing import percentile

WINDOW = 1000  # cycles: enough for a p99 that rests on ten of them


@dataclass(frozen=True)
class StageSummary:
    """One stage over the window, in seconds."""

    p50: float
    p99: float
    max: float
    last: float


class StageTimes:
    """The last `window` cycles, each a mapping of stage to seconds; any thread may call any method."""

    def __init__(self, window: int = WINDOW) -> None:
        self._lock = threading.Lock()
        self._cycles: deque[dict[str, float]] = deque(maxlen=window)

    def record(self, times: Mapping[str, float]) -> None:
        """Adds one cycle."""
        with self._lock:
            self._cycles.append(dict(times))

    def __len__(self) -> int:
        return len(self._cycles)

    def summary(self) -> dict[str, StageSummary]:
        """Every stage of the last cycle, in its order; empty before the first cycle."""
        with self._lock:
            cycles = list(self._cycles)
        if not cycles:
            return {}
        return {stage: _summarise(stage, cycles) for stage in cycles[-1]}


def _summarise(stage: str, cycles: list[dict[str, float]]) -> StageSummary:
    seconds = [cycle[stage] for cycle in cycles if stage in cycle]
    return StageSummary(
        p50=percentile(seconds, 50),
        p99=percentile(seconds, 99),
        max=max(seconds),
        last=seconds[-1],
    )
