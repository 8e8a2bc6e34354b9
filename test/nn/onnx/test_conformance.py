"""The onnx package's own tests of single operators: its models, its inputs, its expected outputs, its comparison."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from functools import cache
from pathlib import Path

import pytest
from onnx.backend.test.case import node as cases
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.runner import Runner, _normalize_tensor

from tensor_engine.nn.onnx.backend import TensorEngineBackend

NOT_PASSING = Path(__file__).with_name("not_passing.txt")

# not ours to test: pictures are decoded by Pillow, on the host; and numpy's random numbers are expected
LEFT_OUT = {"image_decoder", "bernoulli"}

# modules of onnx.backend.test.case.node that the default run takes: what detectors and classifiers are made of
EVERY_DAY = [
    "add", "clip", "div", "equal", "mod", "mul", "pow", "sub", "where",
    "elu", "gelu", "hardsigmoid", "hardswish", "leakyrelu", "mish", "prelu", "relu", "sigmoid", "softmax",
    "averagepool", "conv", "convtranspose", "globalaveragepool", "maxpool", "resize", "upsample",
    "batch_normalization", "instance_normalization", "lrn",
    "gemm", "matmul", "reducemax", "reducemean", "reducesum", "topk", "argmax", "cumsum",
    "concat", "constantofshape", "depthtospace", "expand", "flatten", "identity", "pad", "reshape",
    "shape", "slice", "split", "squeeze", "tile", "transpose", "trilu", "unsqueeze",
    "gather", "gatherelements", "gathernd", "nonmaxsuppression", "onehot", "scatternd",
]  # fmt: skip


def cases_of(module: str) -> list[TestCase]:
    """The cases that a module defines; the package makes them when it is imported, into one list for all."""
    before = len(cases._NodeTestCases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # expected values with NaN and infinity
        importlib.import_module(f"{cases.__name__}.{module}")
    return _by_module().setdefault(module, cases._NodeTestCases[before:])


@cache
def _by_module() -> dict[str, list[TestCase]]:
    return {}


def failure_of(case: TestCase) -> str | None:
    """What is wrong with our outputs, in a line; None if they are right."""
    try:
        prepared = TensorEngineBackend.prepare(case.model)
        for inputs, expected in case.data_sets:
            outputs = prepared.run([_normalize_tensor(value) for value in inputs])
            wanted = [_normalize_tensor(value) for value in expected]
            Runner.assert_similar_outputs(wanted, outputs, case.rtol, case.atol)
    except Exception as error:
        return f"{case.name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return None


def not_passing() -> set[str]:
    """Names of the cases that are known not to pass; lines that start with # say why."""
    lines = NOT_PASSING.read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


@pytest.mark.parametrize("module", EVERY_DAY)
def test_operator(module):
    chosen = [case for case in cases_of(module) if "_expanded" not in case.name]
    assert chosen, f"the onnx package has no cases in {module}"
    failures = {case.name: failure_of(case) for case in chosen}
    wrong = [failure for name, failure in failures.items() if failure and name not in not_passing()]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_operators():
    """Every case of the package passes, but for those in the list; and those in the list do not."""
    found = pkgutil.walk_packages(cases.__path__, f"{cases.__name__}.")
    modules = {module.name.removeprefix(f"{cases.__name__}.") for module in found} - LEFT_OUT
    everything = [case for module in sorted(modules) for case in cases_of(module)]
    assert len(everything) > 1500
    failures = {case.name: failure_of(case) for case in everything}
    failing = {name for name, failure in failures.items() if failure}
    print(f"{len(everything) - len(failing)} of {len(everything)} cases pass")
    new = [failures[name] for name in sorted(failing - not_passing())]
    assert not new, "these fail, but are not in the list:\n" + "\n".join(new)
    assert not_passing() <= failing, (
        f"these pass and are to leave the list: {sorted(not_passing() - failing)}"
    )
