"""Ten thousand frames through one program: nothing grows."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest
from perception.detectors import fixed_detector

from tensor_engine import GlobalCounters
from tensor_engine.perception import Frame, Pipeline

CALLS = 10_000
PAGE = 4096


def resident_bytes() -> int:
    """Memory that this process has now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ten_thousand_frames_do_not_grow_memory(tmp_path):
    output = np.random.default_rng(0).random((1, 7, 21), np.float32)
    output[0, :4] *= 30
    pipeline = Pipeline(fixed_detector(tmp_path / "a.onnx", [output], shape=(1, 3, 32, 32)), score_threshold=0.9)
    rng = np.random.default_rng(1)
    frames = [Frame.from_array(rng.integers(0, 255, (24, 32, 3), np.uint8), "rgb8") for _ in range(4)]
    expected = pipeline(frames[0]).detections
    assert expected
    for number in range(CALLS // 10):
        pipeline(frames[number % 4])
    gc.collect()
    before, counted = resident_bytes(), GlobalCounters.mem_used
    for number in range(CALLS):
        pipeline(frames[number % 4])
    gc.collect()
    assert GlobalCounters.mem_used == counted
    assert resident_bytes() - before < 4 << 20
    assert pipeline(frames[0]).detections == expected
