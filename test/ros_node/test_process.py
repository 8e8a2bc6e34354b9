"""How the node's process begins and ends."""

import signal
import sys

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("vision_msgs", reason="vision_msgs is not installed")

from conftest import REPOSITORY, reserve_domain
from live_ros import NodeProcess, fake_node, image, parameter_arguments, station
from sensor_msgs.msg import Image

# What the fake pipeline is asked to do, for longer than a test waits, and the state in which the signal comes.
MOMENTS = {
    "idle": ("", "running"),
    "mid-load": ("load=600", "loading"),
    "mid-compile": ("prepare=600", "compiling"),
    "mid-inference": ("run=600", "running"),
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_signal_ends_the_node_with_code_0(moment, number):
    behaviour, state = MOMENTS[moment]
    with reserve_domain() as domain:
        node = fake_node(domain, behaviour, image_transport="raw", image_width=8, image_height=6)
        with station(domain, node) as one:
            one.until(lambda: one.state() == state, state)
            if moment == "mid-inference":
                one.ready()
                one.until_status("frames", in_flight=1)
            node.end(number)
            code, output = node.wait()
    assert code == 0
    assert "Traceback" not in output


def run_to_its_end(*arguments, **parameters):
    with reserve_domain() as domain:
        command = [sys.executable, str(REPOSITORY / "test" / "ros_node" / "fake_node.py")]
        return NodeProcess(domain, command, [*arguments, *parameter_arguments(parameters)]).wait()


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"model_path": "missing.onnx"}, "missing.onnx is no model"),
        ({}, "models/street.onnx is no model"),
        ({"model_path": "fake", "score_threshold": 1.5}, "out of range"),
        ({"model_path": "fake", "score_threshold": "high"}, "expecting type 'DOUBLE'"),
        ({"model_path": "fake", "image_transport": "theora"}, "use one of auto, raw, compressed"),
        ({"model_path": "fake", "device": "TPU"}, "there is no device 'TPU'"),
        ({"model_path": "fake", "image_encoding": "yuyv"}, "use one of rgb8, bgr8"),
        ({"model_path": "fake", "classes": "[persn]"}, "no class 'persn'"),
        ({"model_path": "fake", "qos_overrides./diagnostics.publisher.reliability": "perhaps"}, "perhaps"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value,
)
def test_a_mistake_of_the_users_ends_it_with_code_2_and_one_line(parameters, reason):
    code, output = run_to_its_end(**parameters)
    assert code == 2
    assert "Traceback" not in output
    fatal = [line for line in output.splitlines() if "FATAL" in line]
    assert len(fatal) == 1
    assert reason in fatal[0]


def test_a_missing_parameter_file_is_a_mistake_of_the_users():
    code, output = run_to_its_end("--params-file", "/nowhere/perception.yaml")
    assert code == 2
    assert "/nowhere/perception.yaml" in output
    assert "Traceback" not in output


def test_an_integer_is_taken_for_a_double():
    with reserve_domain() as domain:
        node = fake_node(domain, score_threshold=1, image_width=8, image_height=6, image_transport="raw")
        with station(domain, node) as one:
            one.ready()
            assert one.get_parameter("score_threshold") == 1.0
            assert one.ask(image()).detections == []


def test_with_a_known_geometry_it_compiles_before_any_image():
    with reserve_domain() as domain:
        node = fake_node(domain, image_width=640, image_height=480, image_encoding="rgb8")
        with station(domain, node) as one:
            one.until(lambda: one.state() == "running", "the program to be compiled without a camera")
            one.ready(sample=image(640, 480, encoding="rgb8"))
            one.ask(image(640, 480, encoding="rgb8"))
            node.end(signal.SIGINT)
            _, output = node.wait()
    assert output.count("compiling for ") == 1
    assert "compiling for 640x480 rgb8" in output


def test_while_it_compiles_it_says_so_and_loses_nothing():
    with reserve_domain() as domain:
        node = fake_node(domain, "prepare=8", image_transport="raw")
        with station(domain, node) as one:
            publisher = one.publisher(Image, "/image_raw")
            one.until(publisher.get_subscription_count, "the node to subscribe")
            one.until(lambda: one.state() == "waiting", "the model to be loaded")
            publisher.publish(image())
            one.until(lambda: one.state() == "compiling", "the compile to begin")
            reports = len(one.diagnostics)
            for _ in range(40):
                publisher.publish(image())
                one.spin(0.1)
            assert len(one.diagnostics) - reports >= 3, "diagnostics go on"
            one.until(lambda: one.state() == "running", "the compile to end")
            one.ask(image())
            counts = one.frame_counts()
            node.end(signal.SIGINT)
            _, output = node.wait()
    assert counts["passed_while_not_running"] == 41
    assert (counts["received"], counts["published"], counts["superseded"]) == (1, 1, 0)
    assert "s so far" in output
