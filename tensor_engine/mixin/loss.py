"""How far predictions are from targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensor_engine.dtype import dtypes
from tensor_engine.mixin.linear import LinearMixin

if TYPE_CHECKING:
    from typing_extensions import Self

REDUCTIONS = ("mean", "sum", "none")


class LossMixin(LinearMixin):
    """Losses. `reduction` is "mean", "sum" or "none"."""

    __slots__ = ()

    def _combined(self, reduction: str) -> Self:
        """One number from a loss for each element."""
        if reduction not in REDUCTIONS:
            raise ValueError(f"a loss's reduction is one of {', '.join(REDUCTIONS)}, not {reduction!r}")
        if reduction == "none":
            return self
        return self.mean() if reduction == "mean" else self.sum()

    def binary_crossentropy(self, Y: Self, reduction: str = "mean") -> Self:
        """-Y * log(self) - (1 - Y) * log(1 - self), for probabilities."""
        loss = -Y * self.log() - (1 - Y) * (1 - self).log()
        return loss._combined(reduction)

    def binary_crossentropy_logits(self, Y: Self, reduction: str = "mean", pos_weight: Self | None = None) -> Self:
        """The binary cross-entropy of sigmoid(self), made so that nothing overflows.

        `pos_weight` weighs the positive targets.
        """
        positive = Y if pos_weight is None else Y * pos_weight
        loss = positive * (-self).softplus() + (1 - Y) * self.softplus()
        return loss._combined(reduction)

    def cross_entropy(self, Y: Self, reduction: str = "mean", label_smoothing: float = 0.0) -> Self:
        """The cross-entropy of softmax(self) over axis 1 (0 if it is the only one).

        `Y`, the targets: class numbers, in this shape without the class axis, or probabilities in this shape.
        """
        axis = min(self.ndim - 1, 1)
        classes = self.shape[axis]
        if Y.shape != self.shape:
            Y = Y.one_hot(classes).movedim(-1, axis)
        smooth = Y.cast(self.dtype) * (1 - label_smoothing) + label_smoothing / classes
        return (-self.log_softmax(axis) * smooth).sum(axis)._combined(reduction)

    def sparse_categorical_crossentropy(
        self, Y: Self, ignore_index: int = -1, label_smoothing: float = 0.0, reduction: str = "mean"
    ) -> Self:
        """The cross-entropy of softmax(self) over the last axis for class numbers, but for those to be ignored."""
        log_probabilities = self.log_softmax(-1)
        counted = Y.ne(ignore_index)
        chosen = (log_probabilities * Y.one_hot(self.shape[-1])).sum(-1)
        loss = -(chosen * (1 - label_smoothing) + log_probabilities.mean(-1) * label_smoothing)
        loss = counted.where(loss, 0)
        return loss.sum() / counted.sum() if reduction == "mean" else loss._combined(reduction)

    def nll_loss(
        self, Y: Self, weight: Self | None = None, ignore_index: int | None = None, reduction: str = "mean"
    ) -> Self:
        """-self at the target's class, for log-probabilities with classes along axis 1 (0 if it is the only one).

        Each is weighted by its class's `weight`, and so is the mean.
        """
        axis = min(self.ndim - 1, 1)
        hits = Y.one_hot(self.shape[axis]).movedim(-1, axis).cast(dtypes.bool)
        counted = Y.cast(dtypes.int32).const_like(1, self.dtype)
        if weight is not None:
            spread = weight.reshape((1,) * axis + (-1,) + (1,) * (self.ndim - axis - 1))
            counted = hits.where(spread, 0).sum(axis)
        if ignore_index is not None:
            counted = Y.ne(ignore_index).where(counted, 0)
        loss = -hits.where(self, 0).sum(axis) * counted
        return loss.sum() / counted.sum() if reduction == "mean" else loss._combined(reduction)
