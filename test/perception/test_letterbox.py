"""The letterbox: its geometry for any sizes, and its pixels against OpenCV's float resize."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perception.oracle import letterbox

from tensor_engine import Tensor
from tensor_engine.perception.card import ModelCard
from tensor_engine.perception.letterbox import Layout, Letterbox, Taps, network_input

SIDE = st.integers(1, 2000)
CANVAS = st.integers(1, 700)


@given(SIDE, SIDE, CANVAS, CANVAS)
def test_the_image_fills_one_side_and_is_centred(height, width, canvas_height, canvas_width):
    box = Letterbox(height, width, canvas_height, canvas_width)
    (above, below), (left, right) = box.padding
    assert above + box.height + below == canvas_height
    assert left + box.width + right == canvas_width
    assert min(above, below, left, right) >= 0
    assert below - above in (0, 1) and right - left in (0, 1)
    assert box.height == canvas_height or box.width == canvas_width
    if min(box.height, box.width) > 1:
        assert abs(box.width - width * box.scale) <= 0.5 and abs(box.height - height * box.scale) <= 0.5


@given(SIDE, CANVAS)
def test_taps_are_neighbours_within_the_source(source, resized):
    taps = Taps.bilinear(source, resized)
    assert taps.low.min() >= 0 and taps.high.max() < source
    assert set((taps.high - taps.low).tolist()) <= {0, 1}
    assert taps.weight.min() >= 0 and taps.weight.max() <= 1
    exact = np.clip((np.arange(resized) + 0.5) * source / resized - 0.5, 0, source - 1)
    np.testing.assert_allclose(taps.low + taps.weight, exact, atol=1e-3)


@given(SIDE, SIDE, CANVAS, CANVAS, st.lists(st.floats(0, 1), min_size=4, max_size=4))
@settings(max_examples=10, deadline=None)
def test_boxes_come_back_to_the_source(height, width, canvas_height, canvas_width, at):
    box = Letterbox(height, width, canvas_height, canvas_width)
    source = np.array(at) * [width, height, width, height]
    ratio = np.array([box.width / width, box.height / height] * 2)
    on_canvas = source * ratio + [box.left, box.top] * 2
    back = box.to_source(Tensor(on_canvas.astype(np.float32).reshape(1, 4))).numpy()[0]
    np.testing.assert_allclose(back, source, atol=2e-3 * max(height, width))


def test_boxes_are_clipped_to_the_source():
    box = Letterbox(100, 200, 64, 64)
    back = box.to_source(Tensor([[-1000.0, -1000.0, 1000.0, 1000.0]])).numpy()
    assert back.tolist() == [[0.0, 0.0, 200.0, 100.0]]


CASES = {
    "shrink": (576, 768, 0, "bgr8", (320, 320)),
    "grow": (30, 40, 0, "rgb8", (96, 96)),
    "padded rows": (480, 641, 1, "rgb8", (64, 64)),
    "5 wide step 16": (7, 5, 1, "bgr8", (32, 32)),
    "portrait": (90, 31, 5, "rgba8", (64, 96)),
    "bgra8": (20, 21, 0, "bgra8", (32, 32)),
    "mono8": (21, 20, 3, "mono8", (32, 32)),
    "one pixel": (1, 1, 0, "rgb8", (16, 16)),
    "same size": (32, 32, 0, "rgb8", (32, 32)),
}
TO_RGB = {
    "rgb8": None, "bgr8": cv2.COLOR_BGR2RGB, "rgba8": cv2.COLOR_RGBA2RGB,
    "bgra8": cv2.COLOR_BGRA2RGB, "mono8": cv2.COLOR_GRAY2RGB,
}


@pytest.mark.parametrize("color", ["rgb", "bgr"])
@pytest.mark.parametrize("case", CASES)
def test_the_network_sees_what_opencv_would_show_it(case, color):
    height, width, gap, encoding, canvas = CASES[case]
    channels = {"rgb8": 3, "bgr8": 3, "rgba8": 4, "bgra8": 4, "mono8": 1}[encoding]
    step = width * channels + gap
    rows = np.random.default_rng(3).integers(0, 256, (height, step), np.uint8)
    image = np.ascontiguousarray(rows[:, : width * channels].reshape(height, width, channels))
    rgb = image if TO_RGB[encoding] is None else cv2.cvtColor(image, TO_RGB[encoding])
    mean, std, pad = np.array([10.0, 20.0, 30.0]), np.array([50.0, 60.0, 70.0]), 114.0
    expected, _ = letterbox(rgb if color == "rgb" else rgb[:, :, ::-1], *canvas, pad)
    expected = ((expected - mean) / std).transpose(2, 0, 1)[None]

    card = ModelCard(color=color, mean=tuple(mean), std=tuple(std), pad=pad)
    buffer = Tensor(rows.reshape(-1))
    box = Letterbox(height, width, *canvas)
    seen = network_input(buffer, Layout(height, width, step, encoding), box, card)
    np.testing.assert_allclose(seen.numpy(), expected, atol=2e-3)
