"""The camera that plays recordings, in a process of its own."""

import signal
import sys

import cv2
import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("vision_msgs", reason="vision_msgs is not installed")

from conftest import REPOSITORY, reserve_domain
from live_ros import NodeProcess, header, station
from perception import bags
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CompressedImage, Image

SHADES = (10, 120, 250)
HEADERS = [header(100, 5, "lens"), header(101, 5, "lens"), header(102, 5, "lens")]


@pytest.fixture
def recording(tmp_path):
    """Three raw pictures, 17 pixels wide with rows of 52 bytes, recorded a millisecond apart."""
    pictures = [
        bags.image(np.full((16, 52), shade, np.uint8), "rgb8", 52, stamp * bags.SECOND + 5, "lens")
        for shade, stamp in zip(SHADES, (100, 101, 102))
    ]
    return bags.write_bag(tmp_path / "bag", {"/somewhere": pictures})


def play(recording, kind, topic, *options):
    """Everything that is heard on the image topic and on /clock until the camera ends, with its code."""
    images, times = [], []
    with reserve_domain() as domain:
        command = [sys.executable, str(REPOSITORY / "tools" / "camera.py"), str(recording), "--wait", "20", *options]
        camera = NodeProcess(domain, command, [])
        with station(domain, camera) as one:
            one.listen(kind, topic, images.append)
            one.listen(Clock, "/clock", lambda message: times.append(message.clock))
            enough = (lambda: len(images) > 4) if "--loop" in options else (lambda: camera.process.poll() is not None)
            one.until(enough, "the recording to be played")
            one.spin(0.2)
            camera.end(signal.SIGINT)
            code, output = camera.wait()
    assert code == 0
    assert "Traceback" not in output
    return images, times


def test_what_was_recorded_is_played_as_it_was(recording):
    images, _ = play(recording, Image, "/camera/image_raw")
    assert [image.header for image in images] == HEADERS
    assert [(image.height, image.width, image.encoding, image.step) for image in images] == [(16, 17, "rgb8", 52)] * 3
    assert [bytes(image.data) for image in images] == [bytes([shade]) * 16 * 52 for shade in SHADES]


def test_raw_pictures_are_compressed_where_that_is_asked_for(recording):
    images, _ = play(recording, CompressedImage, "/lens/compressed", "--topic", "/lens", "--transport", "compressed")
    assert [image.header for image in images] == HEADERS
    pixels = [cv2.imdecode(np.frombuffer(image.data, np.uint8), cv2.IMREAD_COLOR) for image in images]
    assert [array.shape for array in pixels] == [(16, 17, 3)] * 3
    assert [array.mean() for array in pixels] == pytest.approx(SHADES, abs=2)


def test_the_clock_is_that_of_the_records(recording):
    _, times = play(recording, Image, "/camera/image_raw", "--clock")
    assert [(time.sec, time.nanosec) for time in times] == [(1, 0), (1, 1_000_000), (1, 2_000_000)]


def test_it_begins_again_and_again(recording):
    images, _ = play(recording, Image, "/camera/image_raw", "--loop", "--rate", "10")
    assert [image.header.stamp.sec for image in images[:5]] == [100, 101, 102, 100, 101]


def test_a_recording_that_is_not_there_is_told():
    with reserve_domain() as domain:
        command = [sys.executable, str(REPOSITORY / "tools" / "camera.py"), "nowhere.mcap"]
        code, output = NodeProcess(domain, command, []).wait()
    assert code == 2
    assert "nowhere.mcap is not there" in output
    assert "Traceback" not in output
