"""Sliding windows, and what is made of them: convolution.

The windows of an axis are made by movement alone: the axis is repeated for each offset in the window, and sheared, so
that it begins `dilation` elements later at each. A stride is a step of 1 over blocks of so many elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tensor_engine.dtype import DType
from tensor_engine.helpers import ceildiv, flatten, make_tuple
from tensor_engine.mixin.loss import LossMixin
from tensor_engine.mixin.sizes import as_whole, certain, smaller

if TYPE_CHECKING:
    from typing_extensions import Self

Sizes = int | Sequence[int]


class Axis(NamedTuple):
    """An axis of which windows are taken."""

    size: int
    kernel: int
    stride: int
    dilation: int

    @property
    def places(self) -> int:
        """How many windows fit."""
        return as_whole((self.size - self.dilation * (self.kernel - 1) - 1) // self.stride + 1)

    @property
    def block(self) -> int:
        """The axis is cut into blocks of so many elements, over which the windows step one by one."""
        return self.stride if self.dilation == 1 else 1

    @property
    def blocks(self) -> int:
        """How many of these the windows take."""
        if self.dilation == 1:
            return self.places + ceildiv(self.kernel, self.stride) - 1
        return self.places * self.stride + self.dilation * (self.kernel - 1)


def padding_pairs(padding: Sizes, ndim: int) -> list[tuple[int, int]]:
    """Padding as (before, after) for each axis.

    It is given as one count, as one count an axis, or as both counts of each axis from the last axis forward.
    """
    if isinstance(padding, int):
        return [(padding, padding)] * ndim
    if len(padding) == ndim:
        return [(p, p) for p in padding]
    if len(padding) == 2 * ndim:
        return list(zip(padding[::2], padding[1::2]))[::-1]
    raise ValueError(f"padding for {ndim} axes is 1, {ndim} or {2 * ndim} counts, not {tuple(padding)}")


class WindowMixin(LossMixin):
    """Convolution over the last axes. Layout: batch, channels, then the spatial axes."""

    __slots__ = ()

    # ---- windows

    def windows(self, kernel: Sequence[int], stride: Sizes = 1, dilation: Sizes = 1) -> Self:
        """Each last axis as two: the places, and behind all places the elements of the window.

        (…, height, width) becomes (…, places down, places across, kernel height, kernel width).
        Raises ValueError where no window fits.
        """
        count = len(kernel)
        strides, dilations = make_tuple(stride, count), make_tuple(dilation, count)
        if self.ndim < count:
            raise ValueError(f"windows over {count} axes need as many, but the shape is {self.shape}")
        first = self.ndim - count
        axes = [Axis(*axis) for axis in zip(self.shape[first:], kernel, strides, dilations)]
        for number, axis in enumerate(axes, first):
            if not certain(axis.places >= 1):
                raise ValueError(
                    f"no window of {axis.kernel} elements, {axis.dilation} apart, fits axis {number} of shape"
                    f" {self.shape}"
                )
        result = self._in_blocks(axes)
        for number in reversed(range(count)):
            result = result._windows_of_axis(first + 2 * number, axes[number])
        places = range(first, result.ndim, 2)
        return result.permute([*range(first), *places, *[place + 1 for place in places]])

    def _in_blocks(self, axes: Sequence[Axis]) -> Self:
        """Each last axis as (block, place in the block), cut, or filled up with zeros that nobody reads."""
        before = self.shape[: self.ndim - len(axes)]
        shape = (*before, *[axis.blocks * axis.block for axis in axes])
        cut = self.shrink([(0, smaller(own, size)) for own, size in zip(self.shape, shape)])
        fitted = cut.pad_zeros([(0, size - own) for own, size in zip(cut.shape, shape)])
        blocks = fitted.reshape(*before, *[size for axis in axes for size in (axis.blocks, axis.block)])
        # windows that overlap, in steps: their gradient is a sum for each place in the block, not for each element
        return blocks.contiguous_backward() if any(1 < axis.block < axis.kernel for axis in axes) else blocks

    def _windows_of_axis(self, number: int, axis: Axis) -> Self:
        """(block, place in the block) as (place, offset in the window)."""
        if axis.dilation == 1:
            steps = self._slid(number, ceildiv(axis.kernel, axis.stride), 1)
            return steps.flatten(number + 1, number + 2)._part(number + 1, 0, axis.kernel)
        everywhere = self.squeeze(number + 1)._slid(number, axis.kernel, axis.dilation)
        return everywhere.unflatten(number, (-1, axis.stride))._part(number + 1, 0, 1).squeeze(number + 1)

    def _slid(self, axis: int, kernel: int, dilation: int) -> Self:
        """One axis as (place, offset in the window), with a window at every place."""
        repeated = self.unsqueeze(axis + 1).expand(*self.shape[: axis + 1], kernel, *self.shape[axis + 1 :])
        return repeated.shear(axis, axis + 1, dilation)

    def unfold(self, dim: int, size: int, step: int) -> Self:
        """Windows of `size` elements, `step` apart, of one axis; the elements come as a new last axis."""
        axis = self.resolve_axis(dim)
        return self.movedim(axis, -1).windows((size,), step).movedim(-2, axis)

    # ---- convolution

    def conv2d(
        self,
        weight: Self,
        bias: Self | None = None,
        groups: int = 1,
        stride: Sizes = 1,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        dtype: DType | str | None = None,
    ) -> Self:
        """Cross-correlation over any number of spatial axes.

        self: (batch, channels in, …). weight: (channels out, channels in / groups, …). bias: (channels out,).
        padding: one count, one an axis, or (left, right, top, bottom, …). Half is summed in float32.
        Raises ValueError for shapes that don't fit.
        """
        batch, channels = self._check_convolution(weight, groups)
        out, per_group, *kernel = weight.shape
        pairs = padding_pairs(padding, len(kernel))
        x = self.pad([(0, 0), (0, 0), *pairs]).windows(kernel, stride, dilation)
        places = x.shape[2 : 2 + len(kernel)]
        # batch, group, channel out, places …, channel in, kernel …
        x = x.reshape(batch, groups, 1, per_group, *places, *kernel)
        x = x.permute([0, 1, 2, *range(4, 4 + len(kernel)), 3, *range(4 + len(kernel), x.ndim)])
        w = weight.reshape(1, groups, out // groups, *[1] * len(kernel), per_group, *kernel)
        result = x.contract(w, 1 + len(kernel), dtype).reshape(batch, out, *places)
        return result if bias is None else result + bias.reshape(1, -1, *[1] * len(kernel))

    def _check_convolution(self, weight: Self, groups: int) -> tuple[int, int]:
        """The batch and the channels, if the shapes fit."""
        what = f"a convolution of {self.shape} with weights {weight.shape} in {groups} groups"
        if self.ndim != weight.ndim or self.ndim < 3:
            raise ValueError(f"{what}: both need batch or channels out, channels, and the same spatial axes")
        if self.shape[1] != weight.shape[1] * groups:
            raise ValueError(f"{what}: {self.shape[1]} channels are not {groups} * {weight.shape[1]}")
        if weight.shape[0] % groups:
            raise ValueError(f"{what}: {weight.shape[0]} channels out can't be split into {groups} groups")
        return self.shape[0], self.shape[1]

    def conv_transpose2d(
        self,
        weight: Self,
        bias: Self | None = None,
        groups: int = 1,
        stride: Sizes = 1,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
    ) -> Self:
        """The transpose of a convolution, over any number of spatial axes: each element spreads the kernel around it.

        weight: (channels in, channels out / groups, …). It is a convolution with the kernel turned round, of the
        input with stride - 1 zeros between its elements.
        """
        kernel = weight.shape[2:]
        n = len(kernel)
        strides, dilations, extra = make_tuple(stride, n), make_tuple(dilation, n), make_tuple(output_padding, n)
        if self.ndim != weight.ndim or self.shape[1] != weight.shape[0] or weight.shape[0] % groups:
            raise ValueError(f"a transposed convolution of {self.shape} doesn't fit weights {weight.shape}")
        w = weight.unflatten(0, (groups, -1)).transpose(1, 2).flip(*range(3, 3 + n)).flatten(0, 1)
        x = self.spread(strides)
        pads = [
            ((k - 1) * d - before, (k - 1) * d - after + e)
            for k, d, e, (before, after) in zip(kernel, dilations, extra, padding_pairs(padding, n))
        ]
        return x.conv2d(w, bias, groups, 1, dilations, flatten(pads[::-1]))

    def spread(self, strides: Sequence[int]) -> Self:
        """The last axes with stride - 1 zeros between their elements."""
        result = self
        for axis, stride in zip(range(self.ndim - len(strides), self.ndim), strides):
            result = result._spread_axis(axis, stride)
        return result

    def _spread_axis(self, axis: int, stride: int) -> Self:
        """One axis with stride - 1 zeros between its elements."""
        if stride == 1:
            return self
        apart = self.unsqueeze(axis + 1)._placed(axis + 1, 0, stride - 1).flatten(axis, axis + 1)
        return apart._part(axis, 0, apart.shape[axis] - stride + 1)
