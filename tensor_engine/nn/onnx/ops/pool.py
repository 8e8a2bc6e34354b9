"""Pooling: a reduction over each place of a sliding window."""

import math
from functools import reduce
from itertools import product
from operator import add

import numpy as np

from tensor_engine.dtype import dtypes
from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.nn.onnx.ops.window import Window, flat, paired
from tensor_engine.nn.onnx.value import to_tensor
from tensor_engine.tensor import Tensor


@operator("MaxPool")
def max_pool(
    x: Tensor,
    *,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    storage_order: int = 0,
    strides: list[int] | None = None,
    output_count: int,
) -> tuple[Tensor, ...]:
    """The largest element of each window and, if asked for, its position in the flattened input."""
    window = Window(x.shape[2:], kernel_shape, strides, dilations, auto_pad, pads)
    how = (window.kernel, window.strides, window.dilations, flat(window.pads), bool(ceil_mode))
    if output_count == 1:
        return (x.max_pool2d(*how),)
    largest, places = x.max_pool2d(*how, return_indices=True)
    if storage_order:
        columns_first = np.arange(math.prod(x.shape[2:])).reshape(x.shape[2:][::-1]).T
        places = to_tensor(columns_first.ravel(), x.device).take(places)
    planes = Tensor.arange(math.prod(x.shape[:2]), dtype=dtypes.int64, device=x.device)
    first = planes.reshape(*x.shape[:2], *[1] * len(window.kernel)) * math.prod(x.shape[2:])
    return largest, places + first


@operator("AveragePool")
def average_pool(
    x: Tensor,
    *,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    """The mean over each window, over the elements of the input only unless `count_include_pad`."""
    window = Window(x.shape[2:], kernel_shape, strides, dilations, auto_pad, pads)
    return x.avg_pool2d(
        window.kernel,
        window.strides,
        window.dilations,
        flat(window.pads),
        bool(ceil_mode),
        bool(count_include_pad),
    )


@operator("LpPool")
def lp_pool(
    x: Tensor,
    *,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: list[int] | None = None,
    p: int = 2,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    """The p-norm of each window."""
    means = average_pool(
        x.abs().pow(p),
        kernel_shape=kernel_shape,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        count_include_pad=1,
        dilations=dilations,
        pads=pads,
        strides=strides,
    )
    return (means * math.prod(kernel_shape)).pow(1 / p)


@operator("GlobalAveragePool")
def global_average_pool(x: Tensor) -> Tensor:
    return x.mean(tuple(range(2, x.ndim)), keepdim=True)


@operator("GlobalMaxPool")
def global_max_pool(x: Tensor) -> Tensor:
    return x.max(tuple(range(2, x.ndim)), keepdim=True)


@operator("GlobalLpPool")
def global_lp_pool(x: Tensor, *, p: int = 2) -> Tensor:
    return x.abs().pow(p).sum(tuple(range(2, x.ndim)), keepdim=True).pow(1 / p)


@operator("MaxUnpool")
def max_unpool(
    x: Tensor,
    indices: Tensor,
    output_shape: np.ndarray | None = None,
    *,
    kernel_shape: list[int],
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    """Each element back at the position where MaxPool found it, zeros elsewhere."""
    strides = strides or [1] * len(kernel_shape)
    cut = [before + after for before, after in paired(pads, len(kernel_shape))]
    pooled_from = [
        (n - 1) * s - c + k for n, s, c, k in zip(x.shape[2:], strides, cut, kernel_shape)
    ]
    shape = (*x.shape[:2], *pooled_from)
    zeros = Tensor.zeros(math.prod(shape), dtype=x.dtype, device=x.device)
    filled = zeros.scatter(0, indices.reshape(-1), x.reshape(-1)).reshape(shape)
    wanted = shape if output_shape is None else output_shape.tolist()
    return filled.pad([(0, w - n) for w, n in zip(wanted, shape)])


@operator("Col2Im")
def col2im(
    x: Tensor,
    image_shape: np.ndarray,
    block_shape: np.ndarray,
    *,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    """Windows [batch, channels * elements, places], put back into an image and added where they overlap."""
    image, block = image_shape.tolist(), block_shape.tolist()
    window = Window(tuple(image), block, strides, dilations, "NOTSET", pads)
    padded = [n + before + after for n, (before, after) in zip(image, window.pads)]
    places = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, d, s in zip(padded, block, window.dilations, window.strides)
    ]
    parts = x.reshape(x.shape[0], -1, math.prod(block), *places)
    offsets = product(*(range(0, k * d, d) for k, d in zip(block, window.dilations)))
    placed = [
        _placed(parts[:, :, i].spread(window.strides), offset, padded)
        for i, offset in enumerate(offsets)
    ]
    return reduce(add, placed).pad(
        [(0, 0), (0, 0), *((-before, -after) for before, after in window.pads)]
    )


def _placed(part: Tensor, offset: tuple[int, ...], sizes: list[int]) -> Tensor:
    """The part at an offset in zeros of the given sizes."""
    room = [(start, size - start - n) for start, size, n in zip(offset, sizes, part.shape[2:])]
    return part.pad([(0, 0), (0, 0), *room])
