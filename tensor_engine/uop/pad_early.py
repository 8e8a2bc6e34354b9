"""Zeros around a value, put around what it is made of instead, where that is less.

The gradient of windows lines up products of every element of a gradient with every weight, and has zeros around them.
Around the gradient alone there are fewer, and the loops over the products need not ask whether they are inside.
"""

from __future__ import annotations

from tensor_engine.helpers import inverse_permutation, matching_axes, prod
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp

Pads = tuple[tuple[int, int], ...]


def pad_early(node: UOp, pads: Pads) -> UOp:
    """The same values as `node.pad_zeros(pads)`."""
    if not any(map(any, pads)):
        return node
    if node.op is Ops.MUL:
        return pad_product(node, pads)
    if node.op is Ops.EXPAND:
        return pad_repeated(node, pads)
    below = pads_below(node, pads)
    if below is None:
        return node.pad_zeros(pads)
    operand = pad_early(node.src[0], below)
    return operand.reshape(padded_shape(node, pads)) if node.op is Ops.RESHAPE else node.replace(src=(operand,))


def pad_repeated(node: UOp, pads: Pads) -> UOp:
    """Padding of axes that an EXPAND doesn't repeat is padding of what it repeats."""
    if any(any(pad) and size != below for pad, size, below in zip(pads, node.shape, node.src[0].shape)):
        return node.pad_zeros(pads)
    return node.src[0].pad_zeros(pads).expand(padded_shape(node, pads))


def padded_shape(node: UOp, pads: Pads) -> tuple[int, ...]:
    """The sizes with the zeros."""
    return tuple(before + size + after for size, (before, after) in zip(node.shape, pads))


def repeats(node: UOp, pads: Pads) -> bool:
    """Has an EXPAND the same values all along each axis that is padded?"""
    return node.op is Ops.EXPAND and all(below == 1 for below, pad in zip(node.src[0].shape, pads) if any(pad))


def pad_product(node: UOp, pads: Pads) -> UOp:
    """Zero times what is the same along the padded axes is zero: one operand has zeros, the other goes on."""
    for own, other in (node.src, node.src[::-1]):
        if repeats(other, pads):
            return pad_early(own, pads).alu(Ops.MUL, other.src[0].expand(padded_shape(node, pads)))
    return node.pad_zeros(pads)


def pads_below(node: UOp, pads: Pads) -> Pads | None:
    """What the padding of a node is around its operand; None where it isn't the same."""
    if node.op is Ops.PERMUTE:
        return tuple(pads[axis] for axis in inverse_permutation(node.arg))
    if node.op is Ops.FLIP:
        return tuple(pad[::-1] if turned else pad for pad, turned in zip(pads, node.arg))
    if node.op is Ops.RESHAPE:
        return pads_before_reshape(node, pads)
    if node.op is Ops.SHEAR:
        return pads if not any(any(pads[axis]) for axis in node.arg[:2]) else None
    if node.op is Ops.REDUCE_AXIS and node.arg[0] is Ops.ADD:
        return pads if not any(any(pads[axis]) for axis in node.arg[1]) else None
    return None


def pads_before_reshape(node: UOp, pads: Pads) -> Pads | None:
    """A padded axis must be an axis of the operand, too; axes of size 1 may come and go beside it."""
    below = node.src[0].shape
    result = [(0, 0)] * len(below)
    for own, theirs in matching_axes(node.shape, below):
        wide = [axis for axis in own if any(pads[axis])]
        same = [axis for axis in theirs if below[axis] == prod(node.shape[i] for i in own)]
        if not wide:
            continue
        if len(wide) > 1 or not same or node.shape[wide[0]] != below[same[0]]:
            return None
        result[same[0]] = pads[wide[0]]
    return tuple(result)
