"""Numbers stored as small integers: value = (integer - zero point) * scale."""

from tensor_engine.dtype import DType, dtypes
from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.nn.onnx.ops.conv import conv
from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.nn.onnx.value import dtype_of
from tensor_engine.tensor import Tensor


def _fitted(parameter: Tensor, x: Tensor, axis: int, block_size: int) -> Tensor:
    """A scale or zero point in a shape that broadcasts over `x`: for the whole, along an axis, or for each block."""
    if parameter.ndim == 0 or parameter.shape == (1,):
        return parameter.reshape(())
    if block_size:
        axis %= x.ndim
        parts = parameter.unsqueeze(axis + 1)
        repeated = parts.expand(*parts.shape[: axis + 1], block_size, *parts.shape[axis + 2 :])
        return repeated.flatten(axis, axis + 1).shrink(tuple((0, n) for n in x.shape))
    return parameter.reshape(*(-1 if i == axis % x.ndim else 1 for i in range(x.ndim)))


def _saturated(x: Tensor, dtype: DType) -> Tensor:
    """Rounded to the nearest even integer and kept in the range of the type."""
    return x.round().clip(dtype.min, dtype.max).cast(dtype)


@operator("QuantizeLinear")
def quantize_linear(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Tensor:
    dtype = dtypes.uint8 if zero_point is None else zero_point.dtype
    dtype = dtype_of(output_dtype) if output_dtype else dtype
    if not dtypes.is_int(dtype):
        raise OnnxError(
            f"quantisation to {dtype} is not supported, only to integers of 8 bits and more"
        )
    wide = x.cast(dtype_of(precision)) if precision else x.cast(scale.dtype)
    step = _fitted(scale, x, axis, block_size).cast(wide.dtype)
    quotient = (wide / step).cast(dtypes.float32).round()
    if zero_point is not None:
        quotient = quotient + _fitted(zero_point, x, axis, block_size).cast(dtypes.float32)
    return _saturated(quotient, dtype)


@operator("DequantizeLinear")
def dequantize_linear(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Tensor:
    difference = x.cast(dtypes.float32)
    if zero_point is not None:
        difference = difference - _fitted(zero_point, x, axis, block_size).cast(dtypes.float32)
    value = difference * _fitted(scale, x, axis, block_size).cast(dtypes.float32)
    return value.cast(dtype_of(output_dtype) if output_dtype else scale.dtype)


@operator("DynamicQuantizeLinear")
def dynamic_quantize_linear(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """To uint8, over the range of the values themselves and 0; also the scale and the zero point."""
    low, high = x.min().minimum(0), x.max().maximum(0)
    scale = (high - low) / 255
    zero_point = _saturated(-low / scale, dtypes.uint8)
    integers = _saturated((x / scale).round() + zero_point.cast(x.dtype), dtypes.uint8)
    return integers, scale, zero_point


def _centred(x: Tensor, zero_point: Tensor | None, axis: int) -> Tensor:
    """The integers with the zero point taken off, in int32."""
    if zero_point is None:
        return x.cast(dtypes.int32)
    return x.cast(dtypes.int32) - _fitted(zero_point, x, axis, 0).cast(dtypes.int32)


@operator("MatMulInteger")
def matmul_integer(
    a: Tensor, b: Tensor, a_zero_point: Tensor | None = None, b_zero_point: Tensor | None = None
) -> Tensor:
    return _centred(a, a_zero_point, -2) @ _centred(b, b_zero_point, -1)


@operator("QLinearMatMul")
def qlinear_matmul(
    a: Tensor,
    a_scale: Tensor,
    a_zero_point: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
) -> Tensor:
    product = matmul_integer(a, b, a_zero_point, b_zero_point)
    a_step, b_step, y_step = (s.cast(dtypes.float32) for s in (a_scale, b_scale, y_scale))
    return _requantised(product, a_step * b_step / y_step, y_zero_point)


def _requantised(total: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
    scaled = (total.cast(dtypes.float32) * scale).round()
    return _saturated(scaled + zero_point.cast(dtypes.float32), zero_point.dtype)


@operator("ConvInteger")
def conv_integer(
    x: Tensor,
    weight: Tensor,
    x_zero_point: Tensor | None = None,
    weight_zero_point: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    window = {
        "auto_pad": auto_pad,
        "dilations": dilations,
        "group": group,
        "pads": pads,
        "strides": strides,
    }
    return conv(_centred(x, x_zero_point, 1), _centred(weight, weight_zero_point, 0), **window)


@operator("QLinearConv")
def qlinear_conv(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor,
    weight: Tensor,
    weight_scale: Tensor,
    weight_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
    bias: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    """The bias is an int32 with the scale of x times that of the weight."""
    window = {
        "auto_pad": auto_pad,
        "dilations": dilations,
        "group": group,
        "pads": pads,
        "strides": strides,
    }
    total = conv(
        _centred(x, x_zero_point, 1), _centred(weight, weight_zero_point, 0), bias, **window
    )
    channel_scale = _fitted(weight_scale, total, 1, 0)
    return _requantised(total, x_scale * channel_scale / y_scale, y_zero_point)
