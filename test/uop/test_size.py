"""Sizes that depend on variables: arithmetic, comparison and division hold for every value."""
from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensor_engine import Variable
from tensor_engine.uop.op import Ops
from tensor_engine.uop.size import value_of, with_values, without_values
from tensor_engine.uop.uop import UOp, as_index

N, M = Variable("n", 1, 5), Variable("m", 0, 4)
VALUES = [{"n": i, "m": j} for i, j in itertools.product(range(1, 6), range(5))]


def at(size: Any, values: dict[str, int]) -> Any:
    """The size when the variables have these values."""
    bound = {N: N.bind(values["n"]), M: M.bind(values["m"])}
    return value_of(as_index(size).substitute(bound))


@st.composite
def sizes(draw: st.DrawFn, depth: int = 3) -> tuple[Any, Any]:
    """A size, and the same as a Python function of the variables' values."""
    kind = draw(st.sampled_from(["n", "m", "const"] + ["+", "-", "*", "//", "%", "max"] * (depth > 0)))
    if kind in ("n", "m"):
        return {"n": N, "m": M}[kind], lambda v: v[kind]
    if kind == "const":
        number = draw(st.integers(-3, 6))
        return as_index(number), lambda v: number
    (a, left), (b, right) = draw(sizes(depth - 1)), draw(sizes(depth - 1))
    if kind == "+":
        return a + b, lambda v: left(v) + right(v)
    if kind == "-":
        return a - b, lambda v: left(v) - right(v)
    if kind == "*":
        return a * b, lambda v: left(v) * right(v)
    if kind == "max":
        return a.maximum(b), lambda v: max(left(v), right(v))
    if kind == "//":
        return a // b, lambda v: left(v) // right(v) if right(v) else 0
    return a % b, lambda v: left(v) % right(v) if right(v) else 0


few = settings(max_examples=40, deadline=None)


@few
@given(sizes())
def test_arithmetic(pair: tuple[Any, Any]) -> None:
    size, wanted = pair
    for values in VALUES:
        assert at(size, values) == wanted(values)
        assert size.vmin <= wanted(values) <= size.vmax


@few
@given(sizes(2), sizes(2))
def test_what_is_certain_holds_for_all_values(first: tuple[Any, Any], second: tuple[Any, Any]) -> None:
    (a, left), (b, right) = first, second
    low, high = (a < b).min_max
    for values in VALUES:
        assert low <= (left(values) < right(values)) <= high


@pytest.mark.parametrize(
    "size, same",
    [
        ((N + 1) - N, as_index(1)),
        (N * 3 // N, as_index(3)),
        ((N * M + N) // N, M + 1),
        (M * N, N * M),
        ((M + 1) * N, N * M + N),
        (N * 2 * M * 3, M * N * 6),
        (-((-N) // 1), N),
    ],
    ids=str,
)
def test_equal_sizes_are_one_node(size: UOp, same: UOp) -> None:
    assert size is same


@pytest.mark.parametrize(
    "condition",
    [
        M < M + 1, N <= N * 1, M.maximum(N) + 1 > M, M % N < N, N // 2 * 2 <= N, -((-N) // 2) * 2 >= N,
        (N - 3).maximum(0) <= N, (N + 2).maximum(7) - N >= 0,
    ],
    ids=str,
)  # fmt: skip
def test_certain(condition: UOp) -> None:
    assert condition.vmin and bool(condition)


def test_loop_counters_stay_below_their_sizes() -> None:
    i, j = UOp.range(M, 0), UOp.range(N, 1)
    assert (i < M).simplified.vmin and (i * N + j < M * N).simplified.vmin
    assert ((i * N + j) // N).simplified is i and ((i * N + j) % N).simplified is j
    assert (i * N + j < M * N - 1).simplified.op is Ops.CMPLT, "the last one does not"


def test_values() -> None:
    size = N.bind(3) * 2 + M.bind(1)
    assert value_of(size) == 7 and value_of(5) == 5
    assert value_of(with_values(size, {"n": 5, "m": 0})) == 10
    assert without_values((size, 4)) == (N * 2 + M, 4)
    with pytest.raises(ValueError, match="has no value yet"):
        value_of(N + 1)
