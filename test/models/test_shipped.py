"""The detector that ships: what its card says is so."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys

import cv2
import numpy as np
import onnx
import pytest
from conftest import REPOSITORY

from models.street.evaluation import CONFIDENT, look
from models.street.labels import Labels
from models.street.objective import targets
from tensor_engine.perception import Pipeline
from tensor_engine.perception.accuracy import average_precision
from tensor_engine.perception.model import default_model
from tensor_engine.perception.sources import open_source

LABELS = REPOSITORY / "models" / "street" / "labels.json"
SLACK = 0.02
LEAST_PEOPLE = 0.7


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline(default_model())


@pytest.fixture(scope="module")
def frames(street_bag) -> np.ndarray:
    """The held-out frames, as they were recorded."""
    return np.stack([sourced.frame.pixels() for sourced in open_source(street_bag).frames()])


@pytest.fixture(scope="module")
def found(frames) -> dict[str, list[np.ndarray]]:
    return look(default_model(), frames)


def claimed(pipeline, words: str) -> float:
    """A number in the card's evaluation, by what stands before it."""
    match = re.search(words + r" (0\.\d+|1\.0+)", " ".join(pipeline.model.card.evaluation.split()))
    assert match, words
    return float(match[1])


def test_it_is_the_default_and_small(pipeline):
    assert default_model() == REPOSITORY / "models" / "street.onnx"
    assert default_model().stat().st_size < 2e6
    assert pipeline.labels == ["person", "car"]
    card = pipeline.model.card
    assert card.licence == "Apache-2.0"
    assert all([card.name, card.source, card.training, card.evaluation])
    assert not any(node.op_type == "BatchNormalization" for node in onnx.load(default_model()).graph.node)


def test_people_as_its_teacher_is_sure_of_them(pipeline, frames, found, nanodet_path):
    sure = [boxes[boxes[:, 4] >= CONFIDENT, :4] for boxes in look(nanodet_path, frames)["person"]]
    assert sum(map(len, sure)) > 500
    ap = average_precision(found["person"], sure)
    assert ap >= claimed(pipeline, "person AP50") - SLACK
    assert ap >= LEAST_PEOPLE


@pytest.mark.parametrize(("number", "name"), enumerate(["person", "car"]))
def test_the_labels_of_the_held_out_frames(number, name, pipeline, frames, found):
    labels = Labels.load(LABELS)
    truth = [boxes[kinds == number] for boxes, kinds in map(labels.of, range(len(frames)))]
    assert average_precision(found[name], truth) >= claimed(pipeline, f"the labels {name}") - SLACK


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_script_makes_a_detector(tmp_path):
    """On a video made here: the loss falls, what is done is not done again, the file is one for our card."""
    boxes = write_video(tmp_path / "made.avi")
    Labels(boxes, np.array([[600, 20, 700, 90.0]])).save(tmp_path / "labels.json")
    losses = [float(value) for value in re.findall(r"mean loss ([\d.]+)", train(tmp_path, 100))]
    assert len(losses) == 2 and losses[1] < 0.85 * losses[0]
    assert "mean loss" not in train(tmp_path, 100)
    assert Pipeline(tmp_path / "made.onnx", card=REPOSITORY / "models" / "street.yaml").labels == ["person", "car"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_training_goes_on_as_if_it_had_not_stopped(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "models")
    script = importlib.import_module("train_street")
    recipe = script.Recipe(steps=8, batch=1, rate=1e-2, seed=3)
    random = np.random.default_rng(0)
    images = random.integers(0, 255, (8, 1, 3, 64, 96), dtype=np.uint8)
    wanted = targets(np.array([[10, 12, 30, 60.0]]), np.array([0]), 64, 96)[None]

    def losses(trainer, steps):
        return [trainer.step(images[trainer.done], wanted) for _ in range(steps)]

    whole, first, second = (script.Trainer(recipe) for _ in range(3))
    expected = losses(whole, 8)
    assert losses(first, 4) == expected[:4]
    first.save(tmp_path / "street.safetensors")
    second.load(tmp_path / "street.safetensors")
    assert losses(second, 4) == expected[4:]
    assert len(set(expected)) == 8
    others = script.Trainer(script.Recipe(steps=9, batch=1, rate=1e-2, seed=3))
    with pytest.raises(script.click.ClickException, match="is of another training"):
        others.load(tmp_path / "street.safetensors")


def write_video(path):
    """230 frames with one dark walker on a light road; where it is in each."""
    video = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), 10, (768, 576))
    boxes = {}
    for number in range(230):
        frame = np.full((576, 768, 3), 200, np.uint8)
        x = 20 + 3 * number
        frame[300:400, x : x + 40] = (30, 30, 90)
        boxes[number] = np.array([[x, 300, x + 40, 400.0]])
        video.write(frame)
    video.release()
    return boxes


def train(folder, steps):
    """What models/train_street.py prints."""
    command = [
        sys.executable, REPOSITORY / "models" / "train_street.py", "train", folder / "made.avi", "--steps", steps,
        "--batch", 2, "--labels", folder / "labels.json", "--out", folder / "made.onnx",
        "--checkpoint", folder / "made.safetensors",
    ]  # fmt: skip
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=500, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    return done.stdout
