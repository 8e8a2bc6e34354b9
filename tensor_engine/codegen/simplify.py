"""Simplification of a kernel as it comes from the schedule: ranges, gates, and reductions that need no loop."""
from __future__ import annotations

from tensor_engine.codegen.opt.options import replace_loop
from tensor_engine.dtype import dtypes
from tensor_engine.uop.linear_form import linear_form
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.rewrite import graph_rewrite
from tensor_engine.uop.symbolic import conjuncts, pm_symbolic
from tensor_engine.uop.uop import UOp
from tensor_engine.uop.upat import PatternMatcher, UPat

x, y, value, counter = UPat.var("x"), UPat.var("y"), UPat.var("value"), UPat.var("counter")
zero = UPat.cvar("zero", where=lambda node: node.arg == 0)


# ---- float operands: sin, log2, exp2, sqrt and reciprocal get their operand in the type of the result ---------------


def cast_operand(node: UOp) -> UOp | None:
    if node.src[0].dtype is node.dtype:
        return None
    return UOp(node.op, node.dtype, (node.src[0].cast(node.dtype),))


pm_float_operands = PatternMatcher([(UPat(GroupOp.FLOAT_ONLY, name="node"), cast_operand)])


# ---- ranges: a loop of one iteration is none; a loop that changes nothing is none -----------------------------------


def drop_finished_ranges(node: UOp) -> UOp | None:
    """RANGEs that became constants leave their END."""
    ranges = tuple(r for r in node.src[1:] if r.op is Ops.RANGE)
    if len(ranges) == len(node.src) - 1:
        return None
    return node.src[0].end(*ranges) if node.op is Ops.END else node.src[0].reduce(node.arg, *ranges)


def reduce_of_constant(node: UOp) -> UOp | None:
    """The sum of n times the same is n times it; a maximum of the same is it."""
    inside = node.src[0]
    ranges = [r for r in node.src[1:] if r in inside.ranges]
    constant = [r for r in node.src[1:] if r not in inside.ranges]
    if not constant or dtypes.is_float(node.dtype) and node.arg is not Ops.MAX or node.arg is Ops.MUL:
        return None
    if any(r.src[0].op is not Ops.CONST or r.src[0].arg == 0 for r in constant):
        return None
    result = inside.reduce(node.arg, *ranges)
    if node.arg is Ops.ADD:
        for r in constant:
            result = result * r.src[0].cast(node.dtype)
    return result


pm_ranges = PatternMatcher(
    [
        (UPat({Ops.END, Ops.REDUCE}, name="node"), drop_finished_ranges),
        (UPat(Ops.REDUCE, name="node"), reduce_of_constant),
    ]
)


# ---- sums of sums, which the schedule makes of overlapping windows: one sum; later passes take sums apart for a reason

def merge_reduces(node: UOp) -> UOp | None:
    """A sum of sums is one sum."""
    inside = node.src[0]
    if inside.op is not Ops.REDUCE or inside.arg is not node.arg or inside.dtype is not node.dtype:
        return None
    return inside.src[0].reduce(node.arg, *inside.src[1:], *node.src[1:])


pm_merge_reduces = PatternMatcher([(UPat(Ops.REDUCE, name="node"), merge_reduces)])


# ---- load collapse: a sum over a counted range of which only one element counts is that element ---------------------


def collapse_load(node: UOp, value: UOp, x: UOp, y: UOp, zero: UOp) -> UOp | None:
    """Σ over r of (r == i ? f(r) : 0) is f(i) where 0 ≤ i < n, else 0: a gather reads one element instead of all."""
    for loop, wanted in ((strip_cast(x), y), (strip_cast(y), x)):
        if loop in node.src[1:] and loop not in wanted.ranges and wanted.dtype.kind != "f":
            break
    else:
        return None
    position = wanted.cast(dtypes.index)
    inside = in_bounds(position, loop)
    others = [r for r in node.src[1:] if r is not loop]
    picked = gate_loads(value, inside).substitute({loop: position})
    return inside.alu(Ops.WHERE, picked, zero).reduce(node.arg, *others)


def strip_cast(node: UOp) -> UOp:
    """The loop counter below an integer cast that keeps its value."""
    while node.op is Ops.CAST and node.src[0].dtype.kind in "iux" and keeps_value(node):
        node = node.src[0]
    return node


def keeps_value(cast: UOp) -> bool:
    return cast.dtype.min <= cast.src[0].vmin and cast.src[0].vmax <= cast.dtype.max


def in_bounds(position: UOp, loop: UOp) -> UOp:
    """0 ≤ position < size."""
    return (position < 0).logical_not() & (position < loop.src[0])


def gate_loads(expression: UOp, gate: UOp) -> UOp:
    """The expression with all its loads guarded by one more condition."""
    addresses = [n for n in expression.toposort() if n.op is Ops.LOAD and n.src[0].op is Ops.INDEX]
    replaced: dict[UOp, UOp] = {}
    for load in addresses:
        pointer, offset, *old = load.src[0].src
        address = pointer.index(offset, gate & old[0] if old else gate)
        replaced[load] = address.load(UOp.const(load.dtype, 0), dtype=load.dtype)
    return expression.substitute(replaced)


