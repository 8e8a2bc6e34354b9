"""Layers against their definitions in numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mixin.agree import agree
from mixin.evaluate import evaluate

from tensor_engine import Tensor, dtypes, nn

RANDOM = np.random.default_rng(3)


def values(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def array(tensor):
    """The values of a weight, which from now on is in memory."""
    return tensor.realize().numpy()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# ---- products ---------------------------------------------------------------------------------------------------


def test_linear():
    layer, x = nn.Linear(3, 5), values(2, 4, 3)
    agree(layer(Tensor(x)), x @ array(layer.weight).T + array(layer.bias), rtol=1e-5)
    assert nn.Linear(3, 5, bias=False).bias is None


def test_weights_are_spread_over_their_bounds():
    weight = array(nn.Linear(100, 200).weight)
    assert np.abs(weight).max() <= 0.1
    assert np.abs(weight).max() > 0.099
    assert abs(weight.mean()) < 0.002
    assert np.abs(array(nn.Conv2d(8, 16, 3).weight)).max() <= 1 / math.sqrt(8 * 9)


def test_two_layers_start_differently():
    assert (array(nn.Linear(3, 3).weight) != array(nn.Linear(3, 3).weight)).all()


def correlate(x, weight):
    """Cross-correlation with stride 1."""
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], axis=tuple(range(2, x.ndim)))
    axes = list(range(2 + x.ndim - 2, 2 * x.ndim - 2))
    result = np.tensordot(windows, weight, ([1, *axes], list(range(1, weight.ndim))))
    return np.moveaxis(result, -1, 1)


def test_conv2d():
    layer, x = nn.Conv2d(2, 3, (3, 2), padding=1), values(2, 2, 5, 6)
    expected = correlate(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), array(layer.weight))
    agree(layer(Tensor(x)), expected + array(layer.bias)[:, None, None], rtol=1e-4, atol=1e-5)


def test_conv1d():
    layer, x = nn.Conv1d(2, 3, 3, bias=False), values(2, 2, 7)
    assert layer.weight.shape == (3, 2, 3)
    agree(layer(Tensor(x)), correlate(x, array(layer.weight)), rtol=1e-4, atol=1e-5)


def test_same_padding_keeps_the_size():
    for kernel, dilation in [(3, 1), (4, 1), ((2, 5), (3, 1))]:
        layer = nn.Conv2d(1, 1, kernel, padding="same", dilation=dilation)
        assert layer(Tensor(values(1, 1, 9, 8))).shape == (1, 1, 9, 8)
    with pytest.raises(ValueError, match="stride"):
        nn.Conv2d(1, 1, 3, stride=2, padding="same")


def test_transposed_convolutions_undo_the_shape():
    for kind, up, shape in [(nn.Conv2d, nn.ConvTranspose2d, (2, 3, 8, 10)), (nn.Conv1d, nn.ConvTranspose1d, (2, 3, 8))]:
        down = kind(3, 4, 4, stride=2, padding=1)(Tensor(values(*shape)))
        assert up(4, 3, 4, stride=2, padding=1)(down).shape == shape


def test_transposed_convolution_spreads_the_kernel():
    layer = nn.ConvTranspose2d(1, 1, 2, stride=2, bias=False)
    x, weight = values(1, 1, 3, 2), array(layer.weight)
    agree(layer(Tensor(x)), np.kron(x, weight), rtol=1e-5)


def test_embedding():
    layer, index = nn.Embedding(5, 3), np.array([[4, 0], [2, 2]], np.int32)
    agree(layer(Tensor(index)), array(layer.weight)[index])


# ---- norms ------------------------------------------------------------------------------------------------------


def normalised(x, axes, eps):
    x = x.astype(np.float64)
    return ((x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)).astype(np.float32)


def test_batchnorm_while_training_and_after():
    layer, x = nn.BatchNorm(3, momentum=0.2), values(4, 3, 5)
    layer.weight, layer.bias = Tensor(values(3)), Tensor(values(3))
    weight, bias = array(layer.weight)[:, None], array(layer.bias)[:, None]
    with Tensor.train():
        agree(layer(Tensor(x)), normalised(x, (0, 2), 1e-5) * weight + bias, rtol=1e-4, atol=1e-5)
    mean, var = 0.2 * x.mean((0, 2)), 0.8 + 0.2 * x.var((0, 2), ddof=1)
    agree(layer.running_mean, mean, rtol=1e-5)
    agree(layer.running_var, var, rtol=1e-5)
    assert layer.num_batches_tracked.item() == 1
    expected = (x - mean[:, None]) / np.sqrt(var[:, None] + 1e-5) * weight + bias
    agree(layer(Tensor(x)), expected, rtol=1e-4, atol=1e-5)


def test_batchnorm_learns_through_its_statistics():
    layer, x = nn.BatchNorm(2, affine=False), Tensor(values(6, 2))
    with Tensor.train():
        gradient = (layer(x) ** 3).sum().gradient(x)[0]
    # a normalised value doesn't change when all inputs move together
    np.testing.assert_allclose(evaluate(gradient.uop).sum(0), [0, 0], atol=1e-4)


def test_groupnorm_and_instancenorm():
    x = values(2, 6, 3, 4)
    layer = nn.GroupNorm(2, 6)
    layer.weight, layer.bias = Tensor(values(6)), Tensor(values(6))
    weight, bias = (array(t)[:, None, None] for t in (layer.weight, layer.bias))
    expected = normalised(x.reshape(2, 2, -1), (2,), 1e-5).reshape(x.shape) * weight + bias
    agree(layer(Tensor(x)), expected, rtol=1e-4, atol=1e-5)
    agree(nn.InstanceNorm(6, affine=False)(Tensor(x)), normalised(x, (2, 3), 1e-5), rtol=1e-4, atol=1e-5)


def test_layernorm():
    x, layer = values(2, 3, 4), nn.LayerNorm((3, 4))
    layer.weight, layer.bias = Tensor(values(3, 4)), Tensor(values(3, 4))
    expected = normalised(x, (1, 2), 1e-5) * array(layer.weight) + array(layer.bias)
    agree(layer(Tensor(x)), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"\(3, 4\) doesn't fit \(2, 4\)"):
        layer(Tensor(values(2, 4)))


def test_layernorm2d():
    x = values(2, 3, 4, 5)
    agree(nn.LayerNorm2d(3)(Tensor(x)), normalised(x, (1,), 1e-5), rtol=1e-4, atol=1e-5)


def test_rmsnorm():
    x, layer = values(2, 5), nn.RMSNorm(5)
    layer.weight = Tensor(values(5))
    expected = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * array(layer.weight)
    agree(layer(Tensor(x)), expected, rtol=1e-5)
    large = Tensor([300.0, 400.0], dtype=dtypes.float16)
    normal = nn.RMSNorm(2, elementwise_affine=False)(large)
    agree(normal, np.array([0.6, 0.8]) * math.sqrt(2), rtol=1e-3, dtype=dtypes.float16)


# ---- cells ------------------------------------------------------------------------------------------------------


def gates(cell, x, hidden, count):
    weights = [array(t) for t in (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)]
    from_input, from_hidden = x @ weights[0].T + weights[2], hidden @ weights[1].T + weights[3]
    return np.split(from_input, count, 1), np.split(from_hidden, count, 1)


def test_lstm():
    cell, x, hidden, memory = nn.LSTMCell(3, 4), values(2, 3), values(2, 4), values(2, 4)
    take, keep, new, show = (a + b for a, b in zip(*gates(cell, x, hidden, 4)))
    expected = sigmoid(keep) * memory + sigmoid(take) * np.tanh(new)
    got_hidden, got_memory = cell(Tensor(x), (Tensor(hidden), Tensor(memory)))
    agree(got_memory, expected, rtol=1e-4, atol=1e-5)
    agree(got_hidden, sigmoid(show) * np.tanh(expected), rtol=1e-4, atol=1e-5)
    zeros = Tensor.zeros(2, 4)
    agree(cell(Tensor(x))[0], evaluate(cell(Tensor(x), (zeros, zeros))[0].uop))


def test_gru():
    cell, x, hidden = nn.GRUCell(3, 4), values(2, 3), values(2, 4)
    (reset, keep, new), (reset_h, keep_h, new_h) = gates(cell, x, hidden, 3)
    candidate = np.tanh(new + sigmoid(reset + reset_h) * new_h)
    share = sigmoid(keep + keep_h)
    agree(cell(Tensor(x), Tensor(hidden)), share * hidden + (1 - share) * candidate, rtol=1e-4, atol=1e-5)
