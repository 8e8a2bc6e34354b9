"""Resizing. Along one axis it is a matrix product with a sparse matrix that is known in advance."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tensor_engine.dtype import dtypes
from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.nn.onnx.ops.indexing import take
from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.nn.onnx.value import numpy_dtype_of, to_tensor
from tensor_engine.tensor import Tensor

MOST_TAPS = 4  # with more elements behind each output, a dense product is quicker


@dataclass(frozen=True)
class Axis:
    """What happens along one axis: `size` elements become `new_size`, at `scale` new ones for each old one."""

    size: int
    new_size: int
    scale: float
    roi: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Method:
    """How the elements between those of the input are found."""

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic_coeff: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False


def _half_pixel(i: np.ndarray, a: Axis) -> np.ndarray:
    return (i + 0.5) / a.scale - 0.5


def _half_pixel_symmetric(i: np.ndarray, a: Axis) -> np.ndarray:
    adjustment = a.new_size / (a.scale * a.size)
    return a.size / 2 * (1 - adjustment) + _half_pixel(i, a)


def _align_corners(i: np.ndarray, a: Axis) -> np.ndarray:
    """The new size counts with its fraction, where a scale gives it one."""
    return i * (a.size - 1) / (a.size * a.scale - 1) if a.new_size > 1 else i * 0.0


def _crop_and_resize(i: np.ndarray, a: Axis) -> np.ndarray:
    start, end = a.roi
    if a.new_size == 1:
        return np.full_like(i, (start + end) / 2 * (a.size - 1))
    return (start + i * (end - start) / (a.new_size - 1)) * (a.size - 1)


COORDINATES: dict[str, Callable[[np.ndarray, Axis], np.ndarray]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": lambda i, a: _half_pixel(i, a) if a.new_size > 1 else i * 0.0,
    "align_corners": _align_corners,
    "asymmetric": lambda i, a: i / a.scale,
    "tf_crop_and_resize": _crop_and_resize,
}

NEAREST: dict[str, Callable[[np.ndarray, Axis], np.ndarray]] = {
    "round_prefer_floor": lambda x, a: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x, a: np.floor(x + 0.5),
    "floor": lambda x, a: np.floor(x),
    "ceil": lambda x, a: np.ceil(x),
    "before_opset_11": lambda x, a: np.ceil(x) if a.scale < 1 else np.floor(x),
}


def _triangle(distance: np.ndarray, method: Method) -> np.ndarray:
    return np.clip(1 - np.abs(distance), 0, None)


def _cubic(distance: np.ndarray, method: Method) -> np.ndarray:
    """Keys, "Cubic convolution interpolation for digital image processing", 1981."""
    d, a = np.abs(distance), method.cubic_coeff
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


# the weight at a distance, and the largest distance
KERNELS = {"linear": (_triangle, 1), "cubic": (_cubic, 2)}


def resize_matrix(axis: Axis, method: Method) -> np.ndarray:
    """[new_size, size]: the weight of each old element in each new one."""
    x = COORDINATES[method.coordinates](np.arange(axis.new_size, dtype=np.float64), axis)
    if method.mode == "nearest":
        positions = NEAREST[method.nearest](x, axis).astype(int)[:, None]
        return _scattered(positions, np.ones(positions.shape), axis.size)
    kernel, reach = KERNELS[method.mode]
    shrinking = min(axis.scale, 1.0) if method.antialias else 1.0
    steps = np.arange(math.floor(-reach / shrinking) + 1, math.ceil(reach / shrinking) + 1)
    positions = np.floor(x).astype(int)[:, None] + steps
    weights = kernel((positions - x[:, None]) * shrinking, method)
    if method.exclude_outside:
        weights = weights * ((positions >= 0) & (positions < axis.size))
    if method.exclude_outside or method.antialias:
        weights = weights / weights.sum(1, keepdims=True)
    return _scattered(positions, weights, axis.size)


def _scattered(positions: np.ndarray, weights: np.ndarray, size: int) -> np.ndarray:
    """The dense matrix; positions outside mean the element at the edge."""
    matrix = np.zeros((len(positions), size))
    rows = np.broadcast_to(np.arange(len(positions))[:, None], positions.shape)
    np.add.at(matrix, (rows, positions.clip(0, size - 1)), weights)
    return matrix


def apply_along(x: Tensor, axis: int, matrix: np.ndarray) -> Tensor:
    """The matrix times `x` along an axis: as a few shifted copies where its rows are short."""
    taps = int((matrix != 0).sum(1).max())
    if taps > MOST_TAPS:
        dense = to_tensor(matrix.T.astype(numpy_dtype_of(x.dtype)), x.device)
        return (x.transpose(axis, -1) @ dense).transpose(axis, -1)
    positions = np.argsort(-np.abs(matrix), axis=1, kind="stable")[:, :taps]
    positions.sort(axis=1)
    weights = np.take_along_axis(matrix, positions, axis=1)
    if np.all(weights == 1):
        return take(x, positions[:, 0], axis)
    columns = weights.astype(numpy_dtype_of(x.dtype)).T
    columns = columns.reshape(taps, -1, *[1] * (x.ndim - 1 - axis))
    terms = [take(x, p, axis) * to_tensor(w, x.device) for p, w in zip(positions.T, columns)]
    return sum(terms[1:], terms[0])


def _resized(x: Tensor, axes: dict[int, Axis], method: Method) -> Tensor:
    """Floats are computed in the input's type, integers in float32 and then cut, as the reference does."""
    is_exact = dtypes.is_float(x.dtype) or method.mode == "nearest"
    y = x if is_exact else x.cast(dtypes.float32)
    for axis, change in axes.items():
        matrix = resize_matrix(change, method)
        if not np.array_equal(matrix, np.eye(change.size)):
            y = apply_along(y, axis, matrix)
    return y.cast(x.dtype)


