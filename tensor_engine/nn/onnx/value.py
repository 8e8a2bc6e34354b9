"""What flows along an edge of an ONNX graph.

A value is one of two things. A Tensor is computed by the engine when someone asks for it. A host array (numpy)
is known while the graph is being built: weights, shapes and everything computed from them. Shapes of later
tensors may depend on host arrays only. Sequences are Python lists of values, an absent optional value is None.
"""

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from tensor_engine.dtype import DType, dtypes
from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.tensor import Tensor

Value = Any  # Tensor | np.ndarray | list[Value] | None

DTYPES: dict[int, DType] = {
    TensorProto.BOOL: dtypes.bool,
    TensorProto.INT8: dtypes.int8,
    TensorProto.INT16: dtypes.int16,
    TensorProto.INT32: dtypes.int32,
    TensorProto.INT64: dtypes.int64,
    TensorProto.UINT8: dtypes.uint8,
    TensorProto.UINT16: dtypes.uint16,
    TensorProto.UINT32: dtypes.uint32,
    TensorProto.UINT64: dtypes.uint64,
    TensorProto.FLOAT16: dtypes.float16,
    TensorProto.BFLOAT16: dtypes.bfloat16,
    TensorProto.FLOAT: dtypes.float32,
    TensorProto.DOUBLE: dtypes.float64,
}
ELEMENT_TYPES = {dtype: element_type for element_type, dtype in DTYPES.items()}


def dtype_of(element_type: int) -> DType:
    """The engine's dtype for an ONNX element type (a `TensorProto.DataType` number)."""
    if element_type not in DTYPES:
        name = TensorProto.DataType.Name(element_type)
        raise OnnxError(f"element type {name} is not supported")
    return DTYPES[element_type]


def numpy_dtype_of(dtype: DType) -> np.dtype:
    """The numpy dtype with the same values; bfloat16 is the one of `ml_dtypes`."""
    return helper.tensor_dtype_to_np_dtype(ELEMENT_TYPES[dtype])


def is_host(value: Value) -> bool:
    """Whether the value is known while the graph is built."""
    return isinstance(value, np.ndarray)


def is_text(value: Value) -> bool:
    """Whether the value is an array of strings, which the engine cannot hold."""
    return is_host(value) and value.dtype.kind in "OUS"


def to_tensor(value: Value, device: str | None = None) -> Tensor:
    """A Tensor with the value's content. An array of one repeated value needs no memory: it becomes a constant."""
    if not is_host(value):
        return value
    dtype = dtype_of(helper.np_dtype_to_tensor_dtype(value.dtype))
    if _repeats_one_value(value):
        return Tensor.full(value.shape, value.flat[0].item(), dtype=dtype, device=device)
    if dtype == dtypes.bfloat16:
        return Tensor(value.view(np.uint16), device=device).bitcast(dtype)
    return Tensor(np.ascontiguousarray(value), device=device)


def _repeats_one_value(array: np.ndarray) -> bool:
    return array.size > 0 and array.tobytes() == array.flat[0].tobytes() * array.size
