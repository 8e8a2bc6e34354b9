"""The demo over ROS: the installed node and a camera in processes of their own, and this process listening."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import rclpy
from demo_view import STATISTICS, DemoFailed, Seen, Show
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.serialization import serialize_message
from rosbags.rosbag2 import Writer
from vision_msgs.msg import Detection2DArray

from ros_node.messages import detections_from, stamp_ns
from tensor_engine.perception.replay import BAG_VERSION
from tensor_engine.perception.vision_msgs import DETECTION_ARRAY, Messages

TOOLS = Path(__file__).resolve().parent
PROFILE = TOOLS.parent / "config" / "fastdds_images.xml"
TOPIC = "/camera/image_raw"
PATIENCE = 300.0  # seconds for any one step; compiling is the longest
STOP = 10.0  # seconds for the node to end after SIGINT

Child = subprocess.Popen[bytes]


def play(show: Show, out: Path, seen: Seen) -> None:
    """Runs the show once; leaves the processes' logs and a bag of the detections in `out`."""
    # A domain of its own, so that nobody else's robot takes part.
    os.environ["ROS_DOMAIN_ID"] = str(random.randint(1, 100))
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    os.environ["FASTDDS_DEFAULT_PROFILES_FILE"] = str(PROFILE)
    rclpy.init()
    try:
        audience = Audience(seen)
        attend(audience, show, out)
        write_bag(out / "detections", audience.messages)
    finally:
        rclpy.shutdown()


def attend(audience: Audience, show: Show, out: Path) -> None:
    """From the node's start to its end."""
    with child("node", node_command(show), out) as node:
        audience.until(lambda: audience.status("model").get("state") == "running", node)
        with child("camera", camera_command(show), out) as camera:
            audience.until(lambda: camera.poll() is not None, node)
        audience.until(audience.everything_came, node)
        node.send_signal(signal.SIGINT)
        node.wait(STOP)
    for name, process in (("camera", camera), ("node", node)):
        if process.returncode:
            raise DemoFailed(f"the {name} ended with code {process.returncode}; see {out / name}.log")


def node_command(show: Show) -> list[str]:
    """The installed node, compiling for the recording's size before the camera begins."""
    first = show.first_frame()
    parameters = {
        "model_path": show.model,
        "card_path": show.card or "''",
        "image_width": first.width,
        "image_height": first.height,
        "image_encoding": first.encoding,
    }
    words = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
    executable = Path(sys.executable).with_name("perception_node")
    return [str(executable), "--ros-args", "-r", f"image_raw:={TOPIC}", *words]


def camera_command(show: Show) -> list[str]:
    """The camera, which begins when the node has found it."""
    return [sys.executable, str(TOOLS / "camera.py"), str(show.recording), "--topic", TOPIC, "--wait", "20"]


@contextmanager
def child(name: str, command: list[str], out: Path) -> Iterator[Child]:
    """A process whose output goes to a log; gone when the block is left."""
    with (out / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


class Audience:
    """Listens to the node and tells `seen`."""

    def __init__(self, seen: Seen) -> None:
        self.messages: list[Detection2DArray] = []
        self._seen = seen
        self._statuses: dict[str, DiagnosticStatus] = {}
        self._node = rclpy.create_node("audience")
        self._node.create_subscription(Detection2DArray, "/perception_node/detections", self._on_detections, 100)
        self._node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)

    def until(self, condition: Callable[[], bool], node: Child) -> None:
        """Listens until something holds. Raises DemoFailed when the node ends before."""
        end = time.monotonic() + PATIENCE
        while not condition():
            rclpy.spin_once(self._node, timeout_sec=0.05)
            if node.poll() is not None or time.monotonic() > end:
                raise DemoFailed(f"the node said at last: {self.status('model')}; see node.log")

    def status(self, task: str) -> dict[str, str]:
        """A task's newest values; empty before there are any."""
        status = self._statuses.get(f"perception_node: {task}")
        return {pair.key: pair.value for pair in status.values} if status else {}

    def everything_came(self) -> bool:
        """Whether the node reports every image as done and every message has been heard."""
        counts = self.status("frames")
        gone = sum(int(counts[key]) for key in ("published", "superseded", "rejected"))
        return int(counts["received"]) == gone and int(counts["published"]) == len(self.messages)

    def _on_detections(self, message: Detection2DArray) -> None:
        self.messages.append(message)
        self._seen.add(stamp_ns(message.header.stamp), detections_from(message))

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        self._statuses = {status.name: status for status in message.status}
        self._seen.phase = self._statuses["perception_node: model"].message
        self._seen.times = stage_times(self.status("timing"))
        self._seen.accounts = accounts(self.status("frames"))


def stage_times(values: dict[str, str]) -> dict[str, dict[str, float]]:
    """The node's milliseconds: stage → statistic → value."""
    stages = [key.removesuffix("_p50_ms") for key in values if key.endswith("_p50_ms")]
    return {stage: {name: float(values[f"{stage}_{name}_ms"]) for name in STATISTICS} for stage in stages}


def accounts(counts: dict[str, str]) -> str:
    """Where every image went."""
    keys = ("received", "published", "superseded", "rejected", "in_flight", "passed_while_not_running")
    return ", ".join(f"{counts[key]} {key.replace('_', ' ')}" for key in keys)


def write_bag(path: Path, messages: list[Detection2DArray]) -> None:
    """The detection messages as a rosbag2, at their images' times."""
    with Writer(path, version=BAG_VERSION) as writer:
        connection = writer.add_connection("/perception_node/detections", DETECTION_ARRAY, typestore=Messages().store)
        for message in messages:
            writer.write(connection, stamp_ns(message.header.stamp), serialize_message(message))
