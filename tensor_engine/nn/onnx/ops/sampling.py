"""Reading images at computed positions."""

import math
from collections.abc import Sequence
from functools import reduce
from itertools import product
from operator import add, mul

import numpy as np

from tensor_engine.dtype import dtypes
from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.nn.onnx.ops.window import Window
from tensor_engine.nn.onnx.value import numpy_dtype_of, to_tensor
from tensor_engine.tensor import Tensor

# positions along one dimension, and the weights of what is there
Taps = list[tuple[Tensor, Tensor]]


def lookup(x: Tensor, positions: Tensor) -> Tensor:
    """[batch, channels, elements] at [batch, places] → [batch, channels, places]."""
    batch, channels, _ = x.shape
    return x.gather(2, positions.unsqueeze(1).expand(batch, channels, positions.shape[1]))


@operator("GridSample")
def grid_sample(
    x: Tensor,
    grid: Tensor,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Tensor:
    """Jaderberg et al., "Spatial Transformer Networks", 2015. The grid's last axis holds x, y(, z) from -1 to 1."""
    batch, channels, *sizes = x.shape
    places = grid.shape[1:-1]
    flat = grid.reshape(batch, -1, len(sizes))
    coordinates = [_pixels(flat[..., -1 - i], n, align_corners) for i, n in enumerate(sizes)]
    if padding_mode != "zeros":
        coordinates = [
            _kept_inside(c, n, align_corners, padding_mode) for c, n in zip(coordinates, sizes)
        ]
    taps = [_taps(c, mode) for c in coordinates]
    result = _weighted_sum(x.reshape(batch, channels, -1), taps, sizes, align_corners, padding_mode)
    return result.reshape(batch, channels, *places)


def _pixels(normalised: Tensor, size: int, align_corners: int) -> Tensor:
    """-1 … 1 in pixels: between the centres of the outer pixels, or between their outer edges."""
    if align_corners:
        return (normalised + 1) * ((size - 1) / 2)
    return ((normalised + 1) * size - 1) / 2


def _taps(coordinate: Tensor, mode: str) -> Taps:
    if mode == "nearest":
        rounded = coordinate.round()
        return [(rounded, Tensor.ones(*rounded.shape, dtype=rounded.dtype, device=rounded.device))]
    start = coordinate.floor()
    part = coordinate - start
    if mode in ("linear", "bilinear"):
        return [(start, 1 - part), (start + 1, part)]
    return [
        (start + step, _cubic((part - step).abs(), abs(step - 0.5) < 1)) for step in (-1, 0, 1, 2)
    ]


def _cubic(distance: Tensor, is_near: bool, a: float = -0.75) -> Tensor:
    """Keys, "Cubic convolution interpolation for digital image processing", 1981."""
    d = distance
    if is_near:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


def _kept_inside(coordinate: Tensor, size: int, align_corners: int, padding_mode: str) -> Tensor:
    if padding_mode == "border":
        return coordinate.clip(0, size - 1)
    low, high = (0, size - 1) if align_corners else (-0.5, size - 0.5)
    return _reflected(coordinate, low, high).clip(0, size - 1)


def _reflected(coordinate: Tensor, low: float, high: float) -> Tensor:
    """Mirrored at both bounds as often as needed."""
    span = high - low
    if span == 0:
        return coordinate * 0
    distance = (coordinate - low).abs()
    turns = (distance / span).floor()
    rest = distance - turns * span
    is_odd = turns / 2 != (turns / 2).floor()
    return is_odd.where(high - rest, low + rest)


def _weighted_sum(
    flat: Tensor, taps: list[Taps], sizes: list[int], align_corners: int, padding_mode: str
) -> Tensor:
    """The sum over all combinations of taps; what lies outside is 0 or, by the padding mode, found inside."""
    terms = []
    for combination in product(*taps):
        places, weights = zip(*combination)
        if padding_mode == "zeros":
            insides = [(place >= 0) & (place <= size - 1) for place, size in zip(places, sizes)]
            weights = tuple(inside.where(weight, 0) for inside, weight in zip(insides, weights))
        else:
            places = tuple(
                _kept_inside(p, n, align_corners, padding_mode) for p, n in zip(places, sizes)
            )
        values = lookup(flat, _flat_position(places, sizes))
        terms.append(values * reduce(mul, weights).unsqueeze(1))
    return reduce(add, terms)


def _flat_position(places: Sequence[Tensor], sizes: list[int]) -> Tensor:
    """The position in the flattened image, of places that are first brought inside."""
    inside = [place.clip(0, size - 1).cast(dtypes.int32) for place, size in zip(places, sizes)]
    return reduce(lambda row, step: row * step[1] + step[0], zip(inside[1:], sizes[1:]), inside[0])


@operator("RoiAlign")
def roi_align_before_16(
    x: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    return roi_align(
        x,
        rois,
        batch_indices,
        coordinate_transformation_mode="output_half_pixel",
        mode=mode,
        output_height=output_height,
        output_width=output_width,
        sampling_ratio=sampling_ratio,
        spatial_scale=spatial_scale,
    )


@operator("RoiAlign", since=16)
def roi_align(
    x: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    """He et al., "Mask R-CNN", 2017, section 3: [rois, channels, height, width], each bin sampled at a fixed grid."""
    if sampling_ratio <= 0:
        raise OnnxError(
            "a sampling_ratio of 0 takes a number of samples that depends on the boxes: give a fixed one"
        )
    is_half = coordinate_transformation_mode == "half_pixel"
    corners = rois * spatial_scale - (0.5 if is_half else 0.0)
    x1, y1, x2, y2 = (corners[:, i : i + 1] for i in range(4))
    rows = _bin_samples(y1, y2, output_height, sampling_ratio, is_half)
    columns = _bin_samples(x1, x2, output_width, sampling_ratio, is_half)
    samples = _bilinear_in_rois(x, batch_indices, rows, columns, mode)
    count = sampling_ratio
    bins = samples.reshape(rois.shape[0], x.shape[1], output_height, count, output_width, count)
    return bins.mean((3, 5)) if mode == "avg" else bins.max((3, 5))


def _bin_samples(start: Tensor, end: Tensor, bins: int, count: int, is_half: bool) -> Tensor:
    """[rois, bins * count] coordinates, evenly spread. Without half pixels a box is at least 1 wide."""
    length = end - start if is_half else (end - start).maximum(1.0)
    total = bins * count
    steps = (Tensor.arange(total, dtype=start.dtype, device=start.device) + 0.5) / total
    return start + length * steps.unsqueeze(0)


def _bilinear_in_rois(
    x: Tensor, batch_indices: Tensor, rows: Tensor, columns: Tensor, mode: str
) -> Tensor:
    """[rois, channels, rows * columns]: interpolated; for `max` the largest of the four weighted neighbours."""
    height, width = x.shape[2:]
    images = x.reshape(*x.shape[:2], -1)[batch_indices]
    terms = []
    for (y, wy), (x_, wx) in product(_clamped_taps(rows, height), _clamped_taps(columns, width)):
        position = (y.unsqueeze(2) * width + x_.unsqueeze(1)).flatten(1)
        weight = (wy.unsqueeze(2) * wx.unsqueeze(1)).flatten(1)
        terms.append(lookup(images, position) * weight.unsqueeze(1))
    return reduce(add if mode == "avg" else Tensor.maximum, terms)


def _clamped_taps(coordinate: Tensor, size: int) -> Taps:
    """The two neighbours; beyond the edge its value goes on for one pixel, and then there is nothing."""
    exists = (coordinate >= -1) & (coordinate <= size)
    inside = coordinate.clip(0, size - 1)
    low = inside.floor()
    part = inside - low
    taps = [(low, 1 - part), ((low + 1).minimum(size - 1), part)]
    return [(place.cast(dtypes.int32), exists.where(weight, 0)) for place, weight in taps]


@operator("DeformConv")
def deform_conv(
    x: Tensor,
    weight: Tensor,
    offset: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    offset_group: int = 1,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    """Zhu et al., "Deformable ConvNets v2", 2018: each element of the kernel reads at a place moved by an offset."""
    batch, channels, height, width = x.shape
    window = Window((height, width), weight.shape[2:], strides, dilations, "NOTSET", pads)
    rows, columns = offset.shape[2:]
    count = math.prod(window.kernel)
    moved = offset.reshape(batch * offset_group, count, 2, rows, columns)
    y, x_ = (moved[:, :, i] + _kernel_places(window, (rows, columns), i, x) for i in range(2))
    taps = [_taps(c.reshape(batch * offset_group, -1), "linear") for c in (y, x_)]
    images = x.reshape(batch * offset_group, channels // offset_group, -1)
    samples = _weighted_sum(images, taps, [height, width], 0, "zeros")
    if mask is not None:
        samples = samples * mask.reshape(batch * offset_group, 1, -1)
    elements = samples.reshape(batch, group, channels // group, count, rows * columns).flatten(2, 3)
    kernel = weight.reshape(group, weight.shape[0] // group, -1)
    result = (kernel @ elements).reshape(batch, -1, rows, columns)
    return result if bias is None else result + bias.reshape(-1, 1, 1)


def _kernel_places(window: Window, places: tuple[int, int], dimension: int, like: Tensor) -> Tensor:
    """[kernel elements, rows, columns]: the row (0) or column (1) that each element would read without an offset."""
    offsets = np.arange(window.kernel[dimension]) * window.dilations[dimension]
    starts = np.arange(places[dimension]) * window.strides[dimension] - window.pads[dimension][0]
    if dimension == 0:
        grid = offsets[:, None, None, None] + starts[None, None, :, None]
    else:
        grid = offsets[None, :, None, None] + starts[None, None, None, :]
    grid = np.broadcast_to(grid, (*window.kernel, *places)).reshape(-1, *places)
    return to_tensor(grid.astype(numpy_dtype_of(like.dtype)), like.device)
