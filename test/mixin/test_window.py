"""Windows, convolution and pooling against their definitions, written as loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from mixin.agree import agree

from tensor_engine import Tensor, dtypes

RANDOM = np.random.default_rng(1)


def convolve(x, w, bias=None, groups=1, stride=(1, 1), dilation=(1, 1), pads=((0, 0), (0, 0))):
    """Cross-correlation by its definition, in double precision."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), *pads))
    kernel = w.shape[2:]
    out = [(size - d * (k - 1) - 1) // s + 1 for size, k, s, d in zip(x.shape[2:], kernel, stride, dilation)]
    result = np.zeros((x.shape[0], w.shape[0], *out))
    per = w.shape[0] // groups
    for channel in range(w.shape[0]):
        inputs = x[:, channel // per * w.shape[1] :][:, : w.shape[1]]
        for place in itertools.product(*map(range, out)):
            window = tuple(
                slice(p * s, p * s + d * (k - 1) + 1, d) for p, s, d, k in zip(place, stride, dilation, kernel)
            )
            product = inputs[(slice(None), slice(None), *window)] * w[channel]
            result[(slice(None), channel, *place)] = product.sum(tuple(range(1, product.ndim)))
    return result if bias is None else result + bias.reshape(1, -1, *[1] * len(kernel))


def values(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("size", range(1, 9))
def test_windows_of_every_geometry(size):
    x = np.arange(2 * size).reshape(2, size)
    for kernel, stride, dilation in itertools.product(range(1, 5), range(1, 6), range(1, 4)):
        reach = dilation * (kernel - 1) + 1
        if reach > size:
            continue
        expected = np.lib.stride_tricks.sliding_window_view(x, reach, 1)[:, ::stride, ::dilation]
        agree(Tensor(x).windows((kernel,), stride, dilation), expected)


def test_no_window_fits():
    with pytest.raises(ValueError, match="no window of 3 elements"):
        Tensor(values(1, 2)).windows((3,))


def test_unfold():
    x = values(3, 10)
    agree(Tensor(x).unfold(1, 4, 2), np.lib.stride_tricks.sliding_window_view(x, 4, 1)[:, ::2])
    agree(Tensor(x.T).unfold(0, 4, 2), np.lib.stride_tricks.sliding_window_view(x.T, 4, 0)[::2])


@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("stride", [1, 2, (2, 3)])
@pytest.mark.parametrize("dilation", [1, (1, 2)])
@pytest.mark.parametrize("padding", [0, 1, (2, 1), (0, 1, 2, 3)])
def test_conv2d(groups, stride, dilation, padding):
    x, w, b = values(2, 6, 8, 9), values(12, 6 // groups, 3, 2), values(12)
    pads = {0: ((0, 0), (0, 0)), 1: ((1, 1), (1, 1)), (2, 1): ((2, 2), (1, 1)), (0, 1, 2, 3): ((2, 3), (0, 1))}[padding]
    pair = (stride, stride) if isinstance(stride, int) else stride
    apart = (dilation, dilation) if isinstance(dilation, int) else dilation
    got = Tensor(x).conv2d(Tensor(w), Tensor(b), groups, stride, dilation, padding)
    agree(got, convolve(x, w, b, groups, pair, apart, pads).astype(np.float32), rtol=1e-4, atol=1e-5)


def test_convolution_over_one_and_three_axes():
    x, w = values(1, 2, 9), values(3, 2, 4)
    agree(
        Tensor(x).conv2d(Tensor(w)), convolve(x, w, stride=(1,), dilation=(1,), pads=((0, 0),)).astype(np.float32), 1e-4
    )
    x, w = values(1, 2, 4, 5, 6), values(3, 2, 2, 3, 2)
    expected = convolve(x, w, stride=(1,) * 3, dilation=(1,) * 3, pads=((1, 1),) * 3)
    agree(Tensor(x).conv2d(Tensor(w), padding=1), expected.astype(np.float32), 1e-4, 1e-5)


def test_convolution_of_small_integers_and_half_is_summed_wide():
    x, w = np.full((1, 64, 3, 3), 100, np.int8), np.full((1, 64, 3, 3), 100, np.int8)
    agree(Tensor(x).conv2d(Tensor(w)), np.full((1, 1, 1, 1), 64 * 9 * 10000, np.int32))
    x, w = values(1, 64, 3, 3).astype(np.float16), values(1, 64, 3, 3).astype(np.float16)
    agree(Tensor(x).conv2d(Tensor(w)), convolve(x, w).astype(np.float16), rtol=1e-3)
    assert Tensor(x).conv2d(Tensor(w), dtype=dtypes.float32).dtype is dtypes.float32


@pytest.mark.parametrize(
    ("weight", "groups", "words"),
    [((4, 3, 1, 1), 1, "2 channels are not"), ((3, 1, 1, 1), 2, "groups"), ((4, 2, 1), 1, "same spatial axes")],
)
def test_a_convolution_that_does_not_fit(weight, groups, words):
    with pytest.raises(ValueError, match=words):
        Tensor(values(1, 2, 5, 5)).conv2d(Tensor(values(*weight)), groups=groups)


SPREADS = list(itertools.product([1, 2, 3], [1, 2], [(0, 0), (1, 0), (1, 1)]))
# output padding is smaller than stride or dilation by definition
SPREADS = [(s, d, p, extra) for s, d, (p, extra) in SPREADS if extra < max(s, d)]


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("stride", "dilation", "padding", "extra"), SPREADS)
def test_conv_transpose2d(groups, stride, dilation, padding, extra):
    x, w, b = values(2, 4, 5, 4), values(4, 3, 3, 2), values(3 * groups)
    expected = scatter_kernels(x, w, b, groups, stride, dilation, padding, extra)
    got = Tensor(x).conv_transpose2d(Tensor(w), Tensor(b), groups, stride, dilation, padding, extra)
    agree(got, expected.astype(np.float32), rtol=1e-4, atol=1e-5)


def scatter_kernels(x, w, bias, groups, stride, dilation, padding, extra):
    """A transposed convolution by its definition: each element adds the kernel, times itself, to the output."""
    per, out = x.shape[1] // groups, w.shape[1]
    sizes = [(n - 1) * stride + dilation * (k - 1) + 1 + extra for n, k in zip(x.shape[2:], w.shape[2:])]
    result = np.zeros((x.shape[0], out * groups, *sizes))
    for channel in range(x.shape[1]):
        group = channel // per
        for i, j in itertools.product(*map(range, x.shape[2:])):
            for a, b in itertools.product(*map(range, w.shape[2:])):
                spot = result[:, group * out : (group + 1) * out, i * stride + a * dilation, j * stride + b * dilation]
                spot += x[:, channel, i, j, None] * w[channel, :, a, b]
    inner = tuple(slice(padding, size - padding) for size in sizes)
    return result[(slice(None), slice(None), *inner)] + bias.reshape(1, -1, 1, 1)


POOLS = list(itertools.product([2, (3, 2)], [None, 1, 3], [0, 1], [False, True]))


@pytest.mark.parametrize(("kernel", "stride", "padding", "ceil_mode"), POOLS)
@pytest.mark.parametrize("dilation", [1, 2])
def test_max_pool2d(kernel, stride, padding, ceil_mode, dilation):
    x = values(2, 3, 9, 8)
    size = (kernel, kernel) if isinstance(kernel, int) else kernel
    steps = [stride] * 2 if stride else size
    expected = pool(x, size, steps, dilation, padding, ceil_mode, lambda window, _: window.max((2, 3)))
    agree(Tensor(x).max_pool2d(kernel, stride, dilation, padding, ceil_mode), expected.astype(np.float32))


@pytest.mark.parametrize(("kernel", "stride", "padding", "ceil_mode"), POOLS)
@pytest.mark.parametrize("count_include_pad", [True, False])
def test_avg_pool2d(kernel, stride, padding, ceil_mode, count_include_pad):
    x = values(2, 3, 9, 8)
    size = (kernel, kernel) if isinstance(kernel, int) else kernel
    steps = [stride] * 2 if stride else size

    def mean(window, with_padding):
        return window.sum((2, 3)) / (with_padding if count_include_pad else window[0, 0].size)

    expected = pool(x, size, steps, 1, padding, ceil_mode, mean)
    got = Tensor(x).avg_pool2d(kernel, stride, 1, padding, ceil_mode, count_include_pad)
    agree(got, expected.astype(np.float32), rtol=1e-5)


def pool(x, kernel, steps, dilation, padding, ceil_mode, combine):
    """Pooling by its definition. `combine` gets a window's elements and how many it has with the padding."""
    places = [
        starts(size, dilation * (k - 1) + 1, s, padding, ceil_mode) for size, k, s in zip(x.shape[2:], kernel, steps)
    ]
    result = np.zeros((*x.shape[:2], *map(len, places)))
    for (i, top), (j, left) in itertools.product(*map(enumerate, places)):
        lines = [range(first, first + dilation * (k - 1) + 1, dilation) for first, k in zip((top, left), kernel)]
        counted = [sum(p < size + padding for p in line) for line, size in zip(lines, x.shape[2:])]
        inside = [[p for p in line if 0 <= p < size] for line, size in zip(lines, x.shape[2:])]
        window = x[:, :, inside[0]][:, :, :, inside[1]].astype(np.float64)
        result[:, :, i, j] = combine(window, counted[0] * counted[1])
    return result


def starts(size, reach, step, padding, ceil_mode):
    """Where windows start: those that fit, and with `ceil_mode` one more if it starts before the padding behind."""
    fitting = list(range(-padding, size + padding - reach + 1, step))
    following = fitting[-1] + step
    reaches_out = fitting[-1] + reach < size + padding and following < size
    return [*fitting, following] if ceil_mode and reaches_out else fitting


def test_max_pool_of_integers_and_of_nan():
    x = np.int8([[[[-128, -5], [-7, -9]]]])
    agree(Tensor(x).max_pool2d(2, padding=1, stride=1)[:, :, 0, 0], np.int8([[-128]]))
    x = np.float32([[[[1, np.nan], [3, 4]]]])
    agree(Tensor(x).max_pool2d(2), np.float32([[[[np.nan]]]]))
