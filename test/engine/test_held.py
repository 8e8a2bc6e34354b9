"""Values that somebody holds and that are stored on the way to others are not computed again."""

from __future__ import annotations

import gc

import numpy as np

from tensor_engine import GlobalCounters, Tensor, TinyJit

A = np.random.default_rng(0).random((32, 64), np.float32)
B = np.random.default_rng(1).random((64, 16), np.float32)


def kernels(compute) -> int:
    before = GlobalCounters.kernel_count
    compute()
    return GlobalCounters.kernel_count - before


def test_a_product_that_is_held_is_computed_once():
    hidden = (Tensor(A) @ Tensor(B)).relu()
    expected = np.maximum(A @ B, 0)
    first = kernels(lambda: np.testing.assert_allclose(hidden.sum().item(), expected.sum(), rtol=1e-5))
    again = kernels(lambda: np.testing.assert_allclose(hidden.max().item(), expected.max(), rtol=1e-5))
    assert (first, again) == (2, 1)
    assert kernels(lambda: np.testing.assert_allclose(hidden.numpy(), expected, rtol=1e-5)) == 0


def test_what_nobody_holds_is_not_kept():
    a, b = Tensor(A).realize(), Tensor(B).realize()
    gc.collect()
    before = GlobalCounters.mem_used
    total = (a @ b).relu().sum().realize()
    assert GlobalCounters.mem_used - before == total.nbytes()
    hidden = (a @ b).relu()
    hidden.max().item()
    assert GlobalCounters.mem_used - before == total.nbytes() + hidden.nbytes()
    del hidden
    gc.collect()
    assert GlobalCounters.mem_used - before == total.nbytes()


def test_what_is_held_may_be_assigned_to():
    hidden = (Tensor(A) @ Tensor(B)).relu()
    later = hidden + 1
    hidden.sum().item()
    hidden[0] = 0
    expected = np.maximum(A @ B, 0)
    np.testing.assert_allclose(later.numpy(), expected + 1, rtol=1e-5)
    expected[0] = 0
    np.testing.assert_allclose(hidden.numpy(), expected, rtol=1e-5)


def test_gradients_of_what_is_held():
    a, b = Tensor(A), Tensor(B)
    with Tensor.train():
        hidden = (a @ b).relu()
        loss = hidden.square().sum()
        loss.item()
        loss.backward()
    np.testing.assert_allclose(a.grad.numpy(), 2 * np.maximum(A @ B, 0) @ B.T, rtol=1e-5)


def test_a_replay_computes_what_a_capture_held():
    state = Tensor(A).contiguous().realize()

    @TinyJit
    def step(b: Tensor) -> tuple[Tensor, Tensor]:
        hidden = (state @ b).relu()
        total = hidden.sum().realize()
        state.assign(state * 0.5).realize()
        return total, hidden.max()

    expected = A.copy()
    for number in range(5):
        total, largest = step(Tensor(B + number).realize())
        product = np.maximum(expected @ (B + number), 0)
        np.testing.assert_allclose((total.item(), largest.item()), (product.sum(), product.max()), rtol=1e-5)
        expected *= 0.5
