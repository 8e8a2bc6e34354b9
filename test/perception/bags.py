"""Bags for the tests, written with rosbags."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rosbags.rosbag2 import Writer
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_JAZZY)
SECOND = 1_000_000_000


def header(stamp_ns: int, frame_id: str):
    time = STORE.types["builtin_interfaces/msg/Time"](*divmod(stamp_ns, SECOND))
    return STORE.types["std_msgs/msg/Header"](time, frame_id)


def image(pixels: np.ndarray, encoding: str, step: int, stamp_ns: int = 0, frame_id: str = "camera"):
    """A sensor_msgs/Image around rows of bytes [height, step]; the width follows from the encoding."""
    channels = {"rgb8": 3, "bgr8": 3, "mono8": 1}.get(encoding, 2)
    width = step // channels
    kind = STORE.types["sensor_msgs/msg/Image"]
    return kind(header(stamp_ns, frame_id), pixels.shape[0], width, encoding, 0, step, pixels.reshape(-1))


def compressed(data: bytes, stamp_ns: int = 0, frame_id: str = "camera", format: str = "jpeg"):
    kind = STORE.types["sensor_msgs/msg/CompressedImage"]
    return kind(header(stamp_ns, frame_id), format, np.frombuffer(data, np.uint8))


def text(words: str):
    return STORE.types["std_msgs/msg/String"](words)


def write_bag(path: Path, topics: dict[str, list]) -> Path:
    """A bag with the messages of each topic, recorded a millisecond apart."""
    with Writer(path, version=8) as writer:
        for topic, messages in topics.items():
            kind = messages[0].__msgtype__
            connection = writer.add_connection(topic, kind, typestore=STORE)
            for number, message in enumerate(messages):
                writer.write(connection, SECOND + number * 1_000_000, STORE.serialize_cdr(message, kind))
    return path
