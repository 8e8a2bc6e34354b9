"""Images in another size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tensor_engine.mixin.sorting import SortingMixin

if TYPE_CHECKING:
    from typing_extensions import Self

MODES = ("linear", "nearest", "nearest-exact")


class ResizeMixin(SortingMixin):
    """interpolate."""

    __slots__ = ()

    def interpolate(self, size: Sequence[int], mode: str = "linear", align_corners: bool = False) -> Self:
        """The last axes in other sizes.

        "linear" (bilinear for two axes, and so on) mixes the two neighbours of the place that an element comes from,
        "nearest" takes the element at or before it, "nearest-exact" the nearest to it. With `align_corners` the
        centres of the first and last elements stay where they were, else the edges of the whole.
        Raises ValueError for an unknown mode, or for more sizes than axes.
        """
        if mode not in MODES:
            raise ValueError(f"interpolate's mode is one of {', '.join(MODES)}, not {mode!r}")
        if align_corners and mode != "linear":
            raise ValueError(f"align_corners goes with mode 'linear', not {mode!r}")
        if not 0 < len(size) <= self.ndim:
            raise ValueError(f"interpolate got sizes {tuple(size)} for shape {self.shape}")
        result = self
        for axis, new in zip(range(self.ndim - len(size), self.ndim), size):
            result = result._resize_axis(axis, int(new), mode, align_corners)
        return result if self.dtype.kind == "f" or mode != "linear" else result.round().cast(self.dtype)

    def _resize_axis(self, axis: int, new: int, mode: str, align_corners: bool) -> Self:
        """One axis in another size."""
        old = self.shape[axis]
        if old == new:
            return self
        if mode == "linear":
            return self._mix_neighbours(axis, new, align_corners)
        if new % old == 0:
            return self.repeat_interleave(new // old, axis)
        places = self.counting(new)
        a, b = lowest_terms(old, new)
        if mode == "nearest":
            return self.take((places * a).floordiv(b), axis)
        return self.take((places * (2 * a) + a).floordiv(2 * b), axis)

    def _mix_neighbours(self, axis: int, new: int, align_corners: bool) -> Self:
        """Linear interpolation of one axis. Places are fractions of integers, so that no rounding moves them."""
        last = self.shape[axis] - 1
        places = self.counting(new)
        if align_corners:
            numerator, denominator = places * last, max(new - 1, 1)
        else:  # (place + 1/2) * old / new - 1/2
            a, b = lowest_terms(last + 1, new)
            numerator, denominator = places * (2 * a) + (a - b), 2 * b
        numerator = numerator.clamp(0, last * denominator)
        before = numerator.floordiv(denominator)
        x = self.to_float()
        share = (numerator - before * denominator).cast(x.dtype) / denominator
        share = share.reshape((-1,) + (1,) * (self.ndim - axis - 1))
        low, high = x.take(before, axis), x.take((before + 1).minimum(last), axis)
        return low + (high - low) * share


def lowest_terms(a: int, b: int) -> tuple[int, int]:
    """Two numbers over their greatest common divisor."""
    common = math.gcd(a, b)
    return a // common, b // common
