"""Simplification never changes a value: index expressions are evaluated before and after, for all counters."""
from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensor_engine.dtype import dtypes
from tensor_engine.uop.op import AxisType, GroupOp, Ops
from tensor_engine.uop.symbolic import simplify
from tensor_engine.uop.uop import UOp, as_index

PYTHON = {
    Ops.ADD: operator.add, Ops.SUB: operator.sub, Ops.MUL: operator.mul, Ops.MAX: max,
    Ops.IDIV: lambda x, y: x // y if y else 0, Ops.MOD: lambda x, y: x % y if y else 0,
    Ops.CMPLT: operator.lt, Ops.CMPNE: operator.ne, Ops.CMPEQ: operator.eq,
    Ops.AND: operator.and_, Ops.OR: operator.or_, Ops.XOR: operator.xor,
    Ops.SHL: operator.lshift, Ops.SHR: operator.rshift,
    Ops.WHERE: lambda c, x, y: x if c else y, Ops.NEG: operator.neg,
}  # fmt: skip


def value_at(node: UOp, counters: dict[UOp, int]) -> Any:
    """The value of an index expression, in Python's unbounded integers."""
    values: dict[UOp, Any] = {}
    for n in node.toposort():
        if n.op is Ops.CONST:
            values[n] = n.arg
        elif n.op is Ops.RANGE:
            values[n] = counters[n]
        elif n.op is Ops.CAST:
            values[n] = bool(values[n.src[0]]) if n.dtype.kind == "b" else int(values[n.src[0]])
        else:
            values[n] = PYTHON[n.op](*(values[s] for s in n.src))
    return values[node]


RANGES = [UOp.range(size, number, AxisType.LOOP) for number, size in enumerate((2, 3, 4, 5, 7))]
CONSTANTS = [-13, -7, -6, -4, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 20]
DIVISORS = [c for c in CONSTANTS if c]


def all_counters(node: UOp) -> Any:
    """Every combination of the counters in an expression."""
    ranges = [n for n in node.toposort() if n.op is Ops.RANGE]
    for values in itertools.product(*(range(r.src[0].arg) for r in ranges)):
        yield dict(zip(ranges, values))


def grow(expressions: st.SearchStrategy[UOp]) -> st.SearchStrategy[UOp]:
    constant = st.sampled_from(CONSTANTS).map(as_index)
    divisor = st.sampled_from(DIVISORS).map(as_index)
    comparison = st.tuples(st.sampled_from([Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ]), expressions, expressions | constant).map(
        lambda t: t[1].alu(t[0], t[2])
    )
    condition = comparison | st.tuples(st.sampled_from([Ops.AND, Ops.OR]), comparison, comparison).map(
        lambda t: t[1].alu(t[0], t[2])
    )
    return st.one_of(
        st.tuples(expressions, expressions | constant).map(lambda t: t[0].alu(Ops.ADD, t[1])),
        st.tuples(expressions, expressions).map(lambda t: t[0].alu(Ops.ADD, t[1].alu(Ops.MUL, as_index(-1)))),
        st.tuples(expressions, constant).map(lambda t: t[0].alu(Ops.MUL, t[1])),
        st.tuples(expressions, divisor).map(lambda t: t[0].alu(Ops.IDIV, t[1])),
        st.tuples(expressions, divisor).map(lambda t: t[0].alu(Ops.MOD, t[1])),
        st.tuples(expressions, expressions | constant).map(lambda t: t[0].alu(Ops.MAX, t[1])),
        st.tuples(condition, expressions, expressions | constant).map(lambda t: t[0].alu(Ops.WHERE, t[1], t[2])),
    )


indices = st.recursive(st.sampled_from(RANGES), grow, max_leaves=9)
conditions = st.tuples(st.sampled_from([Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE]), indices, st.sampled_from(CONSTANTS)).map(
    lambda t: t[1].alu(t[0], as_index(t[2]))
)
either = indices | conditions | st.tuples(conditions, conditions).map(lambda t: t[0].alu(Ops.AND, t[1]))


def same_everywhere(node: UOp) -> None:
    simple = simplify(node)
    for counters in all_counters(node):
        before, after = value_at(node, counters), value_at(simple, counters)
        change = f"in\n{node}\nwhich became\n{simple}"
        assert before == after, f"{before} became {after} at {list(counters.values())} {change}"
        assert simple.vmin <= after <= simple.vmax
        assert node.vmin <= before <= node.vmax


