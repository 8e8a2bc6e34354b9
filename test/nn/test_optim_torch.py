"""Optimisers against PyTorch's over their hyperparameters, several steps of a small regression each."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tensor_engine import Tensor
from tensor_engine.nn import optim

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")

STEPS = 6
INPUTS = np.random.default_rng(1).normal(size=(8, 3)).astype(np.float32)
TARGETS = np.random.default_rng(2).normal(size=(8, 2)).astype(np.float32)
WEIGHT = np.random.default_rng(3).normal(size=(3, 2)).astype(np.float32)
BIAS = np.zeros(2, np.float32)


def trained(make):
    weight, bias = Tensor(WEIGHT), Tensor(BIAS)
    optimizer = make([weight, bias])
    with Tensor.train():
        for _ in range(STEPS):
            optimizer.zero_grad()
            ((Tensor(INPUTS) @ weight + bias).tanh() - Tensor(TARGETS)).square().mean().backward()
            optimizer.step()
    return weight.numpy(), bias.numpy()


def trained_by_torch(make):
    weight, bias = (torch.tensor(values, requires_grad=True) for values in (WEIGHT, BIAS))
    optimizer = make([weight, bias])
    for _ in range(STEPS):
        optimizer.zero_grad()
        ((torch.tensor(INPUTS) @ weight + bias).tanh() - torch.tensor(TARGETS)).square().mean().backward()
        optimizer.step()
    return weight.detach().numpy(), bias.detach().numpy()


def agree(ours, theirs):
    for found, expected in zip(trained(ours), trained_by_torch(theirs)):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)


SGD = [
    {"lr": lr, "momentum": momentum, "weight_decay": decay, "nesterov": nesterov}
    for lr, momentum, decay, nesterov in itertools.product([0.5, 0.05], [0.0, 0.9], [0.0, 0.1], [False, True])
    if momentum or not nesterov
]
ADAM = [
    {"lr": lr, "betas": betas, "eps": eps}
    for lr, betas, eps in itertools.product([0.1, 0.01], [(0.9, 0.999), (0.5, 0.8)], [1e-8, 1e-3])
]


def ours_from(how):
    """PyTorch's arguments as ours."""
    how = dict(how)
    how["b1"], how["b2"] = how.pop("betas")
    return how


@pytest.mark.parametrize("how", SGD, ids=str)
def test_sgd(how):
    agree(lambda ps: optim.SGD(ps, **how), lambda ps: torch.optim.SGD(ps, **how))


@pytest.mark.parametrize("how", ADAM, ids=str)
def test_adam(how):
    agree(lambda ps: optim.Adam(ps, **ours_from(how)), lambda ps: torch.optim.Adam(ps, **how))


@pytest.mark.parametrize("decay", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("how", ADAM[:3], ids=str)
def test_adamw(how, decay):
    agree(
        lambda ps: optim.AdamW(ps, **ours_from(how), weight_decay=decay),
        lambda ps: torch.optim.AdamW(ps, **how, weight_decay=decay),
    )
