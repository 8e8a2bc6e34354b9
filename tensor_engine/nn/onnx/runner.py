"""OnnxRunner: an ONNX model that is called with Tensors and gives lazy Tensors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.nn.onnx.graph import Graph, Node, parse_graph
from tensor_engine.nn.onnx.host import host_inputs
from tensor_engine.nn.onnx.model import Source, describe, opsets_of, read_model
from tensor_engine.nn.onnx.spec import TensorSpec, input_specs, output_specs
from tensor_engine.nn.onnx.transform import optimise
from tensor_engine.nn.onnx.value import Value, is_text, to_tensor
from tensor_engine.tensor import Tensor


class OnnxRunner:
    """An ONNX model as a function from named inputs to named outputs.

    `source` is a path, the file's bytes or a ModelProto. `input_shapes` gives or replaces the shape of inputs,
    `dims` gives symbolic dimensions by name; every dimension must be known in the end. `device` is where the
    weights go; they are put there once and shared by all calls. `outputs` names values inside the model to give
    instead of its own outputs: what comes after them is left out.

    `inputs` and `outputs` map names to (shape, dtype). An input listed in `host_inputs` decides shapes and is
    given as an array in each call.

    Raises OnnxError for a file that is no ONNX model, for operators that are not supported (all of them at once)
    and for dimensions that are not known.
    """

    def __init__(
        self,
        source: Source,
        input_shapes: Mapping[str, tuple[int, ...]] | None = None,
        device: str | None = None,
        dims: Mapping[str, int] | None = None,
        outputs: Sequence[str] | None = None,
    ) -> None:
        model = read_model(source)
        self.name = describe(source)
        self.device = device
        self._graph = parse_graph(model.graph, opsets_of(model), outputs)
        optimise(self._graph)
        declared = [i for i in model.graph.input if i.name in self._graph.inputs]
        self.inputs = input_specs(declared, input_shapes or {}, dims or {})
        self.host_inputs = host_inputs(self._graph)
        self.outputs = output_specs(self._graph.outputs, model.graph.output)
        if not self.host_inputs and all(spec.dtype for spec in self.inputs.values()):
            self.outputs.update(self._trace())

    def __call__(self, inputs: Mapping[str, Tensor | np.ndarray]) -> dict[str, Tensor]:
        """Builds the outputs for these inputs; nothing is computed before somebody asks for their values.

        Arrays are copied to the device. Outputs of type sequence are lists of Tensors, text stays in arrays.
        Raises OnnxError where names, shapes or dtypes are not those of `inputs`.
        """
        self._check_names(inputs)
        return self._run({name: self._input(name, inputs[name]) for name in inputs})

    def _trace(self) -> dict[str, TensorSpec]:
        """The outputs' shapes and dtypes, found by building the graph once."""
        empty = {name: spec.empty(self.device) for name, spec in self.inputs.items()}
        return {
            name: TensorSpec.of(value)
            for name, value in self._run(empty).items()
            if isinstance(value, Tensor)
        }

    def _run(self, inputs: dict[str, Value]) -> dict[str, Any]:
        results = run_graph(self._graph, inputs, self.device)
        return {
            name: _as_result(value, self.device)
            for name, value in zip(self._graph.outputs, results)
        }

    def _check_names(self, inputs: Mapping[str, Any]) -> None:
        required = [name for name, spec in self.inputs.items() if not spec.is_optional]
        for name in required:
            if name not in inputs:
                raise OnnxError(
                    f"{self.name} needs the input '{name}': its inputs are {list(self.inputs)}"
                )
        for name in inputs:
            if name not in self.inputs:
                raise OnnxError(
                    f"{self.name} has no input '{name}': its inputs are {list(self.inputs)}"
                )

    def _input(self, name: str, value: Value) -> Value:
        self.inputs[name].check(name, value)
        if name in self.host_inputs and isinstance(value, Tensor):
            raise OnnxError(
                f"input '{name}' decides shapes: give it as a numpy array, not as a Tensor"
            )
        if name in self.host_inputs or is_text(value):
            return value
        return _as_result(value, self.device)


@dataclass
class Scope:
    """The values known so far in one run of a graph, with those of the graph around it."""

    graph: Graph
    device: str | None
    values: dict[str, Value]
    outer: "Scope | None" = None

    def __getitem__(self, name: str) -> Value:
        if name in self.values:
            return self.values[name]
        if name in self.graph.constants:
            return self.graph.constants[name]
        if self.outer is None:
            raise OnnxError(f"the model reads the value '{name}' before any node has made it")
        return self.outer[name]

    def on_device(self, name: str) -> Value:
        """The value, a constant as the one Tensor that all its readers share."""
        if name in self.values:
            return self.values[name]
        if name not in self.graph.constants:
            return self.outer.on_device(name) if self.outer else self[name]
        if name not in self.graph.weights:
            weight = to_tensor(self.graph.constants[name], self.device).realize()
            weight.is_param = False
            self.graph.weights[name] = weight
        return self.graph.weights[name]


def run_graph(
    graph: Graph, inputs: dict[str, Value], device: str | None, outer: Scope | None = None
) -> list[Value]:
    """The values of the graph's outputs."""
    scope = Scope(graph, device, inputs, outer)
    for node in graph.nodes:
        scope.values.update(zip(node.outputs, run_node(node, scope)))
    return [scope[name] for name in graph.outputs]


def run_node(node: Node, scope: Scope) -> tuple[Value, ...]:
    """The values of the node's outputs: on the host where all inputs are known, else built from Tensors."""
    inputs = [scope[name] if name else None for name in node.inputs]
    try:
        if node.runs_on_host(inputs):
            return node.run_on_host(inputs)
        for position, name in enumerate(node.inputs):
            if name and node.operator.needs(Tensor, position):
                inputs[position] = scope.on_device(name)
        attributes = {name: _as_function(value, scope) for name, value in node.attributes.items()}
        return node.operator(inputs, attributes, len(node.outputs), scope.device)
    except Exception as error:
        raise OnnxError(f"{node}: {error}") from error


def _as_function(attribute: Any, scope: Scope) -> Any:
    """A subgraph as a function of its inputs' values; other attributes as they are."""
    if not isinstance(attribute, Graph):
        return attribute

    def body(*values: Value) -> list[Value]:
        return run_graph(attribute, dict(zip(attribute.inputs, values)), scope.device, scope)

    return body


def _as_result(value: Value, device: str | None) -> Value:
    if isinstance(value, list):
        return [_as_result(item, device) for item in value]
    return value if is_text(value) else to_tensor(value, device)
