"""`tensor-engine replay`: the detections of a bag as another bag."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from tensor_engine.cli.console import print_json, print_line, progress
from tensor_engine.cli.detect import record_of
from tensor_engine.cli.options import FILE, as_json, limit, make_pipeline, pipeline_options, topic
from tensor_engine.perception.errors import SourceError
from tensor_engine.perception.replay import Outcome, ReplayReport
from tensor_engine.perception.replay import replay as replay_source
from tensor_engine.perception.sources import open_source


@click.command()
@click.argument("bag", type=FILE)
@pipeline_options
@click.option("--out", required=True, type=FILE, help="The bag to write (sqlite3); must not exist.")
@click.option("--detections-topic", default="/detections", show_default=True, help="Its topic.")
@topic
@limit
@as_json
def replay(
    bag: Path,
    out: Path,
    detections_topic: str,
    topic: str | None,
    limit: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Detect in every image of BAG and write vision_msgs/Detection2DArray messages to another bag.

    A message for every good image, also where nothing was found, with the image's own header.
    """
    source = open_source(bag, topic)
    if source.kind != "bag":
        raise SourceError(f"{bag} is a {source.kind}; replay takes a bag, detect takes the others")
    pipeline = make_pipeline(**options)
    with progress() as bar:
        task = bar.add_task("compiling", total=limit or source.count)

        def seen(outcome: Outcome) -> None:
            bar.update(task, advance=1, description="replaying")

        report = replay_source(source, pipeline, out, topic=detections_topic, limit=limit, seen=seen)
    print_json(document(report, bag, out)) if as_json else print_summary(report, out)


def document(report: ReplayReport, bag: Path, out: Path) -> dict[str, Any]:
    """The report as JSON knows it."""
    return {
        "source": str(bag),
        "out": str(out),
        "messages": report.messages,
        "detections": report.detections,
        "rejected": [record_of(outcome) for outcome in report.rejected],
    }


def print_summary(report: ReplayReport, out: Path) -> None:
    """Two lines and more for people."""
    print_line(f"{out}: {report.messages} messages, {report.detections} detections")
    reasons = Counter(outcome.error.reason for outcome in report.rejected if outcome.error)
    for reason, count in reasons.most_common():
        print_line(f"rejected {count} images: {reason}")