pm_load_collapse = PatternMatcher(
    [
        (UPat(Ops.REDUCE, name="node", arg=Ops.ADD, more=True,
              src=(UPat(Ops.CMPEQ, src=(x, y)).where_else(value, zero),)), collapse_load),
        (UPat(Ops.REDUCE, name="node", arg=Ops.ADD, more=True,
              src=(UPat(Ops.CMPNE, src=(x, y)).where_else(zero, value),)), collapse_load),
    ]
)  # fmt: skip


# ---- gates: a choice between what lies behind a gate and zero is what the gated load itself gives --------------------


def where_on_load(condition: UOp, load: UOp, other: UOp) -> UOp | None:
    """condition ? load : other, with the condition part of the load's gate: the load gives `other` itself."""
    address = load.src[0]
    if len(address.src) != 3 or other.op is not Ops.CONST:
        return None
    if set(conjuncts(address.src[2])) != set(conjuncts(condition)):
        return None
    return address.load(other, dtype=load.dtype)


def gate_known(address: UOp) -> UOp | None:
    """A gate that is always open is none."""
    gate = address.src[2]
    return address.src[0].index(address.src[1]) if gate.op is Ops.CONST and gate.arg else None


def never_loaded(load: UOp) -> UOp | None:
    """A load whose gate is never open gives its alternative."""
    address = load.src[0]
    if len(address.src) == 3 and address.src[2].op is Ops.CONST and not address.src[2].arg:
        return load.src[1]
    return None


def useless_alternative(load: UOp) -> UOp | None:
    """Without a gate there is no alternative."""
    if load.src[0].op is Ops.INDEX and len(load.src) > 1 and len(load.src[0].src) == 2:
        return load.src[0].load(dtype=load.dtype)
    return None


load = UPat(Ops.LOAD, name="load", src=(UPat(Ops.INDEX), UPat()))

pm_gates = PatternMatcher(
    [
        (UPat.var("condition", dtypes.bool).where_else(load, UPat.var("other")), where_on_load),
        (UPat(Ops.INDEX, name="address", src=(UPat(), UPat(), UPat())), gate_known),
        (UPat(Ops.LOAD, name="load", src=(UPat(), UPat())), never_loaded),
        (UPat(Ops.LOAD, name="load"), useless_alternative),
    ]
)

# what simplifies a kernel once its loops are written out
pm_written_out = pm_symbolic + pm_gates
pm_simplify = pm_symbolic + pm_float_operands + pm_ranges + pm_load_collapse + pm_gates
pm_simplify_scheduled = pm_simplify + pm_merge_reduces


# ---- neighbouring loops that run through memory in one go are one loop ----------------------------------------------


def merge_loops(sink: UOp) -> UOp:
    """Merge adjacent loops (of an END or a REDUCE) whose counters every address combines in the same way."""
    changed = True
    while changed:
        changed = False
        for outer, inner in adjacent_loops(sink):
            if can_merge(sink, outer, inner):
                sink = merge(sink, outer, inner)
                changed = True
                break
    return sink


def adjacent_loops(sink: UOp) -> list[tuple[UOp, UOp]]:
    pairs: list[tuple[UOp, UOp]] = []
    for node in sink.toposort():
        if node.op in (Ops.END, Ops.REDUCE):
            ranges = node.src[1:]
            pairs.extend(zip(ranges, ranges[1:]))
    return pairs


def can_merge(sink: UOp, outer: UOp, inner: UOp) -> bool:
    """Is every use of the two counters (outer·n + inner)·k in an address, n being the size of the inner loop?"""
    if outer.arg[1] is not inner.arg[1] or any(loop.src[0].op is not Ops.CONST for loop in (outer, inner)):
        return False
    return all(keeps_together(node, outer, inner) for node in sink.toposort())


def keeps_together(node: UOp, outer: UOp, inner: UOp) -> bool:
    """Does the node use the two counters only as one?"""
    if node.op is Ops.INDEX:
        return addresses_in_a_row(node, outer, inner)
    if node.op in (Ops.END, Ops.REDUCE) or outer not in node.src and inner not in node.src:
        return True
    # part of a sum, which the address it belongs to answers for
    return node.op in (Ops.ADD, Ops.MUL) and node.dtype is dtypes.index


def addresses_in_a_row(address: UOp, outer: UOp, inner: UOp) -> bool:
    """Does the address move through memory in one go as the inner loop runs inside the outer one?"""
    form = linear_form(address.src[1])
    if form.terms.get(outer, 0) != form.terms.get(inner, 0) * inner.src[0].arg:
        return False
    others = [term for term in form.terms if term is not outer and term is not inner]
    return all({outer, inner}.isdisjoint(part.ranges) for part in (*others, *address.src[2:]))


def merge(sink: UOp, outer: UOp, inner: UOp) -> UOp:
    """One loop in place of two. The old counters are its quotient and remainder, which the rules put together again."""
    size = inner.src[0].arg
    merged = UOp.range(outer.src[0].arg * size, outer.arg[0], outer.arg[1])
    sink = replace_loop(sink, outer, merged // size, (merged,))
    return graph_rewrite(replace_loop(sink, inner, merged % size, ()), pm_simplify)
