"""Reductions along axes, and running ones."""

from collections.abc import Callable

import numpy as np

from tensor_engine.dtype import dtypes
from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.tensor import Tensor

Axes = tuple[int, ...] | None


def _extreme(x: Tensor, axes: Axes, keepdim: bool, largest: bool) -> Tensor:
    """The largest or smallest element; of none, what every other one beats."""
    reduced = range(x.ndim) if axes is None else [axis % x.ndim for axis in axes]
    if all(x.shape[axis] for axis in reduced):
        return x.max(axes, keepdim=keepdim) if largest else x.min(axes, keepdim=keepdim)
    kept = [1 if axis in reduced else size for axis, size in enumerate(x.shape)]
    shape = kept if keepdim else [size for axis, size in enumerate(kept) if axis not in reduced]
    beaten = x.dtype.min if largest else x.dtype.max
    return Tensor.full(tuple(shape), beaten, dtype=x.dtype, device=x.device)


def _log_sum_exp(x: Tensor, axes: Axes, keepdim: bool) -> Tensor:
    if 0 in x.shape:
        return x.sum(axes, keepdim=keepdim).log()
    return x.logsumexp(axes, keepdim=keepdim)


REDUCTIONS: dict[str, Callable[[Tensor, Axes, bool], Tensor]] = {
    "ReduceSum": lambda x, axes, keep: x.sum(axes, keepdim=keep),
    "ReduceMean": lambda x, axes, keep: x.mean(axes, keepdim=keep),
    "ReduceMax": lambda x, axes, keep: _extreme(x, axes, keep, largest=True),
    "ReduceMin": lambda x, axes, keep: _extreme(x, axes, keep, largest=False),
    "ReduceProd": lambda x, axes, keep: x.prod(axes, keepdim=keep),
    "ReduceL1": lambda x, axes, keep: x.abs().sum(axes, keepdim=keep),
    "ReduceL2": lambda x, axes, keep: (x * x).sum(axes, keepdim=keep).sqrt(),
    "ReduceSumSquare": lambda x, axes, keep: (x * x).sum(axes, keepdim=keep),
    "ReduceLogSum": lambda x, axes, keep: x.sum(axes, keepdim=keep).log(),
    "ReduceLogSumExp": _log_sum_exp,
}
AXES_ARE_INPUT_SINCE = {"ReduceSum": 13}  # 18 for the others


def _enter(name: str, reduction: Callable[[Tensor, Axes, bool], Tensor]) -> None:
    @operator(name)
    def reduce_by_attribute(
        x: Tensor, *, axes: list[int] | None = None, keepdims: int = 1
    ) -> Tensor:
        return reduction(x, tuple(axes) if axes else None, bool(keepdims)).cast(x.dtype)

    @operator(name, since=AXES_ARE_INPUT_SINCE.get(name, 18))
    def reduce_by_input(
        x: Tensor,
        axes: np.ndarray | None = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Tensor:
        if axes is not None and axes.size:
            return reduction(x, tuple(axes.tolist()), bool(keepdims)).cast(x.dtype)
        if noop_with_empty_axes:  # each element by itself
            return reduction(x.unsqueeze(0), (0,), False).cast(x.dtype)
        return reduction(x, None, bool(keepdims)).cast(x.dtype)


for _name, _reduction in REDUCTIONS.items():
    _enter(_name, _reduction)


@operator("ArgMax")
def argmax(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    """The first, or the last, position of the largest value."""
    if not select_last_index:
        return x.argmax(axis, keepdim=bool(keepdims)).cast(dtypes.int64)
    from_end = x.flip(axis).argmax(axis, keepdim=bool(keepdims))
    return (x.shape[axis] - 1 - from_end).cast(dtypes.int64)


@operator("ArgMin")
def argmin(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    if not select_last_index:
        return x.argmin(axis, keepdim=bool(keepdims)).cast(dtypes.int64)
    from_end = x.flip(axis).argmin(axis, keepdim=bool(keepdims))
    return (x.shape[axis] - 1 - from_end).cast(dtypes.int64)


@operator("CumSum")
def cumsum(x: Tensor, axis: np.ndarray, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _running(x, int(axis), exclusive, reverse, start=0, run=lambda v, dim: v.cumsum(dim))


@operator("CumProd")
def cumprod(x: Tensor, axis: np.ndarray, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _running(x, int(axis), exclusive, reverse, start=1, run=lambda v, dim: v.cumprod(dim))


def _running(
    x: Tensor, axis: int, exclusive: int, reverse: int, start: int, run: Callable
) -> Tensor:
    """`exclusive` leaves the element itself out, `reverse` runs from the end."""
    x = x.flip(axis) if reverse else x
    if exclusive:
        axis %= x.ndim
        x = x.shrink(tuple((0, s - (i == axis)) for i, s in enumerate(x.shape)))
        x = x.pad(tuple((int(i == axis), 0) for i in range(x.ndim)), value=start)
    result = run(x, axis).cast(x.dtype)
    return result.flip(axis) if reverse else result


@operator("TopK")
def topk_of_attribute(x: Tensor, *, k: int, axis: int = -1) -> tuple[Tensor, Tensor]:
    return _topk(x, k, axis, largest=True)


@operator("TopK", since=10)
def topk(
    x: Tensor, k: np.ndarray, *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[Tensor, Tensor]:
    """The k largest or smallest values along the axis, in order, and their positions."""
    return _topk(x, int(k.item()), axis, bool(largest))


def _topk(x: Tensor, k: int, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    values, positions = x.topk(k, dim=axis, largest=largest)
    return values, positions.cast(dtypes.int64)
