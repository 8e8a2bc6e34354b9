"""Gradients against PyTorch, where it is installed: also at corners and ties, which have no slope to measure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from mixin.evaluate import evaluate

from tensor_engine import Tensor

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=10, derandomize=True, phases=[Phase.generate])


def corners(shape, seed):
    """Halves from -2 to 2: many are equal, many are 0."""
    return np.random.default_rng(seed).integers(-4, 5, shape) / 2


def agree(ours, theirs, *arrays, rtol=1e-7, atol=1e-7):
    """Assert that both functions have the same gradients for the same random weights of their results."""
    mine = [Tensor(array) for array in arrays]
    others = [torch.tensor(array, requires_grad=True) for array in arrays]
    result, expected = ours(*mine), theirs(*others)
    assert result.shape == tuple(expected.shape)
    weights = np.random.default_rng(0).normal(size=result.shape)
    gradients = result.gradient(*mine, gradient=Tensor(weights))
    for gradient, other in zip(gradients, torch.autograd.grad(expected, others, torch.tensor(weights))):
        np.testing.assert_allclose(evaluate(gradient.uop), other.numpy(), rtol=rtol, atol=atol)


FUNCTIONS = {
    name: getattr(torch.nn.functional, name, None) or getattr(torch, name)
    for name in [
        "relu", "relu6", "hardtanh", "hardswish", "hardsigmoid", "elu", "celu", "selu", "sigmoid", "logsigmoid", "silu",
        "tanh", "softplus", "mish", "softsign", "exp", "sin", "cos", "tan", "sinh", "cosh", "asinh", "square",
        "leaky_relu", "abs",
    ]
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@given(shape=shapes, seed=seeds)
@few
def test_functions(name, shape, seed):
    agree(lambda x: getattr(x, name)(), FUNCTIONS[name], corners(shape, seed))


def test_gelu_and_erf():
    x = corners((4, 5), 0)
    agree(lambda x: x.gelu(), lambda x: torch.nn.functional.gelu(x, approximate="tanh"), x)
    agree(lambda x: x.gelu("none"), torch.nn.functional.gelu, x, atol=1e-5)
    agree(lambda x: x.erf(), torch.erf, x, atol=1e-5)


PAIRS = {
    "maximum": (lambda x, y: x.maximum(y), torch.maximum),
    "minimum": (lambda x, y: x.minimum(y), torch.minimum),
    "mul": (lambda x, y: x * y, torch.mul),
    "where": (lambda x, y: (x > y).where(x, y), lambda x, y: torch.where(x > y, x, y)),
    "copysign": (lambda x, y: x.copysign(y - 0.25) * y, lambda x, y: torch.copysign(x, y - 0.25) * y),
}


@pytest.mark.parametrize("name", PAIRS)
@given(shape=shapes, seed=seeds)
@few
def test_pairs(name, shape, seed):
    x, y = corners(shape, seed), corners(shape, seed + 1)
    if name == "copysign":  # at 0 the sign has no slope, and both choose one
        x = np.where(x == 0, 1, x)
    agree(*PAIRS[name], x, y)


REDUCTIONS = {
    "prod": (lambda x: x.prod(-1), lambda x: x.prod(-1)),
    "max": (lambda x: x.max(-1), lambda x: x.amax(-1)),
    "min": (lambda x: x.min(-1), lambda x: x.amin(-1)),
    "sum": (lambda x: x.sum(-1), lambda x: x.sum(-1)),
    "mean": (lambda x: x.mean(0), lambda x: x.mean(0)),
    "softmax": (lambda x: x.softmax(-1), lambda x: x.softmax(-1)),
    "log_softmax": (lambda x: x.log_softmax(0), lambda x: x.log_softmax(0)),
    "logsumexp": (lambda x: x.logsumexp(-1), lambda x: x.logsumexp(-1)),
    "cumsum": (lambda x: x.cumsum(-1), lambda x: x.cumsum(-1)),
    "cumprod": (lambda x: x.cumprod(-1), lambda x: x.cumprod(-1)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@given(shape=shapes, seed=seeds)
@few
def test_reductions(name, shape, seed):
    agree(*REDUCTIONS[name], corners(shape, seed))


@pytest.mark.parametrize("how", [{}, {"padding": 1, "stride": 2}, {"dilation": 2}, {"groups": 2}], ids=str)
def test_convolution(how):
    random = np.random.default_rng(0)
    x, w = random.normal(size=(2, 4, 7, 6)), random.normal(size=(6, 4 // how.get("groups", 1), 3, 2))
    agree(lambda x, w: x.conv2d(w, **how), lambda x, w: torch.nn.functional.conv2d(x, w, **how), x, w)


def test_pooling():
    x = np.random.default_rng(0).normal(size=(2, 3, 7, 6))
    functional = torch.nn.functional
    agree(lambda x: x.max_pool2d((3, 2), 2, padding=1), lambda x: functional.max_pool2d(x, (3, 2), 2, 1), x)
    agree(lambda x: x.avg_pool2d((3, 2), 2, padding=1), lambda x: functional.avg_pool2d(x, (3, 2), 2, 1), x)


def test_gather_and_scatter():
    random = np.random.default_rng(0)
    x, y, index = random.normal(size=(3, 5)), random.normal(size=(3, 4)), random.integers(0, 5, (3, 4))
    agree(lambda x: x.gather(1, Tensor(index)), lambda x: x.gather(1, torch.tensor(index)), x)
    agree(
        lambda x, y: x.scatter(1, Tensor(index), y, "add"),
        lambda x, y: x.scatter_add(1, torch.tensor(index), y), x, y,
    )  # fmt: skip


def test_second_derivatives():
    def ours(x: Tensor) -> Tensor:
        return (x.tanh() * x.softmax(-1)).sum().gradient(x)[0]

    def theirs(x):
        return torch.autograd.grad((x.tanh() * x.softmax(-1)).sum(), x, create_graph=True)[0]

    agree(ours, theirs, corners((3, 4), 5))
