"""Arithmetic, comparison, logic and conversion, element by element with numpy's broadcasting."""

import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from tensor_engine.dtype import dtypes, least_upper_dtype
from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.nn.onnx.value import Value, dtype_of, is_host, numpy_dtype_of, to_tensor
from tensor_engine.tensor import Tensor


def _div(a: Tensor, b: Tensor) -> Tensor:
    """True division of floats; of integers, the quotient cut towards zero."""
    return a / b if dtypes.is_float(a.dtype) else a.div(b, rounding_mode="trunc")


UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "Abs": lambda x: x.abs(),
    "Acos": lambda x: x.acos(),
    "Acosh": lambda x: x.acosh(),
    "Asin": lambda x: x.asin(),
    "Asinh": lambda x: x.asinh(),
    "Atan": lambda x: x.atan(),
    "Atanh": lambda x: x.atanh(),
    "Ceil": lambda x: x.ceil(),
    "Cos": lambda x: x.cos(),
    "Cosh": lambda x: x.cosh(),
    "Erf": lambda x: x.erf(),
    "Exp": lambda x: x.exp(),
    "Floor": lambda x: x.floor(),
    "Identity": lambda x: x,
    "Log": lambda x: x.log(),
    "Neg": lambda x: -x,
    "Not": lambda x: x.logical_not(),
    "Reciprocal": lambda x: 1 / x,
    "Round": lambda x: x.round(),
    "Sign": lambda x: x.sign(),
    "Sin": lambda x: x.sin(),
    "Sinh": lambda x: x.sinh(),
    "Sqrt": lambda x: x.sqrt(),
    "Tan": lambda x: x.tan(),
    "Tanh": lambda x: x.tanh(),
    "IsNaN": lambda x: x.isnan(),
    "BitwiseNot": lambda x: ~x,
}

BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": _div,
    "Equal": lambda a, b: a == b,
    "Greater": lambda a, b: a > b,
    "GreaterOrEqual": lambda a, b: a >= b,
    "Less": lambda a, b: a < b,
    "LessOrEqual": lambda a, b: a <= b,
    "And": lambda a, b: a & b,
    "Or": lambda a, b: a | b,
    "Xor": lambda a, b: a ^ b,
    "BitwiseAnd": lambda a, b: a & b,
    "BitwiseOr": lambda a, b: a | b,
    "BitwiseXor": lambda a, b: a ^ b,
}


def _enter_unary(name: str, function: Callable[[Tensor], Tensor]) -> None:
    @operator(name)
    def unary(x: Tensor) -> Tensor:
        return function(x)


def _enter_binary(name: str, function: Callable[[Tensor, Tensor], Tensor]) -> None:
    @operator(name, since=7)
    def binary(a: Tensor, b: Tensor) -> Tensor:
        return function(a, b)

    @operator(name)
    def binary_from_axis(
        a: Tensor, b: Tensor, *, axis: int | None = None, broadcast: int = 0
    ) -> Tensor:
        """Until opset 6 the second operand lies along the first one's dimensions from `axis` on."""
        if axis is not None:
            b = b.reshape(*b.shape, *[1] * (a.ndim - axis - b.ndim))
        return function(a, b)


for _name, _function in UNARY.items():
    _enter_unary(_name, _function)
for _name, _binary in BINARY.items():
    _enter_binary(_name, _binary)


@operator("Mod")
def mod(a: Tensor, b: Tensor, *, fmod: int = 0) -> Tensor:
    """The remainder with the divisor's sign, or with `fmod` the dividend's."""
    if dtypes.is_int(a.dtype):
        remainder = a - _div(a, b) * b
    else:
        wide = least_upper_dtype(a.dtype, dtypes.float32)
        remainder = _float_remainder(a.cast(wide), b.cast(wide)).cast(a.dtype)
    if fmod:
        return remainder
    has_other_sign = (remainder != 0) & ((remainder < 0) != (b < 0))
    return has_other_sign.where(remainder + b, remainder)


