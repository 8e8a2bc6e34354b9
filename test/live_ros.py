"""Starts real ROS processes for tests, and talks to them over real DDS.

Importing this needs rclpy: tests do `pytest.importorskip("rclpy")` before.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parent.parent
PROFILE = REPOSITORY / "config" / "fastdds_images.xml"
FAKE_NODE = REPOSITORY / "test" / "ros_node" / "fake_node.py"
PATIENCE = 60.0  # seconds that a loaded machine is given for anything to happen

# Read when the first participant of this process is made.
os.environ["FASTDDS_DEFAULT_PROFILES_FILE"] = str(PROFILE)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"

import rclpy  # noqa: E402
from builtin_interfaces.msg import Time  # noqa: E402
from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from rcl_interfaces.msg import Log  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.parameter import Parameter, parameter_value_to_python  # noqa: E402
from rclpy.parameter_client import AsyncParameterClient  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile  # noqa: E402
from sensor_msgs.msg import CompressedImage, Image  # noqa: E402
from std_msgs.msg import Header  # noqa: E402
from vision_msgs.msg import Detection2DArray, LabelInfo  # noqa: E402


class NodeProcess:
    """One node in a process of its own."""

    def __init__(self, domain: int, command: list[str], arguments: list[str]) -> None:
        environment = os.environ | {"ROS_DOMAIN_ID": str(domain), "PYTHONPATH": _python_path()}
        self.process = subprocess.Popen(
            [*command, "--ros-args", *arguments],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )

    def end(self, number: int) -> None:
        """Sends a signal."""
        self.process.send_signal(number)

    def wait(self, patience: float = PATIENCE) -> tuple[int, str]:
        """Waits for the end; the exit code and everything that was printed."""
        output, _ = self.process.communicate(timeout=patience)
        return self.process.returncode, output

    def close(self) -> str:
        """Makes sure that nothing is left; what was printed and not yet read."""
        if self.process.returncode is not None:
            return ""
        self.process.terminate()  # a process that is killed leaves its shared memory behind
        try:
            return self.process.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.communicate()[0]


def _python_path() -> str:
    return os.environ.get("PYTHONPATH", "") + os.pathsep + str(REPOSITORY)


def fake_node(domain: int, behaviour: str = "", arguments: Sequence[str] = (), **parameters: Any) -> NodeProcess:
    """A node around the fake pipeline; behaviour as in fake_node.py, arguments as after --ros-args."""
    parameters = {"model_path": f"fake?{behaviour}", **parameters}
    return NodeProcess(domain, [sys.executable, str(FAKE_NODE)], [*arguments, *parameter_arguments(parameters)])


def parameter_arguments(parameters: dict[str, Any]) -> list[str]:
    """`-p name:=value` for each."""
    return [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]


class Station:
    """The test's own node: a camera, and somebody who listens to everything."""

    def __init__(self, domain: int, process: NodeProcess, node: str) -> None:
        self.process = process
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node = rclpy.create_node("station", context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.detections: list[Detection2DArray] = []
        self.diagnostics: list[tuple[float, DiagnosticArray]] = []
        self.log: list[Log] = []
        self.name = node
        latched = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.labels: list[LabelInfo] = []
        self.listen(Detection2DArray, f"{node}/detections", self.detections.append)
        self.listen(LabelInfo, f"{node}/label_info", self.labels.append, latched)
        self.listen(DiagnosticArray, "/diagnostics", self._keep_diagnostics)
        self.listen(Log, "/rosout", self.log.append, latched)
        self._publishers: dict[Any, Any] = {}

    def listen(self, kind: type, topic: str, take: Callable[[Any], None], qos: Any = 100) -> Any:
        """Subscribes."""
        return self.node.create_subscription(kind, topic, take, qos)

    def _keep_diagnostics(self, message: DiagnosticArray) -> None:
        if message.status[0].name.startswith(self.name.lstrip("/")):
            self.diagnostics.append((time.monotonic(), message))

    def publisher(self, kind: type, topic: str, qos: Any = 10) -> Any:
        """A publisher, made once."""
        key = kind, topic
        if key not in self._publishers:
            self._publishers[key] = self.node.create_publisher(kind, topic, qos)
        return self._publishers[key]

    def spin(self, seconds: float) -> None:
        """Lets time pass."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.executor.spin_once(timeout_sec=0.02)

    def until(self, condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
        """Spins until something holds and returns it; fails with `what` it waited for."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            found = condition()
            if found:
                return found
            self.executor.spin_once(timeout_sec=0.02)
        raise AssertionError(f"waited {patience} s for {what}; the node said:\n{self.process.close()}")

    def ready(self, kind: type = Image, topic: str = "/image_raw", sample: Any = None) -> None:
        """Waits until the node takes images, shown by one that arrives: a first best-effort one may be lost."""
        publisher = self.publisher(kind, topic)
        self.until(publisher.get_subscription_count, "the node to subscribe")
        while self.state() != "running" or self.status("camera")["images"] == "0":
            if self.state() in ("waiting", "running"):
                publisher.publish(sample or image())
            self.next_report()

    def next_report(self) -> None:
        """Waits for diagnostics."""
        seen = len(self.diagnostics)
        self.until(lambda: len(self.diagnostics) > seen, "diagnostics")

    def state(self) -> str:
        """The worker's state in the newest diagnostics."""
        return self.status("model").get("state", "")

    def status(self, task: str) -> dict[str, str]:
        """A task's newest values, with its level and message; empty before there are any."""
        if not self.diagnostics:
            return {}
        statuses = self.diagnostics[-1][1].status
        name = f"{self.name.lstrip('/')}: {task}"
        status = next(status for status in statuses if status.name == name)
        values = {pair.key: pair.value for pair in status.values}
        return {"level": str(status.level[0]), "message": status.message, **values}

    def until_status(self, task: str, **expected: Any) -> dict[str, str]:
        """Waits until a task reports these values; fails with what it reports instead."""
        wanted = {key: str(value) for key, value in expected.items()}
        holds = lambda: wanted.items() <= self.status(task).items()  # noqa: E731
        self.until(holds, f"{task} to report {wanted} instead of {self.status(task)}")
        return self.status(task)

    def frame_counts(self) -> dict[str, int]:
        """The counts, once every image that was sent has come to its end."""
        self.next_report()
        self.next_report()
        values = self.until_status("frames", in_flight=0)
        return {key: int(value) for key, value in values.items() if value.isdigit() and key != "level"}

    def said(self, text: str) -> bool:
        """Whether a line of the log holds this text."""
        return any(text in entry.msg for entry in self.log)

    def ask(self, message: Image | CompressedImage, topic: str = "/image_raw") -> Detection2DArray:
        """Publishes one image and returns its detections."""
        before = len(self.detections)
        self.publisher(type(message), topic).publish(message)
        self.until(lambda: len(self.detections) > before, "detections")
        return self.detections[-1]

    def set_parameters(self, **values: Any) -> list[Any]:
        """Sets parameters of the node; a result each."""
        wanted = [Parameter(name, value=value) for name, value in values.items()]
        return self._answer(lambda client: client.set_parameters(wanted)).results

    def get_parameter(self, name: str) -> Any:
        """A parameter of the node; None when it is not set."""
        values = self._answer(lambda client: client.get_parameters([name])).values
        return parameter_value_to_python(values[0]) if values else None

    def _answer(self, request: Callable[[AsyncParameterClient], Any]) -> Any:
        client = AsyncParameterClient(self.node, self.name)
        self.until(client.services_are_ready, "the parameter services")
        future = request(client)
        self.until(future.done, "an answer of the parameter services")
        return future.result()

    def close(self) -> None:
        """Leaves the domain."""
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


@contextmanager
def station(domain: int, process: NodeProcess, node: str = "/perception_node") -> Iterator[Station]:
    """A Station for a while; ends the process too."""
    one = Station(domain, process, node)
    try:
        yield one
    finally:
        one.close()
        process.close()


def image(width: int = 8, height: int = 6, value: int = 128, **fields: Any) -> Image:
    """A raw bgr8 image of one value; fields of the message replace what follows from the size."""
    fields = {"encoding": "bgr8", "step": 3 * width, **fields}
    data = array("B", bytes([value]) * (fields["step"] * height))
    return Image(**{"width": width, "height": height, "data": data, **fields})


def header(sec: int = 0, nanosec: int = 0, frame_id: str = "") -> Header:
    """A message header."""
    return Header(stamp=Time(sec=sec, nanosec=nanosec), frame_id=frame_id)
