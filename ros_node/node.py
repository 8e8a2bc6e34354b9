"""PerceptionNode: images in, detections, labels and diagnostics out."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import Image
from vision_msgs.msg import Detection2DArray, LabelInfo

from ros_node import cdr, messages
from ros_node.accounting import FrameCounts
from ros_node.camera import Camera, overridable
from ros_node.diagnostics import Reporter, Snapshot
from ros_node.parameters import BadParameter, Parameters
from ros_node.timing import Cycle, CycleTimes
from ros_node.worker import Arrival, FrameWorker, Geometry, State
from tensor_engine.device import Device
from tensor_engine.perception.draw import annotate
from tensor_engine.perception.frame import PIXEL_BYTES, BadImage, Frame
from tensor_engine.perception.model import default_model
from tensor_engine.perception.pipeline import Pipeline, Result

LOOK_FOR_CAMERA = 0.2  # seconds between two looks
REPORT = 1.0  # seconds between two diagnostics, as REP-107 asks
SAY_AGAIN = 5.0  # seconds between two lines of the log about the same thing
THRESHOLDS = ("score_threshold", "nms_threshold")

PipelineFactory = Callable[..., Pipeline]


class PerceptionNode(Node):
    """Owns the parts and tells each what it needs of the others. Spin it on a single-threaded executor."""

    def __init__(self, pipeline_factory: PipelineFactory = Pipeline) -> None:
        super().__init__("perception_node")
        self.parameters = Parameters(self)
        self.device = self._chosen_device()
        self.counts = FrameCounts()
        self.times = CycleTimes()
        self.worker = FrameWorker(self, self.counts, self._announced_geometry())
        self._pipeline_factory = pipeline_factory
        self._pipeline: Pipeline | None = None
        self._delay: float | None = None
        self._create_publishers()
        self.camera = Camera(self, self.parameters.image_transport, self._on_image)
        self._reporter = Reporter()
        self._reported = time.monotonic()
        # Steady timers: diagnostics keep their rate when simulated time stands still.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._finder = self.create_timer(LOOK_FOR_CAMERA, self._find_camera, clock=steady)
        self._ticker = self.create_timer(REPORT, self._report, clock=steady)
        self.parameters.on_change(self._change)
        self.worker.start()

    def _create_publishers(self) -> None:
        reliable, latched = QoSProfile(depth=10), QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._detections = self._publisher(Detection2DArray, "~/detections", reliable)
        self._label_info = self._publisher(LabelInfo, "~/label_info", latched)
        self._debug_image = self._publisher(Image, "~/debug_image", QoSProfile(depth=1))
        self._diagnostics = self._publisher(DiagnosticArray, "/diagnostics", reliable)

    def _publisher(self, kind: type, topic: str, qos: QoSProfile) -> Any:
        return self.create_publisher(kind, topic, qos, qos_overriding_options=overridable())

    def _chosen_device(self) -> str:
        try:
            return Device.canonicalize(self.parameters.device or None)
        except ValueError as error:
            raise BadParameter(str(error)) from error

    def _model_path(self) -> str:
        return self.parameters.model_path or str(default_model())

    def _announced_geometry(self) -> Geometry | None:
        wanted = self.parameters
        if wanted.image_encoding not in PIXEL_BYTES:
            raise BadParameter(f"image_encoding is {wanted.image_encoding!r}; use one of {', '.join(PIXEL_BYTES)}")
        if not (wanted.image_width and wanted.image_height):
            return None
        step = wanted.image_width * PIXEL_BYTES[wanted.image_encoding]
        return Geometry(wanted.image_height, wanted.image_width, wanted.image_encoding, step)

    # On the executor's thread

    def _find_camera(self) -> None:
        if self.camera.connect():
            self._finder.cancel()

    def _on_image(self, message: Any) -> None:
        if self.parameters.enable:
            self.worker.offer(message)
        else:
            self.counts.pass_by()

    def _change(self, values: dict[str, Any]) -> None:
        """Applies changed parameters; a BadParameter refuses them all."""
        if self._pipeline is None:
            return
        if "classes" in values:
            _select_classes(self._pipeline, values["classes"])
        for name in THRESHOLDS:
            setattr(self._pipeline, name, values.get(name, getattr(self._pipeline, name)))
        if "score_threshold" in values:
            self._publish_label_info(self._pipeline)

    def _report(self) -> None:
        """Publishes the diagnostics, and says in the log what takes long."""
        now = time.monotonic()
        statuses = self._reporter.report(self._snapshot(now), now - self._reported)
        self._reported = now
        stamp, name = self.get_clock().now().to_msg(), self.get_fully_qualified_name().lstrip("/")
        self._diagnostics.publish(messages.diagnostics_message(stamp, name, self.device, statuses))
        if self.worker.state in (State.LOADING, State.COMPILING):
            text = statuses["model"].message
            self.get_logger().info(text, throttle_duration_sec=SAY_AGAIN, skip_first=True)

    def _snapshot(self, now: float) -> Snapshot:
        worker = self.worker
        return Snapshot(
            state=worker.state,
            detail=worker.detail,
            state_age=now - worker.state_since,
            model=self._model_values(),
            totals=self.counts.totals(),
            camera=self.camera.state(),
            times=self.times.summary(),
            deadline=self.parameters.deadline_ms / 1e3,
            delay=self._delay,
        )

    def _model_values(self) -> dict[str, Any]:
        values = {"model": self._model_path(), "compile_seconds": f"{self.worker.compile_seconds:.1f}"}
        if self._pipeline is None:
            return values
        return {
            **values,
            "classes": len(self._pipeline.labels),
            "score_threshold": self._pipeline.score_threshold,
            "nms_threshold": self._pipeline.nms_threshold,
        }

    # On the worker's thread

    def load_pipeline(self) -> Pipeline:
        """Builds the pipeline that the parameters describe. Raises ModelError."""
        wanted = self.parameters
        return self._pipeline_factory(
            self._model_path(),
            card=wanted.card_path or None,
            labels=wanted.label_path or None,
            score_threshold=wanted.score_threshold,
            nms_threshold=wanted.nms_threshold,
            max_detections=wanted.max_detections,
            device=self.device,
        )

    def pipeline_loaded(self, pipeline: Pipeline) -> None:
        """Tells the world the model's names, and its thresholds where the user gave none."""
        _select_classes(pipeline, self.parameters.classes)
        for name in THRESHOLDS:
            if getattr(self.parameters, name) is None:
                self.parameters.set(name, getattr(pipeline, name))
            setattr(pipeline, name, getattr(self.parameters, name))
        self._pipeline = pipeline
        self._publish_label_info(pipeline)

    def publish_result(self, arrival: Arrival, frame: Frame, result: Result, started: float) -> None:
        """Publishes one image's detections and records the cycle."""
        finished = time.monotonic()
        header = arrival.message.header
        stamp, frame_id = header.stamp, header.frame_id
        self._detections.publish(cdr.detection_array(stamp.sec, stamp.nanosec, frame_id, result.detections))
        published = time.monotonic()
        self.counts.publish()
        self._delay = self._age(header.stamp)
        cycle = Cycle(arrival.received, started, finished, published, result.times)
        self.times.record(cycle, self.parameters.deadline_ms / 1e3)
        self._publish_debug_image(frame, result)

    def _publish_debug_image(self, frame: Frame, result: Result) -> None:
        if not self._debug_image.get_subscription_count():
            return
        pixels = annotate(frame, result.detections)
        drawn = Frame.from_array(pixels, "bgr8", frame.stamp_ns, frame.frame_id)
        self._debug_image.publish(messages.image_message(drawn))

    def image_rejected(self, error: Exception) -> None:
        """Says in the log, not more than every few seconds, that an image could not be used."""
        if isinstance(error, BadImage):
            self.get_logger().warning(f"image rejected: {error}", throttle_duration_sec=SAY_AGAIN)
        else:
            trace = "".join(traceback.format_exception(error))
            self.get_logger().error(f"image lost to a fault: {trace}", throttle_duration_sec=SAY_AGAIN)

    def state_changed(self, state: State, detail: str) -> None:
        """Says in the log what the worker is at."""
        if state is not State.FAILED:
            self.get_logger().info(f"{state.value} {detail}".strip())

    def _publish_label_info(self, pipeline: Pipeline) -> None:
        stamp = self.get_clock().now().to_msg()
        message = messages.label_info_message(stamp, pipeline.labels, pipeline.score_threshold)
        self._label_info.publish(message)

    def _age(self, stamp: Any) -> float:
        """Seconds from a message's stamp to the node clock's now; negative where the clocks disagree."""
        return (self.get_clock().now().nanoseconds - messages.stamp_ns(stamp)) / 1e9


def _select_classes(pipeline: Pipeline, names: list[str] | None) -> None:
    """Has the pipeline report these classes only; all when none is named."""
    try:
        pipeline.classes = [name for name in names or [] if name] or None
    except ValueError as error:
        raise BadParameter(f"classes: {error}") from error
