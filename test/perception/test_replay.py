"""Replay: a bag of detections that says what the pipeline said, for every good frame and under its own header."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from perception import bags
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from tensor_engine.perception import Detection, Frame, Pipeline
from tensor_engine.perception.errors import SourceError
from tensor_engine.perception.replay import detect_all, replay
from tensor_engine.perception.sources import open_source
from tensor_engine.perception.vision_msgs import DEFINITIONS, DETECTION_ARRAY, Messages

# The type hash of the published vision_msgs/msg/Detection2DArray.
PUBLISHED = "RIHS01_214274120007f4a683866481336b70310268cfa107aebe9d594a6acf75bda968"


def test_the_messages_are_the_published_ones():
    assert Messages().store.hash_rihs01(DETECTION_ARRAY) == PUBLISHED


def test_a_message_says_what_was_detected():
    messages = Messages()
    frame = Frame(b"", "rgb8", 0, 0, 0, stamp_ns=-1, frame_id="eye")
    found = [Detection("cat", 0.75, 10.0, 20.0, 4.0, 6.0), Detection("7", 0.5, 1.0, 2.0, 3.0, 4.0)]
    data = messages.serialise(frame, found)
    array = messages.store.deserialize_cdr(data, DETECTION_ARRAY)
    for header in (array.header, *(d.header for d in array.detections)):
        assert (header.stamp.sec, header.stamp.nanosec, header.frame_id) == (-1, 999_999_999, "eye")
    first = array.detections[0]
    assert (first.results[0].hypothesis.class_id, first.results[0].hypothesis.score, first.id) == ("cat", 0.75, "")
    assert (first.bbox.center.position.x, first.bbox.center.position.y, first.bbox.center.theta) == (10.0, 20.0, 0.0)
    assert (first.bbox.size_x, first.bbox.size_y) == (4.0, 6.0)


def read(path) -> list[tuple]:
    """Topic, record time and message of everything in a bag, with the types of the bag's own definitions."""
    store = get_typestore(Stores.ROS2_JAZZY)
    for name, text in DEFINITIONS.items():
        store.register(get_types_from_msg(text, name))
    with AnyReader([path], default_typestore=store) as reader:
        return [(c.topic, time, reader.deserialize(data, c.msgtype)) for c, time, data in reader.messages()]


@pytest.fixture(scope="module")
def faces(centerface_path) -> Pipeline:
    return Pipeline(centerface_path)


@pytest.fixture
def mixed_bag(tmp_path, astronaut):
    """A face, a black frame, a cut JPEG, an unknown encoding, and a face again."""
    ok, jpeg = cv2.imencode(".jpg", astronaut[:, :, ::-1])
    assert ok
    ok, black = cv2.imencode(".jpg", np.zeros_like(astronaut))
    assert ok
    stream = [jpeg.tobytes(), black.tobytes(), jpeg.tobytes()[:500], b"no picture", jpeg.tobytes()]
    messages = [bags.compressed(data, stamp_ns=5 + n, frame_id=f"eye{n}") for n, data in enumerate(stream)]
    return bags.write_bag(tmp_path / "mixed", {"/camera": messages})


def test_every_good_frame_has_its_message(mixed_bag, faces, tmp_path):
    source = open_source(mixed_bag)
    seen = []
    report = replay(source, faces, tmp_path / "out", topic="/found", seen=seen.append)
    assert (report.messages, report.detections) == (3, 2)
    assert [(o.sourced.name, o.error.reason) for o in report.rejected] == [
        ("000002", "truncated"), ("000003", "undecodable"),
    ]
    assert len(seen) == 5

    written = read(tmp_path / "out")
    assert [topic for topic, _, _ in written] == ["/found"] * 3
    assert [m.header.frame_id for _, _, m in written] == ["eye0", "eye1", "eye4"]
    assert [m.header.stamp.nanosec for _, _, m in written] == [5, 6, 9]
    assert [len(m.detections) for _, _, m in written] == [1, 0, 1]
    times = [f.time_ns for f in source.frames()]
    assert [time for _, time, _ in written] == [times[0], times[1], times[4]]


def test_the_bag_says_what_the_pipeline_says(mixed_bag, faces, tmp_path):
    replay(open_source(mixed_bag), faces, tmp_path / "out")
    _, _, message = read(tmp_path / "out")[0]
    (expected,) = faces(next(open_source(mixed_bag).frames()).frame).detections
    (found,) = message.detections
    position = found.bbox.center.position
    box = (position.x, position.y, found.bbox.size_x, found.bbox.size_y)
    assert box == (expected.center_x, expected.center_y, expected.size_x, expected.size_y)
    assert found.results[0].hypothesis.score == expected.score


def test_the_limit_counts_frames(mixed_bag, faces):
    assert len(list(detect_all(open_source(mixed_bag), faces, limit=3))) == 3


def test_nothing_is_overwritten(mixed_bag, faces, tmp_path):
    with pytest.raises(SourceError, match="exists already"):
        replay(open_source(mixed_bag), faces, mixed_bag)
