"""Accumulation: a REDUCE becomes a register that its loops update.

Reductions with the same loops, such as the results of a register tile, share them: one loop updates all registers.
"""
from __future__ import annotations

from tensor_engine.dtype import AddrSpace
from tensor_engine.uop.op import Ops, identity_element
from tensor_engine.uop.uop import UOp


def accumulate(sink: UOp) -> UOp:
    """No REDUCE is left."""
    done: dict[UOp, UOp] = {}
    number = 0
    for level in reductions_by_loops(sink):
        reduces = [node.substitute(done) if done else node for node in level]
        for old, new in zip(level, lower_together(reduces, number)):
            done[old] = new
        number += len(level)
    return sink.substitute(done)


def reductions_by_loops(sink: UOp) -> list[list[UOp]]:
    """The REDUCEs that share their loops, operands first."""
    groups: dict[tuple[UOp, ...], list[UOp]] = {}
    for node in sink.toposort():
        if node.op is Ops.REDUCE:
            groups.setdefault(loops_of(node), []).append(node)
    return list(groups.values())


def loops_of(reduce: UOp) -> tuple[UOp, ...]:
    return tuple(r for r in reduce.src if r.op is Ops.RANGE)


def lower_together(reduces: list[UOp], number: int) -> list[UOp]:
    """One loop nest that updates a register for each reduction; gives the values after it."""
    loops = loops_of(reduces[0])
    outside = tuple(sorted(frozenset().union(*(r.ranges for r in reduces)), key=lambda r: r.arg[0]))
    registers = [register_for(reduce, number + i) for i, reduce in enumerate(reduces)]
    if not loops:
        return [combine_at_once(reduce) for reduce in reduces]
    updates = [update(reduce, register, loops, outside) for reduce, register in zip(reduces, registers)]
    end = UOp.group(*updates).end(*loops)
    return [
        across_lanes(reduce, register.after(end).load()) for reduce, register in zip(reduces, registers)
    ]


def register_for(reduce: UOp, number: int) -> UOp:
    """A register of the operands' type: a reduction across lanes collects in all lanes."""
    return UOp(Ops.DEFINE_REG, reduce.src[0].dtype.ptr(1, AddrSpace.REG), (), number)


def update(reduce: UOp, register: UOp, loops: tuple[UOp, ...], outside: tuple[UOp, ...]) -> UOp:
    """register = register op value …, having been set to the identity before the loops."""
    dtype = register.dtype.base
    start = register.after(*outside).store(UOp.const(dtype, identity_element(reduce.arg, dtype)))
    total = register.after(start, *loops).load()
    for value in reduce.src:
        if value.op is not Ops.RANGE:
            total = UOp(reduce.arg, dtype, (total, value))
    return register.after(start, *loops).store(total)


def combine_at_once(reduce: UOp) -> UOp:
    """A reduction whose loops were all written out."""
    total, *rest = [s for s in reduce.src if s.op is not Ops.RANGE]
    for value in rest:
        total = UOp(reduce.arg, total.dtype, (total, value))
    return across_lanes(reduce, total)


def across_lanes(reduce: UOp, total: UOp) -> UOp:
    """The lanes combined, halves first, if the reduction ran in lanes."""
    if reduce.dtype.count == total.dtype.count:
        return total
    count = total.dtype.count
    while count > 1:
        count //= 2
        halves = [
            UOp(Ops.GEP, total.dtype.scalar().vec(count), (total,), tuple(range(start, start + count)))
            for start in (0, count)
        ]
        total = UOp(reduce.arg, halves[0].dtype, tuple(halves))
    return total
