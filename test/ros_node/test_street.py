"""The installed node on the recorded street: what it publishes is what the pipeline says."""

import sys

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("vision_msgs", reason="vision_msgs is not installed")

from conftest import REPOSITORY, reserve_domain
from live_ros import NodeProcess, parameter_arguments, station

from ros_node.messages import detections_from, stamp_ns
from tensor_engine.perception.pipeline import Pipeline
from tensor_engine.perception.sources import open_source

COMPILING = 120.0  # seconds that a cold cache on a busy machine may take


@pytest.mark.timeout(400)
def test_the_live_node_says_what_the_pipeline_says(street_bag, nanodet_path):
    source = open_source(street_bag)
    frames = {sourced.frame.stamp_ns: sourced.frame for sourced in source.frames()}
    parameters = {"model_path": nanodet_path, "image_width": 768, "image_height": 576}
    arguments = ["-r", "image_raw:=/camera/image_raw", *parameter_arguments(parameters)]
    with reserve_domain() as domain:
        node = NodeProcess(domain, [sys.executable, "-m", "ros_node.perception_node"], arguments)
        with station(domain, node) as one:
            one.until(lambda: one.state() == "running", "the program to be compiled", COMPILING)
            camera = NodeProcess(domain, camera_command(street_bag), [])
            one.until(lambda: camera.process.poll() is not None, "the recording to end", COMPILING)
            counts = one.frame_counts()
            live = {stamp_ns(message.header.stamp): message for message in one.detections}

    assert camera.wait()[0] == 0
    assert counts["received"] == counts["published"] + counts["superseded"]
    assert counts["published"] == len(live) > 0
    pipeline = Pipeline(nanodet_path)
    for stamp, message in live.items():
        assert message.header.frame_id == "camera"
        assert detections_from(message) == pipeline(frames[stamp]).detections
    assert any(message.detections for message in live.values())


def camera_command(recording):
    tool = REPOSITORY / "tools" / "camera.py"
    return [sys.executable, str(tool), str(recording), "--topic", "/camera/image_raw", "--wait", "30"]
