"""The detection messages of vision_msgs 4, defined as text for a library that reads and writes bags without ROS."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensor_engine.perception.detection import Detection
from tensor_engine.perception.extras import require
from tensor_engine.perception.frame import Frame
from tensor_engine.perception.sources import SECOND_NS

DETECTION_ARRAY = "vision_msgs/msg/Detection2DArray"

DEFINITIONS = {
    "vision_msgs/msg/Point2D": "float64 x\nfloat64 y\n",
    "vision_msgs/msg/Pose2D": "vision_msgs/Point2D position\nfloat64 theta\n",
    "vision_msgs/msg/BoundingBox2D": "vision_msgs/Pose2D center\nfloat64 size_x\nfloat64 size_y\n",
    "vision_msgs/msg/ObjectHypothesis": "string class_id\nfloat64 score\n",
    "vision_msgs/msg/ObjectHypothesisWithPose": (
        "vision_msgs/ObjectHypothesis hypothesis\ngeometry_msgs/PoseWithCovariance pose\n"
    ),
    "vision_msgs/msg/Detection2D": (
        "std_msgs/Header header\n"
        "vision_msgs/ObjectHypothesisWithPose[] results\n"
        "vision_msgs/BoundingBox2D bbox\n"
        "string id\n"
    ),
    DETECTION_ARRAY: "std_msgs/Header header\nvision_msgs/Detection2D[] detections\n",
}


class Messages:
    """Makes and serialises detection messages."""

    def __init__(self) -> None:
        typesys = require("rosbags.typesys")
        self.store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
        for name, text in DEFINITIONS.items():
            self.store.register(typesys.get_types_from_msg(text, name))

    def serialise(self, frame: Frame, detections: list[Detection]) -> Any:
        """A Detection2DArray with the frame's header, as CDR bytes."""
        return self.store.serialize_cdr(self.detection_array(frame, detections), DETECTION_ARRAY)

    def detection_array(self, frame: Frame, detections: list[Detection]) -> Any:
        header = self.header(frame)
        return self.make(DETECTION_ARRAY, header, [self.detection(header, d) for d in detections])

    def header(self, frame: Frame) -> Any:
        seconds, rest = divmod(frame.stamp_ns, SECOND_NS)
        return self.make("std_msgs/msg/Header", self.make("builtin_interfaces/msg/Time", seconds, rest), frame.frame_id)

    def detection(self, header: Any, found: Detection) -> Any:
        hypothesis = self.make("vision_msgs/msg/ObjectHypothesis", found.class_id, found.score)
        result = self.make("vision_msgs/msg/ObjectHypothesisWithPose", hypothesis, self.no_pose())
        point = self.make("vision_msgs/msg/Point2D", found.center_x, found.center_y)
        pose = self.make("vision_msgs/msg/Pose2D", point, 0.0)
        box = self.make("vision_msgs/msg/BoundingBox2D", pose, found.size_x, found.size_y)
        return self.make("vision_msgs/msg/Detection2D", header, [result], box, "")

    def no_pose(self) -> Any:
        """The neutral pose of a detector that knows only the image."""
        point = self.make("geometry_msgs/msg/Point", 0.0, 0.0, 0.0)
        rotation = self.make("geometry_msgs/msg/Quaternion", 0.0, 0.0, 0.0, 1.0)
        pose = self.make("geometry_msgs/msg/Pose", point, rotation)
        return self.make("geometry_msgs/msg/PoseWithCovariance", pose, np.zeros(36))

    def make(self, name: str, *values: Any) -> Any:
        return self.store.types[name](*values)
