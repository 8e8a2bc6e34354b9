"""Loops that Tensor operations cannot say, because each round needs the one before: kernels written by hand.

A kernel is a function from pointers to graph nodes. The first pointer is what it changes, the others it reads.
What it reads of its own writing it reads `after` the start of the round, so that no load moves out of the loop.
"""

from __future__ import annotations

from collections.abc import Callable

from tensor_engine import Tensor, dtypes
from tensor_engine.uop.op import AxisType, Ops
from tensor_engine.uop.uop import UOp

KEY_BITS = 31  # of a float32 that is not negative, read as an integer


def run_kernel(kernel: Callable[..., UOp], state: Tensor, *inputs: Tensor) -> Tensor:
    """What the kernel makes of `state`, a computed value that nothing else may use."""
    nodes = tuple(value.uop if value.uop.op is Ops.CALL else value.contiguous().uop for value in (state, *inputs))
    return Tensor.from_uop(UOp(Ops.CALL, state.dtype, nodes, kernel))


def suppress(keep: UOp, rivals: UOp) -> UOp:
    """Greedy suppression: candidate i stays alive unless a kept one before it is its rival.

    keep uint8 [K], 1 for those alive; rivals bool [K * K]. This is the definition itself, in the order of i.
    """
    count = size_of(keep)
    i = UOp.range(count, 0)
    j = UOp.range(i, 1, AxisType.REDUCE)
    beaten = rivals.index(i * count + j).load() & keep.after(i).index(j).load().ne(0)
    alive = keep.index(i).load()
    kept = beaten.reduce(Ops.MAX, j).where(alive.const_like(0), alive)
    return keep.index(i).store(kept).end(i)


def find_cut(cut: UOp, keys: UOp, count: int) -> UOp:
    """The largest integer that at least `count` keys reach, by bisection: a bit a round, the highest first.

    cut int32 [1], 0 at the start; keys int32 [N], none negative. 0 if fewer keys than `count` are above 0.
    """
    bit = UOp.range(KEY_BITS, 0)
    i = UOp.range(size_of(keys), 1, AxisType.REDUCE)
    found = cut.after(bit).index(place(0)).load()
    higher = found | found.const_like(1) << (bit * -1 + (KEY_BITS - 1)).cast(dtypes.int32)
    reaching = (keys.index(i).load() >= higher).cast(dtypes.int32).reduce(Ops.ADD, i)
    return cut.index(place(0)).store((reaching >= count).where(higher, found)).end(bit)


def collect(slots: UOp, keys: UOp, cut: UOp) -> UOp:
    """Where the keys above the cut stand, in order, and then those equal to it, as far as there is room.

    slots int32 [K + 2], 0 at the start: the places, one to write what is not wanted, and the count; keys int32 [N];
    cut int32 [1]. A key of 0 is never wanted.
    """
    spare, counter = size_of(slots) - 2, size_of(slots) - 1
    turn = UOp.range(2, 0)
    i = UOp.range(size_of(keys), 1)
    key, limit = keys.index(i).load(), cut.index(place(0)).load()
    count = slots.after(turn, i).index(place(counter)).load()
    fits = turn.eq(0).where(key > limit, key.eq(limit))
    taken = fits & (key > 0) & (count < spare)
    slot = taken.where(count.cast(dtypes.index), place(spare))
    write = slots.index(slot).store(i.cast(dtypes.int32))
    advance = slots.index(place(counter)).store(count + taken.cast(dtypes.int32))
    return UOp.group(write, advance).end(turn, i)


def place(number: int) -> UOp:
    """A constant index."""
    return UOp.const(dtypes.index, number)


def size_of(pointer: UOp) -> int:
    """How many elements a pointer reaches."""
    return pointer.dtype.size  # type: ignore[attr-defined]
