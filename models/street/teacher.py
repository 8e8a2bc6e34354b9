"""What the teacher sees: a detector on the whole image, and on tiles of it that it sees larger, plain and mirrored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tensor_engine.perception import Frame, Pipeline

from .network import CLASSES

# The teacher's classes → ours. What it takes a parked van for changes from frame to frame.
THEIR_CLASSES = {"person": "person", "car": "car", "truck": "car", "bus": "car"}
LEAST_SCORE = 0.15

Boxes = np.ndarray  # float32 [n, 6]: x1, y1, x2, y2 in pixels, score, class


@dataclass(frozen=True)
class Tiling:
    """Square tiles of `side` pixels in rows and columns, evenly over the top `height` pixels of an image."""

    side: int
    rows: int
    columns: int
    height: int

    def corners(self, width: int) -> list[tuple[int, int]]:
        """(y, x) of each tile's corner."""
        ys = np.linspace(0, self.height - self.side, self.rows).round().astype(int)
        xs = np.linspace(0, width - self.side, self.columns).round().astype(int)
        return [(int(y), int(x)) for y in ys for x in xs]


# Far people are 30 pixels high and stand in the upper half.
TILINGS = (Tiling(480, 2, 3, 576), Tiling(320, 3, 4, 576), Tiling(220, 2, 5, 330))
WORTH_A_LOOK = 0.003  # the share of a tile's pixels that moves
CUT = 4  # pixels: a box this near to a tile's inner edge is likely a part of something


class Teacher:
    """A detector that takes its time."""

    def __init__(self, model: Path):
        self.pipeline = Pipeline(model, score_threshold=LEAST_SCORE, classes=list(THEIR_CLASSES))
        self.numbers = {theirs: CLASSES.index(ours) for theirs, ours in THEIR_CLASSES.items()}

    def __call__(self, image: np.ndarray, moving: np.ndarray) -> Boxes:
        """All that is seen in a BGR image [height, width, 3], in any view; the same thing many times.

        `moving`, bool [height, width], is where something moves: tiles without are not looked at.
        """
        height, width = image.shape[:2]
        views = [self.view(image, 0, 0)]
        for tiling in TILINGS:
            for y, x in tiling.corners(width):
                place = slice(y, y + tiling.side), slice(x, x + tiling.side)
                if moving[place].mean() > WORTH_A_LOOK:
                    seen = self.view(image[place], y, x)
                    views.append(whole(seen, (x, y, x + tiling.side, y + tiling.side), width, height))
        return np.concatenate(views)

    def view(self, tile: np.ndarray, y: int, x: int) -> Boxes:
        """What is seen in a tile whose corner is at (x, y), as it is and mirrored; in pixels of the image."""
        plain, mirrored = self.detect(tile), self.detect(tile[:, ::-1])
        mirrored[:, [0, 2]] = tile.shape[1] - mirrored[:, [2, 0]]
        boxes = np.concatenate([plain, mirrored])
        boxes[:, :4] += (x, y, x, y)
        return boxes

    def detect(self, tile: np.ndarray) -> Boxes:
        """One look."""
        found = self.pipeline(Frame.from_array(tile, "bgr8")).detections
        rows = [[*d.corners, d.score, self.numbers[d.class_id]] for d in found]
        return np.array(rows, np.float32).reshape(-1, 6)


def whole(boxes: Boxes, tile: tuple[int, int, int, int], width: int, height: int) -> Boxes:
    """Those that the tile's edges don't cut, but for edges of the image."""
    left, top, right, bottom = tile
    inside = np.ones(len(boxes), bool)
    inside &= (boxes[:, 0] > left + CUT) | (left == 0)
    inside &= (boxes[:, 1] > top + CUT) | (top == 0)
    inside &= (boxes[:, 2] < right - CUT) | (right == width)
    inside &= (boxes[:, 3] < bottom - CUT) | (bottom == height)
    return boxes[inside]