def _scaled(x: Tensor, scales: list[float]) -> dict[int, Axis]:
    return {i: Axis(n, math.floor(n * s), s) for i, (n, s) in enumerate(zip(x.shape, scales))}


@operator("Upsample")
def upsample_by_attribute(x: Tensor, *, scales: list[float], mode: str = "nearest") -> Tensor:
    return _resized(x, _scaled(x, scales), Method(mode, "asymmetric", "floor"))


@operator("Upsample", since=9)
def upsample(x: Tensor, scales: np.ndarray, *, mode: str = "nearest") -> Tensor:
    return upsample_by_attribute(x, scales=scales.tolist(), mode=mode)


@operator("Resize", since=10)
def resize_by_scales(x: Tensor, scales: np.ndarray, *, mode: str = "nearest") -> Tensor:
    return _resized(x, _scaled(x, scales.tolist()), Method(mode, "asymmetric", "before_opset_11"))


@operator("Resize", since=11)
def resize(
    x: Tensor,
    roi: np.ndarray | None = None,
    scales: np.ndarray | None = None,
    sizes: np.ndarray | None = None,
    *,
    antialias: int = 0,
    axes: list[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Tensor:
    """The input at other sizes along the axes, given by `scales` or by `sizes`."""
    numbers = [a % x.ndim for a in axes] if axes else list(range(x.ndim))
    changes = _axis_changes([x.shape[a] for a in numbers], scales, sizes, keep_aspect_ratio_policy)
    is_crop = coordinate_transformation_mode == "tf_crop_and_resize"
    if is_crop and roi is not None:
        bounds = roi.reshape(2, -1).T.tolist()
        changes = [Axis(c.size, c.new_size, c.scale, (b, e)) for c, (b, e) in zip(changes, bounds)]
    method = Method(
        mode,
        coordinate_transformation_mode,
        nearest_mode,
        cubic_coeff_a,
        bool(exclude_outside),
        bool(antialias),
    )
    by_axis = dict(zip(numbers, changes))
    resized = _resized(x, by_axis, method)
    return _extrapolated(resized, by_axis, extrapolation_value) if is_crop else resized


def _axis_changes(
    old: list[int], scales: np.ndarray | None, sizes: np.ndarray | None, policy: str
) -> list[Axis]:
    if scales is not None and scales.size:
        return [Axis(n, math.floor(n * s), s) for n, s in zip(old, scales.tolist())]
    if sizes is None or not sizes.size:
        raise OnnxError("it has neither scales nor sizes")
    new = sizes.tolist()
    if policy == "stretch":
        return [Axis(n, m, m / n) for n, m in zip(old, new)]
    choose = min if policy == "not_larger" else max
    scale = choose(m / n for n, m in zip(old, new))
    return [Axis(n, math.floor(n * scale + 0.5), scale) for n in old]


def _extrapolated(x: Tensor, axes: dict[int, Axis], value: float) -> Tensor:
    """`value` where the region of interest reaches outside the input."""
    for number, axis in axes.items():
        places = _crop_and_resize(np.arange(axis.new_size, dtype=np.float64), axis)
        inside = (places >= 0) & (places <= axis.size - 1)
        if not inside.all():
            mask = to_tensor(inside.reshape(-1, *[1] * (x.ndim - 1 - number)), x.device)
            x = mask.where(x, value)
    return x
