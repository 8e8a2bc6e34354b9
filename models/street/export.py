"""The trained network as an ONNX file."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tensor_engine import Tensor

from .network import StreetNet

OPSET, IR_VERSION = 13, 8  # what onnxruntime from 1.10 on reads


def to_onnx(network: StreetNet, height: int, width: int) -> onnx.ModelProto:
    """The network for one image of this size, norms folded into the convolutions."""
    graph = Graph()
    with Tensor.train(False):
        outputs: Any = network(cast(Tensor, Recorded(graph, "image")))
    names = ["heat", "size", "offset"]
    for output, name in zip(outputs, names):
        graph.rename(output.name, name)
    shape = [1, 3, height, width]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    made = helper.make_graph(graph.nodes(), "street", [image], given, graph.initializers())
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    onnx.checker.check_model(model, full_check=True)
    return model


class Graph:
    """Nodes and weights, as they come."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, list[str], str, dict[str, Any]]] = []
        self.weights: dict[str, np.ndarray] = {}

    def add(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        """Another node; the name of its output."""
        output = f"{kind.lower()}{len(self.steps)}"
        self.steps.append((kind, inputs, output, attributes))
        return output

    def keep(self, name: str, array: np.ndarray) -> str:
        """A weight."""
        self.weights[name] = np.ascontiguousarray(array, np.float32)
        return name

    def rename(self, old: str, new: str) -> None:
        """Another name for the output of the node that makes it."""
        self.steps = [(kind, inputs, new if output == old else output, a) for kind, inputs, output, a in self.steps]

    def nodes(self) -> list[onnx.NodeProto]:
        """The nodes as ONNX has them."""
        return [helper.make_node(kind, inputs, [output], **a) for kind, inputs, output, a in self.steps]

    def initializers(self) -> list[onnx.TensorProto]:
        """The weights as ONNX has them."""
        return [numpy_helper.from_array(array, name) for name, array in self.weights.items()]


class Recorded:
    """Stands in for a Tensor: what the network does with it is written down instead of done."""

    def __init__(self, graph: Graph, name: str):
        self.graph, self.name = graph, name

    def conv2d(
        self, weight: Tensor, bias: Tensor | None, groups: int, stride: int, dilation: int, padding: int
    ) -> Recorded:
        """A Conv, with a bias in any case: a norm that follows needs one."""
        name = f"conv{len(self.graph.steps)}"
        shift = np.zeros(weight.shape[0]) if bias is None else bias.numpy()
        inputs = [self.graph.keep(f"{name}.weight", weight.numpy()), self.graph.keep(f"{name}.bias", shift)]
        return self.then(
            "Conv", inputs, kernel_shape=list(weight.shape[2:]), group=groups,
            strides=[stride] * 2, dilations=[dilation] * 2, pads=[padding] * 4,
        )  # fmt: skip

    def batchnorm(self, weight: Tensor, bias: Tensor, mean: Tensor, inverse: Tensor) -> Recorded:
        """No node: the convolution before it is changed."""
        kind, (_, kernel, shift), output, _ = self.graph.steps[-1]
        assert (kind, output) == ("Conv", self.name), "a norm is folded into the convolution right before it"
        gain = (weight * inverse).numpy()
        weights = self.graph.weights
        self.graph.keep(kernel, weights[kernel] * gain.reshape(-1, 1, 1, 1))
        self.graph.keep(shift, (weights[shift] - mean.numpy()) * gain + bias.numpy())
        return self

    def relu(self) -> Recorded:
        """A Relu."""
        return self.then("Relu", [])

    def __add__(self, other: Recorded) -> Recorded:
        return self.then("Add", [other.name])

    def repeat_interleave(self, repeats: int, dim: int) -> Recorded:
        """A Resize of one axis."""
        scales = np.ones(4)
        scales[dim] = repeats
        name = self.graph.keep(f"scales{dim}", scales)
        rounding = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return self.then("Resize", ["", name], mode="nearest", **rounding)

    def then(self, kind: str, others: list[str], **attributes: object) -> Recorded:
        """What a node makes of this and others."""
        return Recorded(self.graph, self.graph.add(kind, [self.name, *others], **attributes))
