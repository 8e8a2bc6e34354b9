"""How many kernels typical graphs become, and that none of them does its work twice."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tensor_engine import GlobalCounters, Tensor


def data(*shape: int) -> Tensor:
    random = np.random.default_rng(len(shape))
    return Tensor(random.standard_normal(shape).astype(np.float32)).realize()


def kernels(*tensors: Tensor) -> int:
    GlobalCounters.reset()
    tensors[0].realize(*tensors[1:])
    return GlobalCounters.kernel_count


def conv_silu_pool() -> Tensor:
    return data(1, 4, 12, 12).conv2d(data(8, 4, 3, 3), data(8), padding=1).silu().max_pool2d(2)


def padded_convolution() -> Tensor:
    return data(1, 4, 9, 9).conv2d(data(6, 4, 3, 3), padding=1)


# graph → the number of kernels, and why
COUNTS: dict[str, tuple[int, Callable[[], Tensor]]] = {
    "elementwise": (1, lambda: (data(5, 7) * 2 + 1).relu().exp()),
    "elementwise and a sum": (1, lambda: (data(5, 7) * 2 + 1).sum()),
    "a sum and elementwise": (1, lambda: data(5, 7).sum(1).relu() * 3 + 1),
    "two sums of one value are added": (1, lambda: data(5, 7).sum(0) + data(5, 7).max(0)),
    "a sum of a sum is one sum": (1, lambda: data(5, 7).sum(0, keepdim=True).sum(1)),
    "matmul": (1, lambda: data(8, 9) @ data(9, 10)),
    "matmul, bias, activation": (1, lambda: (data(8, 9) @ data(9, 10) + data(10)).silu()),
    "matmul of a matmul: the inner is read again and again": (2, lambda: data(8, 9) @ data(9, 10) @ data(10, 3)),
    "convolution with its epilogue": (1, lambda: data(1, 4, 9, 9).conv2d(data(6, 4, 3, 3), data(6)).silu()),
    "a padded convolution: its windows overlap, so it is padded once": (2, padded_convolution),
    "a view of a view": (0, lambda: data(4, 6).permute(1, 0)[1:3].reshape(4, 2)),
    "softmax: the maximum, the sum, the quotient": (3, lambda: data(5, 7).softmax()),
    "layer norm: the mean, the variance, the quotient": (3, lambda: data(5, 7).layernorm()),
    "gather by an index: one element is read, not a sum over all": (1, lambda: data(100, 8)[Tensor([3, 5, 99])]),
    "concatenation": (1, lambda: data(3, 4).cat(data(2, 4), dim=0)),
    "a value that is asked for in the middle": (2, lambda: (data(5, 7) + 1).contiguous() * 2),
    "padding, convolution with its activation, pool": (3, conv_silu_pool),
}


@pytest.mark.parametrize("name", COUNTS)
def test_number_of_kernels(name: str) -> None:
    count, graph = COUNTS[name]
    assert kernels(graph()) == count


def test_a_value_that_is_used_twice_is_computed_once() -> None:
    x = data(6, 6).exp().sum(1, keepdim=True)
    assert kernels(x + 1, x * 2) == 3, "x, and one kernel for each of its users"


def test_cheap_arithmetic_is_repeated_rather_than_stored() -> None:
    x = data(6, 6) + 1
    assert kernels(x * 2, x * 3) == 2


def test_costly_arithmetic_is_not_repeated() -> None:
    x = data(6, 6).exp().sin()
    assert kernels(x * 2, x * 3) == 3


def test_operations_grow_with_the_work_and_not_faster() -> None:
    """A deep network does as many multiplications as its layers say: nothing is computed inside something else."""
    x = data(16, 16)
    for _ in range(6):
        x = (x @ data(16, 16)).relu()
    kernels(x)
    assert GlobalCounters.global_ops <= 6 * (2 * 16**3 + 4 * 16**2)


def test_what_was_computed_is_not_computed_again() -> None:
    x = data(5).exp()
    y = x + 1
    assert kernels(x) == 1
    assert kernels(y) == 1 and kernels(y) == 0 and kernels(x) == 0


def test_a_long_chain_of_stored_values() -> None:
    """Deeper than Python's stack."""
    x = data(4)
    for _ in range(1500):
        x = (x + 1).contiguous()
    assert kernels(x) == 1500
