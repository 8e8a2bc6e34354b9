"""Independent decoders for the tests, in plain numpy and Python loops.

Nothing here imports tensor_engine. Each function follows the published definition of its
family and prefers the slow and obvious way, so that it can be checked by reading.
Boxes are (x1, y1, x2, y2); a candidate is (box, score, class index).
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np


@dataclass(frozen=True)
class Box:
    x1: float
    y1: float
    x2: float
    y2: float
    score: float
    label: int

    @property
    def area(self) -> float:
        return max(self.x2 - self.x1, 0.0) * max(self.y2 - self.y1, 0.0)


def iou(a: Box, b: Box) -> float:
    width = min(a.x2, b.x2) - max(a.x1, b.x1)
    height = min(a.y2, b.y2) - max(a.y1, b.y1)
    if width <= 0 or height <= 0:
        return 0.0
    inter = width * height
    return inter / (a.area + b.area - inter)


def greedy_nms(boxes: list[Box], threshold: float) -> list[Box]:
    """Class-aware greedy suppression; best score first, ties in the order given."""
    kept: list[Box] = []
    for box in sorted(boxes, key=lambda b: -b.score):
        rivals = [k for k in kept if k.label == box.label]
        if all(iou(box, rival) <= threshold for rival in rivals):
            kept.append(box)
    return kept


def letterbox(image: np.ndarray, height: int, width: int, pad: float) -> tuple[np.ndarray, tuple]:
    """Aspect-preserving resize of [h, w, 3] in float, centred on a padded canvas.

    Returns the canvas and (left, top, scale_x, scale_y): source x = (x - left) / scale_x.
    cv2.resize computes float images in float, so nothing is rounded to 8 bits.
    """
    h, w = image.shape[:2]
    scale = min(height / h, width / w)
    new_h, new_w = max(1, round(h * scale)), max(1, round(w * scale))
    resized = cv2.resize(image.astype(np.float32), (new_w, new_h), interpolation=cv2.INTER_LINEAR)
    top, left = (height - new_h) // 2, (width - new_w) // 2
    canvas = np.full((height, width, 3), pad, np.float32)
    canvas[top : top + new_h, left : left + new_w] = resized
    return canvas, (left, top, new_w / w, new_h / h)


def to_source(boxes: list[Box], place: tuple, height: int, width: int) -> list[Box]:
    """Boxes of the canvas in pixels of the source image, clipped to it; empty ones dropped."""
    left, top, scale_x, scale_y = place
    moved = []
    for b in boxes:
        x1, x2 = (float(np.clip((x - left) / scale_x, 0, width)) for x in (b.x1, b.x2))
        y1, y2 = (float(np.clip((y - top) / scale_y, 0, height)) for y in (b.y1, b.y2))
        if x2 > x1 and y2 > y1:
            moved.append(Box(x1, y1, x2, y2, b.score, b.label))
    return moved


def blob(canvas: np.ndarray, mean, std, swap: bool) -> np.ndarray:
    """[h, w, 3] to a normalised [1, 3, h, w]; `swap` reverses the channels first."""
    pixels = canvas[:, :, ::-1] if swap else canvas
    normal = (pixels - np.asarray(mean, np.float32)) / np.asarray(std, np.float32)
    return np.ascontiguousarray(normal.transpose(2, 0, 1)[None], dtype=np.float32)


def best_class(scores: np.ndarray) -> tuple[int, float]:
    label = int(np.argmax(scores))
    return label, float(scores[label])


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max())
    return e / e.sum()


def nanodet(outputs: list[np.ndarray], width: int, strides, threshold: float) -> list[Box]:
    """Outputs alternate class scores [1, n, C] and distance bins [1, n, 4*8], a pair a stride."""
    found = []
    for stride, scores, bins in zip(strides, outputs[0::2], outputs[1::2]):
        columns = width // stride
        for cell in range(scores.shape[1]):
            label, score = best_class(scores[0, cell])
            if not score > threshold:
                continue
            x = (cell % columns + 0.5) * stride
            y = (cell // columns + 0.5) * stride
            sides = bins[0, cell].reshape(4, -1)
            left, top, right, bottom = (
                stride * float((softmax(s) * np.arange(s.size)).sum()) for s in sides
            )
            found.append(Box(x - left, y - top, x + right, y + bottom, score, label))
    return found


def centred(x: float, y: float, w: float, h: float, score: float, label: int) -> Box:
    return Box(x - w / 2, y - h / 2, x + w / 2, y + h / 2, score, label)


def yolov5(output: np.ndarray, threshold: float) -> list[Box]:
    """[1, N, 5 + C]: centre, size, objectness, class scores, all decoded by the export."""
    found = []
    for row in output[0]:
        label, score = best_class(row[4] * row[5:])
        if score > threshold:
            found.append(centred(*map(float, row[:4]), score, label))
    return found


def yolov8(output: np.ndarray, threshold: float) -> list[Box]:
    """[1, 4 + C, N]: centre, size, class scores, all decoded by the export."""
    found = []
    for column in output[0].T:
        label, score = best_class(column[4:])
        if score > threshold:
            found.append(centred(*map(float, column[:4]), score, label))
    return found


def yolox(output: np.ndarray, height: int, width: int, strides, threshold: float) -> list[Box]:
    """[1, N, 5 + C] as the network leaves it: cell offsets and log sizes in strides."""
    found = []
    cells = [(x, y, s) for s in strides for y in range(height // s) for x in range(width // s)]
    for (column, row_index, stride), row in zip(cells, output[0], strict=True):
        label, score = best_class(row[4] * row[5:])
        if score > threshold:
            x, y = (column + row[0]) * stride, (row_index + row[1]) * stride
            w, h = np.exp(row[2]) * stride, np.exp(row[3]) * stride
            found.append(centred(float(x), float(y), float(w), float(h), score, label))
    return found


def ssd_raw(boxes, scores, height: int, width: int, threshold: float) -> list[Box]:
    """boxes [1, N, 4] as x1 y1 x2 y2 in units of the image; scores [1, N, 1 + C], 0 background."""
    found = []
    for box, row in zip(boxes[0], scores[0]):
        label, score = best_class(row[1:])
        if score > threshold:
            x1, y1, x2, y2 = map(float, box * [width, height, width, height])
            found.append(Box(x1, y1, x2, y2, score, label))
    return found


def ssd_listed(boxes, labels, scores, height: int, width: int, threshold: float) -> list[Box]:
    """boxes [1, N, 4] as y1 x1 y2 x2 in units of the image; labels [1, N] count from 1."""
    found = []
    for box, label, score in zip(boxes[0], labels[0], scores[0]):
        if score > threshold:
            y1, x1, y2, x2 = map(float, box * [height, width, height, width])
            found.append(Box(x1, y1, x2, y2, float(score), int(label) - 1))
    return found


def peaks(heatmap: np.ndarray, threshold: float) -> list[tuple[int, int, int]]:
    """(class, row, column) of cells above threshold that no cell of their 3x3 window beats."""
    found = []
    classes, rows, columns = heatmap.shape
    for label in range(classes):
        for y in range(rows):
            for x in range(columns):
                window = heatmap[label, max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2]
                if heatmap[label, y, x] > threshold and heatmap[label, y, x] == window.max():
                    found.append((label, y, x))
    return found


def centerface(heatmap, scale, offset, threshold: float, stride: int = 4) -> list[Box]:
    """scale [1, 2, h, w] is log height, log width; offset [1, 2, h, w] is y, x; in cells."""
    found = []
    for label, y, x in peaks(heatmap[0], threshold):
        h, w = np.exp(scale[0, :, y, x]) * stride
        cy = (y + offset[0, 0, y, x] + 0.5) * stride
        cx = (x + offset[0, 1, y, x] + 0.5) * stride
        score = float(heatmap[0, label, y, x])
        found.append(centred(float(cx), float(cy), float(w), float(h), score, label))
    return found


def centernet(heatmap, size, offset, threshold: float, stride: int = 4) -> list[Box]:
    """size [1, 2, h, w] is width, height; offset [1, 2, h, w] is x, y; in cells."""
    found = []
    for label, y, x in peaks(heatmap[0], threshold):
        w, h = size[0, :, y, x] * stride
        cx = (x + offset[0, 0, y, x]) * stride
        cy = (y + offset[0, 1, y, x]) * stride
        score = float(heatmap[0, label, y, x])
        found.append(centred(float(cx), float(cy), float(w), float(h), score, label))
    return found
