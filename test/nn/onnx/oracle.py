"""What the tests of ONNX import share: building small models, running them here and in onnxruntime, comparing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from tensor_engine import Tensor
from tensor_engine.nn.onnx import OnnxRunner

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
Feeds = Mapping[str, np.ndarray]


def make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str | None]],
    outputs: Sequence[str],
    weights: Mapping[str, np.ndarray] | None = None,
    opset: int = 13,
    domains: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """A model with float inputs; its outputs' types are left out, for the reader to infer."""
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    opsets = {"": opset, **(domains or {})}
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def run_onnxruntime(model: onnx.ModelProto, feeds: Feeds) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds))))


def run_ours(model: Any, feeds: Feeds, **options: Any) -> dict[str, np.ndarray]:
    return {name: to_numpy(value) for name, value in OnnxRunner(model, **options)(feeds).items()}


def to_numpy(value: Any) -> Any:
    if isinstance(value, list):
        return [to_numpy(item) for item in value]
    return value.numpy() if isinstance(value, Tensor) else value


def assert_same(
    actual: Mapping[str, Any], expected: Mapping[str, Any], rtol: float = 1e-3, atol: float = 1e-4
) -> None:
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        assert_equal_values(actual[name], value, rtol, atol, name)


def assert_equal_values(
    actual: Any, expected: Any, rtol: float, atol: float, name: str = ""
) -> None:
    """The same type, shape and, within the tolerance, values; sequences item by item."""
    if isinstance(expected, list):
        assert isinstance(actual, list) and len(actual) == len(expected)
        for a, e in zip(actual, expected):
            assert_equal_values(a, e, rtol, atol, name)
        return
    expected = np.asarray(expected)
    assert actual.shape == expected.shape, (
        f"{name}: shape {actual.shape}, expected {expected.shape}"
    )
    if expected.dtype.kind in "OUS":
        assert actual.tolist() == expected.tolist()
        return
    is_bfloat16 = expected.dtype.name == "bfloat16"  # numpy() gives float32 for it
    assert is_bfloat16 or actual.dtype == expected.dtype, (
        f"{name}: {actual.dtype}, expected {expected.dtype}"
    )
    np.testing.assert_allclose(
        actual.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=atol, err_msg=name
    )
