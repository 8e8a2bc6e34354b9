"""Gradients of windows, convolution and pooling against their definitions: as graphs, and as compiled kernels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from mixin.agree import agree
from mixin.evaluate import evaluate

from tensor_engine import GlobalCounters, Tensor

RANDOM = np.random.default_rng(3)


def values(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def convolution_gradients(x, w, g, groups, stride, dilation, padding):
    """What each product of an input, a weight and a gradient of the result gives to the other two, added up."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), *((padding, padding),) * 2))
    dx, dw = np.zeros_like(x), np.zeros(w.shape)
    per, out = w.shape[1], w.shape[0] // groups
    for o, i, a, b in itertools.product(range(w.shape[0]), range(per), *map(range, w.shape[2:])):
        channel = o // out * per + i
        rows = slice(a * dilation, a * dilation + (g.shape[2] - 1) * stride + 1, stride)
        columns = slice(b * dilation, b * dilation + (g.shape[3] - 1) * stride + 1, stride)
        dx[:, channel, rows, columns] += g[:, o] * w[o, i, a, b]
        dw[o, i, a, b] = (g[:, o] * x[:, channel, rows, columns]).sum()
    inner = slice(padding, None if padding == 0 else -padding)
    return dx[:, :, inner, inner].astype(np.float32), dw.astype(np.float32)


GEOMETRIES = list(itertools.product([1, 2, 4], [1, 2, 3], [1, 2], [0, 1]))


def gradients(groups, stride, dilation, padding, size=(8, 7), channels=(4, 8)):
    x, w = values(2, channels[0], *size), values(channels[1], channels[0] // groups, 3, 2)
    tensors = Tensor(x).realize(), Tensor(w).realize()
    result = tensors[0].conv2d(tensors[1], None, groups, stride, dilation, padding)
    g = values(*result.shape)
    expected = convolution_gradients(x, w, g, groups, stride, dilation, padding)
    return result.gradient(*tensors, gradient=Tensor(g).realize()), expected


@pytest.mark.parametrize(("groups", "stride", "dilation", "padding"), GEOMETRIES)
def test_gradients_of_a_convolution(groups, stride, dilation, padding):
    got, expected = gradients(groups, stride, dilation, padding)
    for gradient, value in zip(got, expected):
        agree(gradient, value, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("groups", "stride", "dilation", "padding"), [(1, 1, 1, 0), (1, 2, 1, 1), (4, 1, 1, 1), (2, 2, 2, 1), (1, 3, 1, 0)]
)
def test_compiled_gradients_of_a_convolution(groups, stride, dilation, padding):
    got, expected = gradients(groups, stride, dilation, padding, size=(11, 12), channels=(4, 8))
    for gradient, value in zip(got, expected):
        np.testing.assert_allclose(gradient.numpy(), value, rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("groups", [1, 4])
def test_no_windows_are_stored(groups, stride):
    """What the gradient of the input needs is a copy of the gradient, or of the weights, with zeros around, no more."""
    x, w = Tensor(values(2, 8, 24, 24)).realize(), Tensor(values(16, 8 // groups, 5, 5)).realize()
    result = x.conv2d(w, groups=groups, stride=stride)
    (dx,) = result.gradient(x, gradient=Tensor(values(*result.shape)).realize())
    padded = 2 * 16 * (result.shape[2] + 8) ** 2 + 16 * 8 // groups * 6 * 6 + 2 * 8 * 24 * 24
    GlobalCounters.reset()
    before = GlobalCounters.mem_used
    dx.realize()
    assert GlobalCounters.kernel_count <= 4
    assert GlobalCounters.mem_used - before <= 4 * padded


def pool_gradient(x, g, kernel, stride):
    """Each window's largest element gets its gradient; there are no ties."""
    dx = np.zeros_like(x)
    for b, c, i, j in np.ndindex(g.shape):
        window = x[b, c, i * stride : i * stride + kernel, j * stride : j * stride + kernel]
        a, d = np.unravel_index(window.argmax(), window.shape)
        dx[b, c, i * stride + a, j * stride + d] += g[b, c, i, j]
    return dx


@pytest.mark.parametrize(("kernel", "stride"), [(2, 2), (3, 2), (3, 1), (2, 3)])
def test_gradient_of_a_pool(kernel, stride):
    x = RANDOM.permutation(2 * 3 * 11 * 9).reshape(2, 3, 11, 9).astype(np.float32)
    tensor = Tensor(x).realize()
    result = tensor.max_pool2d(kernel, stride)
    g = values(*result.shape)
    (dx,) = result.gradient(tensor, gradient=Tensor(g))
    agree(dx, pool_gradient(x, g, kernel, stride), atol=1e-5)
    np.testing.assert_allclose(dx.numpy(), pool_gradient(x, g, kernel, stride), rtol=1e-5, atol=1e-5)


def test_a_second_gradient():
    """The gradient of a gradient of windows is a graph as well: f = sum(conv(x, w) ** 2) has a linear slope in x."""
    x, w, v = values(1, 2, 7, 7).astype(np.float64), values(3, 2, 3, 3).astype(np.float64), values(1, 2, 7, 7)
    tensor, weight, direction = Tensor(x), Tensor(w), Tensor(v.astype(np.float64))
    (slope,) = tensor.conv2d(weight, stride=2).square().sum().gradient(tensor)
    (second,) = (slope * direction).sum().gradient(tensor)
    moved = [evaluate(Tensor(x + s * v).conv2d(weight, stride=2).square().sum().uop) for s in (-1.0, 0.0, 1.0)]
    curvature = moved[0] - 2 * moved[1] + moved[2]  # exact for a quadratic: v·H·v
    np.testing.assert_allclose((evaluate(second.uop) * v).sum(), curvature, rtol=1e-6)
