"""What the demo plays and what it shows: the newest frame's objects, and how long every stage takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Group
from rich.table import Table

from tensor_engine.perception.detection import Detection
from tensor_engine.perception.frame import Frame
from tensor_engine.perception.sources import Source, open_source
from tensor_engine.perception.timing import percentile

STATISTICS = ("last", "p50", "p99", "max")


class DemoFailed(Exception):
    """What did not go as it should, and where to read more."""


@dataclass(frozen=True)
class Show:
    """A recording, a model and, unless it is the model's own, a card."""

    recording: Path
    model: Path
    card: Path | None = None

    @property
    def source(self) -> Source:
        """The recording's frames."""
        return open_source(self.recording)

    def first_frame(self) -> Frame:
        """Decoded, for its size."""
        return next(iter(self.source.frames())).frame.decode()


@dataclass
class Seen:
    """Everything that came of the show so far. Times are milliseconds: stage → statistic → value."""

    phase: str = "starting"
    found: dict[int, list[Detection]] = field(default_factory=dict)
    newest: list[Detection] = field(default_factory=list)
    times: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    accounts: str = ""

    def add(self, stamp_ns: int, detections: list[Detection]) -> None:
        """One frame's detections."""
        self.found[stamp_ns] = self.newest = detections

    @property
    def objects(self) -> Counter[str]:
        """How often each class was seen."""
        return Counter(one.class_id for detections in self.found.values() for one in detections)

    def picture(self) -> Group:
        """The newest frame's objects and the times of all stages."""
        title = f"frame {len(self.found)} · {self.phase}"
        return Group(detections_table(self.newest, title), times_table(self.times))

    def summary(self) -> Group:
        """Everything, in the end."""
        objects = ", ".join(f"{count} × {name}" for name, count in self.objects.most_common())
        return Group(f"{len(self.found)} frames: {objects or 'nothing'}", self.accounts, times_table(self.times))


def detections_table(detections: list[Detection], title: str) -> Table:
    """One line an object, best first; sizes in pixels of the source image."""
    table = Table("object", "score", "centre x", "y", "width", "height", title=title, title_justify="left")
    for one in detections:
        numbers = (one.center_x, one.center_y, one.size_x, one.size_y)
        table.add_row(one.class_id, f"{one.score:.2f}", *(f"{number:.1f}" for number in numbers))
    return table


def times_table(times: Mapping[str, Mapping[str, float]]) -> Table:
    """One line a stage, in milliseconds."""
    table = Table("stage", *(f"{name} ms" for name in STATISTICS))
    for stage, statistics in times.items():
        table.add_row(stage, *(f"{statistics[name]:.2f}" for name in STATISTICS))
    return table


class Times:
    """Collects stage times of every cycle, in seconds."""

    def __init__(self) -> None:
        self._samples: dict[str, list[float]] = {}

    def add(self, times: Mapping[str, float]) -> None:
        """One cycle."""
        for stage, seconds in times.items():
            self._samples.setdefault(stage, []).append(seconds * 1e3)

    def summary(self) -> dict[str, dict[str, float]]:
        """Milliseconds: stage → statistic → value."""
        return {
            stage: {
                "last": samples[-1],
                "p50": percentile(samples, 50),
                "p99": percentile(samples, 99),
                "max": max(samples),
            }
            for stage, samples in self._samples.items()
        }
