"""Loops that Tensor operations cannot say, because each round needs the one before: kernels written
by hand.

A kernel is a function from pointers to graph nodes. The first pointer is the result, the others are
only read. What a kernel reads of its own writing it reads `after` the start of the round, so that
no load moves out of the loop.
"""

from __future__ import annotations

from collections.abc import Callable

from tensor_engine import Tensor, dtypes
from tensor_engine.dtype import DType
from tensor_engine.uop.op import AxisType, Ops
from tensor_engine.uop.uop import UOp

KEY_BITS = 31  # of a float32 that is not negative, read as an integer


def run_kernel(kernel: Callable[..., UOp], size: int, dtype: DType, *inputs: Tensor) -> Tensor:
    """What the kernel makes of the inputs: `size` elements of `dtype`, all of which it has to write."""
    result = Tensor.empty(size, dtype=dtype, device=inputs[0].device)
    stored = (value if value.uop.op is Ops.CALL else value.contiguous() for value in inputs)
    return Tensor.from_uop(UOp(Ops.CALL, dtype, (result.uop, *(value.uop for value in stored)), kernel))


def suppress(keep: UOp, alive: UOp, rivals: UOp) -> UOp:
    """Greedy suppression: candidate i is kept if it is alive and no kept one before it is its
    rival.

    keep and alive bool [K]; rivals bool [K * K]. This is the definition itself, in the order of i.
    """
    count = size_of(keep)
    i = UOp.range(count, 0)
    j = UOp.range(i, 1, AxisType.REDUCE)
    beaten = rivals.index(i * count + j).load() & keep.after(i).index(j).load()
    kept = alive.index(i).load() & beaten.reduce(Ops.MAX, j).ne(True)
    return keep.index(i).store(kept).end(i)


def find_cut(cut: UOp, keys: UOp, count: int) -> UOp:
    """The largest integer that at least `count` keys reach, by bisection: a bit a round, the
    highest first.

    cut int32 [1]; keys int32 [N], none negative. 0 if fewer keys than `count` are above 0.
    """
    bit = UOp.range(KEY_BITS, 0)
    i = UOp.range(size_of(keys), 1, AxisType.REDUCE)
    found = value_or_zero(cut, place(0), bit)
    higher = found | found.const_like(1) << (bit * -1 + (KEY_BITS - 1)).cast(dtypes.int32)
    reaching = (keys.index(i).load() >= higher).cast(dtypes.int32).reduce(Ops.ADD, i)
    return cut.index(place(0)).store((reaching >= count).where(higher, found)).end(bit)


def collect(slots: UOp, keys: UOp, cut: UOp) -> UOp:
    """Where the keys above the cut stand, in order, and then those equal to it, as far as there is
    room.

    slots int32 [K + 2]: the places, undefined behind the last one found; one to write what is not
    wanted; and how many were found. keys int32 [N]; cut int32 [1]. A key of 0 is never wanted.
    """
    spare, counter = size_of(slots) - 2, size_of(slots) - 1
    turn = UOp.range(2, 0)
    i = UOp.range(size_of(keys), 1)
    key, limit = keys.index(i).load(), cut.index(place(0)).load()
    count = value_or_zero(slots, place(counter), turn, i)
    fits = turn.eq(0).where(key > limit, key.eq(limit))
    taken = fits & (key > 0) & (count < spare)
    slot = taken.where(count.cast(dtypes.index), place(spare))
    write = slots.index(slot).store(i.cast(dtypes.int32))
    advance = slots.index(place(counter)).store(count + taken.cast(dtypes.int32))
    return UOp.group(write, advance).end(turn, i)


def value_or_zero(pointer: UOp, at: UOp, *loops: UOp) -> UOp:
    """What this kernel has written there before; 0 in the first round of the loops, when it has written nothing."""
    first = loops[0].eq(0)
    for loop in loops[1:]:
        first = first & loop.eq(0)
    written = pointer.after(*loops).index(at).load()
    return first.where(written.const_like(0), written)


def place(number: int) -> UOp:
    """A constant index."""
    return UOp.const(dtypes.index, number)


def size_of(pointer: UOp) -> int:
    """How many elements a pointer reaches."""
    return pointer.dtype.size  # type: ignore[attr-defined]
