"""The graph as the importer sees it: parsed once from the protobuf, operators found, attributes decoded."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from onnx import (
    AttributeProto,
    GraphProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)
from onnx.reference import ReferenceEvaluator

from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.nn.onnx.ops import Operator, find_operator
from tensor_engine.nn.onnx.value import Value, is_host
from tensor_engine.tensor import Tensor

RANDOM = {
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}


@dataclass
class Node:
    """One use of an operator."""

    proto: NodeProto
    opset: int
    operator: Operator
    attributes: dict[str, Any]

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the values it takes; '' for an optional one that is left out."""
        return tuple(self.proto.input)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self.proto.output)

    @property
    def op_type(self) -> str:
        return self.operator.name

    @cached_property
    def bodies(self) -> list["Graph"]:
        """The subgraphs of a control flow operator."""
        return [a for a in self.attributes.values() if isinstance(a, Graph)]

    def runs_on_host(self, inputs: list[Value]) -> bool:
        """Whether all it needs is known now, so that its outputs are known now, too."""
        if self.bodies or self.op_type in RANDOM:
            return False
        return all(value is None or is_host(value) for value in inputs)

    def run_on_host(self, inputs: list[Value]) -> tuple[Value, ...]:
        """Its outputs, computed by the specification's reference implementation in numpy."""
        feeds = {name: value for name, value in zip(self.inputs, inputs) if name}
        with np.errstate(all="ignore"):  # NaN and infinity are values like others
            results = self._reference.run(None, feeds)
        return tuple(np.asarray(v) if isinstance(v, np.generic) else v for v in results)

    @cached_property
    def _reference(self) -> ReferenceEvaluator:
        names = [ValueInfoProto(name=name) for name in dict.fromkeys(self.inputs) if name]
        results = [ValueInfoProto(name=name) for name in self.outputs if name]
        graph = helper.make_graph([self.proto], "host", names, results)
        return ReferenceEvaluator(graph, opsets={self.operator.domain: self.opset})

    def __str__(self) -> str:
        return describe_node(self.proto, self.opset)


@dataclass
class Graph:
    """Nodes in the order in which they run, and the constants they use."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: dict[str, np.ndarray]
    nodes: list[Node]
    weights: dict[str, Tensor] = field(
        default_factory=dict
    )  # constants that went to the device, made on first use


def describe_node(proto: NodeProto, opset: int) -> str:
    """The operator, the node and the operator set, for messages."""
    label = f"'{proto.name}'" if proto.name else f"that makes '{', '.join(proto.output)}'"
    return f"{proto.op_type} (node {label}, domain {proto.domain or 'ai.onnx'}, opset {opset})"


def parse_graph(
    proto: GraphProto, opsets: dict[str, int], outputs: Iterable[str] | None = None
) -> Graph:
    """The graph of a model, as far as it is needed for the outputs (unless given, its own).

    Raises one OnnxError that lists every operator and attribute that is not supported.
    """
    problems: list[str] = []
    names = tuple(o.name for o in proto.output) if outputs is None else tuple(outputs)
    graph = _Parser(opsets, problems).graph(proto, names)
    if problems:
        raise OnnxError(
            "the model needs what is not supported:\n" + "\n".join(f"  {p}" for p in problems)
        )
    return graph


def _nodes_needed(proto: GraphProto, outputs: tuple[str, ...]) -> list[NodeProto]:
    """Without those that no output depends on."""
    needed = set(outputs)
    kept = []
    for node in reversed(proto.node):
        if not needed.isdisjoint(node.output):
            needed.update(_names_read(node))
            kept.append(node)
    return kept[::-1]


def _names_read(node: NodeProto) -> Iterator[str]:
    """The node's inputs, and what its subgraphs read."""
    yield from node.input
    for attribute in node.attribute:
        yield from (output.name for output in attribute.g.output)
        for inner in attribute.g.node:
            yield from _names_read(inner)


@dataclass
class _Parser:
    opsets: dict[str, int]
    problems: list[str]

    def graph(self, proto: GraphProto, outputs: tuple[str, ...]) -> Graph:
        if proto.sparse_initializer:
            self.problems.append(f"sparse weights in the graph '{proto.name}'")
        constants = {weight.name: numpy_helper.to_array(weight) for weight in proto.initializer}
        inputs = tuple(i.name for i in proto.input if i.name not in constants)
        nodes = [self.node(node) for node in _nodes_needed(proto, outputs)]
        return Graph(inputs, outputs, constants, [node for node in nodes if node])

    def node(self, proto: NodeProto) -> Node | None:
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        opset = self.opsets.get(domain, 0)
        operator = find_operator(domain, proto.op_type, opset)
        attributes = {a.name: self.attribute(a) for a in proto.attribute}
        if operator is None:
            self.problems.append(f"operator {describe_node(proto, opset)}")
            return None
        for name in attributes:
            if not operator.has_attribute(name):
                self.problems.append(
                    f"attribute '{name}' of operator {describe_node(proto, opset)}"
                )
        return Node(proto, opset, operator, attributes)

    def attribute(self, proto: AttributeProto) -> Any:
        value = helper.get_attribute_value(proto)
        if isinstance(value, GraphProto):
            return self.graph(value, tuple(o.name for o in value.output))
        if isinstance(value, TensorProto):
            return numpy_helper.to_array(value)
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, list) and value and isinstance(value[0], bytes):
            return [text.decode() for text in value]
        return value
