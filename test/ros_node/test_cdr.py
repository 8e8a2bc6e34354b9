"""Our bytes against two other writers of the same message: ROS's own and rosbags."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ros_node import cdr
from tensor_engine.perception.detection import Detection
from tensor_engine.perception.frame import Frame
from tensor_engine.perception.vision_msgs import Messages

NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.floats(-1e4, 1e4)
DETECTIONS = st.builds(Detection, NAMES, st.floats(0, 1), NUMBERS, NUMBERS, st.floats(0, 1e4), st.floats(0, 1e4))
STAMPS = st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(0, 999_999_999))


@pytest.fixture(scope="module")
def by_rosbags():
    return Messages()


@given(stamp=STAMPS, frame_id=NAMES, found=st.lists(DETECTIONS, max_size=5))
def test_the_bytes_are_those_that_replay_writes(by_rosbags, stamp, frame_id, found):
    seconds, nanoseconds = stamp
    frame = Frame(b"", "mono8", 0, 0, 0, seconds * 10**9 + nanoseconds, frame_id)
    expected = bytes(by_rosbags.serialise(frame, found))
    assert cdr.detection_array(seconds, nanoseconds, frame_id, found) == expected


def test_ros_reads_what_was_meant():
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    vision_msgs = pytest.importorskip("vision_msgs.msg", reason="vision_msgs is not installed")
    from rclpy.serialization import deserialize_message

    found = [Detection("person", 0.75, 10.5, 20.25, 4.0, 8.5), Detection("traffic light", 0.5, 1.0, 2.0, 3.0, 4.0)]
    message = deserialize_message(cdr.detection_array(-7, 9, "camera", found), vision_msgs.Detection2DArray)
    assert (message.header.stamp.sec, message.header.stamp.nanosec, message.header.frame_id) == (-7, 9, "camera")
    assert len(message.detections) == 2
    for element, detection in zip(message.detections, found):
        assert element.header == message.header
        assert element.id == ""
        assert len(element.results) == 1
        hypothesis, pose = element.results[0].hypothesis, element.results[0].pose
        assert (hypothesis.class_id, hypothesis.score) == (detection.class_id, detection.score)
        assert (pose.pose.position.x, pose.pose.orientation.w) == (0.0, 1.0)
        np.testing.assert_array_equal(pose.covariance, np.zeros(36))
        centre = element.bbox.center
        assert (centre.position.x, centre.position.y, centre.theta) == (detection.center_x, detection.center_y, 0.0)
        assert (element.bbox.size_x, element.bbox.size_y) == (detection.size_x, detection.size_y)


def test_an_image_without_detections():
    assert cdr.detection_array(1, 2, "ab", []) == (
        b"\x00\x01\x00\x00" + b"\x01\x00\x00\x00" + b"\x02\x00\x00\x00" + b"\x03\x00\x00\x00ab\x00" + b"\x00" + bytes(4)
    )
