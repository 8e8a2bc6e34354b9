"""Products summed: matrices, einsum, attention, and the norms around them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tensor_engine.dtype import DType, dtypes, least_upper_dtype, sum_acc_dtype, to_dtype
from tensor_engine.mixin.activation import ActivationMixin
from tensor_engine.mixin.einsum import einsum

if TYPE_CHECKING:
    from typing_extensions import Self


class LinearMixin(ActivationMixin):
    """dot, matmul, linear, einsum, attention, normalisation."""

    __slots__ = ()

    def contract(self, other: Self, axes: int, dtype: DType | str | None = None) -> Self:
        """self * other, broadcast, summed over the last `axes` axes.

        Multiplied and summed in at least 32 bits, so that half loses nothing and small integers don't overflow;
        floats come back in the type in which the operands meet, integers in that of the sum. `dtype` overrides both.
        """
        own = least_upper_dtype(self.dtype, other.dtype)
        wide = to_dtype(dtype or sum_acc_dtype(own))
        product = self.cast(wide) * other.cast(wide)
        total = product.sum(tuple(range(-axes, 0)), dtype=wide)
        return total.cast(own) if dtype is None and own.kind == "f" else total

    def dot(self, w: Self, dtype: DType | str | None = None) -> Self:
        """The matrix product over the last axis of this and the last but one of `w` (its only one if it has one).

        Axes before these broadcast. Raises ValueError for shapes that don't fit.
        """
        w = w if isinstance(w, LinearMixin) else self.as_operand(w)
        if self.ndim == 0 or w.ndim == 0:
            raise ValueError(f"a matrix product needs axes on both sides: {self.shape} @ {w.shape}")
        inner = w.shape[-min(w.ndim, 2)]
        if self.shape[-1] != inner:
            raise ValueError(f"can't multiply {self.shape} @ {w.shape}: {self.shape[-1]} is not {inner}")
        if w.ndim == 1:
            return self.contract(w, 1, dtype)
        if self.ndim == 1:
            return self.contract(w.transpose(-1, -2), 1, dtype)
        rows = self.reshape(*self.shape[:-1], 1, self.shape[-1])
        columns = w.transpose(-1, -2)
        return rows.contract(columns.reshape(*columns.shape[:-2], 1, *columns.shape[-2:]), 1, dtype)

    def matmul(self, x: Self, reverse: bool = False, dtype: DType | str | None = None) -> Self:
        """The matrix product self @ x; x @ self if reversed."""
        return x.dot(self, dtype) if reverse else self.dot(x, dtype)

    def __matmul__(self, w: Self) -> Self:
        return self.dot(w)

    def __rmatmul__(self, w: Self) -> Self:
        return self.as_operand(w).dot(self)

    def linear(self, weight: Self, bias: Self | None = None, dtype: DType | str | None = None) -> Self:
        """self @ weight + bias. Weight: (features in, features out), or (features,) to multiply element by element.

        With `dtype` all three are cast to it first.
        """
        if dtype is not None:
            own = to_dtype(dtype)
            return self.cast(own).linear(weight.cast(own), bias if bias is None else bias.cast(own))
        product = self.mul(weight) if weight.ndim == 1 else self.dot(weight)
        return product if bias is None else product + bias

    einsum = staticmethod(einsum)

    # ---- attention

    def scaled_dot_product_attention(
        self,
        key: Self,
        value: Self,
        attn_mask: Self | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        enable_gqa: bool = False,
    ) -> Self:
        """softmax(self @ key.T / sqrt(width) + mask) @ value, over the last two axes (place, width).

        A bool mask says what may be looked at, another one is added. `is_causal` lets each place look back only.
        `enable_gqa`: axis -3 (heads) of key and value is shorter, and each of theirs serves several of this
        (Ainslie et al., "GQA", 2023). `dropout_p`: see `dropout`, applied to the softmax.
        Raises ValueError if a mask is given and `is_causal`, too.
        """
        if enable_gqa:
            key = key.repeat_interleave(self.shape[-3] // key.shape[-3], -3)
            value = value.repeat_interleave(self.shape[-3] // value.shape[-3], -3)
        if is_causal and attn_mask is not None:
            raise ValueError("attention is causal or takes a mask, not both")
        scores = self.matmul(key.transpose(-2, -1)) / math.sqrt(self.shape[-1])
        if is_causal:
            attn_mask = scores.const_like(True, dtypes.bool).tril()
        if attn_mask is not None and attn_mask.dtype is dtypes.bool:
            scores = attn_mask.where(scores, -math.inf)
        elif attn_mask is not None:
            scores = scores + attn_mask
        weights = scores.softmax(-1)
        return (weights.dropout(dropout_p) if dropout_p else weights).matmul(value)

    # ---- normalisation

    def layernorm(self, axis: int | Sequence[int] = -1, eps: float = 1e-5) -> Self:
        """With mean 0 and variance 1 along the axes."""
        centred = self - self.mean(axis, keepdim=True)
        return centred * (centred.square().mean(axis, keepdim=True) + eps).rsqrt()

    def batchnorm(
        self, weight: Self | None, bias: Self | None, mean: Self, invstd: Self, axis: int | Sequence[int] = 1
    ) -> Self:
        """(self - mean) * invstd * weight + bias, each with a value for every place of the axes (the channels)."""
        axes = self.resolve_axes(axis)
        shape = tuple(size if i in axes else 1 for i, size in enumerate(self.shape))
        scale = invstd.reshape(shape) if invstd.ndim == len(axes) else invstd
        if weight is not None:
            scale = scale * weight.reshape(shape)
        result = (self - mean.reshape(shape)) * scale
        return result if bias is None else result + bias.reshape(shape)
