"""Optimisers against their papers' formulas, in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from tensor_engine import Tensor, TinyJit, dtypes
from tensor_engine.nn import optim

STEPS = 5
START = np.random.default_rng(1).normal(size=(3, 4))
TARGET = np.random.default_rng(2).normal(size=(3, 4))


def loss_of(p: Tensor) -> Tensor:
    return (p - Tensor(TARGET, dtype=p.dtype)).square().sum() * 0.5


def trained(make, capture=True, dtype=dtypes.float32):
    """The parameter after some steps towards TARGET."""
    p = Tensor(START, dtype=dtype)
    optimizer = make([p])

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(p).backward()
        return loss.realize(*optimizer.schedule_step())

    run = TinyJit(step) if capture else step
    with Tensor.train():
        for _ in range(STEPS):
            run()
    return p.numpy()


def size(x):
    return np.sqrt((x * x).sum())


def sgd(lr=0.1, momentum=0.0, decay=0.0, nesterov=False):
    p, velocity = START.copy(), 0.0
    for _ in range(STEPS):
        g = p - TARGET + decay * p
        velocity = momentum * velocity + g
        p = p - lr * (g + momentum * velocity if nesterov else velocity)
    return p


def adam(lr=0.1, decay=0.0, eps=1e-8, b1=0.9, b2=0.999, in_proportion=False):
    p, m, v = START.copy(), 0.0, 0.0
    for t in range(1, STEPS + 1):
        g = p - TARGET
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        step = m / (1 - b1**t) / (np.sqrt(v / (1 - b2**t)) + eps) + decay * p
        p = p - lr * step * (size(p) / size(step) if in_proportion else 1)
    return p


def lars(lr=0.1, momentum=0.9, decay=0.01, tcoef=0.1):
    p, velocity = START.copy(), 0.0
    for _ in range(STEPS):
        g = p - TARGET
        local = tcoef * size(p) / (size(g) + decay * size(p))
        velocity = momentum * velocity + lr * local * (g + decay * p)
        p = p - velocity
    return p


def muon(lr, momentum=0.95, decay=0.0, nesterov=True, iterations=5):
    """K. Jordan's: running means by weight, and the iteration written out for rows fewer than columns."""
    p, mean = START.copy(), 0.0
    for _ in range(STEPS):
        g = p - TARGET
        mean = momentum * mean + (1 - momentum) * g
        x = (1 - momentum) * g + momentum * mean if nesterov else mean
        x = x / size(x)
        for _ in range(iterations):
            a = x @ x.T
            x = 3.4445 * x - 4.775 * a @ x + 2.0315 * a @ a @ x
        p = p * (1 - lr * decay) - lr * x
    return p


