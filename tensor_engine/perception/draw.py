"""Pictures with the detections drawn in."""

from __future__ import annotations

import zlib
from typing import Any

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
    """Draw one detection; its text stands on the box, or inside where there is no room above."""
    cv2 = require("cv2")
    colour = COLOURS[zlib.crc32(detection.class_id.encode()) % len(COLOURS)]
    x1, y1, x2, y2 = (round(value) for value in detection.corners)
    scale, thick = text_size(image)
    cv2.rectangle(image, (x1, y1), (x2, y2), colour, thick)
    caption = f"{detection.class_id} {detection.score:.2f}"
    (width, height), below = cv2.getTextSize(caption, cv2.FONT_HERSHEY_SIMPLEX, scale, thick)
    bottom = y1 if y1 > height + below else y1 + height + below
    cv2.rectangle(image, (x1, bottom - height - below), (x1 + width, bottom), colour, cv2.FILLED)
    put_text(cv2, image, caption, (x1, bottom - below // 2), scale, thick)


def put_text(cv2: Any, image: np.ndarray, text: str, place: tuple[int, int], scale: float, thick: int) -> None:
    cv2.putText(image, text, place, cv2.FONT_HERSHEY_SIMPLEX, scale, BLACK, thick, cv2.LINE_AA)


def text_size(image: np.ndarray) -> tuple[float, int]:
    """Font scale and line width that suit the image's size."""
    side = max(image.shape[:2])
    return max(0.3, side / 1800), max(1, round(side / 700))
