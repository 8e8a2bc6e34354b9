"""Pictures with the detections drawn in."""

from __future__ import annotations

import zlib

import numpy as np

from tensor_engine.perception.detection import Detection
from tensor_engine.perception.extras import require
from tensor_engine.perception.frame import Frame

# Distinct on asphalt, grass and sky; blue, green, red order.
COLOURS = [(80, 220, 60), (60, 160, 255), (255, 140, 60), (60, 230, 240), (230, 90, 220), (230, 220, 60), (90, 90, 255)]
BLACK = (0, 0, 0)


def annotate(frame: Frame, detections: list[Detection]) -> np.ndarray:
    """The frame as BGR uint8 [height, width, 3] with each detection's box, label and score."""
    image = frame.pixels()
    for detection in reversed(detections):
        draw(image, detection)
    return image


def draw(image: np.ndarray, detection: Detection) -> None:
    """Draw one detection; its caption stands on the box, inside where there is no room, and in the image."""
    cv2 = require("cv2")
    colour = COLOURS[zlib.crc32(detection.class_id.encode()) % len(COLOURS)]
    side = max(image.shape[:2])
    scale, line, stroke = max(0.3, side / 2000), max(1, round(side / 400)), max(1, round(side / 900))
    x1, y1, x2, y2 = (round(value) for value in detection.corners)
    cv2.rectangle(image, (x1, y1), (x2, y2), colour, line)

    caption = f"{detection.class_id} {detection.score:.2f}"
    (width, height), below = cv2.getTextSize(caption, cv2.FONT_HERSHEY_SIMPLEX, scale, stroke)
    left = max(0, min(x1, image.shape[1] - width))
    bottom = y1 if y1 > height + below else y1 + height + below
    cv2.rectangle(image, (left, bottom - height - below), (left + width, bottom), colour, cv2.FILLED)
    place = (left, bottom - below // 2)
    cv2.putText(image, caption, place, cv2.FONT_HERSHEY_SIMPLEX, scale, BLACK, stroke, cv2.LINE_AA)
