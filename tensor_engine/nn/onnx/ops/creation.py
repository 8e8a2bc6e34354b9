"""Tensors from shapes, ranges and random numbers; and the shape of a Tensor, which is known on the host."""

import math

import numpy as np

from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.nn.onnx.value import Value, dtype_of
from tensor_engine.tensor import Tensor

FLOAT = 1  # TensorProto.FLOAT


@operator("Shape")
def shape(x: Value, *, start: int = 0, end: int | None = None) -> np.ndarray:
    return np.array(x.shape[start:end], dtype=np.int64)


@operator("Size")
def size(x: Value) -> np.ndarray:
    return np.array(math.prod(x.shape), dtype=np.int64)


@operator("ConstantOfShape")
def constant_of_shape(shape: np.ndarray, *, value: np.ndarray | None = None) -> np.ndarray:
    number = np.zeros(1, np.float32) if value is None else value
    return np.full(tuple(shape.tolist()), number.item(), number.dtype)


@operator("Range")
def range_(start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> np.ndarray:
    return np.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)


@operator("EyeLike")
def eye_like(x: Tensor, *, dtype: int | None = None, k: int = 0) -> Tensor:
    """Ones on the diagonal `k` of a matrix as large as `x`."""
    rows, columns = (Tensor.arange(n, device=x.device) for n in x.shape)
    return (columns == rows.reshape(-1, 1) + k).cast(x.dtype if dtype is None else dtype_of(dtype))


def _seeded(seed: float | None) -> None:
    if seed is not None:
        Tensor.manual_seed(int(seed))


@operator("RandomNormal")
def random_normal(
    *,
    shape: list[int],
    dtype: int = FLOAT,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Tensor:
    _seeded(seed)
    return (Tensor.randn(*shape) * scale + mean).cast(dtype_of(dtype))


@operator("RandomUniform")
def random_uniform(
    *,
    shape: list[int],
    dtype: int = FLOAT,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Tensor:
    _seeded(seed)
    return (Tensor.rand(*shape) * (high - low) + low).cast(dtype_of(dtype))


@operator("RandomNormalLike")
def random_normal_like(
    x: Tensor,
    *,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Tensor:
    _seeded(seed)
    numbers = Tensor.randn(*x.shape) * scale + mean
    return numbers.cast(x.dtype if dtype is None else dtype_of(dtype))


@operator("RandomUniformLike")
def random_uniform_like(
    x: Tensor,
    *,
    dtype: int | None = None,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Tensor:
    _seeded(seed)
    numbers = Tensor.rand(*x.shape) * (high - low) + low
    return numbers.cast(x.dtype if dtype is None else dtype_of(dtype))


@operator("Bernoulli")
def bernoulli(x: Tensor, *, dtype: int | None = None, seed: float | None = None) -> Tensor:
    """1 with the probability given by each element."""
    _seeded(seed)
    return (Tensor.rand(*x.shape) < x).cast(x.dtype if dtype is None else dtype_of(dtype))
