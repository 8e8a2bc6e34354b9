"""The image subscription: which topic, which message type, and what the middleware reports about it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import (
    QoSPolicyKind,
    QoSProfile,
    ReliabilityPolicy,
    qos_policy_name_from_kind,
)
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import CompressedImage, Image

from ros_node.diagnostics import CameraState

try:
    from rclpy.event_handler import SubscriptionEventCallbacks, UnsupportedEventTypeError
except ModuleNotFoundError:  # its name in ROS 2 Humble
    from rclpy.qos_event import SubscriptionEventCallbacks, UnsupportedEventTypeError

TOPIC = "image_raw"
SENSOR_DATA = {"depth": 5, "reliability": ReliabilityPolicy.BEST_EFFORT}
OVERRIDABLE = (
    QoSPolicyKind.DEPTH,
    QoSPolicyKind.DURABILITY,
    QoSPolicyKind.HISTORY,
    QoSPolicyKind.RELIABILITY,
)
ROS_NAMES = {Image: "sensor_msgs/msg/Image", CompressedImage: "sensor_msgs/msg/CompressedImage"}


def overridable() -> QoSOverridingOptions:
    """QoS that a user can change through `qos_overrides./TOPIC.…` parameters."""
    return QoSOverridingOptions(OVERRIDABLE)


def candidates(topic: str, transport: str) -> list[tuple[str, type]]:
    """Where a camera's images may be found, the cheapest first. `topic` is the name after remapping."""
    if topic.endswith("/compressed"):
        return [(topic, CompressedImage)]
    raw, compressed = (topic, Image), (f"{topic}/compressed", CompressedImage)
    if transport == "raw":
        return [raw]
    if transport == "compressed":
        return [compressed]
    return [raw, compressed, (topic, CompressedImage)]


class Camera:
    """Finds the camera and hands its messages on."""

    def __init__(self, node: Node, transport: str, on_image: Callable[[Any], None]) -> None:
        self._node = node
        self._on_image = on_image
        self._candidates = candidates(node.resolve_topic_name(TOPIC), transport)
        self._last_image = time.monotonic()
        self._images = 0
        self._lost = 0
        self._incompatible_policy = ""
        self._connected: tuple[str, type] | None = None

    def connect(self) -> bool:
        """Subscribes, if it is clear to what: when there is one choice, or a camera is publishing."""
        if self._connected is None:
            self._connected = self._choose()
            if self._connected:
                self._subscribe(*self._connected)
        return self._connected is not None

    def state(self) -> CameraState:
        """What is known now."""
        topic, kind = self._connected or self._candidates[0]
        return CameraState(
            topic=topic,
            transport=_transport(kind) if self._connected else "",
            publishers=self._node.count_publishers(topic),
            images=self._images,
            lost=self._lost,
            incompatible_policy=self._incompatible_policy,
            silent_for=time.monotonic() - self._last_image,
        )

    def _choose(self) -> tuple[str, type] | None:
        if len(self._candidates) == 1:
            return self._candidates[0]
        published = (choice for choice in self._candidates if self._is_published(*choice))
        return next(published, None)

    def _is_published(self, topic: str, kind: type) -> bool:
        publishers = self._node.get_publishers_info_by_topic(topic)
        return any(info.topic_type == ROS_NAMES[kind] for info in publishers)

    def _subscribe(self, topic: str, kind: type) -> None:
        self._node.get_logger().info(f"taking {_transport(kind)} images from {topic}")
        try:
            self._create_subscription(topic, kind, message_lost=self._on_message_lost)
        except UnsupportedEventTypeError:  # not every middleware tells of lost messages
            self._create_subscription(topic, kind)

    def _create_subscription(self, topic: str, kind: type, **events: Any) -> None:
        self._node.create_subscription(
            kind,
            topic,
            self._receive,
            QoSProfile(**SENSOR_DATA),
            event_callbacks=SubscriptionEventCallbacks(incompatible_qos=self._on_incompatible_qos, **events),
            qos_overriding_options=overridable(),
        )

    def _receive(self, message: Any) -> None:
        self._last_image = time.monotonic()
        self._images += 1
        self._on_image(message)

    def _on_message_lost(self, event: Any) -> None:
        self._lost = event.total_count

    def _on_incompatible_qos(self, event: Any) -> None:
        self._incompatible_policy = qos_policy_name_from_kind(event.last_policy_kind)
        self._node.get_logger().error(
            f"a camera offers an incompatible {self._incompatible_policy} policy: no image will come from it"
        )


def _transport(kind: type) -> str:
    return "compressed" if kind is CompressedImage else "raw"
