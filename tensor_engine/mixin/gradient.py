"""How a value changes with those that it was made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensor_engine.mixin.resize import ResizeMixin

if TYPE_CHECKING:
    from typing_extensions import Self


class GradientMixin(ResizeMixin):
    """gradient; Tensor has `backward`, too."""

    __slots__ = ()

    def gradient(self, *targets: Self, gradient: Self | None = None, materialize_grads: bool = False) -> list[Self]:
        """The gradient of this for each target, in its shape and type. Gradients are values like others: they have
        gradients themselves.

        `gradient` is what the gradient of this is to be taken as; it may be left out for a single element (then 1).
        Raises ValueError if it is missing or has another shape, and GradientError for targets that are no floats or
        that this doesn't depend on, unless `materialize_grads` makes theirs zero.
        """
        from tensor_engine.uop.gradient import FORGETTING, GradientError, compute_gradient

        for target in targets:
            if target.dtype.kind != "f":
                raise GradientError(f"only floats have gradients, not {target.dtype}")
        found = compute_gradient(self.uop, self._own_gradient(gradient).uop, [target.uop for target in targets])
        missing = [target for target in targets if target.uop not in found]
        if missing and not materialize_grads:
            raise GradientError(f"this doesn't depend on the target of shape {missing[0].shape}. {FORGETTING}")
        return [
            self.from_uop(found[target.uop]) if target.uop in found else target.const_like(0) for target in targets
        ]

    def _own_gradient(self, gradient: Self | None) -> Self:
        """The gradient of this for itself: what is given, or 1."""
        if self.dtype.kind != "f":
            raise TypeError(f"only floats have gradients, not {self.dtype}")
        if gradient is None:
            if self.numel() != 1:
                raise ValueError(f"a gradient needs one element to start from, not shape {self.shape}; pass `gradient`")
            return self.const_like(1)
        if gradient.shape != self.shape:
            raise ValueError(f"the gradient of shape {self.shape} can't have shape {gradient.shape}")
        return gradient.cast(self.dtype)
