"""The pipeline on real networks: encodings, sizes, settings, and inputs that must not hurt."""

from __future__ import annotations

from itertools import islice

import cv2
import numpy as np
import pytest

from tensor_engine.perception import BadImage, Frame, Pipeline
from tensor_engine.perception.sources import open_source

FACE = (170, 70, 280, 190)  # x1, y1, x2, y2 of the astronaut's face, measured by eye


@pytest.fixture(scope="module")
def faces(centerface_path) -> Pipeline:
    return Pipeline(centerface_path)


@pytest.fixture(scope="module")
def objects(nanodet_path) -> Pipeline:
    return Pipeline(nanodet_path)


@pytest.fixture(scope="module")
def street(street_bag) -> np.ndarray:
    """One frame of the street as BGR."""
    frames = open_source(street_bag).frames()
    return next(frames).frame.pixels()


def overlap(detection, region) -> float:
    x1, y1, x2, y2 = detection.corners
    width = min(x2, region[2]) - max(x1, region[0])
    height = min(y2, region[3]) - max(y1, region[1])
    shared = max(width, 0) * max(height, 0)
    return shared / (detection.size_x * detection.size_y)


def test_the_astronauts_face(faces, astronaut):
    found = faces(Frame.from_array(astronaut, "rgb8")).detections
    assert len(found) == 1
    assert found[0].class_id == "face" and found[0].score > 0.8
    assert overlap(found[0], FACE) > 0.7


def test_the_face_in_the_car(faces, carphone):
    """One face in every eighth frame of the four seconds, near the one before."""
    centres = []
    for sourced in islice(open_source(carphone).frames(), 0, None, 8):
        found = faces(sourced.frame).detections
        assert len(found) == 1, sourced.name
        centres.append((found[0].center_x, found[0].center_y))
    assert len(centres) == 15
    assert np.abs(np.diff(centres, axis=0)).max() < 25


def encoded(bgr: np.ndarray, encoding: str, gap: int) -> Frame:
    conversion = {"rgb8": cv2.COLOR_BGR2RGB, "rgba8": cv2.COLOR_BGR2RGBA, "bgra8": cv2.COLOR_BGR2BGRA, "bgr8": None}
    pixels = bgr if conversion[encoding] is None else cv2.cvtColor(bgr, conversion[encoding])
    height, width, channels = pixels.shape
    rows = np.full((height, width * channels + gap), 255, np.uint8)
    rows[:, : width * channels] = pixels.reshape(height, -1)
    return Frame(rows, encoding, height, width, rows.shape[1])


@pytest.mark.parametrize("encoding, gap", [("rgb8", 0), ("rgb8", 1), ("rgba8", 0), ("bgra8", 7)])
def test_every_encoding_and_step_gives_the_same_boxes(objects, street, encoding, gap):
    expected = objects(encoded(street, "bgr8", 0)).detections
    assert len(expected) >= 3
    assert objects(encoded(street, encoding, gap)).detections == expected


def test_grey_is_the_same_in_one_channel_as_in_three(objects, street):
    grey = cv2.cvtColor(street, cv2.COLOR_BGR2GRAY)
    three = cv2.cvtColor(grey, cv2.COLOR_GRAY2BGR)
    expected = objects(Frame.from_array(three, "bgr8")).detections
    assert expected
    assert objects(Frame.from_array(grey, "mono8")).detections == expected


def test_sizes_may_change_from_frame_to_frame(objects, street):
    large = cv2.resize(street, (1280, 960))
    first = objects(Frame.from_array(street, "bgr8")).detections
    scaled = objects(Frame.from_array(large, "bgr8")).detections
    again = objects(Frame.from_array(street, "bgr8")).detections
    assert again == first
    assert overlap(scaled[0], [v * 960 / 576 for v in first[0].corners]) > 0.8


@pytest.mark.parametrize("width, height", [(5, 7), (1, 1), (1, 300)])
def test_tiny_images_have_no_people_and_no_trouble(objects, width, height):
    found = objects(Frame.from_array(np.zeros((height, width, 3), np.uint8), "rgb8")).detections
    assert all(0 <= d.size_x <= width and 0 <= d.size_y <= height for d in found)


def test_a_black_frame_is_empty(faces):
    assert faces(Frame.from_array(np.zeros((512, 512, 3), np.uint8), "rgb8")).detections == []


def test_thresholds_and_classes_change_without_a_capture(objects, street):
    frame = Frame.from_array(street, "bgr8")
    usual = objects(frame)
    try:
        objects.score_threshold = 0.6
        sure = objects(frame)
        assert sure.detections == [d for d in usual.detections if d.score > 0.6]
        objects.score_threshold, objects.classes = 0.4, ["car"]
        cars = objects(frame)
        assert all(d.class_id == "car" for d in cars.detections)
        objects.classes = None
        objects.nms_threshold = 1.0
        assert len(objects(frame).detections) > len(usual.detections)
        assert "capture" not in {**sure.times, **cars.times}
    finally:
        objects.score_threshold, objects.nms_threshold, objects.classes = 0.4, 0.6, None


def test_an_unknown_class_lists_those_there_are(objects):
    with pytest.raises(ValueError, match="unicorn.*person"):
        objects.classes = ["unicorn"]
    assert objects.classes is None


def test_the_most_detections_are_the_best_ones(objects, street):
    frame = Frame.from_array(street, "bgr8")
    expected = objects(frame).detections
    scores = [d.score for d in expected]
    assert scores == sorted(scores, reverse=True)
    objects.max_detections = 2
    try:
        assert objects(frame).detections == expected[:2]
    finally:
        objects.max_detections = 100


def test_times_of_every_stage(objects, street):
    ok, data = cv2.imencode(".png", street)
    assert ok
    objects.prepare(*street.shape[:2], "png")
    result = objects(Frame.from_file(data.tobytes()))
    assert list(result.times) == ["decode", "load", "run", "unpack", "total"]
    stages = [seconds for stage, seconds in result.times.items() if stage != "total"]
    assert min(stages) >= 0 and abs(sum(stages) - result.times["total"]) < 1e-9
    assert (result.height, result.width) == street.shape[:2]


def test_a_bad_frame_changes_nothing_for_the_next(objects, street):
    good = Frame.from_array(street, "bgr8")
    expected = objects(good).detections
    for bad in (Frame(b"", "bgr8", 576, 768, 2304), Frame(b"x", "jpeg", 0, 0, 0), Frame(b"x" * 9, "16UC1", 1, 3, 3)):
        with pytest.raises(BadImage):
            objects(bad)
    assert objects(good).detections == expected


def test_a_layout_that_cannot_be_is_not_prepared(objects):
    with pytest.raises(BadImage):
        objects.prepare(480, 0, "rgb8")
    with pytest.raises(BadImage):
        objects.prepare(480, 640, "rgb8", step=640)


def test_a_frames_data_is_not_kept(objects, street):
    data = bytearray(street.tobytes())
    objects(Frame(data, "bgr8", 576, 768, 2304))
    data.append(0)  # raises BufferError while anyone holds a view
