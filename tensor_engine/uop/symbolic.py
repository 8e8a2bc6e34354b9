"""Rules that are true of any arithmetic, in the order of what they need to know.

Floats follow IEEE 754: no rule here changes a result for NaN, infinities or signed zeros. What holds for integers only
says so in its pattern.
"""
from __future__ import annotations

from collections.abc import Iterable

from tensor_engine.dtype import dtypes, truncate
from tensor_engine.uop.fold import can_fold, fold_alu
from tensor_engine.uop.linear_form import canonical_sum, fold_division, fold_less_than
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.product import canonical_product, fold_comparison, fold_division_by_product
from tensor_engine.uop.rewrite import graph_rewrite
from tensor_engine.uop.uop import UOp
from tensor_engine.uop.upat import PatternMatcher, UPat

INTS = dtypes.ints + (dtypes.index,)
WHOLE = INTS + (dtypes.bool,)

x, y, z = UPat.var("x"), UPat.var("y"), UPat.var("z")
i = UPat.var("i", WHOLE)
n = UPat.var("n", INTS)
b = UPat.var("b", dtypes.bool)
c, c1, c2 = UPat.cvar("c"), UPat.cvar("c1"), UPat.cvar("c2")


def all_const(node: UOp) -> bool:
    return all(s.op is Ops.CONST for s in node.src) and can_fold(node.op)


def fold_constants(node: UOp) -> UOp:
    value = fold_alu(node.op, node.dtype, [s.arg for s in node.src])
    return UOp(Ops.CONST, node.dtype, (), value)


def fold_cast(node: UOp, c: UOp) -> UOp:
    return UOp(Ops.CONST, node.dtype, (), truncate(c.arg, node.dtype))


def is_zero(node: UOp) -> bool:
    return node.arg == 0


def is_one(node: UOp) -> bool:
    return node.arg == 1


def negative_zero(node: UOp) -> bool:
    return node.arg == 0 and str(node.arg) == "-0.0"


def scalar_zero(node: UOp) -> UOp:
    return UOp.const(node.dtype, 0)


def choose_by_bounds(node: UOp) -> UOp | None:
    """A comparison, or an integer, that has only one value left."""
    low, high = node.min_max
    return UOp.const(node.dtype, low) if low == high else None


def larger_by_bounds(x: UOp, y: UOp) -> UOp | None:
    return x if x.vmin >= y.vmax else None


def widening(node: UOp, inner: UOp, x: UOp) -> UOp | None:
    """Two casts are one if the first loses nothing."""
    if x.dtype.kind in "biux" and inner.dtype.kind in "iux":
        fits = inner.dtype.scalar().min <= x.vmin and x.vmax <= inner.dtype.scalar().max
        return x.cast(node.dtype) if fits else None
    if x.dtype.kind == "b":
        return x.cast(node.dtype)
    return None


zero, one = UPat.cvar("c", where=is_zero), UPat.cvar("c", where=is_one)
true, false = UPat(Ops.CONST, dtypes.bool, arg=True), UPat(Ops.CONST, dtypes.bool, arg=False)


def negation(pattern: UPat) -> UPat:
    return UPat(Ops.CMPNE, dtypes.bool, src=[pattern, true])


# ---- what needs one node ----------------------------------------------------------------------------------------

