"""UPat, a pattern of nodes, and PatternMatcher, a table of rules: pattern → function.

A rule's function gets the matched nodes under the names that the pattern gives them (and `ctx`, if it asks for it)
and returns the node to put in their place, or None to decline. A pattern turns itself into straight Python code the
first time it is used, because matching is the innermost loop of the compiler.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tensor_engine.dtype import DType
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.uop import UOp

Predicate = Callable[[UOp], bool]
Rule = tuple["UPat", Callable[..., Any]]


class UPat:
    """Matches a node whose op, dtype, arg and operands are as given; None matches anything.

    `src`: a tuple matches the operands in order, a list of two in either order; `more` allows further operands.
    `name` hands the node to the rule; a name that is used twice demands the same node twice.
    `where` is a last condition on the node.
    """

    __slots__ = ("ops", "dtypes", "src", "arg", "name", "more", "where")

    def __init__(
        self,
        op: Ops | Iterable[Ops] | None = None,
        dtype: DType | Iterable[DType] | None = None,
        src: Sequence[UPat] | None = None,
        arg: Any = None,
        name: str | None = None,
        more: bool = False,
        where: Predicate | None = None,
    ):
        self.ops = frozenset([op]) if isinstance(op, Ops) else None if op is None else frozenset(op)
        self.dtypes = frozenset([dtype]) if isinstance(dtype, DType) else None if dtype is None else frozenset(dtype)
        self.src, self.arg, self.name, self.more, self.where = src, arg, name, more, where

    @staticmethod
    def var(name: str, dtype: Any = None, where: Predicate | None = None) -> UPat:
        """Any node."""
        return UPat(dtype=dtype, name=name, where=where)

    @staticmethod
    def cvar(name: str, dtype: Any = None, where: Predicate | None = None) -> UPat:
        """Any scalar constant."""
        return UPat(Ops.CONST, dtype, name=name, where=where)

    def alu(self, op: Ops, *others: UPat | int | float | bool) -> UPat:
        """The pattern of an operation on this; commutative ones match in either order."""
        operands = [self, *(o if isinstance(o, UPat) else UPat(Ops.CONST, arg=o) for o in others)]
        return UPat(op, src=operands if op in GroupOp.COMMUTATIVE and len(operands) == 2 else tuple(operands))

    def __add__(self, other: Any) -> UPat:
        return self.alu(Ops.ADD, other)

    def __mul__(self, other: Any) -> UPat:
        return self.alu(Ops.MUL, other)

    def __floordiv__(self, other: Any) -> UPat:
        return self.alu(Ops.IDIV, other)

    def __mod__(self, other: Any) -> UPat:
        return self.alu(Ops.MOD, other)

    def __and__(self, other: Any) -> UPat:
        return self.alu(Ops.AND, other)

    def __or__(self, other: Any) -> UPat:
        return self.alu(Ops.OR, other)

    def __xor__(self, other: Any) -> UPat:
        return self.alu(Ops.XOR, other)

    def __lt__(self, other: Any) -> UPat:
        return self.alu(Ops.CMPLT, other)

    def where_else(self, yes: Any, no: Any) -> UPat:
        """The pattern of a WHERE with this condition."""
        return self.alu(Ops.WHERE, yes, no)


class _RuleWriter:
    """Writes the Python function of one rule: nested conditions, innermost the call of the rule's function."""

    def __init__(self, function: Callable[..., Any]):
        self.lines: list[str] = ["def rule(node, ctx):"]
        self.constants: dict[str, Any] = {"function": function}
        self.depth, self.names = 1, 0
        self.parameters = list(inspect.signature(function).parameters)

    def write(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def open(self, line: str) -> None:
        self.write(line)
        self.depth += 1

    def constant(self, value: Any) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def fresh(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def match(self, pattern: UPat, node: str, bound: frozenset[str], then: Callable[[frozenset[str]], None]) -> None:
        """Write the conditions for `pattern` on the variable `node`, and inside them what `then` writes."""
        if pattern.ops is not None:
            test = "is" if len(pattern.ops) == 1 else "in"
            value = next(iter(pattern.ops)) if test == "is" else pattern.ops
            self.open(f"if {node}.op {test} {self.constant(value)}:")
        if pattern.dtypes is not None:
            self.open(f"if {node}.dtype.scalar() in {self.constant(pattern.dtypes)}:")
        if pattern.arg is not None:
            self.open(f"if {node}.arg == {self.constant(pattern.arg)}:")
        if pattern.where is not None:
            self.open(f"if {self.constant(pattern.where)}({node}):")
        if pattern.name is not None:
            if pattern.name in bound:
                self.open(f"if {node} is {pattern.name}:")
            else:
                self.write(f"{pattern.name} = {node}")
                bound |= {pattern.name}
        if pattern.src is None:
            return then(bound)
        self.match_sources(pattern, node, bound, then)

    def match_sources(
        self, pattern: UPat, node: str, bound: frozenset[str], then: Callable[[frozenset[str]], None]
    ) -> None:
        assert pattern.src is not None
        operands = [self.fresh() for _ in pattern.src]
        count = len(operands)
        self.open(f"if len({node}.src) {'>=' if pattern.more else '=='} {count}:")
        if isinstance(pattern.src, list):
            first, second = operands
            self.write(f"{first}, {second} = {node}.src")
            self.open(f"for {first}, {second} in (({first}, {second}), ({second}, {first})):")
        elif count:
            self.write(f"{', '.join(operands)}, = {node}.src" + (f"[:{count}]" if pattern.more else ""))
        pairs = list(zip(pattern.src, operands))

        def rest(number: int) -> Callable[[frozenset[str]], None]:
            if number == len(pairs):
                return then
            return lambda names: self.match(*pairs[number], names, rest(number + 1))

        rest(0)(bound)

    def finish(self, bound: frozenset[str]) -> None:
        arguments = ", ".join(self.parameters)
        self.write(f"result = function({arguments})")
        self.open("if result is not None:")
        self.write("return result")

    def compile(self, pattern: UPat) -> Callable[[UOp, Any], Any]:
        self.match(pattern, "node", frozenset(), self.finish)
        exec("\n".join(self.lines), self.constants)
        return self.constants["rule"]


Compiled = Callable[[UOp, Any], Any]


@functools.cache
def compile_rule(pattern: UPat, function: Callable[..., Any]) -> Compiled:
    """The rule as one Python function of a node and the context; rules are shared between tables."""
    return _RuleWriter(function).compile(pattern)


class PatternMatcher:
    """Rules in order; only those that can match a node's op are tried. `+` joins two tables."""

    def __init__(self, rules: Sequence[Rule]):
        self.rules = list(rules)
        self.table: dict[Ops, list[Compiled]] = {}

    def __add__(self, other: PatternMatcher) -> PatternMatcher:
        return PatternMatcher(self.rules + other.rules)

    def rules_for(self, op: Ops) -> list[Compiled]:
        """The compiled rules that can match a node with this op."""
        self.table[op] = [compile_rule(p, f) for p, f in self.rules if p.ops is None or op in p.ops]
        return self.table[op]

    def rewrite(self, node: UOp, ctx: Any = None) -> Any:
        """What the first rule that applies makes of the node; None if none does."""
        rules = self.table.get(node.op)
        if rules is None:
            rules = self.rules_for(node.op)
        for rule in rules:
            result = rule(node, ctx)
            if result is not None and result is not node:
                return result
        return None
