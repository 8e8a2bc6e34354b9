"""`tensor-engine`: what it prints, what it writes, and how it says no."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from perception import bags

from tensor_engine.perception import Pipeline
from tensor_engine.perception.sources import open_source

REPOSITORY = Path(__file__).resolve().parents[2]
STAGES = ["decode", "capture", "load", "run", "unpack", "total"]


def command(*arguments) -> subprocess.CompletedProcess:
    """The command as a user runs it, in a process of its own."""
    words = [sys.executable, "-m", "tensor_engine", *map(str, arguments)]
    return subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, timeout=150)


def document(*arguments, code: int = 0) -> dict:
    """The one JSON document on stdout."""
    done = command(*arguments, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def refused(*arguments) -> str:
    """The error of a command that ends with code 2: one line on stderr, nothing on stdout."""
    done = command(*arguments)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


# ---- detect --------------------------------------------------------------------------------------------------------


def test_json_of_a_picture(centerface_path, astronaut_path):
    report = document("detect", astronaut_path, "--model", centerface_path)
    assert (report["model"], report["source"]) == (str(centerface_path), str(astronaut_path))
    (frame,) = report["frames"]
    assert (frame["name"], frame["width"], frame["height"]) == ("astronaut", 512, 512)
    assert (frame["stamp"], frame["frame_id"]) == ({"sec": 0, "nanosec": 0}, "")
    (face,) = frame["detections"]
    assert list(face) == ["class_id", "score", "center_x", "center_y", "size_x", "size_y"]
    assert face["class_id"] == "face" and 170 < face["center_x"] < 280 and 70 < face["center_y"] < 190
    assert list(frame["times"]) == STAGES and min(frame["times"].values()) >= 0
    assert report["rejected"] == []


def test_table_and_annotated_pictures(centerface_path, astronaut_path, tmp_path):
    done = command("detect", astronaut_path, "--model", centerface_path, "--out", tmp_path / "made" / "here")
    assert done.returncode == 0, done.stderr
    assert "face" in done.stdout and "score" in done.stdout and "first frame" in done.stdout
    assert done.stderr == ""  # no progress where nobody watches
    drawn = cv2.imread(str(tmp_path / "made" / "here" / "astronaut.jpg")).astype(int)
    changed = np.abs(drawn - cv2.imread(str(astronaut_path))).max(axis=2) > 100
    rows, columns = np.nonzero(changed)
    assert rows.min() > 30 and rows.max() < 200 and columns.min() > 160 and columns.max() < 290


def test_frames_of_a_bag_with_their_stamps(nanodet_path, street_bag):
    report = document("detect", street_bag, "--model", nanodet_path, "--limit", 3, "--score", 0.5, "--class", "person")
    stamps = [frame["stamp"] for frame in report["frames"]]
    assert stamps == [{"sec": 1700000000, "nanosec": n * 100_000_000} for n in range(3)]
    pipeline = Pipeline(nanodet_path, score_threshold=0.5, classes=["person"])
    for frame, sourced in zip(report["frames"], open_source(street_bag).frames()):
        assert frame["frame_id"] == "camera"
        expected = [d.class_id for d in pipeline(sourced.frame).detections]
        assert [d["class_id"] for d in frame["detections"]] == expected and expected


def test_summary_of_a_video(centerface_path, carphone):
    done = command("detect", carphone, "--model", centerface_path, "--limit", 3)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("1 face") == 3 and "2 later frames, p50 in ms" in done.stdout


def test_labels_from_a_file(centerface_path, astronaut_path, tmp_path):
    (tmp_path / "names.txt").write_text("visage\n")
    report = document("detect", astronaut_path, "--model", centerface_path, "--labels", tmp_path / "names.txt")
    assert report["frames"][0]["detections"][0]["class_id"] == "visage"


def test_rejected_frames_are_reported(centerface_path, astronaut_path, tmp_path):
    good = astronaut_path.read_bytes()
    bag = bags.write_bag(tmp_path / "bag", {"/camera": [bags.compressed(good[:999]), bags.compressed(good)]})
    report = document("detect", bag, "--model", centerface_path)
    assert [frame["name"] for frame in report["frames"]] == ["000001"]
    (rejected,) = report["rejected"]
    assert (rejected["name"], rejected["reason"], rejected["frame_id"]) == ("000000", "truncated", "camera")
    assert "999 bytes" in rejected["message"]


def test_a_source_with_no_good_frame_is_the_users_mistake(centerface_path, tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8\xff\xe0 and no more")
    report = document("detect", tmp_path / "a.jpg", "--model", centerface_path, code=2)
    assert report["frames"] == [] and report["rejected"][0]["reason"] == "truncated"


# ---- replay --------------------------------------------------------------------------------------------------------


def test_replay_writes_what_detect_says(nanodet_path, street_bag, tmp_path):
    out = tmp_path / "out"
    report = document("replay", street_bag, "--model", nanodet_path, "--out", out, "--limit", 2)
    assert (report["messages"], report["rejected"], report["out"]) == (2, [], str(out))
    seen = document("detect", street_bag, "--model", nanodet_path, "--limit", 2)
    assert report["detections"] == sum(len(frame["detections"]) for frame in seen["frames"])
    assert (out / "metadata.yaml").is_file() and len(list(out.glob("*.db3"))) == 1
    assert "exists already" in refused("replay", street_bag, "--model", nanodet_path, "--out", out)


def test_replay_takes_bags_only(nanodet_path, astronaut_path, tmp_path):
    says = refused("replay", astronaut_path, "--model", nanodet_path, "--out", tmp_path / "out")
    assert "is a picture; replay takes a bag" in says


# ---- mistakes ------------------------------------------------------------------------------------------------------


def test_a_source_that_is_not_there(centerface_path, tmp_path):
    assert "nowhere.jpg is not there" in refused("detect", tmp_path / "nowhere.jpg", "--model", centerface_path)


def test_a_bag_without_images(centerface_path, tmp_path):
    bag = bags.write_bag(tmp_path / "bag", {"/words": [bags.text("hello")]})
    assert "no image topic; its topics: /words" in refused("detect", bag, "--model", centerface_path)


@pytest.mark.parametrize("option, value, says", [
    ("--model", "nowhere.onnx", "model nowhere.onnx is not there"),
    ("--card", "nowhere.yaml", "card nowhere.yaml is not there"),
    ("--labels", "nowhere.txt", "label file nowhere.txt is not there"),
    ("--model", "README.md", "README.md"),
    ("--score", "40", "40"),
    ("--nms", "-1", "-1"),
    ("--class", "unicorn", "no class 'unicorn'; the model knows face"),
    ("--limit", "0", "0"),
    ("--colour", "blue", "--colour"),
])
def test_mistakes_in_options(centerface_path, astronaut_path, option, value, says):
    assert says in refused("detect", astronaut_path, "--model", centerface_path, option, value)


def test_an_error_of_ours_has_code_1(monkeypatch, capsys):
    from tensor_engine.cli import app

    def broken():
        raise RuntimeError("gears stripped")

    assert app.guarded(broken) == 1
    assert "internal error: RuntimeError: gears stripped" in capsys.readouterr().err


def test_a_missing_library_names_the_extra(monkeypatch, capsys):
    from tensor_engine import cli

    monkeypatch.setitem(sys.modules, "click", None)
    with pytest.raises(SystemExit) as caught:
        cli.main(["devices"])
    assert caught.value.code == 2
    assert "pip install 'tensor_engine[perception]'" in capsys.readouterr().err


def test_help_names_the_commands():
    done = command("--help")
    assert done.returncode == 0
    for name in ("detect", "replay", "bench", "devices", "explain"):
        assert name in done.stdout
