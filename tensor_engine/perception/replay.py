"""Replaying a recording: the detections of every frame of a bag, written to another bag."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tensor_engine.perception.errors import SourceError
from tensor_engine.perception.extras import require
from tensor_engine.perception.frame import BadImage
from tensor_engine.perception.pipeline import Pipeline, Result
from tensor_engine.perception.sources import Source, SourcedFrame
from tensor_engine.perception.vision_msgs import DETECTION_ARRAY, Messages

BAG_VERSION: Final = 8  # read by ROS 2 Iron and later, and by Humble's tools


@dataclass(frozen=True)
class Outcome:
    """What came of one frame: a result, or the reason why there is none."""

    sourced: SourcedFrame
    result: Result | None
    error: BadImage | None


def detect_all(source: Source, pipeline: Pipeline, limit: int | None = None) -> Iterator[Outcome]:
    """Every frame's outcome, in order. A bad image has an outcome too; nothing is lost."""
    for number, sourced in enumerate(source.frames()):
        if number == limit:
            return
        try:
            yield Outcome(sourced, pipeline(sourced.frame), None)
        except BadImage as error:
            yield Outcome(sourced, None, error)


@dataclass
class ReplayReport:
    """What a replay wrote: messages and detections, and the reasons of the frames without a message."""

    messages: int = 0
    detections: int = 0
    rejected: list[Outcome] = field(default_factory=list)


def replay(
    source: Source,
    pipeline: Pipeline,
    out: Path,
    *,
    topic: str = "/detections",
    limit: int | None = None,
    seen: Callable[[Outcome], None] = lambda outcome: None,
) -> ReplayReport:
    """Write one Detection2DArray for every good frame to a new bag (sqlite3), also where nothing
    was found.

    Headers are the images' own, and records keep the time of the image's record. `seen` is told
    every outcome. Raises SourceError if `out` exists already.
    """
    if out.exists():
        raise SourceError(f"{out} exists already; give another name or remove it")
    rosbag2 = require("rosbags.rosbag2")
    messages, report = Messages(), ReplayReport()
    with rosbag2.Writer(out, version=BAG_VERSION) as writer:
        connection = writer.add_connection(topic, DETECTION_ARRAY, typestore=messages.store)
        for outcome in detect_all(source, pipeline, limit):
            seen(outcome)
            if outcome.result is None:
                report.rejected.append(outcome)
                continue
            data = messages.serialise(outcome.sourced.frame, outcome.result.detections)
            writer.write(connection, outcome.sourced.time_ns, data)
            report.messages += 1
            report.detections += len(outcome.result.detections)
    return report
