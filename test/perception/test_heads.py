"""Every head against an independent decoder, on random outputs."""

from __future__ import annotations

import numpy as np
import pytest
from perception import oracle

from tensor_engine import Tensor
from tensor_engine.perception.card import make_card
from tensor_engine.perception.errors import ModelError
from tensor_engine.perception.heads import FAMILIES, tell_head

HEIGHT, WIDTH = 64, 96
STRIDES = (8, 16, 32)
CELLS = sum((HEIGHT // s) * (WIDTH // s) for s in STRIDES)
CLASSES = 5
THRESHOLD = 0.7
RNG = np.random.default_rng(5)


def unit(*shape) -> np.ndarray:
    return RNG.random(shape, np.float32)


def normal(*shape) -> np.ndarray:
    return RNG.standard_normal(shape, np.float32)


def decoded(name: str, outputs: list[np.ndarray], **values) -> list[oracle.Box]:
    """All anchors whose best class is above the threshold, through the head under test."""
    card = make_card(values, name)
    head = FAMILIES[name](card, [o.shape for o in outputs], HEIGHT, WIDTH)
    tensors = [Tensor(o) for o in outputs]
    scores = head.scores(tensors).numpy()
    assert scores.shape[1] == head.classes
    chosen = np.flatnonzero(scores.max(axis=1) > THRESHOLD)
    boxes = head.boxes(tensors, Tensor(chosen.astype(np.int32))).numpy()
    best = scores[chosen]
    return [oracle.Box(*map(float, b), float(s.max()), int(s.argmax())) for b, s in zip(boxes, best)]


def same(found: list[oracle.Box], expected: list[oracle.Box]) -> None:
    assert len(expected) > 3, "the test needs something to find"
    assert len(found) == len(expected)

    def key(b):
        return (round(b.score, 4), b.label, round(b.x1, 1))

    for a, b in zip(sorted(found, key=key), sorted(expected, key=key)):
        assert a.label == b.label
        ours, theirs = [[box.score, box.x1, box.y1, box.x2, box.y2] for box in (a, b)]
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-3)


def nanodet_outputs(classes: int = CLASSES) -> list[np.ndarray]:
    outputs = []
    for stride in STRIDES:
        cells = (HEIGHT // stride) * (WIDTH // stride)
        outputs += [unit(1, cells, classes), normal(1, cells, 32)]
    return outputs


def test_nanodet():
    outputs = nanodet_outputs()
    same(decoded("nanodet", outputs), oracle.nanodet(outputs, WIDTH, STRIDES, THRESHOLD))


def test_nanodet_whose_sigmoid_was_left_out():
    outputs = nanodet_outputs()
    logits = [np.log(o / (1 - o)) if i % 2 == 0 else o for i, o in enumerate(outputs)]
    expected = oracle.nanodet(outputs, WIDTH, STRIDES, THRESHOLD)
    same(decoded("nanodet", logits, activation="sigmoid"), expected)


def test_yolov5():
    output = np.concatenate([unit(1, 3 * CELLS, 4) * 60, unit(1, 3 * CELLS, 1 + CLASSES)], axis=2)
    same(decoded("yolov5", [output]), oracle.yolov5(output, THRESHOLD))


def test_yolov8():
    output = np.concatenate([unit(1, 4, CELLS) * 60, unit(1, CLASSES, CELLS)], axis=1)
    same(decoded("yolov8", [output]), oracle.yolov8(output, THRESHOLD))


def test_yolox():
    output = np.concatenate([normal(1, CELLS, 4), unit(1, CELLS, 1 + CLASSES)], axis=2)
    same(decoded("yolox", [output]), oracle.yolox(output, HEIGHT, WIDTH, STRIDES, THRESHOLD))


@pytest.mark.parametrize("boxes_first", [True, False])
def test_ssd_with_scores_of_all_classes(boxes_first):
    boxes, scores = np.sort(unit(1, 50, 4)), unit(1, 50, 1 + CLASSES)
    outputs = [boxes, scores] if boxes_first else [scores, boxes]
    expected = oracle.ssd_raw(boxes, scores, HEIGHT, WIDTH, THRESHOLD)
    same(decoded("ssd", outputs), expected)


def test_ssd_that_lists_labels():
    boxes, scores = np.sort(unit(1, 50, 4)), unit(1, 50)
    labels = RNG.integers(1, 1 + CLASSES, (1, 50)).astype(np.float32)
    count = np.array([50], np.float32)
    expected = oracle.ssd_listed(boxes, labels, scores, HEIGHT, WIDTH, THRESHOLD)
    names = tuple("abcde")
    same(decoded("ssd", [boxes, labels, scores, count], box_format="yxyx", labels=names), expected)


def test_ssd_in_pixels_by_centre_without_background():
    boxes, scores = unit(1, 50, 4) * 60, unit(1, 50, CLASSES)
    found = decoded("ssd", [boxes, scores], box_format="cxcywh", box_unit="pixel", background=False)
    as_yolov8 = np.concatenate([boxes, scores], axis=2).transpose(0, 2, 1)
    same(found, oracle.yolov8(as_yolov8, THRESHOLD))


def maps(classes: int) -> tuple[np.ndarray, ...]:
    h, w = HEIGHT // 4, WIDTH // 4
    return unit(1, classes, h, w), normal(1, 2, h, w), unit(1, 2, h, w)


def test_centerface():
    heat, scale, offset = maps(1)
    landmarks = normal(1, 10, *heat.shape[2:])
    same(decoded("centerface", [heat, scale, offset, landmarks]), oracle.centerface(heat, scale, offset, THRESHOLD))


def test_centernet():
    heat, size, offset = maps(3)
    size = np.abs(size) * 5
    found = decoded("centernet", [heat, size, offset])
    every = oracle.centernet(heat, size, offset, THRESHOLD)
    best_of_cell = {}
    for box in every:
        centre = (round((box.x1 + box.x2) / 2, 2), round((box.y1 + box.y2) / 2, 2))
        best_of_cell[centre] = max(best_of_cell.get(centre, box), box, key=lambda b: b.score)
    same(found, list(best_of_cell.values()))


def test_a_peak_beside_nan_is_none():
    heat, scale, offset = (np.zeros((1, c, HEIGHT // 4, WIDTH // 4), np.float32) for c in (1, 2, 2))
    heat[0, 0, 3, 3], heat[0, 0, 10, 10], heat[0, 0, 10, 11] = 0.9, 0.9, np.nan
    found = decoded("centerface", [heat, scale, offset])
    assert len(found) == 1 and found[0].x1 == (3 + 0.5) * 4 - 2


TELLING = {
    "nanodet": [o.shape for o in nanodet_outputs()],
    "yolov5": [(1, 3 * CELLS, 85)],
    "yolov8": [(1, 84, CELLS)],
}


@pytest.mark.parametrize("name", TELLING)
def test_the_head_is_told_from_the_outputs(name):
    assert tell_head(TELLING[name], HEIGHT, WIDTH) == name


def test_the_head_is_told_with_other_strides():
    cells = sum((HEIGHT // s) * (WIDTH // s) for s in (4, 8, 16, 32))
    assert tell_head([(1, 84, cells)], HEIGHT, WIDTH, (4, 8, 16, 32)) == "yolov8"


NOT_TELLING = {
    "yolox looks like a decoded yolov5": [(1, CELLS, 85)],
    "ssd leaves its units open": [(1, 100, 4), (1, 100, 21)],
    "a classifier": [(1, 1000)],
    "no output": [],
    "three maps": [(1, 80, 16, 24), (1, 2, 16, 24), (1, 2, 16, 24)],
}


@pytest.mark.parametrize("case", NOT_TELLING)
def test_what_is_not_told_asks_for_a_card(case):
    with pytest.raises(ModelError, match="card"):
        tell_head(NOT_TELLING[case], HEIGHT, WIDTH)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_head_refuses_outputs_of_another_kind(name):
    with pytest.raises(ModelError, match=name):
        FAMILIES[name](make_card({}, name), [(1, 1000)], HEIGHT, WIDTH)
