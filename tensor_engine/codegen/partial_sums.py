"""Long sums of floats are made in parts: a sum of sums, so that a small number still counts beside a large total.

Adding n numbers one after the other loses up to n/2 units in the last place of the total; a float32 total stands still
at 2**24 when ones are added to it. In parts of at most LONGEST the loss is LONGEST/2 and half the number of parts (N.
Higham, "The accuracy of floating point summation", 1993).
"""
from __future__ import annotations

from tensor_engine.codegen.opt.options import Option, cut_loop, split_loop
from tensor_engine.helpers import prod
from tensor_engine.uop.op import AxisType, Ops
from tensor_engine.uop.uop import UOp

LONGEST = 4096
SHORTEST = 256  # below this the sum of the parts would be the longer one


def partial_sums(sink: UOp) -> UOp:
    """No sum of floats has more than LONGEST terms in a row, as far as the sizes of its loops are known."""
    while (total := next(filter(is_long, sink.toposort()), None)) is not None:
        sink = take_apart(sink, total)
    return sink


def is_long(node: UOp) -> bool:
    if node.op is not Ops.REDUCE or node.arg is not Ops.ADD or node.dtype.kind != "f":
        return False
    sizes = [size_of(loop) for loop in node.src[1:]]
    return 0 not in sizes and prod(sizes) > LONGEST


def size_of(loop: UOp) -> int:
    """0 where it is not known."""
    return loop.src[0].arg if loop.src[0].op is Ops.CONST else 0


def take_apart(sink: UOp, total: UOp) -> UOp:
    """One step: a sum over the innermost loops and then over the others, or one loop made two to that end."""
    value, *outer = total.src
    inner: list[UOp] = []
    room = LONGEST
    while size_of(outer[-1]) <= room:
        loop = outer.pop()
        inner.insert(0, loop)
        room //= size_of(loop)
    if prod(map(size_of, inner)) >= SHORTEST:
        return sink.substitute({total: value.reduce(Ops.ADD, *inner).reduce(Ops.ADD, *outer)})
    return make_two(sink, outer[-1], room)


def make_two(sink: UOp, loop: UOp, most: int) -> UOp:
    """The loop as one inside another of at most `most` iterations; or first cut to where it can be."""
    size = size_of(loop)
    amount = next(d for d in range(most, 0, -1) if size % d == 0)
    if amount * 8 >= most:
        return split_loop(sink, loop, Option(AxisType.REDUCE, loop.arg[0], amount))
    return cut_loop(sink, loop, size - size % most)
