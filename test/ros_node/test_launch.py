"""The launch file, really launched, with the fake node in the place of the installed one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("vision_msgs", reason="vision_msgs is not installed")
pytest.importorskip("launch_ros", reason="launch_ros is not installed, and no package registry has it")

from conftest import REPOSITORY, reserve_domain
from live_ros import FAKE_NODE, image, station

LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

source = PythonLaunchDescriptionSource(sys.argv[1])
arguments = [tuple(argument.split(":=", 1)) for argument in sys.argv[2:]]
service = LaunchService()
service.include_launch_description(
    LaunchDescription([IncludeLaunchDescription(source, launch_arguments=arguments)])
)
sys.exit(service.run())
"""


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """What `colcon build` leaves behind, as far as launching needs it."""
    index, share = tmp_path / "share/ament_index/resource_index/packages", tmp_path / "share/tensor_engine"
    executable = tmp_path / "lib/tensor_engine/perception_node"
    for folder in (index, share, executable.parent):
        folder.mkdir(parents=True)
    (index / "tensor_engine").touch()
    for folder in ("launch", "config"):
        (share / folder).symlink_to(REPOSITORY / folder)
    executable.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE_NODE} "$@"\n')
    executable.chmod(0o755)
    return tmp_path


class Launched:
    """`ros2 launch` of the launch file."""

    def __init__(self, prefix: Path, domain: int, *arguments: str) -> None:
        python_path = os.pathsep.join([*sys.path, str(REPOSITORY)])
        path = os.pathsep.join([str(prefix), os.environ.get("AMENT_PREFIX_PATH", "")])
        environment = {"ROS_DOMAIN_ID": str(domain), "AMENT_PREFIX_PATH": path, "PYTHONPATH": python_path}
        without_profile = {key: value for key, value in os.environ.items() if "PROFILES_FILE" not in key}
        file = prefix / "share/tensor_engine/launch/perception.launch.py"
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(file), *arguments],
            env=without_profile | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )

    def end(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGINT)
        output, _ = self.process.communicate(timeout=60)
        return self.process.returncode, output

    def kill(self) -> str:
        if self.process.returncode is None:
            return self.end()[1]
        return ""


def test_arguments_reach_the_node_with_their_types(prefix):
    given = ["model:=fake", "namespace:=front", "image_topic:=/cam/image", "score_threshold:=1", "use_sim_time:=true"]
    with reserve_domain() as domain:
        launched = Launched(prefix, domain, *given)
        with station(domain, launched, "/front/perception_node") as one:
            one.ready(topic="/cam/image")
            assert one.ask(image(1280, 720), "/cam/image").detections == []
            names = ["model_path", "score_threshold", "use_sim_time", "image_transport"]
            assert [one.get_parameter(name) for name in names] == ["fake", 1.0, True, "auto"]
            code, output = launched.end()
    assert code == 0
    assert "process has finished cleanly" in output


def test_a_model_that_is_not_there_is_told(prefix):
    with reserve_domain() as domain:
        launched = Launched(prefix, domain, "model:=missing.onnx")
        output, _ = launched.process.communicate(timeout=60)
    assert "missing.onnx is no model" in output
    assert "exit code 2" in output
