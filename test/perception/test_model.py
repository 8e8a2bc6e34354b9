"""Model files: what is read from them, what is refused and how, and whole pipelines around heads of known output."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from perception import oracle
from perception.detectors import fixed_detector, image_input, write_model

from tensor_engine.perception import Frame, ModelError, Pipeline
from tensor_engine.perception.model import load_model

HEIGHT, WIDTH = 64, 96
STRIDES = (8, 16, 32)
CELLS = sum((HEIGHT // s) * (WIDTH // s) for s in STRIDES)
SOURCE = (90, 120)  # height, width of the images: neither the size nor the shape of the network's input
IMAGE = Frame.from_array(np.zeros((*SOURCE, 3), np.uint8), "rgb8")


def yolov8_output(classes: int = 3, seed: int = 0) -> np.ndarray:
    """Random boxes within the input and random scores: [1, 4 + C, N]."""
    rng = np.random.default_rng(seed)
    boxes = rng.random((4, CELLS), np.float32) * np.array([[WIDTH], [HEIGHT], [40], [30]], np.float32)
    return np.concatenate([boxes, rng.random((classes, CELLS), np.float32)])[None].astype(np.float32)


# ---- refused -------------------------------------------------------------------------------------------------------


def graph(inputs, nodes, outputs):
    return helper.make_graph(nodes, "graph", inputs, outputs)


def result(shape=(1, 7, CELLS), name: str = "output0"):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def relu(of: str = "images"):
    return helper.make_node("Relu", [of], ["output0"])


UNUSABLE = {
    "two inputs": (
        graph([image_input([1, 3, 8, 8]), image_input([1, 3, 8, 8], name="more")],
              [helper.make_node("Add", ["images", "more"], ["output0"])], [result((1, 3, 8, 8))]),
        "must have one input",
    ),
    "no picture": (graph([image_input([1, 10])], [relu()], [result((1, 10))]), "must have one input"),
    "input of text": (
        graph([image_input([1, 3, 8, 8], TensorProto.STRING)],
              [helper.make_node("Identity", ["images"], ["output0"])], [result((1, 3, 8, 8))]),
        "STRING",
    ),
    "open size": (graph([image_input([1, 3, "h", "w"])], [relu()], [result((1, 3, "h", "w"))]), "input_size"),
    "unknown operator": (
        graph([image_input([1, 3, 8, 8])], [helper.make_node("Frobnicate", ["images"], ["output0"], name="knob")],
              [result()]),
        "Frobnicate.*knob|knob.*Frobnicate",
    ),
    "no detector": (graph([image_input([1, 3, 8, 8])], [relu()], [result((1, 3, 8, 8))]), "card"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_a_model_that_cannot_be_used_is_named_with_the_reason(case, tmp_path):
    content, says = UNUSABLE[case]
    path = write_model(tmp_path / "odd.onnx", content)
    with pytest.raises(ModelError, match=says) as caught:
        load_model(path)
    assert "odd.onnx" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"this is no model", b"\x89PNG\r\n\x1a\n" + bytes(100), bytes(1000)])
def test_a_file_that_is_no_onnx_is_named(content, tmp_path):
    path = tmp_path / "photo.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="photo.onnx"):
        load_model(path)


def test_a_file_that_is_not_there_or_is_a_folder(tmp_path):
    with pytest.raises(ModelError, match="nowhere.onnx is not there"):
        load_model(tmp_path / "nowhere.onnx")
    with pytest.raises(ModelError, match="is not there"):
        load_model(tmp_path)


def test_a_card_of_another_family_is_named_with_what_it_wants(tmp_path):
    path = fixed_detector(tmp_path / "a.onnx", [yolov8_output()])
    (tmp_path / "a.yaml").write_text("head: nanodet\n")
    with pytest.raises(ModelError, match=r"a.onnx.*not those of a nanodet head: it has .*distances"):
        load_model(path)


def test_labels_must_be_as_many_as_classes(tmp_path):
    path = fixed_detector(tmp_path / "a.onnx", [yolov8_output(3)])
    (tmp_path / "names.txt").write_text("a\nb\n")
    with pytest.raises(ModelError, match="3 classes apart, but .*names.txt names 2"):
        load_model(path, label_path=tmp_path / "names.txt")


# ---- labels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [3, 200])
def test_names_from_the_model_file(count, tmp_path):
    names = {number: f"kind {number}" for number in range(count)}
    path = fixed_detector(tmp_path / "a.onnx", [yolov8_output(count)], metadata={"names": str(names)})
    pipeline = Pipeline(path)
    assert pipeline.labels == list(names.values())
    best = yolov8_output(count)[0, 4:].max(axis=1).argmax()
    assert pipeline(IMAGE).detections[0].class_id == f"kind {best}"


def test_the_label_file_wins_over_the_card_and_the_card_over_the_model(tmp_path):
    path = fixed_detector(tmp_path / "a.onnx", [yolov8_output(2)], metadata={"names": "{0: 'm0', 1: 'm1'}"})
    assert load_model(path).labels == ["m0", "m1"]
    (tmp_path / "a.yaml").write_text("labels: [c0, c1]\n")
    assert load_model(path).labels == ["c0", "c1"]
    (tmp_path / "names.txt").write_text("f0\nf1\n")
    assert load_model(path, label_path=tmp_path / "names.txt").labels == ["f0", "f1"]


def test_without_labels_classes_are_numbers(tmp_path):
    pipeline = Pipeline(fixed_detector(tmp_path / "a.onnx", [yolov8_output(3)]), classes=["2"])
    assert pipeline.labels == []
    assert {d.class_id for d in pipeline(IMAGE).detections} == {"2"}


# ---- whole pipelines -----------------------------------------------------------------------------------------------


def expected(boxes: list[oracle.Box], overlap: float) -> list[oracle.Box]:
    """What is to come out for candidates on the network's input: suppressed, moved to the source, clipped."""
    _, place = oracle.letterbox(np.zeros((*SOURCE, 3), np.uint8), HEIGHT, WIDTH, 0.0)
    return oracle.to_source(oracle.greedy_nms(boxes, overlap), place, *SOURCE)


