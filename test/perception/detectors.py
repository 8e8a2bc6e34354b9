"""ONNX files of detectors that say the same about every image: what a head makes of known outputs can be checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def write_model(path: Path, graph: onnx.GraphProto, metadata: dict[str, str] | None = None) -> Path:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    helper.set_model_props(model, metadata or {})
    onnx.save(model, str(path))
    return path


def image_input(shape, kind=TensorProto.FLOAT, name: str = "images"):
    return helper.make_tensor_value_info(name, kind, shape)


def fixed_detector(path: Path, outputs: list[np.ndarray], shape=(1, 3, 64, 96), metadata=None) -> Path:
    """Each output is a constant, plus nothing times the image, so that it depends on the input like any other."""
    nodes = [
        helper.make_node("ReduceSum", ["images"], ["total"], keepdims=0),
        helper.make_node("Mul", ["total", "zero"], ["nothing"]),
    ]
    weights = [numpy_helper.from_array(np.float32(0).reshape(()), "zero")]
    results = []
    for number, value in enumerate(outputs):
        weights.append(numpy_helper.from_array(value, f"value{number}"))
        nodes.append(helper.make_node("Add", [f"value{number}", "nothing"], [f"output{number}"]))
        results.append(helper.make_tensor_value_info(f"output{number}", TensorProto.FLOAT, value.shape))
    return write_model(path, helper.make_graph(nodes, "detector", [image_input(shape)], results, weights), metadata)
