"""The frame program: everything between the frame buffer and the boxes, captured once and replayed a frame."""

from __future__ import annotations

import numpy as np

from tensor_engine import Tensor, TinyJit, dtypes
from tensor_engine.engine.realize import buffer_of
from tensor_engine.perception.letterbox import Layout, Letterbox, network_input
from tensor_engine.perception.model import Model
from tensor_engine.perception.nms import best_anchors, is_finite, keep_greedily, overlaps

CANDIDATES = 256  # boxes that suppression compares; of more, the best are taken
CAPTURE_CALLS = 3  # the first call runs, the second captures, the third replays for the first time


class Settings:
    """What may change from frame to frame without another capture: the program's small inputs."""

    def __init__(self, classes: int):
        self.thresholds = Tensor(np.zeros(2, np.float32))
        self.allowed = Tensor(np.ones(classes, bool))

    def write(self, score_threshold: float, nms_threshold: float, allowed: np.ndarray) -> None:
        """Thresholds from 0 to 1, and bool [classes]: which classes may be reported."""
        write(self.thresholds, np.array([score_threshold, nms_threshold], np.float32))
        write(self.allowed, allowed)


class DetectionProgram:
    """The program for one layout of raw images. It owns the frame buffer that they are copied into."""

    def __init__(self, model: Model, layout: Layout, settings: Settings):
        self.model, self.layout, self.settings = model, layout, settings
        network = model.network
        self.letterbox = Letterbox(layout.height, layout.width, network.height, network.width)
        self.buffer = Tensor(np.zeros(layout.size, np.uint8))
        self.program = TinyJit(self.trace)

    def capture(self) -> None:
        """Compile and capture, on whatever is in the buffer."""
        for _ in range(CAPTURE_CALLS):
            self.run()

    def load(self, octets: np.ndarray) -> None:
        """Copy a raw image, uint8 [at least step * height], into the frame buffer."""
        write(self.buffer, octets[: self.layout.size])

    def run(self) -> np.ndarray:
        """The rows of the image in the buffer: see trace."""
        return self.program(self.buffer, self.settings.thresholds, self.settings.allowed).numpy()

    def trace(self, buffer: Tensor, thresholds: Tensor, allowed: Tensor) -> Tensor:
        """float32 [K, 6], best score first: x1, y1, x2, y2 in source pixels, score, class. Score 0:
        no detection.

        buffer uint8 [step * height]; thresholds float32 [2], of the score and of the overlap;
        allowed bool [C].
        """
        head = self.model.head
        image = network_input(buffer, self.layout, self.letterbox, self.model.card)
        outputs = self.model.network(image)

        found = best_anchors(head.scores(outputs).contiguous(), allowed, thresholds[0:1], CANDIDATES)
        boxes = head.boxes(outputs, found.anchor).cast(dtypes.float32).contiguous()

        same_class = found.label.unsqueeze(1) == found.label
        alive = (found.score > 0) & is_finite(boxes)
        keep = keep_greedily(alive, overlaps(boxes, thresholds[1:2]) & same_class)
        return self.rows(boxes, found.score, found.label, keep).realize()

    def rows(self, boxes: Tensor, score: Tensor, label: Tensor, keep: Tensor) -> Tensor:
        """The result's rows; boxes that lie outside the image count as none."""
        boxes = keep.unsqueeze(1).where(self.letterbox.to_source(boxes), 0.0)
        inside = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
        score = (keep & inside).where(score, 0.0)
        return Tensor.cat(boxes, score.unsqueeze(1), label.cast(dtypes.float32).unsqueeze(1), dim=1)


def write(tensor: Tensor, values: np.ndarray) -> None:
    """Overwrite a realised tensor's bytes in place."""
    buffer_of(tensor.uop.base).copyin(np.ascontiguousarray(values).data.cast("B"))
