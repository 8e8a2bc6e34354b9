"""Sequences (Python lists) and optional values (perhaps None): handled while the graph is built."""

import numpy as np

from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.nn.onnx.value import Value, to_tensor
from tensor_engine.tensor import Tensor


@operator("SequenceConstruct")
def sequence_construct(*items: Value) -> list[Value]:
    return list(items)


@operator("SequenceEmpty")
def sequence_empty(*, dtype: int = 1) -> list[Value]:
    return []


@operator("SequenceInsert")
def sequence_insert(
    sequence: Value, item: Value, position: np.ndarray | None = None
) -> list[Value]:
    result = list(sequence)
    result.insert(len(result) if position is None else int(position.item()), item)
    return result


@operator("SequenceErase")
def sequence_erase(sequence: Value, position: np.ndarray | None = None) -> list[Value]:
    result = list(sequence)
    result.pop(-1 if position is None else int(position.item()))
    return result


@operator("SequenceAt")
def sequence_at(sequence: Value, position: np.ndarray) -> Value:
    return sequence[int(position.item())]


@operator("SequenceLength")
def sequence_length(sequence: Value) -> np.ndarray:
    return np.array(len(sequence), dtype=np.int64)


@operator("ConcatFromSequence")
def concat_from_sequence(sequence: Value, *, axis: int, new_axis: int = 0) -> Tensor:
    items = [to_tensor(item) for item in sequence]
    return items[0].stack(*items[1:], dim=axis) if new_axis else items[0].cat(*items[1:], dim=axis)


@operator("SplitToSequence")
def split_to_sequence(
    x: Tensor, split: np.ndarray | None = None, *, axis: int = 0, keepdims: int = 1
) -> list[Tensor]:
    """Parts of the given sizes, or of one size with a smaller last one; single slices without a `split`."""
    total = x.shape[axis]
    if split is None:
        slices = x.split([1] * total, dim=axis)
        return [part if keepdims else part.squeeze(axis) for part in slices]
    if split.ndim:
        return list(x.split(split.tolist(), dim=axis))
    size = int(split.item())
    return list(x.split([min(size, total - start) for start in range(0, total, size)], dim=axis))


@operator("Optional")
def optional(value: Value = None, *, type: object = None) -> Value:
    return value


@operator("OptionalGetElement")
def optional_get_element(value: Value) -> Value:
    return value


@operator("OptionalHasElement")
def optional_has_element(value: Value = None) -> np.ndarray:
    return np.array(value is not None)
