"""What was made of a tensor before something was assigned to it keeps the old value.

An assignment writes over memory that others read. A kernel that needs the memory as it was runs before it, one that
needs it as it is afterwards runs behind it. Where one kernel would need both, what is made of the old content is stored
first.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from typing import NamedTuple

from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.uop import UOp

IN_MEMORY = {Ops.CONTIGUOUS, Ops.COPY, Ops.CALL}  # what reads these reads memory of theirs


class Timing(NamedTuple):
    """When a node's value can be computed, as sets of assignments, a bit each."""

    node: UOp
    behind: int  # those that must have happened
    before: int  # those that must not


def keep_old_values(sink: UOp) -> UOp:
    """The graph below `sink`, with old values stored where they meet new ones."""
    nodes = sink.toposort()
    bits = {node: 1 << number for number, node in enumerate(n for n in nodes if n.op is Ops.ASSIGN)}
    if not bits:
        return sink
    writers: dict[UOp, int] = {}
    for assignment, bit in bits.items():
        writers[assignment.buffer] = writers.get(assignment.buffer, 0) | bit
    timings: dict[UOp, Timing] = {}
    for node in nodes:
        timings[node] = timing(node, [timings[s] for s in node.src], writers, bits)
    return timings[sink].node


def timing(node: UOp, below: list[Timing], writers: dict[UOp, int], bits: dict[UOp, int]) -> Timing:
    """When this node can be computed, if its operands are computed in the same kernel."""
    if node.op is Ops.BUFFER:
        return Timing(node, 0, writers.get(node, 0))
    behind = union(operand.behind for operand in below)
    if node.op is Ops.ASSIGN:
        memory, view, value = below
        kept = stored(value.node) if value.before & behind else value.node
        assigned = with_operands(node, [memory.node, view.node, kept])
        behind |= bits[node]
        return Timing(assigned, behind, writers[node.buffer] & ~behind)
    if node.op is Ops.SINK:  # its operands are computed in kernels of their own
        return Timing(with_operands(node, [operand.node for operand in below]), behind, 0)
    operands = [stored(operand.node) if operand.before & behind else operand.node for operand in below]
    before = 0 if node.op in IN_MEMORY else union(operand.before for operand in below) & ~behind
    return Timing(with_operands(node, operands), behind, before)


def union(sets: Iterable[int]) -> int:
    """All members of the sets."""
    return functools.reduce(operator.or_, sets, 0)


def with_operands(node: UOp, operands: list[UOp]) -> UOp:
    """The same operation on these operands."""
    src = tuple(operands)
    return node if src == node.src else UOp(node.op, node.dtype, src, node.arg)


def stored(node: UOp) -> UOp:
    """The value in memory of its own; views are taken of that."""
    if node.op in GroupOp.MOVEMENT and node.op is not Ops.PAD:
        return with_operands(node, [stored(node.src[0])])
    return UOp(Ops.CONTIGUOUS, node.dtype, (node,))
