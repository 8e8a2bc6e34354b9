"""What a user gives to `Tensor`, as a node of the graph: numbers become constants, arrays and bytes memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tensor_engine.device import Buffer, Device, numpy_dtype
from tensor_engine.dtype import ConstType, DType, dtypes, float_cast_via, truncate
from tensor_engine.engine.realize import attach
from tensor_engine.files import open_file, read_file
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp


def node_from_data(data: Any, dtype: DType | None, device: str | None) -> UOp:
    """The node for what a user gave to `Tensor`."""
    if isinstance(data, UOp):
        if data.dtype is dtypes.index:
            data = data.cast(dtypes.from_py(*data.min_max))
        node = data if dtype is None else data.cast(dtype)
        return node if device in (None, node.device) else node.copy_to_device(device)
    if isinstance(data, Path):
        node = open_file(data, dtype)
        return node if device is None else read_file(node, device)
    if data is None:
        data = []
    if isinstance(data, (np.ndarray, np.generic)):
        return node_from_array(np.asarray(data), dtype, device)
    if isinstance(data, (bool, int, float)):
        return scalar_node(data, dtype or dtypes.from_py(data), device)
    if isinstance(data, (bytes, bytearray, memoryview)):
        return node_from_array(np.frombuffer(data, np.uint8), dtype, device)
    if isinstance(data, (list, tuple)):
        return node_from_list(data, dtype, device)
    raise TypeError(f"a Tensor is made of numbers, lists, arrays or bytes, not of a {type(data).__name__}")


def scalar_node(value: ConstType, dtype: DType, device: str | None) -> UOp:
    """A constant. Two tensors that are the same float are still two, as each has a gradient of its own."""
    return (UOp.unique_const if dtype.kind == "f" else UOp.const)(dtype, value, device)


def node_from_list(data: list | tuple, dtype: DType | None, device: str | None) -> UOp:
    """A nested list of numbers."""
    if has_tensors(data):
        raise TypeError("a Tensor is made of numbers; of Tensors make one by Tensor.stack(*list) or Tensor.cat(*list)")
    array = array_from_list(data)
    if dtype is None and array.size and array.dtype.kind in "iu":
        array = narrowed(array)
    elif array.dtype.kind == "f":
        dtype = dtype or dtypes.default_float
    return node_from_array(array, dtype, device)


def narrowed(array: np.ndarray) -> np.ndarray:
    """Integers in the default type, or in the narrowest one that holds them if they don't fit."""
    narrow = array.astype(numpy_dtype(dtypes.default_int))
    # compared as bytes: for a few numbers, == and all() would cost as much as all the rest
    if array.dtype.kind == "i" and narrow.astype(array.dtype).tobytes() == array.tobytes():
        return narrow
    return array.astype(numpy_dtype(dtypes.from_py(int(array.min()), int(array.max()))))


def array_from_list(data: list | tuple) -> np.ndarray:
    """An array of the numbers in nested lists. Raises ValueError or TypeError if there can't be one."""
    try:
        array = np.array(data)
    except ValueError:
        raise ValueError("a Tensor needs lists of equal lengths at each depth") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"a Tensor is made of lists of real numbers of at most 64 bits, not of {data!r:.80}")
    if array.dtype.kind == "f" and (array >= 2.0**63).any():  # numpy makes floats of small ints beside very large ones
        numbers = np.array(data, object).ravel().tolist()
        if all(isinstance(number, int) for number in numbers):
            return np.array(data, numpy_dtype(dtypes.from_py(min(numbers), max(numbers))))
    return array


def has_tensors(data: list | tuple) -> bool:
    """True if there is a Tensor, which has a node, in a list, at any depth."""
    for kind in set(map(type, data)):
        if kind is int or kind is float:
            continue
        if hasattr(kind, "uop"):
            return True
        if issubclass(kind, (list, tuple)) and any(has_tensors(item) for item in data if type(item) is kind):
            return True
    return False


def node_from_array(array: np.ndarray, dtype: DType | None, device: str | None) -> UOp:
    """A copy of an array, in device memory; a constant if it has shape ()."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    own = DTYPE_OF_ARRAY.get(array.dtype)
    if own is None:
        raise TypeError(f"no dtype for a numpy array of {array.dtype}")
    dtype = dtype or own
    if array.shape == ():
        return scalar_node(truncate(array.item(), own), dtype, device)
    if array.size == 0:
        return UOp.const(dtype, 0).reshape((1,) * array.ndim).expand(array.shape)
    node = stored(array if dtype is own else convert(array, dtype), dtype, Device.canonicalize(device))
    return node if array.ndim == 1 else node.movement(Ops.RESHAPE, array.shape)


DTYPE_OF_ARRAY: dict[np.dtype, DType] = {np.dtype(d.name): d for d in dtypes.all if d is not dtypes.bfloat16}


def convert(array: np.ndarray, dtype: DType) -> np.ndarray:
    """The array's values as elements of `dtype`, with the same result as a cast on a device."""
    if dtype is dtypes.bfloat16:
        return bfloat16_bits(array.astype(np.float32))
    if array.dtype.kind == "f" and dtype.kind in "iu":
        return whole_numbers(array.astype(np.float64), dtype)
    with np.errstate(over="ignore"):
        return array.astype(numpy_dtype(dtype))


def whole_numbers(array: np.ndarray, dtype: DType) -> np.ndarray:
    """Doubles as integers, each as `float_to_int` in dtype.py has it."""
    via, whole = float_cast_via(dtype), np.trunc(array)
    fits = (whole >= float(via.min)) & (whole < float(via.max) + 1)
    return np.where(fits, whole, float(via.min)).astype(numpy_dtype(via)).astype(numpy_dtype(dtype))


def bfloat16_bits(array: np.ndarray) -> np.ndarray:
    """The bits of float32 values rounded to bfloat16, halves to even; nan stays nan."""
    bits = array.view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(array), bits >> 16 | 0x40, rounded).astype(np.uint16)


def stored(array: np.ndarray, dtype: DType, device: str) -> UOp:
    """A BUFFER that holds a copy of the array."""
    node = UOp.new_buffer(device, array.size, dtype)
    content = np.ascontiguousarray(array).data
    attach(node, Buffer(device, array.size, dtype).copyin(content))
    return node
