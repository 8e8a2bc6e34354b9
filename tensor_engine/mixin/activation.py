"""The curves that networks put between their layers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tensor_engine.dtype import dtypes
from tensor_engine.mixin.scan import ScanMixin

if TYPE_CHECKING:
    from typing_extensions import Self

# near 0 these functions are sums of powers: differences of exponentials would lose their digits there
TANH_SERIES = (1.0, -1 / 3, 2 / 15, -17 / 315, 62 / 2835)
TANH_SERIES_BELOW = 0.05
ERF_SERIES = tuple((-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(12))
# Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: error below 1.5e-7
ERF_TAIL = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
ERF_TAIL_SCALE = 0.3275911


class ActivationMixin(ScanMixin):
    """Activation functions, all in floats."""

    __slots__ = ()

    # ---- made of a comparison

    def relu(self) -> Self:
        """The value, or 0 if it is negative; nan stays nan."""
        return self.maximum(0)

    def relu6(self) -> Self:
        """The value cut to 0 … 6."""
        return self.clamp(0, 6)

    def leaky_relu(self, neg_slope: float = 0.01) -> Self:
        """The value, times `neg_slope` if it is negative."""
        return self.gt(0).where(self, self * neg_slope)

    def hardtanh(self, min_val: float = -1, max_val: float = 1) -> Self:
        """The value cut to -1 … 1, or to other bounds."""
        return self.clamp(min_val, max_val)

    def hardsigmoid(self, alpha: float = 1 / 6, beta: float = 0.5) -> Self:
        """alpha * self + beta, cut to 0 … 1."""
        return (self * alpha + beta).clamp(0, 1)

    def hardswish(self) -> Self:
        """self * relu6(self + 3) / 6."""
        return self * (self + 3).relu6() * (1 / 6)

    def softsign(self) -> Self:
        """self / (1 + |self|)."""
        return self / (self.abs() + 1)

    # ---- made of exponentials

    def sigmoid(self) -> Self:
        """1 / (1 + exp(-self)), from exp(-|self|) so that neither it nor its derivative overflows."""
        x = self.to_float()
        negative = x.lt(0)
        power = negative.where(x, -x).exp()
        return negative.where(power, 1) / (power + 1)

    def logsigmoid(self) -> Self:
        """log(sigmoid(self))."""
        return -(-self).softplus()

    def silu(self) -> Self:
        """self * sigmoid(self)."""
        return self * self.sigmoid()

    swish = silu

    def quick_gelu(self) -> Self:
        """self * sigmoid(1.702 * self)."""
        return self * (self * 1.702).sigmoid()

    def tanh(self) -> Self:
        """The hyperbolic tangent."""
        x = self.to_float()
        size = x.distance_from_zero()
        power = (size * -2).exp()
        far = (1 - power) / (power + 1)
        near = x * x.square().polynomial(TANH_SERIES)
        return size.lt(TANH_SERIES_BELOW).where(near, x.lt(0).where(-far, far))

    def elu(self, alpha: float = 1.0) -> Self:
        """The value, or alpha * (exp(self) - 1) if it is negative."""
        x = self.to_float()
        return x.gt(0).where(x, (x.unless_positive().exp() - 1) * alpha)

    def celu(self, alpha: float = 1.0) -> Self:
        """The value, or alpha * (exp(self / alpha) - 1) if it is negative."""
        x = self.to_float()
        return x.gt(0).where(x, ((x.unless_positive() / alpha).exp() - 1) * alpha)

    def selu(self, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Self:
        """gamma * elu(self, alpha)."""
        return self.elu(alpha) * gamma

    def softplus(self, beta: float = 1.0) -> Self:
        """log(1 + exp(beta * self)) / beta, without overflow and without loss for very negative values."""
        x = self.to_float() * beta
        return (x.lt(0).where(0, x) + (-x.distance_from_zero()).exp().log1p()) / beta

    def mish(self) -> Self:
        """self * tanh(softplus(self)).

        With n = exp(self) that is self * m / (m + 2) where m = n * (n + 2); beyond a bound the factor is 1.
        """
        x = self.to_float()
        bound = 5 if x.dtype is dtypes.float16 else 20
        n = x.minimum(bound).exp()
        m = n * (n + 2)
        return x * (m / (m + 2))

    def gelu(self, approximate: str = "tanh") -> Self:
        """self * Φ(self), Φ the normal distribution function: by its tanh approximation, or by erf ("none")."""
        x = self.to_float()
        if approximate == "none":
            return x * 0.5 * (1 + (x * math.sqrt(0.5)).erf())
        if approximate != "tanh":
            raise ValueError(f"gelu's approximate is 'tanh' or 'none', not {approximate!r}")
        return x * 0.5 * (1 + ((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)).tanh())

    def erf(self) -> Self:
        """The error function, to within 2e-7: a power series up to 1, above it Abramowitz and Stegun 7.1.26."""
        x = self.to_float()
        size = x.distance_from_zero()
        t = 1 / (size * ERF_TAIL_SCALE + 1)
        far = 1 - t * t.polynomial(ERF_TAIL) * (-size.square()).exp()
        near = x * size.minimum(1).square().polynomial(ERF_SERIES) * (2 / math.sqrt(math.pi))
        return size.lt(1).where(near, x.lt(0).where(-far, far))
