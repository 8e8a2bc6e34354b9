"""Sums of products, arranged as vectors and the cache like it.

The gradient of a weight sums over all images and places. Of both factors, what lies side by side in memory is then
summed over, in short rows that are no multiple of a vector; and for each weight the sum runs through all memory again.
So one factor is stored with an axis last that stays, and the sum is made in parts that fit the cache.
"""

from __future__ import annotations

from typing import NamedTuple

from tensor_engine.helpers import ceildiv, prod
from tensor_engine.schedule.rangeify import flat_index, moved_index
from tensor_engine.uop.linear_form import linear_form
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.rewrite import walk_rewrite
from tensor_engine.uop.uop import UOp
from tensor_engine.uop.upat import PatternMatcher, UPat

# A vector has so many lanes, or a few more or less.
LANES = 8
# Elements so far apart still make a vector.
NEAR = 3
# Rows this long are worth vectors even if they are no multiple of one.
LONG_ROW = 64
# To store a factor anew pays if each of its elements is used so often.
MUCH_USED = 256
# Bytes that stay in the cache while a sum runs over them again and again, …
CACHE = 1 << 20
# … and the least that doesn't.
BEYOND_CACHE = 2 * CACHE


class Factor(NamedTuple):
    """An operand of a product: by how much its place in memory moves along each axis, and of how many elements."""

    node: UOp
    strides: list[int]
    size: int

    @property
    def once(self) -> UOp:
        """What an EXPAND repeats."""
        return self.node.src[0] if self.node.op is Ops.EXPAND else self.node

    @property
    def overlaps(self) -> bool:
        """True for windows."""
        return prod(self.once.shape) > self.size


def arrange_contractions(sink: UOp) -> UOp:
    """The graph with its large sums of products rearranged."""
    return walk_rewrite(sink, pm_contraction)


def arrange(total: UOp, product: UOp) -> UOp | None:
    """One sum of products."""
    if total.arg[0] is not Ops.ADD or not all(type(size) is int for size in product.shape):
        return None
    if prod(product.shape) < MUCH_USED * LONG_ROW:
        return None
    factors = [factor(node) for node in product.src]
    factors = with_lanes(factors, product.shape, total.arg[1])
    return in_parts(total, factors)


def factor(node: UOp) -> Factor:
    """Where a factor's elements are. What moves otherwise than in steps has the stride -1."""
    loops = [UOp.range(size, number) for number, size in enumerate(node.shape)]
    index, below = tuple(loops), node
    while below.op in GroupOp.MOVEMENT and below.op is not Ops.PAD:
        index, below = moved_index(below, index), below.src[0]
    form = linear_form(flat_index(index, below.shape))
    odd = frozenset().union(*(term.ranges for term in form.terms if term.op is not Ops.RANGE))
    moves = {loop: -1 if loop in odd else form.terms.get(loop, 0) for loop in loops}
    strides = [moves[loop] if size > 1 else 0 for loop, size in zip(loops, node.shape)]
    return Factor(node, strides, prod(below.shape))


# ---- lanes ------------------------------------------------------------------------------------------------------


def with_lanes(factors: list[Factor], shape: tuple[int, ...], summed: tuple[int, ...]) -> list[Factor]:
    """The factors, one of them stored anew if there is no axis for the lanes of vectors."""
    if has_lanes(factors, shape, summed):
        return factors
    kept = [axis for axis, size in enumerate(shape) if axis not in summed and size >= LANES]
    best = min(
        (
            (f.size, number, axis)
            for number, f in enumerate(factors)
            for axis in kept
            if f.strides[axis] > 0 and not f.overlaps and prod(shape) >= MUCH_USED * f.size
            and factors[1 - number].strides[axis] == 0
        ),
        default=None,
    )  # fmt: skip
    if best is None:
        return factors
    _, number, axis = best
    return [factor(with_axis_last(f.node, axis)) if i == number else f for i, f in enumerate(factors)]


def has_lanes(factors: list[Factor], shape: tuple[int, ...], summed: tuple[int, ...]) -> bool:
    """Is there an axis that stays, along which what moves at all lies near, or a summed one, side by side in both?"""
    for axis, size in enumerate(shape):
        strides = {f.strides[axis] for f in factors}
        if axis not in summed and size >= LANES and min(strides) >= 0 and 0 < max(strides) <= NEAR:
            return True
        if axis in summed and strides == {1}:
            row = row_length(factors, shape, axis)
            return row % LANES == 0 or row >= LONG_ROW
    return False


def row_length(factors: list[Factor], shape: tuple[int, ...], axis: int) -> int:
    """How many elements lie side by side in both factors, along this axis and those before it."""
    length = shape[axis]
    while axis and all(f.strides[axis - 1] == length for f in factors):
        axis -= 1
        length *= shape[axis]
    return length


def with_axis_last(node: UOp, axis: int) -> UOp:
    """The same values, stored so that those along the axis lie side by side."""
    once = node.src[0] if node.op is Ops.EXPAND else node
    order = [*(i for i in range(once.ndim) if i != axis), axis]
    return once.permute(order).contiguous().unpermute(order).expand(node.shape)


# ---- cache ------------------------------------------------------------------------------------------------------


def in_parts(total: UOp, factors: list[Factor]) -> UOp:
    """The sum; a sum of sums over parts of the axis that is outermost in memory, if all of it is too much at once."""
    product = factors[0].node.alu(Ops.MUL, factors[1].node)
    axis = outermost(factors, total.arg[1])
    nbytes = sum(f.size for f in factors) * product.dtype.itemsize
    if axis is None or nbytes < BEYOND_CACHE:
        return total.replace(src=(product,))
    size = product.shape[axis]
    parts = next(n for n in range(1, size + 1) if size % n == 0 and n >= min(ceildiv(nbytes, CACHE), size))
    if parts * prod(total.shape) * product.dtype.itemsize > nbytes:
        return total.replace(src=(product,))
    split = split_axis(factors[0].node, axis, parts).alu(Ops.MUL, split_axis(factors[1].node, axis, parts))
    inner = tuple(i + (i >= axis) for i in total.arg[1])
    sums = split.reduce_axis(Ops.ADD, inner)
    return sums.reduce_axis(Ops.ADD, (axis,)).reshape(total.shape)


def outermost(factors: list[Factor], summed: tuple[int, ...]) -> int | None:
    """The summed axis along which both factors take their largest steps."""
    for axis in summed:
        if all(f.strides[axis] > 0 and f.strides[axis] == max(f.strides) and min(f.strides) >= 0 for f in factors):
            return axis
    return None


def split_axis(node: UOp, axis: int, parts: int) -> UOp:
    """An axis as two: the parts, and what is in each."""
    once = node.src[0] if node.op is Ops.EXPAND else node

    def split(shape: tuple[int, ...], count: int) -> tuple[int, ...]:
        return (*shape[:axis], count, shape[axis] // count, *shape[axis + 1 :])

    return once.reshape(split(once.shape, parts if once.shape[axis] > 1 else 1)).expand(split(node.shape, parts))


pm_contraction = PatternMatcher(
    [(UPat(Ops.REDUCE_AXIS, name="total", src=(UPat(Ops.MUL, name="product"),)), arrange)]
)
