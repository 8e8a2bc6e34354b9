"""Model cards and label files: what is read, and that mistakes are named with their file and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensor_engine.perception.card import find_card, make_card, models_folders, read_card
from tensor_engine.perception.errors import ModelError
from tensor_engine.perception.labels import embedded_labels, read_labels


def written(folder: Path, text: str, name: str = "model.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


MISTAKES = {
    "unknown key": ("head: yolov8\nstride: [8]\n", "stride"),
    "unknown head": ("head: yolov99\n", "head"),
    "size of one": ("input_size: [640]\n", "input_size"),
    "size as text": ("input_size: 640x640\n", "input_size"),
    "negative size": ("input_size: [-1, 640]\n", "input_size"),
    "fractional size": ("input_size: [640.5, 640]\n", "input_size"),
    "two means": ("mean: [1, 2]\n", "mean"),
    "mean of words": ("mean: [red, green, blue]\n", "mean"),
    "division by zero": ("std: [1, 0, 1]\n", "std"),
    "threshold above 1": ("score_threshold: 40\n", "score_threshold"),
    "threshold nan": ("nms_threshold: .nan\n", "nms_threshold"),
    "threshold as text": ("nms_threshold: high\n", "nms_threshold"),
    "flag as text": ("background: maybe\n", "background"),
    "true as number": ("pad: true\n", "pad"),
    "colour": ("color: grb\n", "color"),
    "layout": ("layout: chw\n", "layout"),
    "no strides": ("strides: []\n", "strides"),
    "labels as number": ("labels: 80\n", "labels"),
    "name as number": ("name: 5\n", "name"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_names_the_file_and_the_key(mistake, tmp_path):
    text, key = MISTAKES[mistake]
    path = written(tmp_path, text)
    with pytest.raises(ModelError) as caught:
        read_card(path)
    assert str(path) in str(caught.value) and key in str(caught.value)


@pytest.mark.parametrize("text", ["- a\n- list\n", "just text\n", "", "key: [unclosed\n", "\x00"])
def test_what_is_no_mapping_is_refused(text, tmp_path):
    path = written(tmp_path, text)
    with pytest.raises(ModelError, match="model.yaml"):
        read_card(path)


def test_a_missing_card_is_named(tmp_path):
    with pytest.raises(ModelError, match="nowhere.yaml is not there"):
        read_card(tmp_path / "nowhere.yaml")


def test_values_are_read(tmp_path):
    values = read_card(written(tmp_path, "input_size: [480, 640]\nstd: 58\nmean: [1, 2, 3.5]\nlabels: [a, b]\n"))
    assert values == {"input_size": (480, 640), "std": (58.0,) * 3, "mean": (1.0, 2.0, 3.5), "labels": ("a", "b")}


def test_the_file_wins_over_the_family_and_the_family_over_the_defaults():
    assert make_card({}, "nanodet").color == "bgr"
    assert make_card({"color": "rgb"}, "nanodet").color == "rgb"
    assert make_card({}, "yolov8").color == "rgb"
    assert make_card({}, "centerface").nms_threshold == 0.3


def test_a_label_file_is_found_beside_the_card_and_in_models(tmp_path):
    written(tmp_path, "cat\ndog\n", "pets.txt")
    assert read_card(written(tmp_path, "labels: pets.txt\n"))["labels"] == ("cat", "dog")
    assert len(read_card(written(tmp_path, "labels: coco.txt\n"))["labels"]) == 80
    with pytest.raises(ModelError, match="birds.txt is not there"):
        read_card(written(tmp_path, "labels: birds.txt\n"))


def test_the_card_beside_the_model_comes_first(tmp_path):
    assert find_card(tmp_path / "nothing_of_that_name.onnx") is None
    assert find_card(tmp_path / "nanodet_m.onnx") in [folder / "nanodet_m.yaml" for folder in models_folders()]
    beside = written(tmp_path, "head: nanodet\n", "nanodet_m.yaml")
    assert find_card(tmp_path / "nanodet_m.onnx") == beside


def test_every_card_that_comes_with_the_package_is_right():
    cards = [path for folder in models_folders() for path in folder.glob("*.yaml")]
    assert {"nanodet_m", "centerface"} <= {path.stem for path in cards}
    for path in cards:
        values = read_card(path)
        assert values["licence"] and values["source"] and values["head"]


@pytest.mark.parametrize("name, text", [
    ("a.txt", "person\n\n  bicycle \ncar\n"),
    ("a.txt", "person\r\nbicycle\r\ncar"),
    ("a.yaml", "- person\n- bicycle\n- car\n"),
    ("a.yaml", "names: [person, bicycle, car]\n"),
    ("a.yml", "names:\n  0: person\n  2: car\n  1: bicycle\n"),
])
def test_label_files_of_every_form(name, text, tmp_path):
    path = tmp_path / name
    path.write_bytes(text.encode())
    assert read_labels(path) == ["person", "bicycle", "car"]


@pytest.mark.parametrize("name, data", [
    ("a.txt", b""), ("a.txt", b"\n \n"), ("a.txt", b"\xff\xfe\x00bad"), ("a.yaml", b"names: {1: a, 2: b}"),
    ("a.yaml", b"person"), ("a.yaml", b"[unclosed"),
])
def test_bad_label_files_are_named(name, data, tmp_path):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ModelError, match=name):
        read_labels(path)


def test_labels_that_an_exporter_wrote_into_the_model():
    assert embedded_labels({"names": "{0: 'person', 1: 'car'}"}) == ["person", "car"]
    assert embedded_labels({"names": "__import__('os').getcwd()"}) == []
    assert embedded_labels({}) == []
