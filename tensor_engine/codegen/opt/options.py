"""Options: what can be done to the loops of a kernel. A strategy is a list of them, applied in order."""
from __future__ import annotations

from typing import NamedTuple

from tensor_engine.uop.op import AxisType, Ops
from tensor_engine.uop.uop import UOp, as_index, as_size, sint

INNERMOST = 0


class Option(NamedTuple):
    """Split `amount` iterations off loop number `axis` and do with them what `kind` says.

    UPCAST and UNROLL write them out, VECTOR makes them the lanes of vectors. LOOP cuts the loop in two: the first
    `amount` iterations (where the length is a variable, the largest multiple of `amount`), and, as a loop nest of its
    own, the rest, so that each can be split evenly. LOOP with the amount INNERMOST moves a loop around a store inside
    the others.
    """

    kind: AxisType
    axis: int
    amount: int

    def __repr__(self) -> str:
        return f"{self.kind.name}({self.axis}, {self.amount})"


class OptionError(ValueError):
    """An option that does not fit the kernel."""


def find_range(sink: UOp, number: int) -> UOp:
    """The loop with this number. Raises OptionError if there is none."""
    for node in sink.toposort():
        if node.op is Ops.RANGE and node.arg[0] == number:
            return node
    raise OptionError(f"the kernel has no loop number {number}")


def next_number(sink: UOp) -> int:
    """The first unused loop number."""
    return max((n.arg[0] for n in sink.toposort() if n.op is Ops.RANGE), default=-1) + 1


def apply_option(sink: UOp, option: Option) -> UOp:
    """The kernel with one option applied. Raises OptionError if it does not fit."""
    loop = find_range(sink, option.axis)
    if option.kind is AxisType.LOOP:
        return move_inside(sink, loop) if option.amount == INNERMOST else cut_loop(sink, loop, option.amount)
    if option.amount < 2 or not is_multiple(loop, option.amount):
        raise OptionError(f"loop {option.axis} of {size_of(loop)} iterations cannot be split by {option.amount}")
    return split_loop(sink, loop, option)


def size_of(loop: UOp) -> sint:
    """How many iterations a loop has."""
    return as_size(loop.src[0])


def is_multiple(loop: UOp, amount: int) -> bool:
    """Can the loop be split by `amount`, whatever the variables are that its length depends on?"""
    return as_size(loop.src[0] % amount) == 0


def split_loop(sink: UOp, loop: UOp, option: Option) -> UOp:
    """loop → outer · amount + inner, where inner has the option's kind."""
    count = as_size(loop.src[0] // option.amount)
    inner = UOp.range(option.amount, next_number(sink), option.kind)
    outer = UOp.range(count, loop.arg[0], loop.arg[1])
    loops = (inner,) if count == 1 else (outer, inner)
    counter = inner if count == 1 else outer * option.amount + inner
    return replace_loop(sink, loop, counter, loops)


def replace_loop(node: UOp, loop: UOp, counter: UOp, loops: tuple[UOp, ...]) -> UOp:
    """`counter` in place of `loop` in values, `loops` in its place where it begins and ends."""
    done = {loop: counter}
    for part in node.toposort():
        if part is loop:
            continue
        if part.op in (Ops.END, Ops.REDUCE) and loop in part.src[1:]:
            ranges = [r for s in part.src[1:] for r in (loops if s is loop else (done[s],))]
            src = (done[part.src[0]], *ranges)
        else:
            src = tuple(done[s] for s in part.src)
        done[part] = UOp(part.op, part.dtype, src, part.arg)
    return done[node]


def move_inside(sink: UOp, loop: UOp) -> UOp:
    """The loop as the innermost one of its nest."""
    nest = next((end for end in sink.src if end.op is Ops.END and loop in end.src[1:]), None)
    if nest is None:
        raise OptionError("only a loop around a store can be moved")
    body, *loops = nest.src
    return sink.substitute({nest: body.end(*(r for r in loops if r is not loop), loop)})


def cut_loop(sink: UOp, loop: UOp, amount: int) -> UOp:
    """Two loops in place of one, over the first `amount` iterations and over the others.

    A loop around a store becomes two loop nests; a reduction becomes two, whose results are combined.
    """
    owner = next(n for n in sink.toposort() if n.op in (Ops.END, Ops.REDUCE) and loop in n.src[1:])
    size = size_of(loop)
    first = amount if isinstance(size, int) else as_size(size // amount * amount)
    rest = size - amount if isinstance(size, int) else as_size(size % amount)
    head, tail = first_iterations(owner, loop, first), last_iterations(owner, loop, first, rest, next_number(sink))
    if owner.op is Ops.REDUCE:
        return sink.substitute({owner: UOp(owner.arg, owner.dtype, (head, tail))})
    position = sink.src.index(owner)
    return sink.replace(src=(*sink.src[:position], head, tail, *sink.src[position + 1 :]))


def first_iterations(owner: UOp, loop: UOp, count: sint) -> UOp:
    first = UOp.range(count, loop.arg[0], loop.arg[1])
    return replace_loop(owner, loop, first, (first,))


def last_iterations(owner: UOp, loop: UOp, start: sint, count: sint, number: int) -> UOp:
    """A copy over the rest of the loop, with loops of its own, numbered from `number` on."""
    if count == 1:
        tail = replace_loop(owner, loop, as_index(start), ())
    else:
        second = UOp.range(count, number, loop.arg[1])
        tail = replace_loop(owner, loop, second + start, (second,))
    closed = [n for n in tail.toposort() if n.op is Ops.RANGE and n not in tail.ranges and n.arg[0] != number]
    renamed = {n: UOp(Ops.RANGE, n.dtype, n.src, (number + 1 + i, n.arg[1])) for i, n in enumerate(closed)}
    return tail.substitute(renamed)
