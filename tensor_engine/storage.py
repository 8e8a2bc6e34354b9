"""Who shares memory with whom, and what an assignment means for everybody else.

A tensor and its views, which `reshape`, `permute`, `shrink`, `flip`, `detach` and an index of ints and slices make,
have one `storage`: what is assigned to one of them shows in all, as in numpy. Everything else that was made of them
before, computed or not, keeps the old value. What repeats or adds elements, as `expand` and `pad` do, is no view.

An assignment makes no copy: it is a node that stands for the memory after it was written to, and takes the place of
the memory before in every view. A value that isn't in memory yet gets some when a part of it is written to.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from tensor_engine.device import Buffer, Device
from tensor_engine.engine.realize import (
    buffer_of,
    is_realized,
    moved_like,
    nodes_reading,
    pending_assignments,
    realized,
)
from tensor_engine.schedule.rangeify import shows_padding
from tensor_engine.uop import provenance
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.uop import UOp

if TYPE_CHECKING:
    from tensor_engine.tensor import Tensor


# the same elements in the same memory; a PAD whose zeros are cut off again helps to take every second one
VIEWING = GroupOp.VIEW | {Ops.DETACH}


class Storage:
    """What views of one tensor have in common. Only its identity counts."""

    __slots__ = ("__weakref__",)


# every Tensor that there is
alive: set[weakref.ref[Tensor]] = set()

# Two tensors may lie in the same memory because they are equal by their graphs. The first that is assigned to keeps it.
owners: weakref.WeakKeyDictionary[Buffer, Storage] = weakref.WeakKeyDictionary()


def tensors_in_scope() -> list[Tensor]:
    """Every Tensor that there is."""
    return [tensor for tensor in [entry() for entry in list(alive)] if tensor is not None]


# ---- views --------------------------------------------------------------------------------------------------------


def viewed(node: UOp) -> UOp:
    """What a node is a view of: memory, or a value that has none yet."""
    below = node
    while below.op in VIEWING and not (below.op is Ops.PAD and shows_padding(node, below)):
        below = below.src[0]
    return below


def where_now(node: UOp) -> UOp:
    """The same view of the memory that holds what it is a view of, if that was realized."""
    below = viewed(node)
    while below in realized:
        node = moved_like(node, below, realized[below])
        below = viewed(node)
    return node


def views_of(below: UOp, storage: Storage) -> list[Tensor]:
    """The tensors of a storage that are views of this node."""
    sharing = [tensor for tensor in tensors_in_scope() if tensor.storage is storage]
    return [tensor for tensor in sharing if is_same(viewed(where_now(tensor.uop)), below)]


def is_same(first: UOp, second: UOp) -> bool:
    """The same node, or two names of the same memory: each replay of a captured function may give it another one."""
    return first is second or first.op is second.op is Ops.BUFFER and buffer_of(first) is buffer_of(second)


def is_whole(view: UOp, below: UOp) -> bool:
    """True for a view that has all elements, in order."""
    while view.op is Ops.RESHAPE and view is not below:
        view = view.src[0]
    return view is below


def is_whole_buffer(node: UOp) -> bool:
    """True for a node whose elements are those of one buffer, all of them, in order."""
    return node.base.op is Ops.BUFFER and is_whole(node, node.base)


def is_part(node: UOp) -> bool:
    """True for a view of memory that leaves elements out, or has them in another order."""
    return node.base.op is Ops.BUFFER and not is_whole_buffer(node)


def is_memory(node: UOp) -> bool:
    """True for memory and views of it, asked for once more or not."""
    while True:
        if node in realized:
            node = realized[node]
        elif node.op in GroupOp.MOVEMENT or node.op is Ops.DETACH or node.op is Ops.CONTIGUOUS and node.arg is None:
            node = node.src[0]
        else:
            return node.op in GroupOp.MEMORY


def what_to_store(tensor: Tensor) -> UOp:
    """What realizing a tensor brings into memory: its value, or, where others are views of the same, that whole."""
    below = viewed(tensor.uop)
    if below in realized or (not is_realized(below) and len(views_of(below, tensor.storage)) > 1):
        return below
    return tensor.uop


# ---- writing ------------------------------------------------------------------------------------------------------


def write(tensor: Tensor, value: UOp) -> None:
    """Store `value`, which has its shape and type, in what `tensor` is a view of."""
    place = where_now(tensor.uop)
    before = viewed(place)
    after = assigned(before, place, value, tensor.storage)
    provenance.record(after)
    for view in views_of(before, tensor.storage):
        now = where_now(view.uop)
        view.uop = moved_like(now, viewed(now), after)


def assigned(before: UOp, place: UOp, value: UOp, storage: Storage) -> UOp:
    """What `before` is when `value` has been stored in `place`, a view of it."""
    if before.op in GroupOp.MEMORY and owners.setdefault(buffer_of(before.buffer), storage) is storage:
        return UOp(Ops.ASSIGN, before.dtype, (before, place, value))
    if is_whole(place, before):
        return (copied(value) if is_memory(value) else value).reshape(before.shape)
    fresh = UOp.new_buffer(before.device or Device.DEFAULT, before.size, before.dtype)
    memory = UOp(Ops.ASSIGN, before.dtype, (fresh, fresh, before.reshape(fresh.shape)))
    place = moved_like(place, before, memory.reshape(before.shape))
    return UOp(Ops.ASSIGN, before.dtype, (memory, place, value)).reshape(before.shape)


def copied(node: UOp) -> UOp:
    """The value in memory of its own."""
    return UOp(Ops.CONTIGUOUS, node.dtype, (node,), "copy")


def readers_of_old_values(tensors: list[Tensor]) -> list[Tensor]:
    """The other tensors in scope that need what realizing `tensors` overwrites. Those that lie in it become copies."""
    readers: list[Tensor] = []
    while assignments := pending_assignments([tensor.uop for tensor in tensors + readers]):
        known = {id(tensor) for tensor in tensors + readers}
        in_scope = tensors_in_scope()
        reading = nodes_reading([tensor.uop for tensor in in_scope], assignments)
        found = [tensor for tensor in in_scope if tensor.uop in reading]
        for tensor in found:
            if is_memory(tensor.uop):
                tensor.uop = copied(tensor.uop)
        new = [tensor for tensor in found if id(tensor) not in known]
        if not new:
            break
        readers += new
    return readers
