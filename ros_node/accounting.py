"""Where every image went."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class FrameTotals:
    """The counts at one moment.

    `passed` are images that the node did not take, since it was compiling or
    disabled; the others obey received = published + superseded + rejected + in_flight.
    """

    received: int = 0
    published: int = 0
    superseded: int = 0
    in_flight: int = 0
    passed: int = 0
    rejected: dict[str, int] = field(default_factory=dict)

    @property
    def balanced(self) -> bool:
        """Whether every received image is accounted for."""
        gone = self.published + self.superseded + sum(self.rejected.values())
        return self.received == gone + self.in_flight


class FrameCounts:
    """Counts images; any thread may call any method."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._received = 0
        self._published = 0
        self._superseded = 0
        self._in_flight = 0
        self._passed = 0
        self._rejected: Counter[str] = Counter()

    def receive(self) -> None:
        """An image came in and will be run, superseded or rejected."""
        with self._lock:
            self._received += 1
            self._in_flight += 1

    def publish(self) -> None:
        """An image's detections went out."""
        with self._lock:
            self._published += 1
            self._in_flight -= 1

    def supersede(self) -> None:
        """An image was replaced by a newer one before its turn came."""
        with self._lock:
            self._superseded += 1
            self._in_flight -= 1

    def reject(self, reason: str) -> None:
        """An image could not be used."""
        with self._lock:
            self._rejected[reason] += 1
            self._in_flight -= 1

    def pass_by(self) -> None:
        """An image came while the node was not taking any."""
        with self._lock:
            self._passed += 1

    def totals(self) -> FrameTotals:
        """All counts, taken at the same moment."""
        with self._lock:
            return FrameTotals(
                self._received, self._published, self._superseded,
                self._in_flight, self._passed, dict(self._rejected),
            )
