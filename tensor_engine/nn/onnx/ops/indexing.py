"""Reading and writing at computed positions."""

import math

import numpy as np

from tensor_engine.dtype import dtypes
from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.nn.onnx.value import Value, is_host, to_tensor
from tensor_engine.tensor import Tensor

MOST_RUNS = 8  # with more, one lookup in a table of positions is cheaper than joining the parts


@operator("Gather")
def gather(x: Tensor, indices: Value, *, axis: int = 0) -> Tensor:
    """The slices of `x` at the indices; a negative index counts from the end."""
    axis %= x.ndim
    if is_host(indices):
        taken = take(x, indices.reshape(-1) % x.shape[axis], axis)
        return taken.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    return x.take(indices, axis)


def take(x: Tensor, positions: np.ndarray, axis: int) -> Tensor:
    """The slices of `x` at known positions along an axis, without a lookup where a few movements do the same."""
    size = x.shape[axis]
    if rows := _transposed_rows(positions, size):
        grid = x.reshape(*x.shape[:axis], rows, size // rows, *x.shape[axis + 1 :])
        return grid.transpose(axis, axis + 1).reshape(*x.shape)
    runs = _arithmetic_runs(positions)
    if len(runs) > MOST_RUNS:
        return x.take(to_tensor(positions, x.device), axis)
    parts = [_take_run(x, axis, *run) for run in runs]
    return parts[0].cat(*parts[1:], dim=axis) if len(parts) > 1 else parts[0]


def _arithmetic_runs(positions: np.ndarray) -> list[tuple[int, int, int]]:
    """The positions as runs (start, step, count), from a walk that gives up when there are too many."""
    runs: list[tuple[int, int, int]] = []
    for position in positions.tolist():
        if len(runs) > MOST_RUNS:
            break
        if runs:
            start, step, count = runs[-1]
            if count == 1 or position == start + step * count:
                runs[-1] = (start, position - start if count == 1 else step, count + 1)
                continue
        runs.append((position, 1, 1))
    return runs


def _take_run(x: Tensor, axis: int, start: int, step: int, count: int) -> Tensor:
    before = (slice(None),) * axis
    if step == 0:
        single = x[before + (slice(start, start + 1),)]
        return single.expand(*x.shape[:axis], count, *x.shape[axis + 1 :])
    stop = start + step * count
    return x[before + (slice(start, None if stop < 0 else stop, step),)]


def _transposed_rows(positions: np.ndarray, size: int) -> int:
    """Into how many rows the axis is to be cut so that its transposition gives the positions; 0 if it does not.

    A channel shuffle is such a transposition (Zhang et al., "ShuffleNet", 2017).
    """
    if len(positions) != size or size < 4 or positions[1] < 2 or size % positions[1]:
        return 0
    rows = size // int(positions[1])
    return rows if np.array_equal(positions, np.arange(size).reshape(rows, -1).T.reshape(-1)) else 0


@operator("GatherElements")
def gather_elements(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """For each index, the element of `x` at the same place but for the axis."""
    return x.gather(axis, indices)


@operator("GatherND")
def gather_nd(x: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    """The last dimension of the indices holds positions in the dimensions of `x` after the batch."""
    batch, depth = x.shape[:batch_dims], indices.shape[-1]
    rest = x.shape[batch_dims + depth :]
    flat = _flat_positions(indices, x.shape[batch_dims : batch_dims + depth])
    table = x.reshape(math.prod(batch) or 1, -1, math.prod(rest))
    flat = flat.reshape(table.shape[0], -1)
    rows = Tensor.arange(table.shape[0], device=x.device).reshape(-1, 1)
    return table[rows, flat].reshape(*batch, *indices.shape[batch_dims:-1], *rest)


SCATTER_REDUCTIONS = {"none": None, "add": "add", "mul": "multiply", "max": "max", "min": "min"}


@operator("Scatter", "ScatterElements")
def scatter_elements(
    x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none"
) -> Tensor:
    """`x` with the updates written at the indices along the axis, or combined with what is there."""
    return x.scatter(axis, indices, updates, SCATTER_REDUCTIONS[reduction])


@operator("ScatterND")
def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    """`x` with whole slices replaced by, or combined with, the updates."""
    depth = indices.shape[-1]
    rows = updates.reshape(-1, math.prod(x.shape[depth:]))
    positions = _flat_positions(indices, x.shape[:depth]).reshape(-1, 1).expand(*rows.shape)
    target = x.reshape(-1, rows.shape[1])
    return target.scatter(0, positions, rows, SCATTER_REDUCTIONS[reduction]).reshape(x.shape)


def _from_start(indices: Tensor, size: int) -> Tensor:
    """Negative indices, which count from the end, as those from the start."""
    return (indices < 0).where(indices + size, indices)


def _flat_positions(indices: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Positions in a flattened array of that shape, from one index for each dimension in the last axis."""
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    terms = [
        _from_start(indices[..., i], size) * stride
        for i, (size, stride) in enumerate(zip(shape, strides))
    ]
    return sum(terms[1:], terms[0])


@operator("OneHot")
def one_hot(indices: Tensor, depth: np.ndarray, values: Tensor, *, axis: int = -1) -> Tensor:
    """`values` holds [off, on]; an index outside the depth lights nothing."""
    size = int(depth.item())
    axis = axis % (indices.ndim + 1)
    places = Tensor.arange(size, device=indices.device).reshape(-1, *[1] * (indices.ndim - axis))
    return (_from_start(indices, size).unsqueeze(axis) == places).where(values[1], values[0])


@operator("TensorScatter")
def tensor_scatter(
    cache: Tensor,
    update: Tensor,
    start: Tensor | None = None,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> Tensor:
    """The cache with the update written along the axis, from a place of its own for each batch entry.

    `circular` goes on at the front behind the end.
    """
    axis %= cache.ndim
    size, count = cache.shape[axis], update.shape[axis]
    steps = Tensor.arange(count, dtype=dtypes.int64, device=cache.device)
    steps = steps.reshape(-1, *[1] * (cache.ndim - axis - 1))
    places = steps if start is None else steps + start.reshape(-1, *[1] * (cache.ndim - 1))
    if mode == "circular":
        places = places % size
    return cache.scatter(axis, places.expand(*update.shape), update)
