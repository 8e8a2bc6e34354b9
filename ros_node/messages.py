"""Images, labels and diagnostics as ROS messages, and the detections in one; cdr.py writes the latter."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import Header
from vision_msgs.msg import Detection2DArray, LabelInfo, VisionClass

from ros_node.diagnostics import Status
from tensor_engine.perception.detection import Detection
from tensor_engine.perception.frame import Frame
from tensor_engine.perception.sources import SECOND_NS


def stamp_ns(stamp: Time) -> int:
    """A message's stamp in nanoseconds; negative before 1970."""
    return stamp.sec * SECOND_NS + stamp.nanosec


def detections_from(message: Detection2DArray) -> list[Detection]:
    """What a message says, for who listens: the first hypothesis of every element."""
    return [
        Detection(
            class_id=element.results[0].hypothesis.class_id,
            score=element.results[0].hypothesis.score,
            center_x=element.bbox.center.position.x,
            center_y=element.bbox.center.position.y,
            size_x=element.bbox.size_x,
            size_y=element.bbox.size_y,
        )
        for element in message.detections
    ]


def label_info_message(stamp: Time, labels: Sequence[str], threshold: float) -> LabelInfo:
    """The names behind the class numbers, and the score from which on objects are reported."""
    classes = [VisionClass(class_id=number, class_name=name) for number, name in enumerate(labels)]
    return LabelInfo(header=Header(stamp=stamp), class_map=classes, threshold=threshold)


def header_message(frame: Frame) -> Header:
    """A frame's stamp and frame id."""
    seconds, rest = divmod(frame.stamp_ns, SECOND_NS)
    return Header(stamp=Time(sec=seconds, nanosec=rest), frame_id=frame.frame_id)


def image_message(frame: Frame) -> Image | CompressedImage:
    """A frame as the message that it came or could have come in."""
    data = array("B", frame.octets.tobytes())  # of what `data` takes, by far the fastest
    if frame.is_compressed:
        return CompressedImage(header=header_message(frame), format=frame.encoding, data=data)
    return Image(
        header=header_message(frame),
        height=frame.height,
        width=frame.width,
        encoding=frame.encoding,
        step=frame.step,
        data=data,
    )


def diagnostics_message(
    stamp: Time, node: str, hardware_id: str, statuses: Mapping[str, Status]
) -> DiagnosticArray:
    """One status a task, named `node: task` as REP-107 asks."""
    messages = [
        DiagnosticStatus(
            level=bytes([status.level]),
            name=f"{node}: {task}",
            message=status.message,
            hardware_id=hardware_id,
            values=[KeyValue(key=key, value=str(value)) for key, value in status.values.items()],
        )
        for task, status in statuses.items()
    ]
    return DiagnosticArray(header=Header(stamp=stamp), status=messages)
