"""The pipeline: a frame in, detections and their times out."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tensor_engine.helpers import Context
from tensor_engine.perception.detection import Detection
from tensor_engine.perception.frame import PIXEL_BYTES, Frame, check_layout
from tensor_engine.perception.letterbox import Layout
from tensor_engine.perception.model import load_model
from tensor_engine.perception.program import DetectionProgram, Settings
from tensor_engine.perception.timing import Stopwatch

KEPT_PROGRAMS = 4  # layouts whose programs are kept; the one unused longest goes first


@dataclass(frozen=True)
class Result:
    """The detections of one frame, best score first, and the seconds of each stage in order.

    The stages are decode (compressed frames only), load (bytes into the frame buffer), capture
    (only when a frame has a layout for which nothing was prepared), run (the captured program),
    unpack, and total. `height` and `width` are those of the (decoded) image.
    """

    detections: list[Detection]
    times: dict[str, float]
    height: int
    width: int


class Pipeline:
    """A detector for frames of any size and encoding.

    `score_threshold`, `nms_threshold` and `classes` may be set at any time: they are inputs of the
    program.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        card: str | Path | None = None,
        labels: str | Path | None = None,
        score_threshold: float | None = None,
        nms_threshold: float | None = None,
        max_detections: int = 100,
        classes: list[str] | None = None,
        device: str | None = None,
    ):
        """Thresholds (0 to 1) that are not given are the card's. Raises ModelError for files that cannot be used."""
        self.device = device
        with self._on_device():
            self.model = load_model(Path(model), optional_path(card), optional_path(labels))
            self._settings = Settings(self.model.head.classes)
        own = self.model.card
        self.score_threshold = own.score_threshold if score_threshold is None else score_threshold
        self.nms_threshold = own.nms_threshold if nms_threshold is None else nms_threshold
        self.max_detections = max_detections
        self.classes = classes
        self._programs: OrderedDict[Layout, DetectionProgram] = OrderedDict()

    @property
    def labels(self) -> list[str]:
        """The names of the classes; empty where the model has none."""
        return self.model.labels

    @property
    def classes(self) -> list[str] | None:
        """The classes that may be reported; None for all. Setting an unknown name raises ValueError."""
        return self._classes

    @classes.setter
    def classes(self, names: list[str] | None) -> None:
        allowed = np.full(self.model.head.classes, names is None)
        for name in names or []:
            allowed[self.model.class_number(name)] = True
        self._allowed, self._classes = allowed, names

    def prepare(self, height: int, width: int, encoding: str, step: int | None = None) -> None:
        """Compile and capture the program for this layout, so that its first frame is as fast as
        the others.

        `height` and `width` are those of the (decoded) image. Compressed streams are captured as
        bgr8. Raises BadImage for a layout that cannot be.
        """
        raw = encoding if encoding in PIXEL_BYTES else "bgr8"
        row = width * PIXEL_BYTES[raw]
        step = row if step is None or raw != encoding else step
        check_layout(height, width, step, raw)
        self._program(Layout(height, width, step, raw))

    def __call__(self, frame: Frame) -> Result:
        """Detect in one frame. Raises BadImage; keeps no reference to the frame's data."""
        watch = Stopwatch()
        frame.check()
        raw = frame.decode()
        if frame.is_compressed:
            watch.lap("decode")
        layout = Layout(raw.height, raw.width, raw.step, raw.encoding)
        if layout not in self._programs:
            self._program(layout)
            watch.lap("capture")
        program = self._program(layout)
        program.load(raw.octets)
        self._settings.write(self.score_threshold, self.nms_threshold, self._allowed)
        watch.lap("load")
        rows = program.run()
        watch.lap("run")
        detections = self._unpack(rows)
        watch.lap("unpack")
        return Result(detections, watch.total(), raw.height, raw.width)

    def _program(self, layout: Layout) -> DetectionProgram:
        if layout not in self._programs:
            with self._on_device():
                program = DetectionProgram(self.model, layout, self._settings)
                program.capture()
            self._programs[layout] = program
            if len(self._programs) > KEPT_PROGRAMS:
                self._programs.popitem(last=False)
        self._programs.move_to_end(layout)
        return self._programs[layout]

    def _on_device(self) -> AbstractContextManager[Any]:
        """Where tensors are made and kernels compiled; the default device, if the user named none."""
        return Context(DEV=self.device) if self.device else nullcontext()

    def _unpack(self, rows: np.ndarray) -> list[Detection]:
        found = rows[rows[:, 4] > 0][: self.max_detections]
        return [self._detection(row) for row in found.tolist()]

    def _detection(self, row: list[float]) -> Detection:
        x1, y1, x2, y2, score, label = row
        name = self.model.class_name(int(label))
        return Detection(name, score, (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1)


def optional_path(path: str | Path | None) -> Path | None:
    """A Path, if anything was given; an empty text counts as nothing."""
    return Path(path) if path else None
