"""Convolutions, in any number of spatial dimensions."""

from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.nn.onnx.ops.window import Pads, Window, flat, halves, paired
from tensor_engine.tensor import Tensor


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
    """The kernel's shape is the weight's, whatever the attribute says."""
    window = Window(x.shape[2:], weight.shape[2:], strides, dilations, auto_pad, pads)
    return x.conv2d(weight, bias, group, window.strides, window.dilations, flat(window.pads))


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
    kernel, sizes = weight.shape[2:], x.shape[2:]
    strides, dilations = strides or [1] * len(kernel), dilations or [1] * len(kernel)
    extra = output_padding or [0] * len(kernel)
    whole = [
        (n - 1) * s + (k - 1) * d + 1 + e
        for n, s, k, d, e in zip(sizes, strides, kernel, dilations, extra)
    ]
    if output_shape is None and auto_pad.startswith("SAME"):
        output_shape = [n * s for n, s in zip(sizes, strides)]
    cut = paired(pads, len(kernel))
    if output_shape is not None:
        cut = _surplus(whole, output_shape, auto_pad)
    return x.conv_transpose2d(weight, bias, group, strides, dilations, flat(cut), extra)


def _surplus(whole: list[int], output_shape: list[int], auto_pad: str) -> Pads:
    """What is to be cut from the whole result on both sides."""
    return [
        halves(full - wanted, auto_pad) for full, wanted in zip(whole, output_shape[-len(whole) :])
    ]
