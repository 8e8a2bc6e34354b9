"""Functions: operators that are defined by other operators, replaced by their definition.

A model may bring functions of its own, and the specification defines many operators (Attention, AffineGrid,
NegativeLogLikelihoodLoss …) that way. What the operator table knows itself is left as it is.
"""

from collections.abc import Iterator
from typing import Any

import onnx
from onnx import FunctionProto, ModelProto, NodeProto, TypeProto, inliner, shape_inference

from tensor_engine.nn.onnx.ops import find_operator

DOMAIN = (
    "tensor_engine.function"  # where definitions wait, as functions of the model, to be inlined
)
DEEPEST = 8  # a definition may use operators that have one, too


def expand_functions(model: ModelProto, opsets: dict[str, int]) -> ModelProto:
    """The model without calls of functions."""
    if model.functions:
        model = inliner.inline_local_functions(model)
    for _ in range(DEEPEST):
        calls = [node for node in _all_nodes(model.graph) if _definition_of(node, opsets)]
        if not calls:
            break
        model = _inline_definitions(model, opsets)
    return model


def _all_nodes(graph: onnx.GraphProto) -> Iterator[NodeProto]:
    """The nodes of the graph and of the subgraphs in it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from _all_nodes(attribute.g)


def _definition_of(node: NodeProto, opsets: dict[str, int]) -> Any:
    """The specification of an operator that is not in the table, but is defined as a function."""
    opset = opsets.get(node.domain, 0)
    if find_operator(node.domain, node.op_type, opset) or not onnx.defs.has(
        node.op_type, node.domain
    ):
        return None
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:
        return None
    return schema if schema.has_function or schema.has_context_dependent_function else None


def _inline_definitions(model: ModelProto, opsets: dict[str, int]) -> ModelProto:
    typed = shape_inference.infer_shapes(model)
    values = (*typed.graph.input, *typed.graph.value_info, *typed.graph.output)
    types = {value.name: value.type for value in values}
    for number, node in enumerate(list(_all_nodes(typed.graph))):
        if schema := _definition_of(node, opsets):
            typed.functions.append(_definition(schema, node, types, f"{node.op_type}{number}"))
            node.domain, node.op_type = DOMAIN, f"{node.op_type}{number}"
    typed.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    return inliner.inline_local_functions(typed)


def _definition(
    schema: Any, node: NodeProto, types: dict[str, TypeProto], name: str
) -> FunctionProto:
    """What the node computes, as a function; attributes that it leaves out get the specification's defaults."""
    given = {attribute.name for attribute in node.attribute}
    defaults = (attribute.default_value for attribute in schema.attributes.values())
    node.attribute.extend(d for d in defaults if d.name and d.name not in given)
    if schema.has_function:
        function = FunctionProto()
        function.CopyFrom(schema.function_body)
    else:
        kinds = [types.get(value, TypeProto()).SerializeToString() for value in node.input]
        content = schema.get_context_dependent_function(node.SerializeToString(), kinds)
        function = FunctionProto.FromString(content)
    function.domain, function.name = DOMAIN, name
    return function
