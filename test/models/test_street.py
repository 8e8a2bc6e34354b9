"""The street detector: its labels, its pictures, its loss and its export, on scenes that are made here."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from models.street.export import to_onnx
from models.street.labels import Labels, label
from models.street.network import CLASSES, STRIDE, StreetNet
from models.street.objective import loss, targets
from models.street.scenes import SIZE, Scenes, mirrored
from tensor_engine import Tensor
from tensor_engine.nn.onnx import OnnxRunner
from tensor_engine.nn.state import get_state_dict
from tensor_engine.perception.card import ModelCard
from tensor_engine.perception.heads import CenterNet

HEIGHT, WIDTH = 96, 128


# ---- labels -----------------------------------------------------------------------------------------------------


def walk(frame):
    """Where somebody is who walks four pixels a frame."""
    return np.array([20 + 4.0 * frame, 30, 36 + 4.0 * frame, 70])


def street(frames):
    """Grey frames with a dark walker, and what a teacher sees in every fourth: box, score and class.

    It sees the walker but in frame 16, a post as a person every time, and a car, which is parked.
    """
    pictures = np.full((frames, HEIGHT, 3 * WIDTH, 3), 128, np.uint8)
    sights = {}
    for number, picture in enumerate(pictures):
        x1, y1, x2, y2 = walk(number).astype(int)
        picture[y1:y2, x1:x2] = 10
        if number % 4 == 0:
            seen = [] if number == 16 else [[*walk(number), score, 0] for score in (0.9, 0.8, 0.7)]
            post = [[300, 20, 310, 60, score, 0] for score in (0.8, 0.7, 0.9)]
            car = [[200, 5, 260, 25, 0.7, 1]] * 6
            sights[number] = np.array([*seen, *post, *car], np.float32)
    return pictures, sights


def test_labels_follow_who_walks_and_forget_what_stands():
    labels = label(*street(41))
    assert sorted(labels.people) == list(range(41))
    for number, boxes in labels.people.items():
        assert len(boxes) == 1, number
        np.testing.assert_allclose(boxes[0], walk(number), atol=1e-3)
    np.testing.assert_allclose(labels.cars, [[200, 5, 260, 25]], atol=1e-3)


def test_labels_come_back_from_their_file(tmp_path):
    labels = Labels({3: np.array([[1, 2, 30, 40.4]]), 4: np.zeros((0, 4))}, np.array([[5, 6, 7, 8.0]]))
    labels.save(tmp_path / "labels.json")
    again = Labels.load(tmp_path / "labels.json")
    boxes, classes = again.of(3)
    assert boxes.tolist() == [[1, 2, 30, 40], [5, 6, 7, 8]]
    assert classes.tolist() == [0, 1]
    assert again.of(4)[0].tolist() == [[5, 6, 7, 8]]


# ---- pictures ---------------------------------------------------------------------------------------------------


def bright_box(pixels, least):
    """The box around all that is brighter."""
    rows, columns = np.nonzero(pixels.max(axis=2) > least)
    return [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


def test_boxes_go_where_their_objects_go():
    frames = np.zeros((4, 2 * SIZE[0], 2 * SIZE[1], 3), np.uint8)
    box = np.array([300, 200, 380, 340], np.float32)
    frames[:, 200:340, 300:380] = 255
    scenes = Scenes(frames, Labels(dict.fromkeys(range(4), box[None]), np.zeros((0, 4))), 0)
    seen = 0
    for seed in range(20):
        scenes.random = np.random.default_rng(seed)
        view = scenes.look_at(scenes.frame(0))
        if len(view.boxes):
            np.testing.assert_allclose(view.boxes[0], bright_box(view.pixels, 180), atol=1)
            seen += 1
    assert seen > 10


def test_the_same_seed_gives_the_same_pictures():
    pictures, _ = street(9)
    labels = Labels({n: walk(n)[None] for n in range(9)}, np.array([[200, 5, 260, 25.0]]))
    scenes = Scenes(pictures, labels, 0)
    (images, wanted), (again, _), (others, _) = (scenes.batch(2, (1, step)) for step in (0, 0, 1))
    assert images.shape == (2, 3, *SIZE) and images.dtype == np.uint8
    assert wanted.shape == (2, len(CLASSES) + 5, SIZE[0] // STRIDE, SIZE[1] // STRIDE)
    np.testing.assert_array_equal(images, again)
    assert (images != others).any()


def test_mirrored_twice_is_as_before():
    boxes = np.array([[1, 2, 30, 40], [5, 6, 7, 8.0]])
    assert mirrored(boxes, 100).tolist() == [[70, 2, 99, 40], [93, 6, 95, 8]]
    np.testing.assert_array_equal(mirrored(mirrored(boxes, 100), 100), boxes)


# ---- what to say, and how wrong it is ---------------------------------------------------------------------------

BOXES = np.array([[10, 12, 30, 60], [33, 20, 55, 80], [70, 8, 120, 40.0]])
KINDS = np.array([0, 0, 1])


def perfect_outputs():
    """What a network says that says what is wanted; the heatmap before its sigmoid."""
    wanted = targets(BOXES, KINDS, HEIGHT, WIDTH)[None]
    heat = np.clip(wanted[:, :2], 1e-6, 1 - 1e-6)
    return [np.log(heat / (1 - heat)), wanted[:, 2:4], wanted[:, 4:6]], wanted


def test_the_head_reads_the_boxes_that_the_targets_wrote():
    outputs, _ = perfect_outputs()
    card = ModelCard(head="centernet", strides=(STRIDE,), activation="sigmoid")
    head = CenterNet(card, [o.shape for o in outputs], HEIGHT, WIDTH)
    tensors = [Tensor(o) for o in outputs]
    scores = head.scores(tensors).numpy()
    found = np.argsort(-scores.max(axis=1))[:3].astype(np.int32)
    boxes = head.boxes(tensors, Tensor(found)).numpy()
    order = np.argsort(boxes[:, 0])
    np.testing.assert_allclose(boxes[order], BOXES, atol=1e-4)
    assert scores[found[order]].argmax(axis=1).tolist() == KINDS.tolist()
    assert np.sort(scores.max(axis=1))[-4] < 1e-4


def slow_loss(heat, size, offset, wanted):
    """The definition, cell by cell, in float64."""
    heat, size, offset, wanted = (np.asarray(a, np.float64) for a in (heat, size, offset, wanted))
    places, peaks = 0.0, 0
    for logit, hill in zip(heat.ravel(), wanted[:, :2].ravel()):
        p = 1 / (1 + np.exp(-logit))
        peaks += hill == 1
        places += -((1 - p) ** 2) * np.log(p) if hill == 1 else -((1 - hill) ** 4) * p**2 * np.log(1 - p)
    errors = (abs(size - wanted[:, 2:4]) + abs(offset - wanted[:, 4:6])) / np.maximum(wanted[:, 2:4], 1)
    weight = wanted[:, 6:]
    return places / max(peaks, 1) + (errors * weight).sum() / max(weight.sum(), 1)


@pytest.mark.parametrize("objects", [3, 0])
def test_the_loss_is_its_definition(objects):
    random = np.random.default_rng(objects)
    wanted = targets(BOXES[:objects], KINDS[:objects], HEIGHT, WIDTH)[None]
    outputs = [random.normal(0, 2, (1, 2, *wanted.shape[2:])).astype(np.float32) for _ in range(3)]
    found = loss(tuple(map(Tensor, outputs)), Tensor(wanted)).item()
    assert found == pytest.approx(slow_loss(*outputs, wanted), rel=1e-4)


def test_the_loss_of_what_is_wanted_is_almost_nothing():
    outputs, wanted = perfect_outputs()
    noise = [o + np.float32(0.5) for o in outputs]
    best, worse = (loss(tuple(map(Tensor, o)), Tensor(wanted)).item() for o in (outputs, noise))
    assert best < worse / 3


# ---- export -----------------------------------------------------------------------------------------------------


def test_the_file_says_what_the_network_says(tmp_path):
    """Norms with statistics of their own, folded: the same outputs from the engine, the file in the engine, and
    onnxruntime."""
    random = np.random.default_rng(0)
    network = StreetNet()
    for name, tensor in get_state_dict(network).items():
        if "norm" in name and tensor.is_floating_point():
            tensor.assign(Tensor(random.uniform(0.5, 1.5, tensor.shape).astype(np.float32))).realize()
    path = tmp_path / "street.onnx"
    path.write_bytes(to_onnx(network, HEIGHT, WIDTH).SerializeToString())
    image = random.uniform(0, 1, (1, 3, HEIGHT, WIDTH)).astype(np.float32)
    expected = onnxruntime.InferenceSession(path).run(None, {"image": image})
    imported = OnnxRunner(path)({"image": Tensor(image)}).values()
    for ours, read, theirs in zip(network(Tensor(image)), imported, expected, strict=True):
        assert theirs.shape == (1, 2, HEIGHT // STRIDE, WIDTH // STRIDE)
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(read.numpy(), theirs, rtol=1e-4, atol=1e-5)
