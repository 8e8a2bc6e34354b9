"""A detector's network: an ONNX file with one image input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tensor_engine import Tensor, dtypes
from tensor_engine.perception.errors import ModelError
from tensor_engine.perception.extras import require

CHANNELS = 3


class Network:
    """The network of a model file, fixed to one image of one size.

    `height` and `width` are those of its input in pixels. Called with float32 [1, 3, height, width]
    it gives the list of its outputs, in the file's order.
    """

    def __init__(self, path: Path, size: tuple[int, int] | None, layout: str | None):
        """`size` (height, width) and `layout` (nchw, nhwc) override what the file declares. Raises ModelError."""
        model = read_onnx(path)
        declared = image_input(model, path)
        self.input = declared.name
        self.layout = layout or told_layout(dimensions(declared))
        self.height, self.width = size or told_size(dimensions(declared), self.layout, path)
        self.dtype = input_dtype(declared, path)
        self.metadata = {entry.key: entry.value for entry in model.metadata_props}
        self.runner = import_onnx(model, path, {self.input: self.input_shape})

    @property
    def input_shape(self) -> tuple[int, int, int, int]:
        if self.layout == "nhwc":
            return 1, self.height, self.width, CHANNELS
        return 1, CHANNELS, self.height, self.width

    def __call__(self, image: Tensor) -> list[Tensor]:
        if self.layout == "nhwc":
            image = image.permute(0, 2, 3, 1)
        return list(self.runner({self.input: image.cast(self.dtype)}).values())

    def output_shapes(self) -> list[tuple[int, ...] | None]:
        """The shapes of the outputs, in the file's order; None for one that only a call can tell."""
        return [spec.shape for spec in self.runner.outputs.values()]


def read_onnx(path: Path) -> Any:
    """The parsed file. Raises ModelError."""
    require("onnx")
    from tensor_engine.nn.onnx.error import OnnxError
    from tensor_engine.nn.onnx.model import read_model

    if not path.is_file():
        raise ModelError(f"model {path} is not there")
    try:
        return read_model(path)
    except OnnxError as error:
        raise ModelError(str(error)) from error


def import_onnx(model: Any, path: Path, shapes: dict[str, tuple[int, ...]]) -> Any:
    """The network's operators as Tensor operations; what the importer refuses becomes a ModelError."""
    from tensor_engine.nn.onnx import OnnxRunner
    from tensor_engine.nn.onnx.error import OnnxError

    try:
        return OnnxRunner(model, input_shapes=shapes)
    except OnnxError as error:
        raise ModelError(f"model {path}: {error}") from error


def image_input(model: Any, path: Path) -> Any:
    """The one input that is not a weight. Older exporters list the weights among the inputs."""
    weights = {weight.name for weight in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    if len(inputs) != 1 or len(dimensions(inputs[0])) != 4:
        found = ", ".join(f"{v.name} {dimensions(v)}" for v in inputs) or "none"
        raise ModelError(f"model {path} must have one input, an image with 4 dimensions; it has: {found}")
    return inputs[0]


def dimensions(value: Any) -> list[int | str]:
    """Declared sizes; the name, or "?", of one that is left open."""
    return [d.dim_value or d.dim_param or "?" for d in value.type.tensor_type.shape.dim]


def told_layout(shape: list[int | str]) -> str:
    """nhwc if only the last axis can be the channels, else nchw."""
    return "nhwc" if shape[3] == CHANNELS and shape[1] != CHANNELS else "nchw"


def told_size(shape: list[int | str], layout: str, path: Path) -> tuple[int, int]:
    """Height and width as declared. Raises ModelError if they are open."""
    height, width = shape[1:3] if layout == "nhwc" else shape[2:4]
    if isinstance(height, int) and isinstance(width, int):
        return height, width
    hint = "say it in its card, for example `input_size: [640, 640]`"
    raise ModelError(f"model {path} leaves the size of its input open ({height} x {width}): {hint}")


def input_dtype(value: Any, path: Path) -> Any:
    """The type of the pixels. Raises ModelError for one that is no image's."""
    onnx = require("onnx")
    kinds = {
        onnx.TensorProto.FLOAT: dtypes.float32,
        onnx.TensorProto.FLOAT16: dtypes.float16,
        onnx.TensorProto.UINT8: dtypes.uint8,
    }
    kind = value.type.tensor_type.elem_type
    if kind not in kinds:
        name = onnx.TensorProto.DataType.Name(kind)
        raise ModelError(f"model {path}: an input of type {name} is not an image; use FLOAT, FLOAT16 or UINT8")
    return kinds[kind]
