"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tensor_engine.perception import ModelError, Pipeline
from tensor_engine.perception.model import default_model

FILE = click.Path(path_type=Path)
FRACTION = click.FloatRange(0, 1)

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
topic = click.option("--topic", help="The image topic of a bag; the first if not given.")
limit = click.option("--limit", type=click.IntRange(min=1), help="Stop after so many frames.")

PIPELINE_OPTIONS = (
    click.option("--model", type=FILE, default=default_model, help="The detector, an ONNX file; else the street's."),
    click.option("--card", type=FILE, help="Its model card; else NAME.yaml beside it or in models/."),
    click.option("--labels", type=FILE, help="Names of its classes, one a line."),
    click.option("--score", "score_threshold", type=FRACTION, help="Least score; else the card's, else 0.4."),
    click.option("--nms", "nms_threshold", type=FRACTION, help="Largest overlap; else the card's, else 0.6."),
    click.option("--class", "classes", multiple=True, help="Report only this class. May be given again."),
    click.option("--max-detections", type=click.IntRange(min=1), default=100, show_default=True),
)


def pipeline_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that make a Pipeline; make_pipeline takes their values."""
    for option in reversed(PIPELINE_OPTIONS):
        command = option(command)
    return command


def make_pipeline(model: Path, classes: tuple[str, ...], **settings: Any) -> Pipeline:
    """The pipeline that the options describe."""
    pipeline = Pipeline(model, **settings)
    try:
        pipeline.classes = list(classes) or None
    except ValueError as error:
        raise ModelError(str(error)) from None
    return pipeline
