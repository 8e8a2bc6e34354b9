"""vision_msgs/Detection2DArray as its bytes on the wire.

Building the message out of Python objects takes 0.2 ms an object that was detected, and that on the hot
path; its bytes take a hundredth. The format is that of the OMG's "DDS Interoperability Wire Protocol" 2.5,
10.2: plain CDR, little-endian, every number at a multiple of its own size, counted from behind the first
four bytes. The fields and their order are those of vision_msgs 4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from tensor_engine.perception.detection import Detection

PLAIN_LITTLE_ENDIAN = b"\x00\x01\x00\x00"

# geometry_msgs/PoseWithCovariance of a detector that knows only the image: the neutral pose, no covariance.
NO_POSE = struct.pack("<7d36d", 0, 0, 0, 0, 0, 0, 1, *[0] * 36)


class CdrWriter:
    """Appends values, each where its alignment wants it."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def align(self, size: int) -> None:
        """Fills up with zeros to a multiple of `size`."""
        self._bytes += bytes(-len(self._bytes) % size)

    def uint32(self, value: int) -> None:
        """Also the length of a sequence."""
        self.align(4)
        self._bytes += struct.pack("<I", value)

    def int32(self, value: int) -> None:
        """A signed number."""
        self.align(4)
        self._bytes += struct.pack("<i", value)

    def doubles(self, *values: float) -> None:
        """float64, one behind the other."""
        self.align(8)
        self._bytes += struct.pack(f"<{len(values)}d", *values)

    def string(self, text: str) -> None:
        """Its length with the closing zero, its bytes, the zero."""
        encoded = text.encode() + b"\x00"
        self.uint32(len(encoded))
        self._bytes += encoded

    def raw(self, data: bytes, alignment: int) -> None:
        """Values that are bytes already."""
        self.align(alignment)
        self._bytes += data

    def finish(self) -> bytes:
        """The whole message."""
        return PLAIN_LITTLE_ENDIAN + self._bytes


def detection_array(seconds: int, nanoseconds: int, frame_id: str, detections: Iterable[Detection]) -> bytes:
    """The detections of one image; every element has the image's header, too."""
    found = list(detections)
    writer = CdrWriter()
    write_header(writer, seconds, nanoseconds, frame_id)
    writer.uint32(len(found))
    for detection in found:
        write_header(writer, seconds, nanoseconds, frame_id)
        write_detection(writer, detection)
    return writer.finish()


def write_header(writer: CdrWriter, seconds: int, nanoseconds: int, frame_id: str) -> None:
    """std_msgs/Header."""
    writer.int32(seconds)
    writer.uint32(nanoseconds)
    writer.string(frame_id)


def write_detection(writer: CdrWriter, detection: Detection) -> None:
    """vision_msgs/Detection2D behind its header: one hypothesis, the box, no tracking id."""
    writer.uint32(1)
    writer.string(detection.class_id)
    writer.doubles(detection.score)
    writer.raw(NO_POSE, 8)
    theta = 0.0
    writer.doubles(detection.center_x, detection.center_y, theta, detection.size_x, detection.size_y)
    writer.string("")