pm_identities = PatternMatcher(
    [
        (UPat(GroupOp.ALU, name="node", where=all_const), fold_constants),
        (UPat(Ops.CAST, name="node", src=(c,)), fold_cast),
        # x + 0, x * 1, x * 0: for floats only what keeps NaN and the sign of zero
        (n + zero, lambda n, c: n),
        (x + UPat.cvar("c", where=negative_zero), lambda x, c: x),
        (x * one, lambda x, c: x),
        (i * zero, lambda i, c: scalar_zero(i)),
        (x // one, lambda x, c: x),
        (UPat(Ops.FDIV, src=(x, one)), lambda x, c: x),
        (n % one, lambda n, c: scalar_zero(n)),
        # integers wrap, so that constants can be joined
        ((n + c1) + c2, lambda n, c1, c2: n + fold_alu(Ops.ADD, n.dtype, [c1.arg, c2.arg])),
        ((n * c1) * c2, lambda n, c1, c2: n * fold_alu(Ops.MUL, n.dtype, [c1.arg, c2.arg])),
        # bool and bits
        (i & i, lambda i: i),
        (i | i, lambda i: i),
        (i & zero, lambda i, c: scalar_zero(i)),
        (i | zero, lambda i, c: i),
        (i ^ zero, lambda i, c: i),
        (b & true, lambda b: b),
        (b | true, lambda b: UOp.const(b.dtype, True)),
        (UPat(Ops.CMPNE, dtypes.bool, src=[b, false]), lambda b: b),
        (UPat(Ops.CMPEQ, dtypes.bool, src=[b, true]), lambda b: b),
        (negation(negation(b)), lambda b: b),
        # choices
        (UPat(Ops.MAX, src=(i, i)), lambda i: i),
        (UPat.var("_", dtypes.bool).where_else(x, x), lambda _, x: x),
        (true.where_else(x, y), lambda x, y: x),
        (false.where_else(x, y), lambda x, y: y),
        (b.where_else(true, false), lambda b: b),
        (negation(b).where_else(x, y), lambda b, x, y: b.alu(Ops.WHERE, y, x)),
        (b.where_else(b.where_else(x, y), z), lambda b, x, y, z: b.alu(Ops.WHERE, x, z)),
        (b.where_else(x, b.where_else(y, z)), lambda b, x, y, z: b.alu(Ops.WHERE, x, z)),
        # casts
        (UPat(Ops.CAST, name="node", src=(UPat(Ops.CAST, name="inner", src=(x,)),)), widening),
        (UPat(Ops.CAST, name="node", src=(x,)), lambda node, x: x if node.dtype is x.dtype else None),
        # vectors
        (UPat(Ops.GEP, name="node", src=(UPat(Ops.VECTORIZE, name="x"),)), lambda node, x: take_lanes(node, x)),
        (UPat(Ops.GEP, name="node", src=(UPat(Ops.GEP, name="x"),)), lambda node, x: take_taken(node, x)),
    ]
)


def take_lanes(node: UOp, x: UOp) -> UOp:
    """Lanes of a vector that was put together from scalars."""
    lanes = [x.lane(number) for number in node.arg]
    return lanes[0] if len(lanes) == 1 else UOp(Ops.VECTORIZE, node.dtype, tuple(lanes))


def take_taken(node: UOp, x: UOp) -> UOp:
    return UOp(Ops.GEP, node.dtype, x.src, tuple(x.arg[number] for number in node.arg))


# ---- what needs bounds, or several nodes ------------------------------------------------------------------------


def const_right(node: UOp, c: UOp, x: UOp) -> UOp | None:
    return None if x.op is Ops.CONST else UOp(node.op, node.dtype, (x, c))


def divide_twice(x: UOp, c1: UOp, c2: UOp) -> UOp | None:
    return x // (c1.arg * c2.arg) if c1.arg > 0 and c2.arg > 0 else None


def mod_twice(x: UOp, c1: UOp, c2: UOp) -> UOp | None:
    return x % c2 if c1.arg > 0 and c2.arg > 0 and c1.arg % c2.arg == 0 else None


def mod_then_divide(x: UOp, c1: UOp, c2: UOp) -> UOp | None:
    if c1.arg <= 0 or c2.arg <= 0 or c1.arg % c2.arg:
        return None
    return (x // c2) % (c1.arg // c2.arg)


def less_than_quotient(x: UOp, c1: UOp, c2: UOp) -> UOp | None:
    """x // c1 < c2 is x < c1 * c2."""
    return x.alu(Ops.CMPLT, x.const_like(c1.arg * c2.arg)) if c1.arg > 0 else None


def positive(node: UOp) -> bool:
    return node.arg > 0


def runs_once(loop: UOp) -> bool:
    """One iteration for certain; a loop whose length is computed may have none."""
    return loop.vmax == 0 and loop.src[0].vmin > 0


def by_variable(node: UOp) -> bool:
    return node.src[1].op is not Ops.CONST


def compares_sizes(node: UOp) -> bool:
    """With a limit that is a variable, or outside of loops, where a size is compared."""
    return node.src[1].op is not Ops.CONST or not node.src[0].ranges


index = UPat.var("x", dtypes.index)

pm_index = PatternMatcher(
    [
        (UPat(GroupOp.COMPARE, dtypes.bool, name="node"), choose_by_bounds),
        (UPat(GroupOp.COMMUTATIVE, name="node", src=(c, x)), const_right),
        (UPat(Ops.RANGE, name="node", where=runs_once), lambda node: UOp.const(node.dtype, 0)),
        (UPat({Ops.IDIV, Ops.MOD, Ops.AND}, INTS, name="node"), choose_by_bounds),
        (UPat(Ops.MAX, WHOLE, src=[x, y]), larger_by_bounds),
        ((index // c1) // c2, divide_twice),
        ((index % c1) % c2, mod_twice),
        ((index % c1) // c2, mod_then_divide),
        (UPat({Ops.IDIV, Ops.MOD}, dtypes.index, name="node", src=(x, UPat.cvar("c", where=positive))),
         lambda node, x, c: fold_division(node)),
        (UPat(Ops.CMPLT, src=(index // c1, c2)), less_than_quotient),
        (UPat(Ops.CMPLT, name="node", src=(index, c)), lambda node, x, c: fold_less_than(node)),
        (UPat(Ops.ADD, dtypes.index, name="node"), canonical_sum),
        ((index + y) * c, lambda x, y, c: x * c + y * c),
        # … and of products of variables
        (UPat(Ops.MUL, dtypes.index, name="node", where=by_variable), canonical_product),
        (UPat({Ops.IDIV, Ops.MOD}, dtypes.index, name="node", where=by_variable), fold_division_by_product),
        (UPat(Ops.CMPLT, name="node", src=(index, UPat()), where=compares_sizes),
         lambda node, x: fold_comparison(node)),
    ]
)  # fmt: skip


# ---- conditions -------------------------------------------------------------------------------------------------


def conjuncts(condition: UOp) -> list[UOp]:
    """The parts of a & b & c."""
    parts: list[UOp] = []
    stack = [condition]
    while stack:
        node = stack.pop()
        if node.op is Ops.AND:
            stack.extend(reversed(node.src))
        else:
            parts.append(node)
    return parts


def bound_of(condition: UOp) -> tuple[UOp, bool, int] | None:
    """Of x < c and of not (x < c), for whole numbers: x, whether it is below, and c."""
    is_negation = condition.op is Ops.CMPNE and condition.src[1].op is Ops.CONST and condition.src[1].arg
    comparison = condition.src[0] if is_negation else condition
    if comparison.op is not Ops.CMPLT or comparison.src[1].op is not Ops.CONST or comparison.src[0].dtype.kind == "f":
        return None
    return comparison.src[0], not is_negation, comparison.src[1].arg


def tightest(conditions: Iterable[UOp]) -> list[UOp]:
    """The conditions, but of all upper bounds of a value only the lowest, and of its lower ones the highest.

    What is cut out of what was cut out before has a bound for each cut, and one decides.
    """
    found: dict[object, UOp] = {}
    for condition in conditions:
        bound = bound_of(condition)
        if bound is None:
            found[condition] = condition
            continue
        value, below, limit = bound
        known = found.setdefault((value, below), condition)
        known_limit = bound_of(known)[2]  # type: ignore[index]
        if limit < known_limit if below else limit > known_limit:
            found[value, below] = condition
    return list(found.values())


def canonical_and(node: UOp) -> UOp | None:
    """a & b & a is a & b, in one order."""
    parts = sorted(tightest(conjuncts(node)), key=lambda part: part.key)
    result = parts[0]
    for part in parts[1:]:
        result = UOp(Ops.AND, node.dtype, (result, part))
    return None if result is node else result


pm_conditions = PatternMatcher([(UPat(Ops.AND, dtypes.bool, name="node"), canonical_and)])

pm_symbolic = pm_identities + pm_index + pm_conditions


def simplify(node: UOp) -> UOp:
    """The expression in its simplest form (remembered on the node)."""
    found = node.__dict__.get("simplified")
    if found is None:
        result = graph_rewrite(node, pm_symbolic)
        # a node that refers to itself would only be freed by the cycle collector
        result.__dict__["simplified"] = True
        if result is not node:
            node.__dict__["simplified"] = result
        return result
    return node if found is True else found
