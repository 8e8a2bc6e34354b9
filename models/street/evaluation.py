"""How right the street detector is, against its teacher's confident boxes and against the labels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tensor_engine.perception import Frame, Pipeline
from tensor_engine.perception.accuracy import average_precision

from .labels import Labels
from .network import CLASSES
from .teacher import THEIR_CLASSES

CONFIDENT = 0.5  # from this score on, what the teacher says at first sight counts as true
ANY_SCORE = 0.01

Found = list[np.ndarray]  # for each frame [n, 5]: x1, y1, x2, y2, score


def evaluate_model(model: Path, teacher: Path, frames: np.ndarray, labels: Labels) -> Iterator[str]:
    """A line a class, for BGR frames from number 0 on."""
    theirs = look(teacher, frames)
    ours = look(model, frames)
    for number, name in enumerate(CLASSES):
        truth = [boxes[kinds == number] for boxes, kinds in map(labels.of, range(len(frames)))]
        confident = [boxes[boxes[:, 4] >= CONFIDENT, :4] for boxes in theirs[name]]
        yield f"{name}: AP50 {ap(ours[name], confident)} against the teacher's confident boxes"
        yield f"{name}: AP50 {ap(ours[name], truth)} against the labels; the teacher's own {ap(theirs[name], truth)}"


def ap(found: Found, truth: Found) -> str:
    """As text; a dash where nothing is to be found."""
    return f"{average_precision(found, truth):.3f}" if sum(map(len, truth)) else "-"


def look(model: Path, frames: np.ndarray) -> dict[str, Found]:
    """What a detector finds of our classes, however unsure it is."""
    pipeline = Pipeline(model, score_threshold=ANY_SCORE)
    pipeline.classes = [name for name in pipeline.labels if THEIR_CLASSES.get(name) in CLASSES]
    found: dict[str, Found] = {name: [] for name in CLASSES}
    for frame in frames:
        detections = pipeline(Frame.from_array(frame, "bgr8")).detections
        for name, rows in found.items():
            mine = [[*d.corners, d.score] for d in detections if THEIR_CLASSES[d.class_id] == name]
            rows.append(np.array(mine, np.float32).reshape(-1, 5))
    return found
