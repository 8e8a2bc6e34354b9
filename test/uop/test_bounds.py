"""Bounds hold: whatever values the variables take, an expression stays within its min_max, also where it wraps."""
from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensor_engine.dtype import DType, dtypes, truncate
from tensor_engine.uop.fold import fold_alu
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.uop import UOp

NARROW = [dtypes.int8, dtypes.uint8, dtypes.int16]
OPERATIONS = [Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX, Ops.IDIV, Ops.MOD, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR]


def value_at(node: UOp, values: dict[UOp, int]) -> Any:
    found: dict[UOp, Any] = dict(values)
    for n in node.toposort():
        if n.op is Ops.CONST:
            found[n] = n.arg
        elif n.op is Ops.CAST:
            found[n] = truncate(found[n.src[0]], n.dtype)
        elif n not in found:
            found[n] = fold_alu(n.op, n.dtype, [found[s] for s in n.src])
    return found[node]


@st.composite
def expressions(draw: st.DrawFn) -> tuple[UOp, list[UOp]]:
    """An expression of one narrow type and the variables in it, each with bounds of its own."""
    dtype = draw(st.sampled_from(NARROW))
    variables = []
    for name in "xy":
        low, high = sorted(draw(st.tuples(*[st.integers(int(dtype.min), int(dtype.max))] * 2)))
        variables.append(UOp(Ops.DEFINE_VAR, dtype, (), (name, low, high)))
    node = variables[0]
    for _ in range(draw(st.integers(1, 5))):
        node = grown(draw, node, variables, dtype)
    return node, variables


def grown(draw: st.DrawFn, node: UOp, variables: list[UOp], dtype: DType) -> UOp:
    constant = UOp.const(dtype, draw(st.integers(int(dtype.min), int(dtype.max)) | st.integers(0, 7)))
    other = draw(st.sampled_from([node, *variables, constant]))
    op = draw(st.sampled_from([*OPERATIONS, Ops.WHERE, Ops.CAST]))
    if op is Ops.WHERE:
        compared = draw(st.sampled_from(sorted(GroupOp.COMPARE)))
        return node.alu(compared, other).alu(Ops.WHERE, other, constant)
    if op is Ops.CAST:
        return node.cast(draw(st.sampled_from([*NARROW, dtypes.bool, dtypes.int64]))).cast(dtype)
    if op in (Ops.SHL, Ops.SHR):
        other = UOp.const(dtype, draw(st.integers(0, dtype.bits - 1)))
    return node.alu(op, other)


def some_values(variable: UOp) -> list[int]:
    _, low, high = variable.arg
    return sorted({low, high, (low + high) // 2, *(v for v in (-1, 0, 1) if low <= v <= high)})


def check(node: UOp, variables: list[UOp]) -> None:
    for values in itertools.product(*map(some_values, variables)):
        value = value_at(node, dict(zip(variables, values)))
        assert node.vmin <= value <= node.vmax, f"{value} at {values} is not within {node.min_max}:\n{node}"


@given(expressions())
@settings(max_examples=200, derandomize=True)
def test_bounds_hold(case: tuple[UOp, list[UOp]]) -> None:
    check(*case)


@pytest.mark.slow
@pytest.mark.timeout(0)
@given(expressions())
@settings(max_examples=20_000)
def test_bounds_hold_many(case: tuple[UOp, list[UOp]]) -> None:
    check(*case)


@pytest.mark.parametrize(
    "expression, expected",
    [
        (lambda i: i, (0, 9)),
        (lambda i: i * 3 + 2, (2, 29)),
        (lambda i: i * -2, (-18, 0)),
        (lambda i: i // 4, (0, 2)),
        (lambda i: i % 4, (0, 3)),
        (lambda i: (i + -20) % 4, (0, 3)),
        (lambda i: i < 10, (True, True)),
        (lambda i: i < 5, (False, True)),
        (lambda i: (i < 5).alu(Ops.WHERE, i, i * 0), (0, 9)),
    ],
)
def test_bounds_of_an_index(expression: Any, expected: tuple[int, int]) -> None:
    assert expression(UOp.range(10, 0)).min_max == expected


def test_floats_have_no_bounds() -> None:
    x = UOp(Ops.DEFINE_REG, dtypes.float32, (), 0)
    assert x.min_max == (x + 1).min_max == (float("-inf"), float("inf"))
    assert x.alu(Ops.CMPLT, x).min_max == (False, True)