CASES = {
    "SGD": (lambda ps: optim.SGD(ps, 0.1), sgd()),
    "SGD with momentum": (lambda ps: optim.SGD(ps, 0.1, momentum=0.9), sgd(momentum=0.9)),
    "SGD with decay": (lambda ps: optim.SGD(ps, 0.1, weight_decay=0.1), sgd(decay=0.1)),
    "Nesterov": (lambda ps: optim.SGD(ps, 0.1, 0.9, 0.01, nesterov=True), sgd(0.1, 0.9, 0.01, True)),
    "Adam": (lambda ps: optim.Adam(ps, 0.1), adam()),
    "AdamW": (lambda ps: optim.AdamW(ps, 0.1, weight_decay=0.05), adam(decay=0.05)),
    "LAMB": (lambda ps: optim.LAMB(ps, 0.1, weight_decay=0.05), adam(decay=0.05, eps=1e-6, in_proportion=True)),
    "LAMB, short memory": (
        lambda ps: optim.LAMB(ps, 0.03, b1=0.5, b2=0.8, eps=1e-3), adam(0.03, 0.0, 1e-3, 0.5, 0.8, in_proportion=True)
    ),
    "LARS": (lambda ps: optim.LARS(ps, 0.1, 0.9, 0.01, tcoef=0.1), lars()),
    "LARS without momentum": (lambda ps: optim.LARS(ps, 0.5, 0.0, 0.0, tcoef=0.02), lars(0.5, 0.0, 0.0, 0.02)),
    "LARS, large decay": (lambda ps: optim.LARS(ps, 0.2, 0.5, 0.3, tcoef=0.05), lars(0.2, 0.5, 0.3, 0.05)),
    "Muon": (lambda ps: optim.Muon(ps, 0.1), muon(0.1)),
    "Muon, plain momentum": (lambda ps: optim.Muon(ps, 0.05, 0.8, nesterov=False), muon(0.05, 0.8, 0, False)),
    "Muon with decay": (lambda ps: optim.Muon(ps, 0.1, 0.9, 0.2, ns_steps=3), muon(0.1, 0.9, 0.2, True, 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_against_the_paper(name):
    make, expected = CASES[name]
    np.testing.assert_allclose(trained(make), expected, rtol=1e-4, atol=1e-5)


def test_captured_steps_are_the_same_steps():
    for name in ("Nesterov", "Adam"):
        make = CASES[name][0]
        np.testing.assert_array_equal(trained(make), trained(make, capture=False))


def test_muon_turns_a_step_orthogonal():
    """All singular values of the step come near to those of a rotation (the iteration leaves 0.7 to 1.2)."""
    p = Tensor(START.astype(np.float32))
    optimizer = optim.Muon([p], lr=1.0, momentum=0.0, nesterov=False)
    p.grad = Tensor(TARGET.astype(np.float32))
    with Tensor.train():
        optimizer.step()
    step = START - p.numpy()
    u, _, v = np.linalg.svd(TARGET, full_matrices=False)
    sizes = np.diag(u.T @ step @ v.T)
    assert ((sizes > 0.6) & (sizes < 1.3)).all()
    np.testing.assert_allclose(u @ np.diag(sizes) @ v, step, atol=1e-4)


def test_muon_steps_along_vectors():
    p = Tensor([1.0, 2.0])
    p.grad = Tensor([0.5, -0.5])
    with Tensor.train():
        optim.Muon([p], lr=0.1, momentum=0.0, weight_decay=0.5).step()
    np.testing.assert_allclose(p.numpy(), [1 - 0.05 - 0.05, 2 + 0.05 - 0.1], rtol=1e-6)


def test_half_keeps_its_sums_in_single():
    found = trained(CASES["Adam"][0], dtype=dtypes.float16)
    np.testing.assert_allclose(found, CASES["Adam"][1], rtol=0.01, atol=0.01)


def test_zeros_have_no_size_to_step_in_proportion_to():
    for make in (optim.LAMB, optim.LARS):
        p = Tensor([0.0, 0.0])
        p.grad = Tensor([1.0, 1.0])
        with Tensor.train():
            make([p], lr=0.1).step()
        assert np.isfinite(p.numpy()).all()
        assert (p.numpy() < 0).all()


def test_the_learning_rate_is_a_tensor():
    p = Tensor([1.0])
    optimizer = optim.SGD([p], lr=0.5)

    @TinyJit
    def step() -> None:
        optimizer.zero_grad()
        p.sum().backward()
        optimizer.step()

    with Tensor.train():
        for _ in range(3):
            step()
        optimizer.lr.assign([0.25]).realize()
        step()
    assert p.item() == 1 - 3 * 0.5 - 0.25


def test_several_optimisers_as_one():
    a, b = Tensor([1.0]), Tensor([2.0])
    group = optim.OptimizerGroup(optim.SGD([a], lr=0.5), optim.SGD([b], lr=0.25))
    with Tensor.train():
        (a * b).sum().backward()
        group.step()
    assert (a.item(), b.item()) == (1 - 0.5 * 2, 2 - 0.25 * 1)
    group.zero_grad()
    assert a.grad is b.grad is None


def test_gradients_stay_what_they_were():
    p = Tensor([3.0])
    optimizer = optim.SGD([p], lr=0.5)
    with Tensor.train():
        p.square().sum().backward()
        optimizer.step()
    assert (p.item(), p.grad.item()) == (0, 6)


def test_constants_and_shared_tensors_become_parameters():
    weight, twin = Tensor.ones(2), Tensor.ones(2)
    optimizer = optim.SGD([weight, twin, weight], lr=1.0)
    assert len(optimizer.params) == 2
    with Tensor.train():
        (weight.sum() + twin.sum() * 2).backward()
        optimizer.step()
    assert (weight.tolist(), twin.tolist()) == ([0, 0], [-1, -1])


def test_buffers_are_left_alone():
    p, seen = Tensor([1.0]), Tensor([5.0], is_param=False)
    optimizer = optim.SGD([p, seen], lr=1.0)
    with Tensor.train():
        (p * seen).sum().backward()
        seen.assign(seen + 1)
        optimizer.step()
    assert (p.item(), seen.item()) == (-4, 6)


def test_errors():
    p = Tensor([1.0])
    optimizer = optim.SGD([p], lr=0.5)
    with pytest.raises(RuntimeError, match="Tensor.train"):
        optimizer.step()
    with Tensor.train(), pytest.raises(ValueError, match="no gradient"):
        optimizer.step()
    with pytest.raises(ValueError, match="at least one"):
        optim.SGD([Tensor([1, 2])], lr=0.5)
