"""The whole way on real pictures: every frame of the street against onnxruntime and an independent decoder."""

from __future__ import annotations

import cv2
import numpy as np
import onnxruntime
import pytest
from perception import oracle
from rosbags.highlevel import AnyReader

from tensor_engine.perception import Frame, Pipeline

FRAMES = 150
SIZE = 320
MEAN, STD = [103.53, 116.28, 123.675], [57.375, 57.12, 58.395]
SCORE, OVERLAP = 0.4, 0.6
SCORE_TOLERANCE, PIXEL_TOLERANCE = 1e-3, 0.5


@pytest.fixture(scope="module")
def pictures(street_bag) -> list[bytes]:
    with AnyReader([street_bag]) as reader:
        return [reader.deserialize(data, c.msgtype).data.tobytes() for c, _, data in reader.messages()]


@pytest.fixture(scope="module")
def session(nanodet_path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(str(nanodet_path), providers=["CPUExecutionProvider"])


def expected_boxes(session, image: np.ndarray, score: float) -> list[oracle.Box]:
    canvas, place = oracle.letterbox(image, SIZE, SIZE, pad=0.0)
    blob = oracle.blob(canvas, MEAN, STD, swap=False)
    outputs = session.run(None, {session.get_inputs()[0].name: blob})
    boxes = oracle.greedy_nms(oracle.nanodet(outputs, SIZE, (8, 16, 32), score), OVERLAP)
    return oracle.to_source(boxes, place, *image.shape[:2])


def numbers(box: oracle.Box) -> list[float]:
    return [box.x1, box.y1, box.x2, box.y2]


def agree(detection, box: oracle.Box, labels: list[str]) -> bool:
    return (
        detection.class_id == labels[box.label]
        and abs(detection.score - box.score) <= SCORE_TOLERANCE
        and bool(np.abs(np.subtract(detection.corners, numbers(box))).max() <= PIXEL_TOLERANCE)
    )


def explain(found, missed, labels) -> str:
    ours = "\n".join(f"  {d.class_id} {d.score:.4f} {np.round(d.corners, 2)}" for d in found)
    theirs = "\n".join(f"  {labels[b.label]} {b.score:.4f} {np.round(numbers(b), 2)}" for b in missed)
    return f"found by us only:\n{ours}\nfound by the oracle only:\n{theirs}"


def difference(detections, boxes, labels) -> tuple[list, list]:
    """What one side found and the other did not, each box matched once."""
    missed = list(boxes)
    ours_only = []
    for detection in detections:
        match = next((box for box in missed if agree(detection, box, labels)), None)
        missed.remove(match) if match else ours_only.append(detection)
    return ours_only, missed


def borderline(score: float) -> bool:
    return abs(score - SCORE) <= SCORE_TOLERANCE


def test_every_frame_of_the_street(pictures, session, nanodet_path):
    """Same classes, scores within 1e-3, boxes within 0.5 px; scores that near the threshold may be on either side."""
    assert len(pictures) == FRAMES
    pipeline = Pipeline(nanodet_path)
    people = []
    for number, data in enumerate(pictures):
        found = pipeline(Frame.from_file(data)).detections
        image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        boxes = expected_boxes(session, image, SCORE)
        ours, theirs = difference(found, boxes, pipeline.labels)
        ours = [d for d in ours if not borderline(d.score)]
        theirs = [b for b in theirs if not borderline(b.score)]
        assert not ours and not theirs, f"frame {number}\n{explain(ours, theirs, pipeline.labels)}"
        people.append(sum(d.class_id == "person" for d in found))
    assert 5.4 < np.mean(people) < 5.6 and min(people) == 3 and max(people) == 9


def test_a_low_threshold_brings_many_candidates(pictures, session, nanodet_path):
    """Hundreds of overlapping candidates of many classes: what suppression keeps is the same."""
    pipeline = Pipeline(nanodet_path, score_threshold=0.2)
    image = cv2.imdecode(np.frombuffer(pictures[75], np.uint8), cv2.IMREAD_COLOR)
    found = pipeline(Frame.from_array(image, "bgr8")).detections
    boxes = expected_boxes(session, image, 0.2)
    assert len(boxes) > 20
    ours, theirs = difference(found, boxes, pipeline.labels)
    assert not ours and not theirs, explain(ours, theirs, pipeline.labels)
