"""Expansion: loops of kind UPCAST and UNROLL are written out, one copy of their body an iteration.

Copies are made by substitution. What does not depend on the loop is the same node in every copy, because nodes are
hash-consed: a value that four rows share is computed once without anybody looking for it.
"""
from __future__ import annotations

import itertools

from tensor_engine.codegen.simplify import pm_written_out
from tensor_engine.uop.op import AxisType, Ops
from tensor_engine.uop.rewrite import graph_rewrite
from tensor_engine.uop.uop import UOp, as_index
from tensor_engine.uop.upat import PatternMatcher, UPat

WRITTEN_OUT = (AxisType.UPCAST, AxisType.UNROLL)


def copies(node: UOp, loops: list[UOp]) -> list[UOp]:
    """The node for each combination of iterations, the last loop fastest."""
    counts = [range(loop.src[0].arg) for loop in loops]
    return [
        node.substitute({loop: as_index(i) for loop, i in zip(loops, iteration)})
        for iteration in itertools.product(*counts)
    ]


def written_out(node: UOp) -> list[UOp]:
    return [r for r in node.src if r.op is Ops.RANGE and r.arg[1] in WRITTEN_OUT]


def expand_end(end: UOp) -> UOp | None:
    """Several stores in the body instead of a loop around one."""
    loops = written_out(end)
    if not loops:
        return None
    kept = [r for r in end.src[1:] if r not in loops]
    return UOp.group(*copies(end.src[0], loops)).end(*kept)


def expand_reduce(reduce: UOp) -> UOp | None:
    """Several values to combine in one iteration."""
    loops = written_out(reduce)
    if not loops:
        return None
    kept = [r for r in reduce.src if r.op is Ops.RANGE and r not in loops]
    values = [copy for value in reduce.src if value.op is not Ops.RANGE for copy in copies(value, loops)]
    return UOp(Ops.REDUCE, reduce.dtype, (*values, *kept), reduce.arg)


pm_expand = PatternMatcher(
    [
        (UPat(Ops.REDUCE, name="reduce"), expand_reduce),
        (UPat(Ops.END, name="end"), expand_end),
    ]
)


def expand(sink: UOp) -> UOp:
    """No UPCAST or UNROLL loop is left; indices are simplified again."""
    return graph_rewrite(graph_rewrite(sink, pm_expand), pm_written_out)
