"""Tidying of tensor graphs before they are scheduled: fewer movement operations, nothing that is known already."""
from __future__ import annotations

from collections.abc import Mapping

from tensor_engine.uop.op import GroupOp, Ops, identity_element
from tensor_engine.uop.rewrite import graph_rewrite
from tensor_engine.uop.uop import UOp
from tensor_engine.uop.upat import PatternMatcher, UPat

below = UPat.var("below")
COMPUTED = GroupOp.ELEMENTWISE | GroupOp.MOVEMENT | {Ops.REDUCE_AXIS, Ops.CONTIGUOUS, Ops.COPY}


def changes_nothing(node: UOp, below: UOp) -> UOp | None:
    """A movement operation that leaves every element where it is."""
    if node.op is Ops.PERMUTE:
        same = node.arg == tuple(range(len(node.arg)))
    elif node.op is Ops.FLIP:
        same = not any(flip and size != 1 for flip, size in zip(node.arg, node.shape))
    else:
        same = node.shape == below.shape
    return below if same else None


def merge(node: UOp, below: UOp) -> UOp:
    """Of two reshapes, or two expands, in a row only the last shape matters."""
    return UOp(node.op, node.dtype, below.src, node.arg)


def merge_pads(node: UOp, below: UOp) -> UOp:
    """Zeros around zeros."""
    pads = tuple((a + c, b + d) for (a, b), (c, d) in zip(node.arg, below.arg))
    return UOp(Ops.PAD, node.dtype, below.src, pads)


def merge_permutes(node: UOp, below: UOp) -> UOp:
    """One permutation in place of two."""
    return UOp(Ops.PERMUTE, node.dtype, below.src, tuple(below.arg[axis] for axis in node.arg))


def merge_reduces(node: UOp, below: UOp) -> UOp | None:
    """sum of sum is one sum over both sets of axes."""
    (op, axes), (below_op, below_axes) = node.arg, below.arg
    if op is not below_op or node.dtype is not below.dtype:
        return None
    return UOp(Ops.REDUCE_AXIS, node.dtype, below.src, (op, tuple(sorted({*axes, *below_axes}))))


def is_stored_whole(node: UOp) -> bool:
    """Memory, or what is about to be stored, whole and in order, perhaps with other axes."""
    while node.op is Ops.RESHAPE:
        node = node.src[0]
    return node.op in (Ops.BUFFER, Ops.CONTIGUOUS, Ops.COPY, Ops.ASSIGN)


def without_elements(node: UOp) -> UOp | None:
    """What has no elements needs no memory and no kernel: a constant of its shape says as much."""
    if 0 not in node.shape or node.base.op is Ops.CONST:
        return None
    return UOp.const(node.dtype, 0, node.device).reshape((1,) * len(node.shape)).expand(node.shape)


def reduce_of_nothing(node: UOp, below: UOp) -> UOp | None:
    """A reduction over no elements is what the reduction starts from."""
    if 0 not in below.shape:
        return None
    start = UOp.const(node.dtype, identity_element(node.arg[0], node.dtype), node.device)
    return start.reshape((1,) * len(node.shape)).expand(node.shape)


def pad_nothing(node: UOp, below: UOp) -> UOp | None:
    """Padding around no elements is all there is."""
    return node.const_like(0) if 0 in below.shape else None


pm_tidy = PatternMatcher(
    [
        (UPat(COMPUTED, name="node"), without_elements),
        (UPat(Ops.REDUCE_AXIS, name="node", src=(below,)), reduce_of_nothing),
        (UPat(Ops.PAD, name="node", src=(below,)), pad_nothing),
        (UPat(Ops.DETACH, src=(below,)), lambda below: below),
        (UPat(Ops.CONTIGUOUS_BACKWARD, src=(below,)), lambda below: below),
        (UPat(GroupOp.MOVEMENT, name="node", src=(below,)), changes_nothing),
        (UPat(Ops.RESHAPE, name="node", src=(UPat(Ops.RESHAPE, name="below"),)), merge),
        (UPat(Ops.EXPAND, name="node", src=(UPat(Ops.EXPAND, name="below"),)), merge),
        (UPat(Ops.PERMUTE, name="node", src=(UPat(Ops.PERMUTE, name="below"),)), merge_permutes),
        (UPat(Ops.PAD, name="node", src=(UPat(Ops.PAD, name="below"),)), merge_pads),
        (UPat(Ops.REDUCE_AXIS, name="node", src=(UPat(Ops.REDUCE_AXIS, name="below"),)), merge_reduces),
        (UPat(Ops.CONTIGUOUS, name="node", src=(UPat(name="below", where=is_stored_whole),)),
         lambda node, below: below if node.arg is None else None),
        (UPat(Ops.COPY, src=(below, UPat(Ops.DEVICE, name="device"))),
         lambda below, device: below if below.device == device.arg else None),
    ]
)  # fmt: skip


def tidy_tensors(root: UOp, realized: Mapping[UOp, UOp]) -> UOp:
    """The graph with what is in memory already read from there, and without movement that does nothing."""
    found = [node for node in root.toposort(lambda node: node not in realized) if node in realized]
    in_memory = {node: place_of(node, realized) for node in found}
    return graph_rewrite(root.substitute(in_memory), pm_tidy)


def place_of(node: UOp, realized: Mapping[UOp, UOp]) -> UOp:
    """Where a node's value is. Memory that was assigned to, perhaps several times, has a new name."""
    place = realized[node]
    while node.op is Ops.BUFFER and place in realized:
        place = realized[place]
    return place
