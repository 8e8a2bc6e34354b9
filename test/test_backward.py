"""backward: gradients arrive at the tensors that are there."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from tensor_engine import Tensor, TinyJit
from tensor_engine.storage import alive
from tensor_engine.uop.gradient import GradientError


def test_the_example():
    x, y = Tensor.eye(3), Tensor([[2.0, 0, -2.0]])
    z = y.matmul(x).sum()
    z.backward()
    assert x.grad.tolist() == [[2, 2, 2], [0, 0, 0], [-2, -2, -2]]
    assert y.grad.tolist() == [[1, 1, 1]]


def test_values_on_the_way_get_theirs():
    x = Tensor([1.0, 2.0])
    y = x * 3
    (y * y).sum().backward()
    assert (y.grad.tolist(), x.grad.tolist()) == ([6, 12], [18, 36])


def test_only_what_it_depends_on():
    x, unused, whole = Tensor([1.0]), Tensor([1.0]), Tensor([2])
    (x * whole + unused.detach()).sum().backward()
    assert x.grad.item() == 2
    assert unused.grad is whole.grad is None


def test_equal_constants_are_different_tensors():
    a, b = Tensor(2.0), Tensor(2.0)
    (a * a * b * 2.0).backward()
    assert (a.grad.item(), b.grad.item()) == (16, 8)
    ones, others = Tensor.ones(2), Tensor.ones(2)
    (ones * 3 + others).sum().backward()
    assert (ones.grad.tolist(), others.grad.tolist()) == ([3, 3], [1, 1])


def test_gradients_add_up():
    x = Tensor([1.0, 2.0])
    for _ in range(3):
        x.square().sum().backward()
    assert x.grad.tolist() == [6, 12]
    x.sum().backward()
    assert x.grad.tolist() == [7, 13]


def test_adding_up_does_not_touch_others():
    x, given = Tensor([1.0]), Tensor([2.0])
    for _ in range(2):
        (x + 0).backward(given)
        x.grad.realize()
    assert (x.grad.item(), given.item()) == (4, 2)


def test_captured_gradients_add_up():
    x = Tensor([1.0, 2.0])
    x.grad = Tensor([0.0, 0.0])

    @TinyJit
    def step() -> None:
        x.square().sum().backward()
        x.sum().backward()
        x.grad.realize()

    for count in range(1, 5):
        step()
        assert x.grad.tolist() == [3 * count, 5 * count]


def test_a_loss_may_be_looked_at_while_training():
    x = Tensor([3.0])
    loss = x.square().sum()
    with Tensor.train():
        assert loss.item() == 9
        loss.backward()
    assert x.grad.item() == 6


def test_nothing_to_differentiate_is_an_error():
    loss = Tensor([3.0]).square().sum().realize()
    with pytest.raises(GradientError, match="depends on no floating tensor"):
        loss.backward()
    with pytest.raises(ValueError, match="one element"):
        Tensor([1.0, 2.0]).backward()


def test_gradients_of_gradients():
    x = Tensor([1.0, 2.0])
    (x**3).sum().backward()
    first, x.grad = x.grad, None
    first.sum().backward()
    assert x.grad.tolist() == [6, 12]


def test_the_list_of_tensors_forgets():
    gc.collect()
    before = len(alive)
    tensors = [Tensor([1.0]) for _ in range(10)]
    tensors += [tensor + 1 for tensor in tensors]
    assert len(alive) >= before + 20
    del tensors
    gc.collect()
    assert len(alive) <= before


def test_gradients_flow_through_realized_values_no_more():
    x = Tensor([2.0])
    y = (x * 3).realize()
    (y * y).sum().backward()
    assert (y.grad.item(), x.grad) == (12, None)


def softmax_times_tanh(x, weight):
    hidden = x @ weight
    powers = np.exp(hidden)
    return (powers / powers.sum(1, keepdims=True) * np.tanh(hidden)).sum()


def test_against_slopes_through_memory():
    """Kernels with stores between them, not only graphs."""
    random = np.random.default_rng(0)
    arrays = [random.normal(size=(4, 5)), random.normal(size=(5, 3))]
    tensors = [Tensor(array) for array in arrays]
    hidden = (tensors[0] @ tensors[1]).contiguous()
    (hidden.softmax(1) * hidden.contiguous_backward().tanh()).sum().backward()
    for number, tensor in enumerate(tensors):
        ahead, behind = list(arrays), list(arrays)
        direction = random.normal(size=tensor.shape)
        ahead[number] = arrays[number] + 1e-6 * direction
        behind[number] = arrays[number] - 1e-6 * direction
        slope = (softmax_times_tanh(*ahead) - softmax_times_tanh(*behind)) / 2e-6
        np.testing.assert_allclose((tensor.grad.numpy() * direction).sum(), slope, rtol=1e-5)
