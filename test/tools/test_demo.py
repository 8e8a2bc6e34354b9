"""`make demo`, as a person runs it."""

import importlib.util
import subprocess
import sys

import cv2
import pytest
from conftest import REPOSITORY
from rosbags.highlevel import AnyReader

from tensor_engine.perception.vision_msgs import DETECTION_ARRAY, Messages

HAS_ROS = all(importlib.util.find_spec(package) for package in ("rclpy", "vision_msgs"))


def demo(*options):
    command = [sys.executable, str(REPOSITORY / "tools" / "demo.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=400)


def recorded(bag):
    """The messages of the bag that the demo leaves behind."""
    with AnyReader([bag], default_typestore=Messages().store) as reader:
        assert {connection.msgtype for connection in reader.connections} == {DETECTION_ARRAY}
        return [reader.deserialize(data, connection.msgtype) for connection, _, data in reader.messages()]


@pytest.mark.slow
@pytest.mark.timeout(450)
@pytest.mark.parametrize("options", [[], ["--without-ros", "--packaged"]], ids=["as it is", "without ROS and data"])
def test_it_ends_by_itself_with_pictures_and_a_bag(options, tmp_path, centerface_path, carphone):
    if not HAS_ROS and not options:
        pytest.skip("ROS 2 is not installed")
    out = tmp_path / "out"
    done = demo("--out", str(out), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    messages = recorded(out / "detections")
    labels = {one.results[0].hypothesis.class_id for message in messages for one in message.detections}
    assert labels & {"person", "face"}
    pictures = sorted(out.glob("*.jpg"))
    assert len(pictures) == -(-len(messages) // 10)
    assert all(cv2.imread(str(picture)) is not None for picture in pictures)
