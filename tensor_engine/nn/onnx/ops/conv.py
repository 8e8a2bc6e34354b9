"""Convolutions, and what ONNX says about padding in windows of any number of dimensions."""

from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.tensor import Tensor

Pads = list[tuple[int, int]]  # before and after, for each spatial dimension


def window_pads(
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: list[int],
    dilations: list[int],
    auto_pad: str,
    pads: list[int] | None,
) -> Pads:
    """The padding of a sliding window, explicit or by rule: SAME_* give ceil(size / stride) outputs."""
    if auto_pad == "VALID":
        return [(0, 0)] * len(sizes)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
        total = [max((-(-n // s) - 1) * s + r - n, 0) for n, s, r in zip(sizes, strides, reach)]
        return [halves(t, auto_pad) for t in total]
    return paired(pads or [0] * 2 * len(sizes))


def paired(pads: list[int]) -> Pads:
    """ONNX lists what is added before each dimension, then what is added after each."""
    half = len(pads) // 2
    return list(zip(pads[:half], pads[half:]))


def halves(total: int, auto_pad: str) -> tuple[int, int]:
    """The two sides' shares; SAME_UPPER gives the odd one to the end."""
    small, large = total // 2, total - total // 2
    return (small, large) if auto_pad == "SAME_UPPER" else (large, small)


def flat(pads: Pads) -> tuple[int, ...]:
    """As the engine's windows take them: the last dimension first, before and after."""
    return tuple(amount for pair in reversed(pads) for amount in pair)


@operator("Conv")
def conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    """Cross-correlation in any number of spatial dimensions; the kernel's shape is the weight's."""
    kernel = weight.shape[2:]
    strides, dilations = strides or [1] * len(kernel), dilations or [1] * len(kernel)
    padding = window_pads(x.shape[2:], kernel, strides, dilations, auto_pad, pads)
    return x.conv2d(
        weight, bias, groups=group, stride=tuple(strides), dilation=tuple(dilations), padding=flat(padding)
    )


@operator("ConvTranspose")
def conv_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    output_padding: list[int] | None = None,
    output_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    """The gradient of a convolution with respect to its input: a convolution over the input spread by the strides."""
    kernel, sizes = weight.shape[2:], x.shape[2:]
    strides, dilations = strides or [1] * len(kernel), dilations or [1] * len(kernel)
    extra = output_padding or [0] * len(kernel)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    full = [(n - 1) * s + r + e for n, s, r, e in zip(sizes, strides, reach, extra)]
    cut = _output_cut(full, sizes, strides, auto_pad, pads, output_shape)
    spread = _spread(x, strides)
    padding = [(r - 1 - b, r - 1 - a + e) for r, e, (b, a) in zip(reach, extra, cut)]
    spread = _pad_or_cut(spread, padding)
    return spread.conv2d(_mirrored(weight, group), bias, groups=group, dilation=tuple(dilations))


def _output_cut(
    full: list[int],
    sizes: tuple[int, ...],
    strides: list[int],
    auto_pad: str,
    pads: list[int] | None,
    output_shape: list[int] | None,
) -> Pads:
    """What is cut from the full result before and after: the forward convolution's padding."""
    if output_shape is None and auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        output_shape = [n * s for n, s in zip(sizes, strides)]
    if output_shape is not None:
        surplus = [f - o for f, o in zip(full, output_shape[-len(full) :])]
        return [halves(s, "SAME_UPPER" if auto_pad == "SAME_UPPER" else "SAME_LOWER") for s in surplus]
    return paired(pads or [0] * 2 * len(full))


def _spread(x: Tensor, strides: list[int]) -> Tensor:
    """The input with stride - 1 zeros between its elements."""
    for axis, stride in enumerate(strides, start=2):
        if stride == 1:
            continue
        size = x.shape[axis]
        gaps = x.unsqueeze(axis + 1).pad(tuple((0, stride - 1 if i == axis + 1 else 0) for i in range(x.ndim + 1)))
        joined = gaps.reshape(*x.shape[:axis], size * stride, *x.shape[axis + 1 :])
        x = joined.shrink(tuple((0, (size - 1) * stride + 1 if i == axis else n) for i, n in enumerate(joined.shape)))
    return x


def _pad_or_cut(x: Tensor, amounts: Pads) -> Tensor:
    outer: Pads = [(0, 0), (0, 0), *amounts]
    x = x.shrink(tuple((max(0, -b), n - max(0, -a)) for n, (b, a) in zip(x.shape, outer)))
    return x.pad(tuple((max(0, b), max(0, a)) for b, a in outer))


def _mirrored(weight: Tensor, group: int) -> Tensor:
    """[in, out/group, ...] as the weight [out, in/group, ...] of the convolution, flipped in space."""
    inputs, outputs, *kernel = weight.shape
    grouped = weight.reshape(group, inputs // group, outputs, *kernel).transpose(1, 2)
    return grouped.reshape(group * outputs, inputs // group, *kernel).flip(tuple(range(2, weight.ndim)))
