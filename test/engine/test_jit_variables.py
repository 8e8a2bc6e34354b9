"""Captured functions and variables: one capture serves all values, and the results' shapes follow."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from linear import BACKENDS

from tensor_engine import Context, Tensor, TinyJit, Variable
from tensor_engine.engine import program as kernels
from tensor_engine.engine.jit import JitError

A = np.random.default_rng(0).standard_normal((7, 4)).astype(np.float32)


def n(value: int, largest: int = 7) -> Any:
    return Variable("n", 1, largest).bind(value)


def agree(found: Tensor, wanted: Any) -> None:
    assert found.numpy().shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("path", BACKENDS)
def test_one_capture_for_all_values(path: str) -> None:
    calls = []

    def function(x: Tensor, size: Any) -> tuple[Tensor, Tensor]:
        calls.append(1)
        return x[:size] * 2, x[:size].sum(0)

    with Context(DEV=path):
        x, jit = Tensor(A).realize(), TinyJit(function)
        jit(x, n(3))
        jit(x, n(4))
        compiled = len(kernels.programs)
        kept = [(value, jit(x, n(value))) for value in (1, 2, 7, 5, 5, 7)]
        for value, (double, total) in kept:
            agree(double, A[:value] * 2)
            agree(total, A[:value].sum(0))
        assert len(calls) == 2 and len(kernels.programs) == compiled


def test_the_variable_may_come_in_a_shape() -> None:
    x, jit = Tensor(A).realize(), TinyJit(lambda x: (x + 1).sum(1))
    for value in (3, 4, 1, 7):
        agree(jit(x[: n(value)]), (A[:value] + 1).sum(1))
        assert repr(jit(x[: n(value)]).shape) == f"(n={value},)"


def test_results_of_variable_size_that_are_fed_back() -> None:
    x, jit = Tensor(A).realize(), TinyJit(lambda x: x * 2)
    for value in (3, 4, 1, 7):
        first = jit(x[: n(value)])
        second = jit(first)
        third = jit(second)
        for power, result in enumerate((first, second, third), 1):
            agree(result, A[:value] * 2**power)


def test_views_of_inputs_and_of_other_memory_follow() -> None:
    x = Tensor(A).realize()
    jit = TinyJit(lambda y, size: (y, y[:size], x[size - 1], Tensor.ones(size)))
    for value in (3, 4, 1, 7):
        same, part, last, ones = jit(Tensor(A + value), n(value))
        agree(same, A + value)
        agree(part, A[:value] + value)
        agree(last, A[value - 1])
        agree(ones, np.ones(value))


def by_slice(cache: Tensor, x: Tensor, size: Any) -> None:
    cache[:, size - 1 : size] = x


def by_place(cache: Tensor, x: Tensor, size: Any) -> None:
    cache[:, size - 1] = x


def by_assigning_to_a_part(cache: Tensor, x: Tensor, size: Any) -> None:
    cache.shrink((None, (size - 1, size), None)).assign(x.unsqueeze(0)).realize()


def by_choice(cache: Tensor, x: Tensor, size: Any) -> None:
    here = (Tensor.arange(7) == size - 1).reshape(1, 7, 1)
    cache.assign(here.where(x, cache)).realize()


@pytest.mark.parametrize("write", [by_slice, by_place, by_assigning_to_a_part, by_choice])
def test_a_cache_that_grows(write: Any) -> None:
    """Attention to all earlier places, which are kept: what a decoder does for each token."""
    cache = Tensor.zeros(1, 7, 4).contiguous().realize()

    def step(x: Tensor, size: Any) -> Tensor:
        write(cache, x, size)
        seen = cache[0, :size]
        return x.scaled_dot_product_attention(seen, seen)

    jit = TinyJit(step)
    for size in range(1, 8):
        found = jit(Tensor(A[size - 1 : size]), n(size))
        powers = np.exp(A[size - 1 : size] @ A[:size].T / 2)
        agree(found, powers / powers.sum() @ A[:size])
        np.testing.assert_array_equal(cache.numpy()[0, :size], A[:size])


def test_a_captured_function_in_a_captured_function() -> None:
    x = Tensor(A).realize()
    inner = TinyJit(lambda x, size: x[:size] * 3)
    outer = TinyJit(lambda x, size: inner(x, size).sum(0))
    for value in (3, 4, 5, 2):
        agree(outer(x, n(value)), (A[:value] * 3).sum(0))
    for value in (3, 4, 5, 2):
        agree(inner(x, n(value)), A[:value] * 3)
    outer.reset()
    for value in (3, 4, 5, 2):
        agree(outer(x, n(value)), (A[:value] * 3).sum(0))


def captured() -> TinyJit:
    jit = TinyJit(lambda x, size: x.sum(0) + size)
    for value in (3, 4):
        agree(jit(Tensor(A)[: n(value)], n(value)), A[:value].sum(0) + value)
    return jit


@pytest.mark.parametrize(
    "arguments, message",
    [
        (lambda x: (x[: n(3)], n(4)), "'n' is bound to 3 and to 4"),
        (lambda x: (x[: n(3)], 3), "argument 1 was captured as"),
        (lambda x: (x[: n(3)], n(3) + 1), "argument 1 was captured as"),
        (lambda x: (x[: n(3)], Variable("m", 1, 7).bind(3)), "argument 1 was captured as"),
        (lambda x: (x[: n(3, 6)], n(3)), "argument 0 was captured as"),
        (lambda x: (x[:3], n(3)), "argument 0 was captured as"),
        (lambda x: (x[: n(3), :2], n(3)), "argument 0 was captured as"),
    ],
    ids=["two values", "an int", "another formula", "another name", "another range", "a known size", "another axis"],
)
def test_other_arguments(arguments: Any, message: str) -> None:
    jit = captured()
    with pytest.raises(ValueError, match=message):
        jit(*arguments(Tensor(A)))
    agree(jit(Tensor(A)[: n(5)], n(5)), A[:5].sum(0) + 5)


def test_a_variable_that_is_no_argument_would_be_frozen() -> None:
    size = n(3)
    jit = TinyJit(lambda x: x[:size].sum())
    jit(Tensor(A))
    with pytest.raises(JitError, match="'n', whose value every replay would repeat"):
        jit(Tensor(A))
