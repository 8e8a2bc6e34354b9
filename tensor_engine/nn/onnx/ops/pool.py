"""Pooling: a reduction over each place of a sliding window."""

import math
from itertools import product

import numpy as np

from tensor_engine.dtype import dtypes
from tensor_engine.nn.onnx.ops.conv import Pads, window_pads
from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.nn.onnx.value import to_tensor
from tensor_engine.tensor import Tensor


class Window:
    """The places of a sliding window over the spatial dimensions of an input [batch, channels, ...]."""

    def __init__(
        self,
        x: Tensor,
        kernel_shape: list[int],
        strides: list[int] | None,
        dilations: list[int] | None,
        auto_pad: str,
        pads: list[int] | None,
        ceil_mode: int,
    ) -> None:
        self.kernel = tuple(kernel_shape)
        self.strides = tuple(strides or [1] * len(kernel_shape))
        self.dilations = tuple(dilations or [1] * len(kernel_shape))
        sizes = tuple(x.shape[2:])
        self.pads: Pads = window_pads(sizes, self.kernel, self.strides, self.dilations, auto_pad, pads)
        ceil_mode = ceil_mode and auto_pad == "NOTSET"
        self.reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations)]
        dimensions = zip(sizes, self.pads, self.strides, self.reach)
        self.beyond = [self._beyond(*dimension) if ceil_mode else 0 for dimension in dimensions]

    @staticmethod
    def _beyond(size: int, pads: tuple[int, int], stride: int, reach: int) -> int:
        """How far the last window reaches over the padded end, if the number of windows is rounded up.

        A window that would begin after the input and the padding before it doesn't exist.
        """
        room = size + sum(pads) - reach
        count = -(-room // stride)
        if count * stride >= size + pads[0]:
            count -= 1
        return max(count * stride - room, 0)

    def pad(self, x: Tensor, value: float) -> Tensor:
        """The input with the padding, and with what the windows reach beyond it."""
        return x.pad([(0, 0), (0, 0), *((b, a + more) for (b, a), more in zip(self.pads, self.beyond))], value=value)

    def max(self, x: Tensor) -> Tensor:
        padded = self.pad(x, x.dtype.min)
        return padded.max_pool2d(self.kernel, stride=self.strides, dilation=self.dilations)

    def mean(self, padded: Tensor) -> Tensor:
        return padded.avg_pool2d(self.kernel, stride=self.strides, dilation=self.dilations)

    def elements(self, padded: Tensor) -> Tensor:
        """[batch, channels, places..., elements of the window]: one slice for each offset in the window."""
        counts = [(n - r) // s + 1 for n, r, s in zip(padded.shape[2:], self.reach, self.strides)]
        slices = []
        for offset in product(*(range(k) for k in self.kernel)):
            starts = [o * d for o, d in zip(offset, self.dilations)]
            cut = [slice(b, b + (c - 1) * s + 1, s) for b, c, s in zip(starts, counts, self.strides)]
            slices.append(padded[(slice(None), slice(None), *cut)])
        return slices[0].stack(*slices[1:], dim=-1)


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
    window = Window(x, kernel_shape, strides, dilations, auto_pad, pads, ceil_mode)
    largest = window.max(x)
    if output_count == 1:
        return (largest,)
    elements = window.elements(window.pad(x, x.dtype.min))
    positions = window.elements(window.pad(_positions(x, storage_order), -1))
    is_largest = (elements == elements.max(-1, keepdim=True)) & (positions >= 0)
    return largest, is_largest.where(positions, math.prod(x.shape)).min(-1).cast(dtypes.int64)


def _positions(x: Tensor, storage_order: int) -> Tensor:
    """Each element's position in memory: rows first, or with `storage_order` 1 columns first in space."""
    space = np.arange(math.prod(x.shape[2:]))
    space = space.reshape(x.shape[2:][::-1]).T if storage_order else space.reshape(x.shape[2:])
    planes = np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * space.ndim) * space.size
    return to_tensor((planes + space).astype(np.int64), x.device)


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
    """The mean over each window, over the elements of the input only unless `count_include_pad`.

    What a window reaches beyond the padding never counts.
    """
    window = Window(x, kernel_shape, strides, dilations, auto_pad, pads, ceil_mode)
    mean = window.mean(window.pad(x, 0))
    is_all_counted = not any(window.beyond) and (count_include_pad or not any(map(any, window.pads)))
    if is_all_counted:
        return mean
    counted = Tensor.ones(1, 1, *x.shape[2:], dtype=x.dtype, device=x.device)
    if count_include_pad:
        counted = counted.pad([(0, 0), (0, 0), *window.pads], value=1)
        counted = counted.pad([(0, 0), (0, 0), *((0, more) for more in window.beyond)])
    else:
        counted = window.pad(counted, 0)
    return mean / window.mean(counted)


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
    window = Window(x, kernel_shape, strides, dilations, auto_pad, pads, ceil_mode)
    powers = x.abs().pow(p)
    return (window.mean(window.pad(powers, 0)) * math.prod(kernel_shape)).pow(1 / p)


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
    total = [b + a for b, a in window_pads(x.shape[2:], kernel_shape, strides, strides, "NOTSET", pads)]
    inferred = [(n - 1) * s - t + k for n, s, t, k in zip(x.shape[2:], strides, total, kernel_shape)]
    made_for = (*x.shape[:2], *inferred)
    shape = made_for if output_shape is None else tuple(output_shape.tolist())
    hits = indices.reshape(1, -1) == Tensor.arange(math.prod(made_for), device=x.device).reshape(-1, 1)
    filled = hits.where(x.reshape(1, -1), 0).sum(1).reshape(made_for)
    return filled.pad([(0, s - m) for s, m in zip(shape, made_for)])
