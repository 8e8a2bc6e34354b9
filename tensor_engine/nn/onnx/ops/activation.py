"""The nonlinear functions between layers."""

import math

from tensor_engine.dtype import dtypes, least_upper_dtype
from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.tensor import Tensor


@operator("Relu")
def relu(x: Tensor) -> Tensor:
    return x.relu()


@operator("LeakyRelu")
def leaky_relu(x: Tensor, *, alpha: float = 0.01) -> Tensor:
    return x.leaky_relu(alpha)


@operator("PRelu")
def prelu_of_channels(x: Tensor, slope: Tensor) -> Tensor:
    """Until opset 6: one slope for each channel, or for all."""
    return prelu(x, slope.reshape(-1, *[1] * (x.ndim - 2)))


@operator("PRelu", since=7)
def prelu(x: Tensor, slope: Tensor) -> Tensor:
    return (x < 0).where(x * slope, x)


@operator("ThresholdedRelu")
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return (x > alpha).where(x, 0)


@operator("Elu")
def elu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return x.elu(alpha)


@operator("Celu")
def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return x.cast(least_upper_dtype(x.dtype, dtypes.float32)).celu(alpha).cast(x.dtype)


@operator("Selu")
def selu(
    x: Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
) -> Tensor:
    return x.selu(alpha, gamma)


@operator("Sigmoid")
def sigmoid(x: Tensor) -> Tensor:
    return x.sigmoid()


@operator("HardSigmoid")
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    return x.hardsigmoid(alpha, beta)


@operator("HardSwish")
def hard_swish(x: Tensor) -> Tensor:
    return x.hardswish()


@operator("Swish")
def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return x * (x * alpha).sigmoid()


@operator("Mish")
def mish(x: Tensor) -> Tensor:
    return x.mish()


@operator("Softplus")
def softplus(x: Tensor) -> Tensor:
    return x.softplus()


@operator("Softsign")
def softsign(x: Tensor) -> Tensor:
    return x.softsign()


@operator("Gelu")
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    return x.gelu(approximate)


@operator("Shrink")
def shrink(x: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    """Everything moved towards zero by the bias, and zero for what lies between -lambd and lambd."""
    return (x > lambd).where(x - bias, (x < -lambd).where(x + bias, 0)).cast(x.dtype)


def _as_matrix(x: Tensor, axis: int) -> Tensor:
    """All dimensions before the axis in the rows, the others in the columns."""
    return x.reshape(math.prod(x.shape[: axis % x.ndim]), -1)


@operator("Softmax")
def softmax_of_matrix(x: Tensor, *, axis: int = 1) -> Tensor:
    """Until opset 12: over everything from the axis on."""
    return _as_matrix(x, axis).softmax(1).reshape(x.shape)


@operator("LogSoftmax")
def log_softmax_of_matrix(x: Tensor, *, axis: int = 1) -> Tensor:
    return _as_matrix(x, axis).log_softmax(1).reshape(x.shape)


@operator("Hardmax")
def hardmax_of_matrix(x: Tensor, *, axis: int = 1) -> Tensor:
    return hardmax(_as_matrix(x, axis), axis=1).reshape(x.shape)


@operator("Softmax", since=13)
def softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    return x.softmax(axis)


@operator("LogSoftmax", since=13)
def log_softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    return x.log_softmax(axis)


@operator("Hardmax", since=13)
def hardmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """1 at the first largest value along the axis, 0 elsewhere."""
    winner = x.argmax(axis, keepdim=True)
    positions = Tensor.arange(x.shape[axis], device=x.device)
    shape = [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]
    return (positions.reshape(shape) == winner).cast(x.dtype)