def _float_remainder(a: Tensor, b: Tensor) -> Tensor:
    """With the dividend's sign. Nothing finite goes into infinity."""
    return (b.isinf() & a.isfinite()).where(a, a - (a / b).trunc() * b)


@operator("Pow")
def pow_(base: Tensor, exponent: Value) -> Tensor:
    """The result has the base's dtype. A known exponent is handed on as a number: squaring needs no logarithm."""
    if is_host(exponent) and exponent.size == 1 and exponent.ndim <= base.ndim:
        return base.pow(exponent.item()).cast(base.dtype)
    exponent = to_tensor(exponent, base.device)
    if dtypes.is_float(base.dtype):
        return base.pow(exponent.cast(base.dtype))
    return base.pow(exponent).cast(base.dtype)


@operator("Max")
def max_(*values: Tensor) -> Tensor:
    return reduce(lambda a, b: a.maximum(b), values)


@operator("Min")
def min_(*values: Tensor) -> Tensor:
    return reduce(lambda a, b: a.minimum(b), values)


@operator("Sum")
def sum_(*values: Tensor) -> Tensor:
    return reduce(lambda a, b: a + b, values)


@operator("Mean")
def mean(*values: Tensor) -> Tensor:
    return sum_(*values) / len(values)


@operator("Where")
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return condition.where(x, y)


@operator("Clip")
def clip_with_attributes(x: Tensor, *, min: float = -math.inf, max: float = math.inf) -> Tensor:
    return _clip(x, None if min == -math.inf else min, None if max == math.inf else max)


@operator("Clip", since=11)
def clip(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    return _clip(x, low, high)


def _clip(x: Tensor, low: Tensor | float | None, high: Tensor | float | None) -> Tensor:
    """The lower bound first: where the bounds cross, the upper one wins."""
    x = x if low is None else x.maximum(low)
    return x if high is None else x.minimum(high)


@operator("BitShift")
def bit_shift(x: Tensor, amount: Tensor, *, direction: str) -> Tensor:
    """An amount outside 0 … width - 1 shifts everything out: to 0, or -1 for a negative number to the right."""
    last = x.dtype.bits - 1
    is_inside = (amount >= 0) & (amount <= last)
    amount = is_inside.where(amount, last)
    if direction == "RIGHT":
        return (is_inside | (x < 0)).where(x >> amount, 0)
    return is_inside.where(x << amount, 0)


@operator("IsInf")
def is_inf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    return x.isinf(bool(detect_positive), bool(detect_negative))


@operator("Cast")
def cast(x: Tensor, *, to: int, saturate: int = 1, round_mode: str = "up") -> Tensor:
    """Conversion of the values; `saturate` and `round_mode` speak of 8-bit floats only, which are not supported."""
    return x.cast(dtype_of(to))


@operator("CastLike")
def cast_like(x: Value, like: Tensor, *, saturate: int = 1, round_mode: str = "up") -> Value:
    """What is known stays known: only the other one's dtype is asked for."""
    return x.astype(numpy_dtype_of(like.dtype)) if is_host(x) else x.cast(like.dtype)


@operator("BitCast")
def bit_cast(x: Tensor, *, to: int) -> Tensor:
    """The same bits read as another type of the same width."""
    bits = x.cast(dtypes.uint8) if x.dtype == dtypes.bool else x
    return bits.bitcast(dtype_of(to))


@operator("Dropout")
def dropout_of_inference(
    x: Tensor, *, is_test: int = 1, ratio: float = 0.5
) -> tuple[Tensor, Tensor]:
    return x, Tensor.ones(*x.shape, dtype=dtypes.bool, device=x.device)


@operator("Dropout", since=12)
def dropout(
    x: Tensor,
    ratio: np.ndarray | None = None,
    training_mode: np.ndarray | None = None,
    *,
    seed: int = 0,
) -> tuple[Tensor, Tensor]:
    """Inference: the input, and a mask that keeps everything. Training with a ratio above 0 is not supported."""
    if training_mode is not None and training_mode and (ratio is None or ratio > 0):
        raise OnnxError("dropout in training mode is not supported: export the model for inference")
    return dropout_of_inference(x)