@given(either)
@settings(max_examples=200, derandomize=True)
def test_simplified_is_equal_and_within_bounds(node: UOp) -> None:
    same_everywhere(node)


@pytest.mark.slow
@pytest.mark.timeout(0)
@given(either)
@settings(max_examples=10_000)
def test_simplified_is_equal_and_within_bounds_many(node: UOp) -> None:
    same_everywhere(node)


@given(indices)
@settings(max_examples=100, derandomize=True)
def test_simplifying_twice_changes_nothing(node: UOp) -> None:
    once = simplify(node)
    again = UOp.sink(once)  # a node of its own, which remembers no result
    assert simplify(again).src[0] is once


# ---- what must come out ------------------------------------------------------------------------------------------

i, j, k = RANGES[2], RANGES[3], RANGES[4]


@pytest.mark.parametrize(
    "expression, expected",
    [
        (lambda: (i * 5 + j) // 5, lambda: i),
        (lambda: (i * 5 + j) % 5, lambda: j),
        (lambda: (i * 5 + j) // 5 * 5 + (i * 5 + j) % 5, lambda: i * 5 + j),
        (lambda: (i * 10 + j * 2) // 10, lambda: i),
        (lambda: (i * 35 + j * 7 + k) // 7 % 5, lambda: j),
        (lambda: i + j + i * -1, lambda: j),
        (lambda: i * 0 + 3, lambda: as_index(3)),
        (lambda: (i + 4) < 4, lambda: UOp.const(dtypes.bool, False)),
        (lambda: i < 4, lambda: UOp.const(dtypes.bool, True)),
        (lambda: (i // 2) // 2, lambda: as_index(0)),
    ],
)
def test_becomes(expression: Callable[[], UOp], expected: Callable[[], UOp]) -> None:
    assert simplify(expression()) is simplify(expected())


def test_order_of_terms_does_not_matter() -> None:
    terms = [i * 5, j, k * 20, as_index(7)]
    sums = {simplify(a + b + c + d) for a, b, c, d in itertools.permutations(terms)}
    assert len(sums) == 1


# ---- floats keep IEEE 754 ------------------------------------------------------------------------------------------

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -3.0]
FLOAT_RULES: list[Callable[[Any], Any]] = [
    lambda x: x + 0.0, lambda x: x + -0.0, lambda x: x * 1.0, lambda x: x * 0.0, lambda x: x - x, lambda x: x / x,
    lambda x: x * -1.0, lambda x: x + x, lambda x: 0.0 * x + x, lambda x: x / 1.0, lambda x: 0.0 - x,
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(FLOAT_RULES)))
def test_no_float_rule_changes_a_value(number: int) -> None:
    """Each expression of a variable, simplified and only then given its values, against numpy."""
    x = UOp(Ops.DEFINE_REG, dtypes.float64, (), 0)  # any node of which nothing is known
    expression = simplify(FLOAT_RULES[number](x))
    for value in SPECIAL:
        with np.errstate(all="ignore"):
            want = FLOAT_RULES[number](np.float64(value))
        found = simplify(expression.substitute({x: UOp.const(dtypes.float64, value)}))
        assert found.op is Ops.CONST
        assert np.float64(found.arg).tobytes() == np.float64(want).tobytes() or found.arg != found.arg and want != want


def test_comparison_of_a_float_with_itself_stays() -> None:
    x = UOp(Ops.DEFINE_REG, dtypes.float32, (), 0)
    for op in GroupOp.COMPARE:
        assert simplify(x.alu(op, x)).op is op


def test_division_by_zero_does_not_loop() -> None:
    same_everywhere((i // as_index(0)) + (i % as_index(0)))


@pytest.mark.parametrize("outer", [Ops.IDIV, Ops.MOD, Ops.CMPLT])
@pytest.mark.parametrize("inner", [Ops.IDIV, Ops.MOD])
def test_divisions_in_a_row_by_all_small_numbers(inner: Ops, outer: Ops) -> None:
    """Of all signs, zero included: (x ∘ a) ∘ b for x from -12 to 12."""
    x = UOp.range(25, 0) + -12
    for a, b in itertools.product(range(-6, 7), range(-6, 7)):
        same_everywhere(x.alu(inner, as_index(a)).alu(outer, as_index(b)))
