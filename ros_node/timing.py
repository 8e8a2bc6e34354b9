"""How long every stage of the last cycles took. A cycle is one image's way from its arrival to its detections."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from tensor_engine.perception.timing import percentile

WINDOW = 1000  # cycles: enough for a p99 that rests on ten of them


@dataclass(frozen=True)
class Cycle:
    """The monotonic stamps of one image's way, in seconds, and what the pipeline says of its part."""

    received: float
    started: float
    finished: float
    published: float
    pipeline: Mapping[str, float]

    @property
    def seconds(self) -> float:
        """From the image's arrival to its detections being out."""
        return self.published - self.received

    def stages(self) -> dict[str, float]:
        """Seconds per stage, in order."""
        inner = {stage: seconds for stage, seconds in self.pipeline.items() if stage != "total"}
        return {
            "queue": self.started - self.received,
            **inner,
            "publish": self.published - self.finished,
            "cycle": self.seconds,
        }


@dataclass(frozen=True)
class StageSummary:
    """One stage over the window, in seconds."""

    p50: float
    p99: float
    max: float
    last: float


@dataclass(frozen=True)
class CycleSummary:
    """The window's cycles and stages, and all deadlines that were ever missed."""

    cycles: int
    deadline_misses: int
    stages: Mapping[str, StageSummary]


class CycleTimes:
    """The last `window` cycles; any thread may call any method."""

    def __init__(self, window: int = WINDOW) -> None:
        self._lock = threading.Lock()
        self._recent: deque[dict[str, float]] = deque(maxlen=window)
        self._deadline_misses = 0

    def record(self, cycle: Cycle, deadline: float) -> None:
        """Adds a cycle, which should have taken `deadline` seconds at most; 0 is no deadline."""
        with self._lock:
            self._recent.append(cycle.stages())
            if 0 < deadline < cycle.seconds:
                self._deadline_misses += 1

    def summary(self) -> CycleSummary:
        """The stages of the last cycle, in its order, over the whole window."""
        with self._lock:
            recent, misses = list(self._recent), self._deadline_misses
        stages = recent[-1] if recent else {}
        return CycleSummary(len(recent), misses, {stage: _summarise(stage, recent) for stage in stages})


def _summarise(stage: str, cycles: list[dict[str, float]]) -> StageSummary:
    seconds = [cycle[stage] for cycle in cycles if stage in cycle]
    return StageSummary(
        p50=percentile(seconds, 50),
        p99=percentile(seconds, 99),
        max=max(seconds),
        last=seconds[-1],
    )
