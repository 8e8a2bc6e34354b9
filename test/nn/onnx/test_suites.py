"""The onnx package's models: small ones, those that PyTorch exported, and nine whole networks. All of it is slow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import OptionalProto, SequenceProto, TensorProto, TypeProto, numpy_helper
from onnx.backend.test.runner import Runner

from tensor_engine.nn.onnx.backend import TensorEngineBackend

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
RTOL, ATOL = 1e-3, 1e-7  # those of the package

# they ask for the gradient of a graph
NOT_SUPPORTED = {"test_gradient_of_add", "test_gradient_of_add_and_mul"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def folders(*kinds: str) -> list[Path]:
    found = [model.parent for kind in kinds for model in sorted((DATA / kind).glob("*/model.onnx"))]
    return [folder for folder in found if folder.name not in NOT_SUPPORTED]


def load_value(path: Path, kind: TypeProto):
    content = path.read_bytes()
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(SequenceProto.FromString(content))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(OptionalProto.FromString(content))
    return np.asarray(numpy_helper.to_array(TensorProto.FromString(content)))


def load_values(folder: Path, prefix: str, declared) -> list:
    return [load_value(folder / f"{prefix}_{i}.pb", info.type) for i, info in enumerate(declared)]


@pytest.mark.parametrize(
    "folder", folders("simple", "pytorch-operator", "pytorch-converted"), ids=lambda f: f.name
)
def test_model(folder):
    model = onnx.load(folder / "model.onnx")
    prepared = TensorEngineBackend.prepare(model)
    weights = {weight.name for weight in model.graph.initializer}
    inputs = [info for info in model.graph.input if info.name not in weights]
    data_sets = sorted(folder.glob("test_data_set_*"))
    assert data_sets
    for data in data_sets:
        expected = load_values(data, "output", model.graph.output)
        outputs = prepared.run(load_values(data, "input", inputs))
        Runner.assert_similar_outputs(expected, list(outputs), RTOL, ATOL)


@pytest.mark.parametrize("path", sorted((DATA / "light").glob("*.onnx")), ids=lambda p: p.stem)
def test_network(path):
    """Weights are constant, inputs are those of the package's runner, and so are the expected outputs."""
    model = onnx.load(path)
    weights = {weight.name for weight in model.graph.initializer}
    declared = [info for info in model.graph.input if info.name not in weights]
    name = path.stem.removeprefix("light_")
    inputs = [
        Runner.generate_dummy_data(info, seed=0, name=name, random=False) for info in declared
    ]
    expected = [load_value(path.with_name(f"{path.stem}_output_0.pb"), model.graph.output[0].type)]
    outputs = TensorEngineBackend.prepare(model).run(inputs)
    Runner.assert_similar_outputs(expected, list(outputs), RTOL, ATOL)