def same(detections, boxes: list[oracle.Box]) -> None:
    assert [int(d.class_id) for d in detections] == [b.label for b in boxes]
    found = [[d.score, *d.corners] for d in detections]
    np.testing.assert_allclose(found, [[b.score, b.x1, b.y1, b.x2, b.y2] for b in boxes], rtol=1e-4, atol=2e-3)


def run(tmp_path, outputs, card: str = "", score: float = 0.8, overlap: float = 0.5, **options):
    path = fixed_detector(tmp_path / "a.onnx", outputs)
    if card:
        (tmp_path / "a.yaml").write_text(card)
    pipeline = Pipeline(path, score_threshold=score, nms_threshold=overlap, **options)
    return pipeline(IMAGE).detections


def test_yolov8_from_end_to_end(tmp_path):
    output = yolov8_output()
    boxes = expected(oracle.yolov8(output, 0.8), 0.5)
    assert len(boxes) > 10
    same(run(tmp_path, [output]), boxes)


def test_yolov5_from_end_to_end(tmp_path):
    rng = np.random.default_rng(2)
    boxes = rng.random((3 * CELLS, 4), np.float32) * np.array([WIDTH, HEIGHT, 40, 30], np.float32)
    output = np.concatenate([boxes, rng.random((3 * CELLS, 6), np.float32)], axis=1)[None]
    wanted = expected(oracle.yolov5(output, 0.75), 0.5)
    assert 10 < len(wanted) < 100
    same(run(tmp_path, [output], score=0.75), wanted)


def test_yolox_with_its_card_from_end_to_end(tmp_path):
    rng = np.random.default_rng(3)
    output = rng.random((1, CELLS, 8), np.float32)
    wanted = expected(oracle.yolox(output, HEIGHT, WIDTH, STRIDES, 0.6), 0.5)
    assert len(wanted) > 5
    same(run(tmp_path, [output], "head: yolox\n", score=0.6), wanted)


def test_nhwc_input(tmp_path):
    output = yolov8_output()
    path = fixed_detector(tmp_path / "a.onnx", [output], shape=(1, HEIGHT, WIDTH, 3))
    found = Pipeline(path, score_threshold=0.8, nms_threshold=0.5)(IMAGE).detections
    same(found, expected(oracle.yolov8(output, 0.8), 0.5))


def test_more_candidates_than_there_is_room_for(tmp_path):
    """Every anchor of a crowded output is above the threshold: the best are compared, and the best come out."""
    rng = np.random.default_rng(4)
    boxes = rng.random((4, CELLS * 3), np.float32) * np.array([[WIDTH], [HEIGHT], [6], [6]], np.float32)
    rows = np.concatenate([boxes, np.ones((1, CELLS * 3), np.float32), rng.random((2, CELLS * 3), np.float32)])
    output = rows.T[None].astype(np.float32)
    found = run(tmp_path, [output], score=0.01, overlap=0.3, max_detections=40)
    same(found, expected(oracle.yolov5(output, 0.01), 0.3)[:40])


@pytest.mark.parametrize("rows", [slice(0, 4), slice(4, 7), slice(2, 3), slice(6, 7), slice(0, 7)])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_broken_numbers_never_become_detections(tmp_path, rows, bad):
    """Broken boxes, scores, single coordinates and single classes, in every other anchor and in all of them."""
    for anchors in (slice(0, None, 2), slice(None)):
        output = yolov8_output()
        output[0, rows, anchors] = bad
        with np.errstate(invalid="ignore"):
            found = run(tmp_path, [output])
        numbers = np.array([[d.score, *d.corners] for d in found]).reshape(-1, 5)
        assert np.isfinite(numbers).all() and (numbers[:, 0] > 0.8).all()
        assert (numbers[:, 3:] > numbers[:, 1:3]).all()
        one_class_is_minus_infinity = bad == -np.inf and rows == slice(6, 7)
        assert bool(found) == (anchors != slice(None) or one_class_is_minus_infinity)


def test_the_device_may_be_chosen(tmp_path):
    path = fixed_detector(tmp_path / "a.onnx", [yolov8_output()])
    expected_here = Pipeline(path, score_threshold=0.8)(IMAGE).detections
    other = Pipeline(path, score_threshold=0.8, device="CPU:C")(IMAGE).detections
    assert [d.class_id for d in other] == [d.class_id for d in expected_here]
    np.testing.assert_allclose([d.corners for d in other], [d.corners for d in expected_here], atol=1e-3)
    with pytest.raises(ValueError, match="no device 'TPU'"):
        Pipeline(path, device="TPU")
