"""Which values of a graph must be known while it is built, because shapes depend on them."""

import numpy as np

from tensor_engine.nn.onnx.graph import Graph, Node

# operators through which shapes flow: to know what they give, one must know what they take
SHAPE_ARITHMETIC = {
    "Abs", "Add", "Ceil", "Div", "Floor", "Max", "Min", "Mod", "Mul", "Neg", "Relu", "Round", "Sqrt", "Sub",
    "And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "Or", "Where",
    "Cast", "CastLike", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum",
    "Concat", "ConstantOfShape", "Expand", "Flatten", "Gather", "Identity", "Range", "Reshape",
    "ScatterND", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze",
}  # fmt: skip


def host_inputs(graph: Graph) -> list[str]:
    """The inputs of the graph whose values decide shapes, such as a Reshape's target."""
    needed = _names_needed(graph, set())
    return [name for name in graph.inputs if name in needed]


def _names_needed(graph: Graph, needed: set[str]) -> set[str]:
    """The names that must be known when the graph is built, given those of its outputs that must be."""
    needed = set(needed)
    for node in reversed(graph.nodes):
        needed.update(_inputs_needed(node, needed))
    return needed


def _inputs_needed(node: Node, needed: set[str]) -> set[str]:
    names = {name for i, name in enumerate(node.inputs) if node.operator.takes(np.ndarray, i)}
    if node.op_type in SHAPE_ARITHMETIC and not needed.isdisjoint(node.outputs):
        names.update(node.inputs)
    for body in node.bodies:
        names |= _names_needed_by_body(body, node, needed)
    return names - {""}


def _names_needed_by_body(body: Graph, node: Node, needed: set[str]) -> set[str]:
    """Names outside that a subgraph needs: those it reads itself, and the node's inputs that are handed to it."""
    condition_count = (
        1 if node.op_type == "Loop" else 0
    )  # a loop's body first says whether to go on
    results = zip(body.outputs[condition_count:], node.outputs)
    wanted = {inner for inner, outer in results if outer in needed}
    inside = _names_needed(body, wanted.union(body.outputs[:condition_count]))
    handed = {outer for inner, outer in zip(body.inputs, node.inputs) if inner in inside}
    return (inside - set(body.inputs)) | handed
