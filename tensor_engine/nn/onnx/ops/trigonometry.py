"""The inverse trigonometric functions."""

import math

from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.tensor import Tensor

# asin(x) / x as a power series in x²; up to 1/2, where it is used, these terms are enough for a double
ARCSINE_SERIES = tuple(math.comb(2 * n, n) / (4**n * (2 * n + 1)) for n in range(24))


@operator("Asin")
def asin(x: Tensor) -> Tensor:
    """By its series up to 1/2, and beyond by asin(x) = π/2 - 2 asin(√((1 - x) / 2))."""
    size = x.abs()
    is_large = size > 0.5
    near = is_large.where(((1 - size) / 2).sqrt(), size)
    series = near * (near * near).polynomial(ARCSINE_SERIES)
    result = is_large.where(math.pi / 2 - 2 * series, series)
    return (x < 0).where(-result, result)


@operator("Acos")
def acos(x: Tensor) -> Tensor:
    return math.pi / 2 - asin(x)


@operator("Atan")
def atan(x: Tensor) -> Tensor:
    """From the sine of the angle; beyond 1 by atan(x) = π/2 - atan(1 / x)."""
    size = x.abs()
    is_large = size > 1
    tangent = is_large.where(1 / is_large.where(size, 1), size)
    angle = asin(tangent / (tangent * tangent + 1).sqrt())
    result = is_large.where(math.pi / 2 - angle, angle)
    return (x < 0).where(-result, result)
