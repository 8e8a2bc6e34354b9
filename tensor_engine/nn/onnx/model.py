"""Reading a model: from a file, bytes or a ModelProto to one ModelProto without functions."""

import os
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import ModelProto, external_data_helper

from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.nn.onnx.functions import expand_functions

Source = str | os.PathLike | bytes | ModelProto


def read_model(source: Source) -> ModelProto:
    """The model with its external data, and with functions replaced by their definitions.

    Raises OnnxError for what is no ONNX model.
    """
    model = _parse(source)
    if not model.ir_version or not model.opset_import:
        raise OnnxError(
            f"{describe(source)} is not an ONNX model: it names no IR version and no operator set"
        )
    _check_opset(model, source)
    _check_weights_are_there(model, source)
    return expand_functions(model, opsets_of(model))


def describe(source: Source) -> str:
    """What to call the source in messages."""
    if isinstance(source, ModelProto):
        return f"the model '{source.graph.name}'"
    return "the given content" if isinstance(source, bytes) else f"'{os.fspath(source)}'"


def opsets_of(model: ModelProto) -> dict[str, int]:
    """The version of each operator set that the model uses, by domain; the standard domain is ''."""
    return {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}


def _parse(source: Source) -> ModelProto:
    if isinstance(source, ModelProto):
        return source
    try:
        if isinstance(source, bytes):
            return onnx.load_model_from_string(source)
        return onnx.load(Path(source), format="protobuf")
    except (DecodeError, UnicodeDecodeError) as error:
        raise OnnxError(f"{describe(source)} is not an ONNX model: {error}") from error
    except (OSError, onnx.checker.ValidationError) as error:
        raise OnnxError(f"{describe(source)} cannot be read: {error}") from error


def _check_opset(model: ModelProto, source: Source) -> None:
    newest, opset = onnx.defs.onnx_opset_version(), opsets_of(model).get("", 0)
    if opset > newest:
        raise OnnxError(
            f"{describe(source)} uses opset {opset}, but the installed onnx package {onnx.__version__} "
            f"knows opsets up to {newest}: update it, or export the model for an older opset"
        )


def _check_weights_are_there(model: ModelProto, source: Source) -> None:
    for weight in model.graph.initializer:
        if external_data_helper.uses_external_data(weight):
            raise OnnxError(
                f"{describe(source)} keeps the weight '{weight.name}' in a file beside it: "
                "give the path of the model, not its content"
            )
