"""`tensor-engine detect`: what is in a picture, a video or a bag."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from tensor_engine.cli import USER_MISTAKE
from tensor_engine.cli.console import milliseconds, print_json, print_line, print_table, progress
from tensor_engine.cli.options import FILE, as_json, limit, make_pipeline, pipeline_options, topic
from tensor_engine.perception.draw import annotate
from tensor_engine.perception.extras import require
from tensor_engine.perception.frame import Frame
from tensor_engine.perception.replay import Outcome, detect_all
from tensor_engine.perception.sources import SECOND_NS, Source, open_source
from tensor_engine.perception.timing import percentile

Record = dict[str, Any]


@click.command()
@click.argument("source", type=FILE)
@pipeline_options
@topic
@limit
@click.option("--out", type=FILE, help="A folder for annotated pictures.")
@as_json
def detect(source: Path, topic: str | None, limit: int | None, out: Path | None, as_json: bool, **options: Any) -> int:
    """Find objects in SOURCE: a picture, a folder of pictures, a video, or a bag.

    Prints a table; with --json one document: model, source, frames (stamp, frame_id, width, height,
    detections with centre and size in pixels, seconds per stage) and the frames that were rejected,
    with the reason.
    """
    opened = open_source(source, topic)
    pipeline = make_pipeline(**options)
    records: list[Record] = []
    rejected: list[Record] = []
    for outcome in with_progress(detect_all(opened, pipeline, limit), opened, limit):
        (records if outcome.result else rejected).append(record_of(outcome))
        if out is not None and outcome.result:
            save_picture(out, outcome)
    report = {"model": str(options["model"]), "source": str(source), "frames": records, "rejected": rejected}
    print_json(report) if as_json else print_report(report, opened)
    return USER_MISTAKE if rejected and not records else 0


def with_progress(outcomes: Iterator[Outcome], source: Source, limit: int | None) -> Iterator[Outcome]:
    """Pass outcomes on and show how far we are. The first takes long: it compiles."""
    total = source.count if limit is None else min(limit, source.count or limit)
    with progress() as bar:
        task = bar.add_task("compiling", total=total)
        for outcome in outcomes:
            yield outcome
            bar.update(task, advance=1, description="detecting")


def record_of(outcome: Outcome) -> Record:
    """An outcome as JSON knows it."""
    frame, result, error = outcome.sourced.frame, outcome.result, outcome.error
    record = {"name": outcome.sourced.name, "stamp": stamp_of(frame), "frame_id": frame.frame_id}
    if result is None:
        return {**record, "reason": error.reason, "message": str(error)} if error else record
    return {
        **record,
        "width": result.width,
        "height": result.height,
        "detections": [asdict(detection) for detection in result.detections],
        "times": result.times,
    }


def stamp_of(frame: Frame) -> dict[str, int]:
    """The frame's stamp as ROS writes it."""
    seconds, rest = divmod(frame.stamp_ns, SECOND_NS)
    return {"sec": seconds, "nanosec": rest}


def save_picture(folder: Path, outcome: Outcome) -> None:
    """Write the annotated frame to the folder, which is made if need be."""
    cv2 = require("cv2")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{outcome.sourced.name}.jpg"
    picture = annotate(outcome.sourced.frame, outcome.result.detections if outcome.result else [])
    if not cv2.imwrite(str(path), picture):
        raise OSError(f"{path} cannot be written")


# ---- for people ----------------------------------------------------------------------------------------------------


def print_report(report: Record, source: Source) -> None:
    """The tables of a report: detections of a picture, else a row a frame."""
    print_detections(report) if source.kind == "picture" else print_frames(report)
    for record in report["rejected"]:
        print_line(f"rejected {record['name']} ({record['reason']}): {record['message']}")
    print_times([record["times"] for record in report["frames"]])


def print_detections(report: Record) -> None:
    """A row a detection."""
    columns = {"class": "left", "score": "right", "centre": "right", "size": "right"}
    found = [detection for record in report["frames"] for detection in record["detections"]]
    print_table(report["source"], columns, map(detection_row, found))


def detection_row(found: Record) -> tuple[str, ...]:
    """Label, score, centre and size."""
    centre = f"{found['center_x']:.1f}, {found['center_y']:.1f}"
    size = f"{found['size_x']:.1f} x {found['size_y']:.1f}"
    return found["class_id"], f"{found['score']:.3f}", centre, size


def print_frames(report: Record) -> None:
    """A row a frame."""
    columns = {"frame": "left", "time": "right", "detections": "left", "ms": "right"}
    print_table(report["source"], columns, map(frame_row, report["frames"]))


def frame_row(record: Record) -> tuple[str, ...]:
    """Name, stamp, how many of each class, milliseconds."""
    stamp = record["stamp"]
    seconds = f"{stamp['sec']}.{stamp['nanosec'] // 1_000_000:03}"
    counts = Counter(found["class_id"] for found in record["detections"])
    summary = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    return record["name"], seconds, summary, milliseconds(record["times"]["total"])


def print_times(times: list[dict[str, float]]) -> None:
    """The first frame apart: it paid for the capture."""
    if not times:
        return
    print_line(f"first frame {milliseconds(times[0]['total'])} ms")
    if later := times[1:]:
        stages = {stage: [t.get(stage, 0.0) for t in later] for stage in later[-1]}
        middle = ", ".join(f"{stage} {milliseconds(percentile(s, 50))}" for stage, s in stages.items())
        worst = milliseconds(max(stages["total"]))
        print_line(f"{len(later)} later frames, p50 in ms: {middle}; slowest {worst}")
