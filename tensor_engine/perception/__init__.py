"""From image bytes to detections, with no ROS anywhere."""

from tensor_engine.perception.detection import Detection
from tensor_engine.perception.errors import ModelError, SourceError
from tensor_engine.perception.frame import BadImage, Frame
from tensor_engine.perception.pipeline import Pipeline, Result

__all__ = ["BadImage", "Detection", "Frame", "ModelError", "Pipeline", "Result", "SourceError"]
