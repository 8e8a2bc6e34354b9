"""Shapes and dtypes of a model's inputs and outputs: what it declares, what the user gives, what a call brings."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto, TypeProto, ValueInfoProto

from tensor_engine.dtype import DType
from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.nn.onnx.value import DTYPES, Value, is_host, numpy_dtype_of
from tensor_engine.tensor import Tensor

Shape = tuple[int, ...]


class TensorSpec(NamedTuple):
    """The shape and dtype of an input or output.

    `shape` is None where it is not known before the call; `dtype` is None where the value is no tensor of numbers
    (text, a sequence).
    """

    shape: Shape | None
    dtype: DType | None
    is_optional: bool = False

    @staticmethod
    def of(tensor: Tensor) -> "TensorSpec":
        return TensorSpec(tuple(tensor.shape), tensor.dtype)

    def empty(self, device: str | None) -> Tensor:
        """A tensor of this shape and dtype, with nothing in it."""
        return Tensor.empty(*(self.shape or ()), dtype=self.dtype, device=device)

    def check(self, name: str, value: Value) -> None:
        """Raises OnnxError where the value is not what the spec says."""
        if self.dtype is None:
            return
        if not isinstance(value, (Tensor, np.ndarray)):
            raise OnnxError(
                f"input '{name}' must be a Tensor or a numpy array, not a {type(value).__name__}"
            )
        expected = numpy_dtype_of(self.dtype)
        actual = value.dtype if is_host(value) else numpy_dtype_of(value.dtype)
        if actual != expected:
            raise OnnxError(f"input '{name}' must be {expected}, not {actual}: cast it first")
        if self.shape is not None and tuple(value.shape) != self.shape:
            raise OnnxError(
                f"input '{name}' must have shape {self.shape}, not {tuple(value.shape)}: "
                f"load the model with input_shapes={{'{name}': {tuple(value.shape)}}} for another shape"
            )


def input_specs(
    declared: Iterable[ValueInfoProto], shapes: Mapping[str, Shape], dims: Mapping[str, int]
) -> dict[str, TensorSpec]:
    """What the inputs are. Raises OnnxError for a dimension that is not known and for names that do not exist."""
    inputs = {info.name: info.type for info in declared}
    for name in shapes:
        if name not in inputs:
            raise OnnxError(f"input_shapes names '{name}', but the inputs are {list(inputs)}")
    symbols = {
        d.dim_param for kind in inputs.values() for d in kind.tensor_type.shape.dim if d.dim_param
    }
    for name in dims:
        if name not in symbols:
            raise OnnxError(
                f"dims names '{name}', but the symbolic dimensions are {sorted(symbols)}"
            )
    return {name: _input_spec(name, kind, shapes.get(name), dims) for name, kind in inputs.items()}


def output_specs(names: Iterable[str], declared: Iterable[ValueInfoProto]) -> dict[str, TensorSpec]:
    """What the model declares of these outputs; a shape is None where it is not fully declared."""
    kinds = {info.name: info.type for info in declared}
    types = {name: kinds.get(name, TypeProto()) for name in names}
    return {
        name: TensorSpec(_static(_declared_dims(kind)), _dtype(kind))
        for name, kind in types.items()
    }


def _input_spec(
    name: str, kind: TypeProto, given: Shape | None, dims: Mapping[str, int]
) -> TensorSpec:
    if not kind.HasField("tensor_type"):
        return TensorSpec(None, None, kind.HasField("optional_type"))
    declared = _declared_dims(kind)
    if given is None:
        given = _static(None if declared is None else [dims.get(str(d), d) for d in declared])
    if given is None:
        raise OnnxError(_how_to_give(name, declared))
    if declared is not None and len(given) != len(declared):
        raise OnnxError(
            f"input '{name}' has {len(declared)} dimensions, but input_shapes gives {tuple(given)}"
        )
    return TensorSpec(tuple(given), _dtype(kind))


def _dtype(kind: TypeProto) -> DType | None:
    element_type = kind.tensor_type.elem_type
    is_numeric = kind.HasField("tensor_type") and element_type != TensorProto.STRING
    if is_numeric and element_type not in DTYPES:
        raise OnnxError(f"element type {TensorProto.DataType.Name(element_type)} is not supported")
    return DTYPES[element_type] if is_numeric else None


def _declared_dims(kind: TypeProto) -> list[int | str] | None:
    """Each dimension's size, or its name ('?' without one); None where not even their number is declared."""
    tensor = kind.tensor_type
    if not tensor.HasField("shape"):
        return None
    return [
        d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in tensor.shape.dim
    ]


def _static(dims: list[Any] | None) -> Shape | None:
    """The shape, if each dimension is a known size."""
    if dims is None or not all(isinstance(d, int) and d >= 0 for d in dims):
        return None
    return tuple(dims)


def _how_to_give(name: str, declared: list[int | str] | None) -> str:
    if declared is None:
        return f"the shape of input '{name}' is not declared: give input_shapes={{'{name}': (...)}}"
    names = [d for d in declared if isinstance(d, str) and d != "?"]
    by_name = f" or dims={{{', '.join(f'{d!r}: …' for d in names)}}}" if names else ""
    shape = ", ".join(str(d) for d in declared)
    return (
        f"input '{name}' has dynamic dimensions [{shape}]: "
        f"give their sizes with input_shapes={{'{name}': ({shape})}}{by_name}"
    )
