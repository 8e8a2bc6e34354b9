"""Pooling: one element for each place of a sliding window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensor_engine.dtype import dtypes
from tensor_engine.helpers import ceildiv, flatten, make_tuple, prod
from tensor_engine.mixin.window import Sizes, padding_pairs
from tensor_engine.mixin.writing import WritingMixin

if TYPE_CHECKING:
    from typing_extensions import Self


class PoolMixin(WritingMixin):
    """max_pool2d, max_unpool2d, avg_pool2d: over the last axes, two unless the kernel says otherwise."""

    __slots__ = ()

    def max_pool2d(
        self,
        kernel_size: Sizes = (2, 2),
        stride: Sizes | None = None,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """The largest element of each window over the last axes; padding never wins.

        The stride is the kernel's size unless given. With `ceil_mode` a last window may reach out of the input. With
        `return_indices` also where it stands first in the flattened last axes, as int32, for `max_unpool2d`.
        """
        kernel = make_tuple(kernel_size, 2)
        pairs = self._pool_padding(kernel, stride, dilation, padding, ceil_mode)
        pads, n = [(0, 0)] * (self.ndim - len(kernel)) + pairs, len(kernel)
        windows = self.pad(pads, value=dtypes.min(self.dtype)).windows(kernel, stride or kernel, dilation)
        largest = windows.max(tuple(range(-n, 0)))
        if not return_indices:
            return largest
        is_first = windows.flatten(-n).eq(largest.unsqueeze(-1)) | windows.flatten(-n).isnan()
        inside = self.const_like(True, dtypes.bool).pad_zeros(pads).windows(kernel, stride or kernel, dilation)
        offset = (is_first & inside.flatten(-n)).argmax(-1)
        steps = make_tuple(stride or kernel, n), make_tuple(dilation, n), [before for before, _ in pairs]
        return largest, offset._places_in_input(self.shape[-n:], kernel, *steps)

    def _places_in_input(
        self,
        sizes: Sequence[int],
        kernel: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        before: Sequence[int],
    ) -> Self:
        """For each window, where in the flattened input the element stands that has this number in the window."""
        places, rest, factor = self.const_like(0), self, 1
        for i in reversed(range(len(kernel))):
            row = self.counting(self.shape[i - len(kernel)]).reshape(-1, *[1] * (len(kernel) - 1 - i))
            place = row * strides[i] + rest.mod(kernel[i]) * dilations[i] - before[i]
            places, rest, factor = places + place * factor, rest.floordiv(kernel[i]), factor * sizes[i]
        return places

    def max_unpool2d(
        self,
        indices: Self,
        kernel_size: Sizes = (2, 2),
        stride: Sizes | None = None,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        output_size: Sequence[int] | None = None,
    ) -> Self:
        """The elements back at the places where `max_pool2d` found them, zeros elsewhere.

        `output_size` is the shape of the result, of which the last axes count; else it is the smallest that fits.
        """
        kernel = make_tuple(kernel_size, 2)
        n = len(kernel)
        strides, dilations = make_tuple(stride or kernel, n), make_tuple(dilation, n)
        pairs = padding_pairs(padding, n)
        sizes = [
            (size - 1) * s + d * (k - 1) + 1 - sum(pair)
            for size, k, s, d, pair in zip(self.shape[-n:], kernel, strides, dilations, pairs)
        ]
        sizes = sizes if output_size is None else list(output_size)[-n:]
        zeros = self.full((*self.shape[:-n], prod(sizes)), 0, self.dtype, self.uop.device)
        return zeros.scatter(-1, indices.flatten(-n), self.flatten(-n)).unflatten(-1, sizes)

    def avg_pool2d(
        self,
        kernel_size: Sizes = (2, 2),
        stride: Sizes | None = None,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Self:
        """The mean of each window over the last axes.

        Padding counts as zeros, unless `count_include_pad` is False; what `ceil_mode` adds never counts.
        """
        kernel = make_tuple(kernel_size, 2)
        axes = tuple(range(-len(kernel), 0))
        before = [(0, 0)] * (self.ndim - len(kernel))
        pairs = self._pool_padding(kernel, stride, dilation, padding, ceil_mode)
        given = padding_pairs(padding, len(kernel))

        def windows(values: Self, pads: list[tuple[int, int]]) -> Self:
            return values.pad_zeros(before + pads).windows(kernel, stride or kernel, dilation)

        x = self.to_float()
        if pairs == given and (count_include_pad or not any(flatten(pairs))):
            return windows(x, pairs).mean(axes)
        counted = self.const_like(1, x.dtype)
        if count_include_pad:
            inside = counted.pad_zeros(before + given)
            counted = inside.const_like(1)
            pairs_left = [(a - c, b - d) for (a, b), (c, d) in zip(pairs, given)]
            return windows(x, pairs).sum(axes) / windows(counted, pairs_left).sum(axes)
        return windows(x, pairs).sum(axes) / windows(counted, pairs).sum(axes)

    def _pool_padding(
        self, kernel: Sequence[int], stride: Sizes | None, dilation: Sizes, padding: Sizes, ceil_mode: bool
    ) -> list[tuple[int, int]]:
        """The padding of each pooled axis, with what `ceil_mode` adds behind."""
        n = len(kernel)
        pairs = padding_pairs(padding, n)
        if not ceil_mode:
            return pairs
        strides, dilations = make_tuple(stride or kernel, n), make_tuple(dilation, n)
        sizes = self.shape[-n:]
        return [
            (before, after + ceil_extra(size, before, after, k, s, d))
            for size, (before, after), k, s, d in zip(sizes, pairs, kernel, strides, dilations)
        ]


def ceil_extra(size: int, before: int, after: int, kernel: int, stride: int, dilation: int) -> int:
    """How far the last window reaches out when the count of windows is rounded up.

    A window that would start in the padding behind the input is left out, as PyTorch does.
    """
    padded = size + before + after
    reach = dilation * (kernel - 1) + 1
    places = ceildiv(padded - reach, stride) + 1
    if (places - 1) * stride >= size + before:
        places -= 1
    return max((places - 1) * stride + reach - padded, 0)
