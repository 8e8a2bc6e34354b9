"""Operators that only move elements: another shape, another order, a part, a repetition."""

import math
from collections.abc import Iterable

import numpy as np

from tensor_engine.dtype import dtypes
from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.nn.onnx.value import Value
from tensor_engine.tensor import Tensor


@operator("Reshape")
def reshape(x: Tensor, shape: np.ndarray, *, allowzero: int = 0) -> Tensor:
    """A 0 in the shape keeps that dimension, unless `allowzero`; a -1 is what is left."""
    sizes = shape.tolist()
    if not allowzero:
        sizes = [x.shape[i] if size == 0 else size for i, size in enumerate(sizes)]
    if -1 in sizes and 0 not in sizes:
        rest = math.prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = math.prod(x.shape) // rest
    return x.reshape(*sizes)


@operator("Flatten")
def flatten(x: Tensor, *, axis: int = 1) -> Tensor:
    """To a matrix: the dimensions before the axis in the rows, the others in the columns."""
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@operator("Transpose")
def transpose(x: Tensor, *, perm: list[int] | None = None) -> Tensor:
    return x.permute(*(reversed(range(x.ndim)) if perm is None else perm))


@operator("Squeeze")
def squeeze_by_attribute(x: Tensor, *, axes: list[int] | None = None) -> Tensor:
    if axes is None:
        axes = [axis for axis, size in enumerate(x.shape) if size == 1]
    gone = [axis % x.ndim for axis in axes]
    for axis in gone:
        if x.shape[axis] != 1:
            raise OnnxError(
                f"the dimension {axis} of shape {x.shape} is not 1, so it cannot be squeezed"
            )
    return x.reshape(*(size for i, size in enumerate(x.shape) if i not in gone))


@operator("Squeeze", since=13)
def squeeze(x: Tensor, axes: np.ndarray | None = None) -> Tensor:
    return squeeze_by_attribute(x, axes=None if axes is None else axes.tolist())


@operator("Unsqueeze")
def unsqueeze_by_attribute(x: Tensor, *, axes: list[int]) -> Tensor:
    ndim = x.ndim + len(axes)
    new = {axis % ndim for axis in axes}
    sizes = iter(x.shape)
    return x.reshape(*(1 if i in new else next(sizes) for i in range(ndim)))


@operator("Unsqueeze", since=13)
def unsqueeze(x: Tensor, axes: np.ndarray) -> Tensor:
    return unsqueeze_by_attribute(x, axes=axes.reshape(-1).tolist())


@operator("Concat")
def concat(*parts: Tensor, axis: int) -> Tensor:
    return parts[0].cat(*parts[1:], dim=axis) if len(parts) > 1 else parts[0]


@operator("Split")
def split_by_attribute(
    x: Tensor, *, axis: int = 0, split: list[int] | None = None, output_count: int
) -> tuple[Tensor, ...]:
    sizes = _even_sizes(x.shape[axis], output_count) if split is None else split
    return tuple(x.split(sizes, dim=axis))


@operator("Split", since=13)
def split(
    x: Tensor,
    sizes: np.ndarray | None = None,
    *,
    axis: int = 0,
    num_outputs: int = 0,
    output_count: int,
) -> tuple[Tensor, ...]:
    even = _even_sizes(x.shape[axis], num_outputs or output_count)
    return tuple(x.split(even if sizes is None else sizes.tolist(), dim=axis))


def _even_sizes(total: int, count: int) -> list[int]:
    """Equal parts; the last one takes what is left."""
    size = -(-total // count)
    return [min(size, total - i * size) for i in range(count)]


@operator("Slice")
def slice_by_attribute(
    x: Tensor, *, starts: list[int], ends: list[int], axes: list[int] | None = None
) -> Tensor:
    axes = list(range(len(starts))) if axes is None else axes
    return _slice(x, zip(axes, starts, ends, [1] * len(starts)))


@operator("Slice", since=10)
def slice_(
    x: Tensor,
    starts: np.ndarray,
    ends: np.ndarray,
    axes: np.ndarray | None = None,
    steps: np.ndarray | None = None,
) -> Tensor:
    axes = np.arange(len(starts)) if axes is None else axes
    steps = np.ones_like(starts) if steps is None else steps
    return _slice(x, zip(axes.tolist(), starts.tolist(), ends.tolist(), steps.tolist()))


def _slice(x: Tensor, cuts: Iterable[tuple[int, int, int, int]]) -> Tensor:
    """Each cut is (axis, start, end, step). Bounds beyond the ends mean the ends, as in Python."""
    index = [slice(None)] * x.ndim
    for axis, start, end, step in cuts:
        start, end, step = slice(start, end, step).indices(x.shape[axis])
        is_empty = len(range(start, end, step)) == 0
        index[axis] = slice(0, 0) if is_empty else slice(start, None if end < 0 else end, step)
    return x[tuple(index)]


@operator("Expand")
def expand(x: Tensor, shape: np.ndarray) -> Tensor:
    """Broadcast in both directions: a size of 1 on either side gives way."""
    return _broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape.tolist())))


