"""What goes into messages and comes out of them."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("vision_msgs", reason="vision_msgs is not installed")

from rclpy.serialization import deserialize_message
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import Header
from vision_msgs.msg import Detection2DArray

from ros_node import cdr, messages
from ros_node.camera import candidates
from ros_node.diagnostics import Level, Status
from tensor_engine.perception.detection import Detection
from tensor_engine.perception.frame import Frame
from tensor_engine.perception.sources import frame_of_message

FOUND = [Detection("person", 0.75, 10.5, 20.25, 4.0, 8.5), Detection("dog", 0.5, 0.0, 0.0, 0.0, 0.0)]


def header(sec=7, nanosec=9, frame_id="camera"):
    made = Header(frame_id=frame_id)
    made.stamp.sec, made.stamp.nanosec = sec, nanosec
    return made


def test_detections_come_out_as_they_went_in():
    received = deserialize_message(cdr.detection_array(7, 9, "camera", FOUND), Detection2DArray)
    assert messages.detections_from(received) == FOUND


@pytest.mark.parametrize("data", [b"", bytes(range(12))], ids=["empty", "pixels"])
def test_a_frame_is_a_view_of_the_message(data):
    message = Image(header=header(-2, 5), height=2, width=2, encoding="rgb8", step=6, data=data)
    frame = frame_of_message(message)
    assert (frame.height, frame.width, frame.step, frame.encoding) == (2, 2, 6, "rgb8")
    assert (frame.stamp_ns, frame.frame_id) == (-1_999_999_995, "camera")
    assert bytes(frame.octets) == data
    if data:
        message.data[0] = 99
        assert frame.octets[0] == 99


def test_a_compressed_frame_is_told_by_its_bytes():
    message = CompressedImage(header=header(), format="rgb8; jpeg compressed bgr8", data=b"\xff\xd8\xff")
    assert frame_of_message(message).encoding == "jpeg"


def test_a_raw_frame_becomes_its_message():
    frame = Frame(np.arange(32, dtype=np.uint8), "rgb8", 2, 5, 16, -1_999_999_995, "camera")
    message = messages.image_message(frame)
    assert message == Image(header=header(-2, 5), height=2, width=5, encoding="rgb8", step=16, data=bytes(range(32)))


def test_a_compressed_frame_becomes_its_message():
    message = messages.image_message(Frame.from_file(b"\xff\xd8\xff", stamp_ns=7_000_000_009, frame_id="camera"))
    assert message == CompressedImage(header=header(), format="jpeg", data=b"\xff\xd8\xff")


def test_labels_are_numbered_in_their_order():
    message = messages.label_info_message(header().stamp, ["person", "dog"], 0.5)
    assert [(one.class_id, one.class_name) for one in message.class_map] == [(0, "person"), (1, "dog")]
    assert message.threshold == 0.5
    assert message.header.stamp.sec == 7


def test_diagnostics_are_strings():
    status = Status(Level.STALE, "nothing", {"frames": 3, "rate": "2.50"})
    message = messages.diagnostics_message(header().stamp, "front/perception_node", "CPU", {"frames": status})
    assert len(message.status) == 1
    made = message.status[0]
    assert (made.name, made.level, made.message) == ("front/perception_node: frames", b"\x03", "nothing")
    assert made.hardware_id == "CPU"
    assert [(pair.key, pair.value) for pair in made.values] == [("frames", "3"), ("rate", "2.50")]


@pytest.mark.parametrize(
    ("topic", "transport", "expected"),
    [
        ("/image_raw", "raw", [("/image_raw", Image)]),
        ("/image_raw", "compressed", [("/image_raw/compressed", CompressedImage)]),
        ("/a/compressed", "raw", [("/a/compressed", CompressedImage)]),
        (
            "/image_raw",
            "auto",
            [("/image_raw", Image), ("/image_raw/compressed", CompressedImage), ("/image_raw", CompressedImage)],
        ),
    ],
)
def test_where_a_camera_may_be_found(topic, transport, expected):
    assert candidates(topic, transport) == expected
