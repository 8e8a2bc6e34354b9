"""Changes to a parsed graph that are made once, at load: each keeps what the graph computes and saves work later."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from onnx import NodeProto, helper

from tensor_engine.nn.onnx.graph import Graph, Node
from tensor_engine.nn.onnx.ops import find_operator

DOMAIN = "tensor_engine"  # operators of ours, made by transformations


def optimise(graph: Graph) -> None:
    """All transformations, in the order in which they help each other."""
    fold_constants(graph)
    fold_batchnorm(graph)
    drop_unused_constants(graph)


def fold_constants(graph: Graph) -> None:
    """Computes on the host, once, every node whose inputs are constants."""
    kept = []
    for node in graph.nodes:
        results = _constant_results(node, graph)
        if results is None:
            kept.append(node)
        else:
            graph.constants.update(zip(node.outputs, results))
        for body in node.bodies:
            fold_constants(body)
    graph.nodes = kept


def _constant_results(node: Node, graph: Graph) -> tuple[np.ndarray, ...] | None:
    """What the node gives, if it depends on constants only and the host can compute it."""
    inputs = [graph.constants.get(name) for name in node.inputs]
    is_known = all(name in graph.constants for name in node.inputs if name)
    if not is_known or not node.runs_on_host(inputs):
        return None
    try:
        results = node.run_on_host(inputs)
    except (
        Exception
    ):  # what the reference implementation cannot do is left to the call, which names the node
        return None
    return results if all(isinstance(result, np.ndarray) for result in results) else None


def fold_batchnorm(graph: Graph) -> None:
    """Puts a batch normalisation with constant parameters into the convolution before it.

    Normalisation is y = x * scale + shift for each channel. When x comes from a convolution that nothing else reads,
    scale goes into its weights and shift into its bias; otherwise both become constants, computed here.
    """
    readers = Counter(_names_read(graph))
    producers: dict[str, Node] = {}
    nodes: dict[int, Node] = {}  # by identity, in order
    for node in graph.nodes:
        source = producers.get(node.inputs[0]) if node.inputs else None
        if _is_constant_batchnorm(node, graph):
            if source and readers[node.inputs[0]] == 1 and _has_constant_weights(source, graph):
                del nodes[id(source)]
                node = _absorb(source, node, graph)
            else:
                node = _affine(node, graph)
        nodes[id(node)] = node
        producers.update((name, node) for name in node.outputs if name)
    graph.nodes = list(nodes.values())


def drop_unused_constants(graph: Graph) -> None:
    """Forgets constants that nothing reads any more."""
    used = set(_names_read(graph))
    graph.constants = {name: value for name, value in graph.constants.items() if name in used}


def _names_read(graph: Graph) -> Iterator[str]:
    """Every name read in the graph and its subgraphs, once for each reader."""
    yield from graph.outputs
    for node in graph.nodes:
        yield from node.inputs
        for body in node.bodies:
            yield from _names_read(body)


def _is_constant_batchnorm(node: Node, graph: Graph) -> bool:
    is_inference = not node.attributes.get("training_mode", 0) and len(node.outputs) == 1
    is_batchnorm = node.op_type == "BatchNormalization" and node.attributes.get("spatial", 1)
    return (
        is_batchnorm and is_inference and all(name in graph.constants for name in node.inputs[1:])
    )


def _has_constant_weights(node: Node, graph: Graph) -> bool:
    is_plain = node.op_type == "Conv" or (
        node.op_type == "ConvTranspose" and node.attributes.get("group", 1) == 1
    )
    return is_plain and all(name in graph.constants for name in node.inputs[1:] if name)


def _scale_and_shift(norm: Node, graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    weight, bias, mean, variance = (
        graph.constants[name].astype(np.float64) for name in norm.inputs[1:5]
    )
    scale = weight / np.sqrt(variance + norm.attributes.get("epsilon", 1e-5))
    return scale, bias - mean * scale


def _absorb(conv: Node, norm: Node, graph: Graph) -> Node:
    """The convolution whose output is what the normalisation makes of it."""
    scale, shift = _scale_and_shift(norm, graph)
    weight = graph.constants[conv.inputs[1]]
    bias = graph.constants[conv.inputs[2]] if len(conv.inputs) > 2 and conv.inputs[2] else 0.0
    channel_axis = 0 if conv.op_type == "Conv" else 1
    factors = scale.reshape([-1 if axis == channel_axis else 1 for axis in range(weight.ndim)])
    output = norm.outputs[0]
    constants = {f"{output}/weight": weight * factors, f"{output}/bias": bias * scale + shift}
    graph.constants.update({name: value.astype(weight.dtype) for name, value in constants.items()})
    proto = NodeProto()
    proto.CopyFrom(conv.proto)
    proto.input[:] = [conv.inputs[0], *constants]
    proto.output[:] = [output]
    return replace(conv, proto=proto)


def _affine(norm: Node, graph: Graph) -> Node:
    """The operator of ours that multiplies and adds a constant for each channel."""
    scale, shift = _scale_and_shift(norm, graph)
    output = norm.outputs[0]
    constants = {f"{output}/scale": scale, f"{output}/shift": shift}
    dtype = graph.constants[norm.inputs[1]].dtype
    graph.constants.update({name: value.astype(dtype) for name, value in constants.items()})
    proto = helper.make_node(
        "ChannelAffine", [norm.inputs[0], *constants], [output], norm.proto.name, domain=DOMAIN
    )
    operator = find_operator(DOMAIN, "ChannelAffine", 1)
    assert operator is not None, "the table has our own operators"
    return Node(proto, norm.opset, operator, {})
