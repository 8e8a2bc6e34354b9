"""Images in another size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tensor_engine.mixin.decomposition import DecompositionMixin

if TYPE_CHECKING:
    from typing_extensions import Self

# by their plain names and those of PyTorch, which say how many axes there are
MODES = {
    "nearest": "nearest",
    "nearest-exact": "nearest-exact",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "cubic": "cubic",
    "bicubic": "cubic",
}
CUBIC_SLOPE = -0.75  # Keys, "Cubic convolution interpolation for digital image processing", 1981, has -0.5


class ResizeMixin(DecompositionMixin):
    """interpolate."""

    __slots__ = ()

    def interpolate(self, size: Sequence[int], mode: str = "linear", align_corners: bool = False) -> Self:
        """The last axes in other sizes.

        "linear" (bilinear for two axes, and so on) mixes the two neighbours of the place that an element comes from,
        "cubic" (bicubic) the four around it, "nearest" takes the element at or before it, "nearest-exact" the nearest
        to it. With `align_corners` the centres of the first and last elements stay where they were, else the edges of
        the whole. Integers are rounded. Raises ValueError for an unknown mode, or for more sizes than axes.
        """
        if mode not in MODES:
            raise ValueError(f"interpolate's mode is one of {', '.join(MODES)}, not {mode!r}")
        mixes = MODES[mode] in ("linear", "cubic")
        if align_corners and not mixes:
            raise ValueError(f"align_corners goes with modes that mix, not {mode!r}")
        if not 0 < len(size) <= self.ndim:
            raise ValueError(f"interpolate got sizes {tuple(size)} for shape {self.shape}")
        result = self
        for axis, new in zip(range(self.ndim - len(size), self.ndim), size):
            result = result._resize_axis(axis, int(new), MODES[mode], align_corners)
        if self.dtype.kind == "f" or not mixes:
            return result
        return result.round().clamp(self.dtype.min, self.dtype.max).cast(self.dtype)

    def _resize_axis(self, axis: int, new: int, mode: str, align_corners: bool) -> Self:
        """One axis in another size."""
        old = self.shape[axis]
        if old == new:
            return self
        if mode == "linear":
            return self._mix_neighbours(axis, new, align_corners)
        if mode == "cubic":
            return self._mix_four(axis, new, align_corners)
        if new % old == 0:
            return self.repeat_interleave(new // old, axis)
        places = self.counting(new)
        a, b = lowest_terms(old, new)
        if mode == "nearest":
            return self.take((places * a).floordiv(b), axis)
        return self.take((places * (2 * a) + a).floordiv(2 * b), axis)

    def _origins(self, axis: int, new: int, align_corners: bool) -> tuple[Self, int]:
        """Where the elements of a resized axis come from, as a fraction of integers: no rounding moves the places."""
        last = self.shape[axis] - 1
        places = self.counting(new)
        if align_corners:
            return places * last, max(new - 1, 1)
        # (place + 1/2) * old / new - 1/2
        a, b = lowest_terms(last + 1, new)
        return places * (2 * a) + (a - b), 2 * b

    def _mix_neighbours(self, axis: int, new: int, align_corners: bool) -> Self:
        """Linear interpolation of one axis."""
        last = self.shape[axis] - 1
        numerator, denominator = self._origins(axis, new, align_corners)
        numerator = numerator.clamp(0, last * denominator)
        before = numerator.floordiv(denominator)
        x = self.to_float()
        share = (numerator - before * denominator).cast(x.dtype) / denominator
        share = share.reshape((-1,) + (1,) * (self.ndim - axis - 1))
        low, high = x.take(before, axis), x.take((before + 1).minimum(last), axis)
        return low + (high - low) * share

    def _mix_four(self, axis: int, new: int, align_corners: bool) -> Self:
        """Cubic interpolation of one axis; beyond the ends the last elements go on."""
        numerator, denominator = self._origins(axis, new, align_corners)
        before = numerator.floordiv(denominator)
        x = self.to_float()
        share = (numerator - before * denominator).cast(x.dtype) / denominator
        share = share.reshape((-1,) + (1,) * (self.ndim - axis - 1))
        total = x.const_like(0)._part(axis, 0, 1)
        for offset in (-1, 0, 1, 2):
            element = x.take((before + offset).clamp(0, self.shape[axis] - 1), axis)
            total = total + element * (share - offset).abs()._cubic_weight(is_near=offset in (0, 1))
        return total

    def _cubic_weight(self, is_near: bool) -> Self:
        """The weight at this distance: up to 1, or from 1 to 2."""
        a = CUBIC_SLOPE
        return self.polynomial((1.0, 0.0, -(a + 3), a + 2) if is_near else (-4 * a, 8 * a, -5 * a, a))


def lowest_terms(a: int, b: int) -> tuple[int, int]:
    """Two numbers over their greatest common divisor."""
    common = math.gcd(a, b)
    return a // common, b // common