def _broadcast_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return x.reshape(*[1] * (len(shape) - x.ndim), *x.shape).expand(*shape)


@operator("Tile")
def tile(x: Tensor, repeats: np.ndarray) -> Tensor:
    return x.repeat(*repeats.tolist())


PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


@operator("Pad")
def pad_by_attribute(
    x: Tensor, *, pads: list[int], mode: str = "constant", value: float = 0.0
) -> Tensor:
    amounts = list(zip(pads[: x.ndim], pads[x.ndim :]))
    return x.pad(amounts, mode=PAD_MODES[mode], value=value)


@operator("Pad", since=11)
def pad(
    x: Tensor,
    pads: np.ndarray,
    value: Value = None,
    axes: np.ndarray | None = None,
    *,
    mode: str = "constant",
) -> Tensor:
    """`pads` lists what to add before each of the axes, then after each; a negative number takes away."""
    amounts = np.zeros((2, x.ndim), dtype=np.int64)
    amounts[:, slice(None) if axes is None else axes] = pads.reshape(2, -1)
    if not isinstance(value, Tensor):
        number = 0 if value is None else value.item()
        return pad_by_attribute(x, pads=amounts.reshape(-1).tolist(), mode=mode, value=number)
    padded = pad_by_attribute(x, pads=amounts.reshape(-1).tolist())
    everything = Tensor.ones(*x.shape, dtype=dtypes.bool, device=x.device)
    is_inside = everything.pad(list(zip(*amounts.tolist())))
    return is_inside.where(padded, value)


@operator("DepthToSpace")
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """Channels become blocks of pixels; `mode` says whether the block's place comes before (DCR) the channel."""
    batch, channels, height, width = x.shape
    b, rest = blocksize, channels // blocksize**2
    if mode == "DCR":
        blocks = x.reshape(batch, b, b, rest, height, width).permute(0, 3, 4, 1, 5, 2)
    else:
        blocks = x.reshape(batch, rest, b, b, height, width).permute(0, 1, 4, 2, 5, 3)
    return blocks.reshape(batch, rest, height * b, width * b)


@operator("SpaceToDepth")
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """Blocks of pixels become channels; `mode` as for DepthToSpace."""
    batch, channels, height, width = x.shape
    b = blocksize
    blocks = x.reshape(batch, channels, height // b, b, width // b, b)
    blocks = blocks.permute(0, 3, 5, 1, 2, 4) if mode == "DCR" else blocks.permute(0, 1, 3, 5, 2, 4)
    return blocks.reshape(batch, channels * b * b, height // b, width // b)


@operator("CenterCropPad")
def center_crop_pad(x: Tensor, shape: np.ndarray, *, axes: list[int] | None = None) -> Tensor:
    """Cut, or padded with zeros, on both sides to the shape; the odd element goes to the end."""
    pads = np.zeros((2, x.ndim), dtype=np.int64)
    for axis, size in zip(range(x.ndim) if axes is None else axes, shape.tolist()):
        spare = x.shape[axis] - size
        before = spare // 2 if spare > 0 else -(-spare // 2)
        pads[:, axis] = -before, before - spare
    return pad_by_attribute(x, pads=pads.reshape(-1).tolist())


@operator("Trilu")
def trilu(x: Tensor, k: np.ndarray | None = None, *, upper: int = 1) -> Tensor:
    """The upper or lower triangle of the last two dimensions, from the diagonal `k`; zeros elsewhere."""
    diagonal = 0 if k is None else int(k.item())
    return x.triu(diagonal) if upper else x.tril(diagonal)


@operator("ReverseSequence")
def reverse_sequence(
    x: Tensor, lengths: Tensor, *, batch_axis: int = 1, time_axis: int = 0
) -> Tensor:
    """The first `lengths[b]` steps of each batch entry in reverse."""
    steps = _along(Tensor.arange(x.shape[time_axis], device=x.device), time_axis, x.ndim)
    ends = _along(lengths, batch_axis, x.ndim).cast(steps.dtype)
    positions = (steps < ends).where(ends - 1 - steps, steps)
    return x.gather(time_axis, positions.expand(*x.shape))


def _along(vector: Tensor, axis: int, ndim: int) -> Tensor:
    return vector.reshape(*(-1 if i == axis else 1 for i in range(ndim)))
