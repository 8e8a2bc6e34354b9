"""Reading a model: from a file, bytes or a ModelProto to one valid ModelProto in few, known operators."""

import os
from collections.abc import Iterable
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, external_data_helper, inliner

from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.nn.onnx.ops import operator_names

Source = str | os.PathLike | bytes | ModelProto


def read_model(source: Source) -> ModelProto:
    """The model, with its external data, and its own functions inlined.

    Operators that are not in the operator table, but that the specification defines as a function of others,
    are replaced by that definition. Raises OnnxError for what is no ONNX model.
    """
    model = _parse(source)
    if not model.ir_version or not model.opset_import:
        raise OnnxError(f"{describe(source)} is not an ONNX model: it names no IR version and no operator set")
    _check_weights_are_there(model, source)
    return _expand_functions(model)


def describe(source: Source) -> str:
    """What to call the source in messages."""
    if isinstance(source, ModelProto):
        return f"the model '{source.graph.name}'"
    return "the given bytes" if isinstance(source, bytes) else f"'{os.fspath(source)}'"


def opsets_of(model: ModelProto) -> dict[str, int]:
    """The version of each operator set that the model uses, by domain; the standard domain is ''."""
    return {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}


def _parse(source: Source) -> ModelProto:
    if isinstance(source, ModelProto):
        return source
    try:
        if isinstance(source, bytes):
            return onnx.load_model_from_string(source)
        return onnx.load(Path(source))
    except (DecodeError, UnicodeDecodeError) as error:
        raise OnnxError(f"{describe(source)} is not an ONNX model: {error}") from error
    except (OSError, onnx.checker.ValidationError) as error:
        raise OnnxError(f"{describe(source)} cannot be read: {error}") from error


def _check_weights_are_there(model: ModelProto, source: Source) -> None:
    for weight in model.graph.initializer:
        if external_data_helper.uses_external_data(weight):
            raise OnnxError(
                f"{describe(source)} keeps the weight '{weight.name}' in a file beside it: "
                "give the path of the model, not its content"
            )


def _expand_functions(model: ModelProto) -> ModelProto:
    known = operator_names()
    if not model.functions and _operators_of(model.graph.node) <= set(known):
        return model
    model = inliner.inline_local_functions(model)
    return inliner.inline_selected_functions(model, known, exclude=True, inline_schema_functions=True)


def _operators_of(nodes: Iterable[onnx.NodeProto]) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for node in nodes:
        found.add((node.domain, node.op_type))
        for attribute in node.attribute:
            found |= _operators_of(attribute.g.node)
    return found
