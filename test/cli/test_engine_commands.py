"""`tensor-engine devices | bench | explain`: the commands that look at the engine."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from perception.detectors import fixed_detector

from tensor_engine.cli.app import app
from tensor_engine.cli.devices import TESTED, backend_names
from tensor_engine.perception.timing import percentile


@pytest.fixture
def model(tmp_path):
    output = np.random.default_rng(0).random((1, 7, 126), np.float32)
    return fixed_detector(tmp_path / "small.onnx", [output])


def printed(*arguments) -> dict:
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_every_backend_is_listed_with_how_it_was_tested():
    found = {device["name"]: device for device in printed("devices")["devices"]}
    assert set(found) == set(TESTED) == set(backend_names())
    assert found["CPU:LLVM"]["works"] and found["PYTHON"]["works"]
    for device in found.values():
        assert device["tested"] and bool(device["works"]) != bool(device["reason"])


def test_a_backend_that_does_not_work_says_why(monkeypatch):
    from tensor_engine.cli import devices

    monkeypatch.setattr(devices, "Tensor", lambda values: 1 / 0)
    for device in printed("devices")["devices"]:
        assert not device["works"] and "ZeroDivisionError" in device["reason"]


def test_bench_in_turns_with_onnxruntime(model):
    pytest.importorskip("onnxruntime")
    report = printed("bench", model, "--runs", 20, "--against", "onnxruntime")
    assert (report["runs"], report["input"]) == (20, [1, 3, 64, 96])
    assert list(report["engines"]) == ["tensor_engine", "onnxruntime"]
    for engine in report["engines"].values():
        assert 0 < engine["min"] <= engine["p50"] <= engine["p90"] <= engine["max"]
        assert engine["p99"] is None and engine["p99.9"] is None, "20 runs cannot tell"


def test_bench_of_scaling(monkeypatch):
    from tensor_engine.cli import scaling

    monkeypatch.setattr(scaling, "SIZES", (100, 400))
    report = printed("bench", "--scaling")
    assert list(report["chains"]) == ["fused", "stored"]
    for name, kernels in (("fused", [1, 1]), ("stored", [100, 400])):
        runs, growth = report["chains"][name]["runs"], report["chains"][name]["growth"]
        assert [run["kernels"] for run in runs] == kernels
        for step in scaling.STEPS:
            assert all(run[step] > 0 for run in runs)
            assert growth[step] == pytest.approx(np.log(runs[1][step] / runs[0][step]) / np.log(4))


def test_bench_wants_a_model_or_scaling(model):
    for arguments in ([], [str(model), "--scaling"]):
        done = CliRunner().invoke(app, ["bench", *arguments])
        assert done.exit_code == 2 and "MODEL" in done.output


def test_explain_lists_the_kernels(model):
    report = printed("explain", model)
    assert report["device"] == "CPU" and len(report["kernels"]) >= 2
    for kernel in report["kernels"]:
        assert kernel["name"][:1] in "Er" and kernel["seconds"] > 0 and kernel["bytes"] > 0


@pytest.mark.parametrize("percent, expected", [(50, 3), (90, 5), (1, 1), (100, 5), (20, 1), (21, 2)])
def test_percentile_is_a_sample(percent, expected):
    assert percentile([5, 1, 4, 2, 3], percent) == expected


def test_no_samples_have_no_percentile():
    with pytest.raises(ValueError, match="no samples"):
        percentile([], 50)
