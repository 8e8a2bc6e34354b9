"""`tensor-engine detect | replay`: what they print, what they write, and how they say no."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from perception import bags
from perception.detectors import fixed_detector

from tensor_engine import Context
from tensor_engine.cli import app, main
from tensor_engine.perception import Pipeline
from tensor_engine.perception.sources import open_source

REPOSITORY = Path(__file__).resolve().parents[2]
STAGES = ["decode", "capture", "load", "run", "unpack", "total"]


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Path:
    """A detector that sees in every image a dog (0.9) in the middle and a cat (0.7) above it on the left."""
    output = np.zeros((1, 6, 126), np.float32)
    output[0, :, 40] = 48, 32, 20, 10, 0, 0.9
    output[0, :, 80] = 40, 20, 10, 10, 0.7, 0
    path = tmp_path_factory.mktemp("toy") / "toy.onnx"
    return fixed_detector(path, [output], metadata={"names": "{0: 'cat', 1: 'dog'}"})


@pytest.fixture
def command(capsys):
    """Runs a command in this process: its exit code and what it printed."""

    def run(*arguments) -> tuple[int, str, str]:
        code = app.run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def document(command):
    """Runs a command with --json: the one document on stdout."""

    def run(*arguments, code: int = 0) -> dict:
        found, out, err = command(*arguments, "--json")
        assert found == code, err
        return json.loads(out)

    return run


@pytest.fixture
def refused(command):
    """Runs a command that ends with code 2: the error on stderr, and nothing on stdout."""

    def run(*arguments) -> str:
        code, out, err = command(*arguments)
        assert (code, out) == (2, ""), err
        assert "Traceback" not in err
        return err

    return run


def process(*arguments) -> subprocess.CompletedProcess:
    """The command as a user runs it."""
    words = [sys.executable, "-m", "tensor_engine", *map(str, arguments)]
    return subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, timeout=150)


# ---- detect --------------------------------------------------------------------------------------------------------


def test_json_of_a_picture(centerface_path, astronaut_path):
    done = process("detect", astronaut_path, "--model", centerface_path, "--json")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    report = json.loads(done.stdout)
    assert (report["model"], report["source"]) == (str(centerface_path), str(astronaut_path))
    (frame,) = report["frames"]
    assert (frame["name"], frame["width"], frame["height"]) == ("astronaut", 512, 512)
    assert (frame["stamp"], frame["frame_id"]) == ({"sec": 0, "nanosec": 0}, "")
    (face,) = frame["detections"]
    assert list(face) == ["class_id", "score", "center_x", "center_y", "size_x", "size_y"]
    assert face["class_id"] == "face" and 170 < face["center_x"] < 280 and 70 < face["center_y"] < 190
    assert list(frame["times"]) == STAGES and min(frame["times"].values()) >= 0
    assert report["rejected"] == []


def test_table_and_annotated_pictures(toy, astronaut_path, tmp_path, command):
    folder = tmp_path / "made" / "here"
    code, out, err = command("detect", astronaut_path, "--model", toy, "--out", folder)
    assert (code, err) == (0, "")  # no progress where nobody watches
    assert out.index("dog") < out.index("cat") and "0.900" in out and "first frame" in out
    drawn = cv2.imread(str(folder / "astronaut.jpg")).astype(int)
    changed = np.abs(drawn - cv2.imread(str(astronaut_path))).max(axis=2) > 100
    rows, columns = np.nonzero(changed)
    # 64 rows of input are 512 of the picture; the dog spans 22 of 64 columns around the middle
    assert rows.min() > 100 and rows.max() < 300 and columns.min() > 140 and columns.max() < 340


def test_frames_of_a_bag_with_their_stamps(toy, street_bag, document):
    report = document("detect", street_bag, "--model", toy, "--limit", 3)
    stamps = [frame["stamp"] for frame in report["frames"]]
    assert stamps == [{"sec": 1700000000, "nanosec": n * 100_000_000} for n in range(3)]
    assert {frame["frame_id"] for frame in report["frames"]} == {"camera"}
    assert [[d["class_id"] for d in frame["detections"]] for frame in report["frames"]] == [["dog", "cat"]] * 3


def test_options_reach_the_pipeline(toy, astronaut_path, document):
    def seen(*options) -> list[str]:
        (frame,) = document("detect", astronaut_path, "--model", toy, *options)["frames"]
        return [found["class_id"] for found in frame["detections"]]

    assert seen("--score", 0.8) == ["dog"]
    assert seen("--class", "cat") == ["cat"]
    assert seen("--class", "cat", "--class", "dog") == ["dog", "cat"]
    assert seen("--max-detections", 1) == ["dog"]


def test_summary_of_a_video(toy, carphone, command):
    code, out, _ = command("detect", carphone, "--model", toy, "--limit", 3)
    assert code == 0 and out.count("1 dog, 1 cat") == 3 and "2 later frames, p50 in ms" in out


def test_labels_and_card_from_files(toy, astronaut_path, tmp_path, document):
    (tmp_path / "names.txt").write_text("chat\nchien\n")
    (tmp_path / "card.yaml").write_text("score_threshold: 0.8\n")
    options = ("--labels", tmp_path / "names.txt", "--card", tmp_path / "card.yaml")
    (frame,) = document("detect", astronaut_path, "--model", toy, *options)["frames"]
    assert [found["class_id"] for found in frame["detections"]] == ["chien"]


def test_rejected_frames_are_reported(toy, astronaut_path, tmp_path, document):
    good = astronaut_path.read_bytes()
    bag = bags.write_bag(tmp_path / "bag", {"/camera": [bags.compressed(good[:999]), bags.compressed(good)]})
    report = document("detect", bag, "--model", toy)
    assert [frame["name"] for frame in report["frames"]] == ["000001"]
    (rejected,) = report["rejected"]
    assert (rejected["name"], rejected["reason"], rejected["frame_id"]) == ("000000", "truncated", "camera")
    assert "999 bytes" in rejected["message"]


def test_a_source_with_no_good_frame_is_the_users_mistake(toy, tmp_path, document):
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8\xff\xe0 and no more")
    report = document("detect", tmp_path / "a.jpg", "--model", toy, code=2)
    assert report["frames"] == [] and report["rejected"][0]["reason"] == "truncated"


def test_output_that_nobody_reads_to_its_end(toy, carphone):
    words = [sys.executable, "-m", "tensor_engine", "detect", str(carphone), "--model", str(toy), "--json"]
    with subprocess.Popen(words, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        running.stdout.close()
        assert "Traceback" not in running.stderr.read().decode()


# ---- replay --------------------------------------------------------------------------------------------------------


def test_without_a_model_it_is_the_street_detector(street_bag, document):
    report = document("detect", street_bag, "--limit", 1)
    assert report["model"] == str(REPOSITORY / "models" / "street.onnx")
    assert {found["class_id"] for found in report["frames"][0]["detections"]} == {"person", "car"}


def test_replay_writes_what_detect_says(nanodet_path, street_bag, tmp_path, document, refused):
    out = tmp_path / "out"
    report = document("replay", street_bag, "--model", nanodet_path, "--out", out, "--limit", 2)
    assert (report["messages"], report["rejected"], report["out"]) == (2, [], str(out))
    pipeline = Pipeline(nanodet_path)
    frames = [sourced.frame for sourced, _ in zip(open_source(street_bag).frames(), range(2))]
    assert report["detections"] == sum(len(pipeline(frame).detections) for frame in frames)
    assert (out / "metadata.yaml").is_file() and len(list(out.glob("*.db3"))) == 1
    assert "exists already" in refused("replay", street_bag, "--model", nanodet_path, "--out", out)


def test_replay_takes_bags_only(toy, astronaut_path, tmp_path, refused):
    says = refused("replay", astronaut_path, "--model", toy, "--out", tmp_path / "out")
    assert "is a picture; replay takes a bag" in says


# ---- mistakes ------------------------------------------------------------------------------------------------------


def test_a_source_that_is_not_there(toy, tmp_path, refused):
    assert "nowhere.jpg is not there" in refused("detect", tmp_path / "nowhere.jpg", "--model", toy)


def test_a_bag_without_images(toy, tmp_path, refused):
    bag = bags.write_bag(tmp_path / "bag", {"/words": [bags.text("hello")]})
    assert "no image topic; its topics: /words" in refused("detect", bag, "--model", toy)


@pytest.mark.parametrize("option, value, says", [
    ("--model", "nowhere.onnx", "model nowhere.onnx is not there"),
    ("--card", "nowhere.yaml", "card nowhere.yaml is not there"),
    ("--labels", "nowhere.txt", "label file nowhere.txt is not there"),
    ("--model", "README.md", "README.md"),
    ("--score", "40", "40"),
    ("--nms", "-1", "-1"),
    ("--class", "unicorn", "no class 'unicorn'; the model knows cat, dog"),
    ("--limit", "0", "0"),
    ("--colour", "blue", "--colour"),
])
def test_mistakes_in_options(toy, astronaut_path, option, value, says, refused):
    assert says in refused("detect", astronaut_path, "--model", toy, option, value)


def test_a_device_that_does_not_exist(toy, astronaut_path, refused):
    with Context(DEV="TPU"):
        assert "there is no device 'TPU'" in refused("detect", astronaut_path, "--model", toy)


def test_an_error_of_ours_has_code_1(capsys):
    def broken():
        raise RuntimeError("gears stripped")

    assert app.guarded(broken) == 1
    assert "internal error: RuntimeError: gears stripped" in capsys.readouterr().err


def test_a_missing_library_names_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "click", None)
    with pytest.raises(SystemExit) as caught:
        main(["devices"])
    assert caught.value.code == 2
    assert "pip install 'tensor_engine[perception]'" in capsys.readouterr().err


def test_help_names_the_commands():
    done = process("--help")
    assert done.returncode == 0
    for name in ("detect", "replay", "bench", "devices", "explain"):
        assert name in done.stdout
