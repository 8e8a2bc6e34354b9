"""Patterns and rewriting: what matches, in which order rules are tried, and that it ends."""
from __future__ import annotations

import pytest

from tensor_engine.dtype import dtypes
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.rewrite import RewriteLoop, graph_rewrite, walk_rewrite
from tensor_engine.uop.uop import UOp
from tensor_engine.uop.upat import PatternMatcher, UPat

i32, f32 = dtypes.int32, dtypes.float32


def const(value: int) -> UOp:
    return UOp.const(i32, value)


def variable(name: str) -> UOp:
    return UOp(Ops.DEFINE_VAR, i32, (), (name, 0, 100))


a, b, c = variable("a"), variable("b"), variable("c")


def add(x: UOp, y: UOp) -> UOp:
    return UOp(Ops.ADD, i32, (x, y))


def mul(x: UOp, y: UOp) -> UOp:
    return UOp(Ops.MUL, i32, (x, y))


def matches(pattern: UPat, node: UOp) -> bool:
    found = const(12345)
    return PatternMatcher([(pattern, lambda: found)]).rewrite(node) is found


class TestPatterns:
    def test_op_dtype_arg_and_condition(self) -> None:
        assert matches(UPat(Ops.ADD), add(a, b)) and not matches(UPat(Ops.ADD), mul(a, b))
        assert matches(UPat({Ops.ADD, Ops.MUL}), mul(a, b)) and matches(UPat(GroupOp.ALU), mul(a, b))
        assert matches(UPat(dtype=i32), a) and not matches(UPat(dtype=f32), a)
        assert matches(UPat(Ops.CONST, arg=3), const(3)) and not matches(UPat(Ops.CONST, arg=3), const(4))
        assert matches(UPat(where=lambda n: n is a), a) and not matches(UPat(where=lambda n: n is a), b)

    def test_the_dtype_of_a_vector_is_that_of_its_lanes(self) -> None:
        assert matches(UPat(dtype=i32), UOp(Ops.VECTORIZE, i32.vec(2), (a, b)))

    def test_operands_in_order_or_in_either(self) -> None:
        ordered = UPat(Ops.CMPLT, src=(UPat(Ops.CONST), UPat(Ops.DEFINE_VAR)))
        assert matches(ordered, const(1).alu(Ops.CMPLT, a)) and not matches(ordered, a.alu(Ops.CMPLT, const(1)))
        either = UPat.var("x") + UPat(Ops.CONST)
        assert matches(either, add(a, const(1))) and matches(either, add(const(1), a))

    def test_the_number_of_operands(self) -> None:
        assert not matches(UPat(Ops.ADD, src=(UPat(),)), add(a, b))
        assert matches(UPat(Ops.ADD, src=(UPat(),), more=True), add(a, b))
        assert matches(UPat(Ops.DEFINE_VAR, src=()), a)

    def test_a_name_twice_is_the_same_node_twice(self) -> None:
        double = UPat.var("x") + UPat.var("x")
        assert matches(double, add(a, a)) and not matches(double, add(a, b))

    def test_either_order_is_tried_where_a_name_is_bound(self) -> None:
        pattern = UPat(Ops.ADD, src=(UPat.var("x"), UPat.var("y") * UPat.var("x")))
        assert matches(pattern, add(a, mul(a, b))) and matches(pattern, add(a, mul(b, a)))
        assert not matches(pattern, add(a, mul(b, c)))

    def test_names_are_handed_over(self) -> None:
        swap = PatternMatcher([(UPat.var("x") * UPat.cvar("k"), lambda k, x: add(k, x))])
        assert swap.rewrite(mul(a, const(3))) is add(const(3), a)


class TestPatternMatcher:
    def test_the_first_rule_that_applies_wins(self) -> None:
        rules = [(UPat(Ops.ADD), lambda: None), (UPat(Ops.ADD), lambda: b), (UPat(Ops.ADD), lambda: c)]
        assert PatternMatcher(rules).rewrite(add(a, a)) is b

    def test_a_rule_that_gives_its_node_back_declines(self) -> None:
        rules = [(UPat(Ops.ADD, name="node"), lambda node: node), (UPat(Ops.ADD), lambda: c)]
        assert PatternMatcher(rules).rewrite(add(a, a)) is c

    def test_tables_are_joined_in_order(self) -> None:
        first, second = PatternMatcher([(UPat(Ops.ADD), lambda: b)]), PatternMatcher([(UPat(Ops.ADD), lambda: c)])
        assert (first + second).rewrite(add(a, a)) is b and (second + first).rewrite(add(a, a)) is c

    def test_a_context_is_handed_to_those_who_ask(self) -> None:
        rules = PatternMatcher([(UPat(Ops.ADD), lambda ctx: ctx["to"])])
        assert rules.rewrite(add(a, a), {"to": b}) is b


pm_zero = PatternMatcher([(UPat.var("x") + UPat(Ops.CONST, arg=0), lambda x: x)])


class TestRewriting:
    def test_to_a_fixed_point_from_the_operands_up(self) -> None:
        assert graph_rewrite(add(add(a, const(0)), add(const(0), const(0))), pm_zero) is a

    def test_results_are_rewritten_in_turn(self) -> None:
        steps = {5: 4, 4: 3, 3: 2}
        down = PatternMatcher(
            [(UPat(Ops.CONST, name="n"), lambda n: const(steps[n.arg]) if n.arg in steps else None)]
        )
        assert graph_rewrite(add(a, const(5)), down) is add(a, const(2))

    def test_one_pass_does_not_look_at_its_results(self) -> None:
        down = PatternMatcher([(UPat(Ops.CONST, name="n"), lambda n: const(n.arg - 1))])
        assert walk_rewrite(add(a, const(5)), down) is add(a, const(4))

    def test_a_shared_node_is_rewritten_once(self) -> None:
        seen: list[UOp] = []
        count = PatternMatcher([(UPat(Ops.MUL, name="n"), lambda n: seen.append(n))])
        shared = mul(a, b)
        graph_rewrite(add(add(shared, c), shared), count)
        assert seen == [shared]

    def test_what_does_not_change_is_the_same_object(self) -> None:
        graph = add(mul(a, b), c)
        assert graph_rewrite(graph, pm_zero) is graph

    def test_rules_that_undo_each_other_are_an_error(self) -> None:
        turn = PatternMatcher([(UPat(Ops.ADD, name="n"), lambda n: UOp(Ops.ADD, n.dtype, n.src[::-1]))])
        with pytest.raises(RewriteLoop, match="undo each other"):
            graph_rewrite(add(a, b), turn)

    def test_rules_that_grow_for_ever_are_an_error(self) -> None:
        grow = PatternMatcher([(UPat(Ops.CONST, name="n"), lambda n: const(n.arg + 1))])
        with pytest.raises(RewriteLoop):
            graph_rewrite(const(0), grow)

    def test_deep_graphs(self) -> None:
        deep = a
        for _ in range(20_000):
            deep = add(deep, const(0))
        assert graph_rewrite(deep, pm_zero) is a
