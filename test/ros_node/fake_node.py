"""The real node around a pipeline that knows what it should say, and how long it should take to.

model_path is `fake`, with what it should do behind a question mark: fake?load=2&prepare=30&run=0.2.
"""

import sys
import time
from urllib.parse import parse_qsl, urlsplit

import numpy as np

from ros_node.perception_node import main
from tensor_engine.perception.detection import Detection
from tensor_engine.perception.errors import ModelError
from tensor_engine.perception.pipeline import Result

LABELS = ["person", "car"]


class FakePipeline:
    """One object that fills the picture; its score tells the mean of all bytes."""

    def __init__(self, model, *, score_threshold=None, nms_threshold=None, **_):
        url = urlsplit(str(model))
        if url.path != "fake":
            raise ModelError(f"{model} is no model; try fake")
        seconds = {name: float(value) for name, value in parse_qsl(url.query)}
        self.prepare_seconds = seconds.get("prepare", 0.0)
        self.run_seconds = seconds.get("run", 0.0)
        self.labels = LABELS
        self.score_threshold = 0.25 if score_threshold is None else score_threshold
        self.nms_threshold = 0.5 if nms_threshold is None else nms_threshold
        self._classes = None
        compute(seconds.get("load", 0.0))

    @property
    def classes(self):
        return self._classes

    @classes.setter
    def classes(self, names):
        for name in names or []:
            if name not in LABELS:
                raise ValueError(f"no class {name!r}")
        self._classes = names

    def prepare(self, height, width, encoding, step=None):
        compute(self.prepare_seconds)

    def __call__(self, frame):
        frame.check()
        raw = frame.decode()
        compute(self.run_seconds)
        score = float(np.mean(np.asarray(raw.data))) / 255
        found = [detection(name, score, raw) for name in self.classes or LABELS[:1]]
        kept = [one for one in found if one.score >= self.score_threshold]
        times = {"load": 0.001, "run": 0.002, "total": 0.003}
        return Result(kept, times, raw.height, raw.width)


def detection(name, score, frame):
    return Detection(name, score, frame.width / 2, frame.height / 2, float(frame.width), float(frame.height))


def compute(seconds):
    """Keeps the interpreter as busy as a compiler written in Python does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


if __name__ == "__main__":
    sys.exit(main(pipeline_factory=FakePipeline))
