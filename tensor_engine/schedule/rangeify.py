"""Rangeify: a tensor expression becomes one value inside loops.

Movement operations have no kernel of their own. Each only says which element of its operand stands at an index, so it
turns into arithmetic on the index: `x.permute(1, 0)` at (i, j) is x at (j, i). Starting from one RANGE an axis of the
result, the indices are carried down to the buffers, where they become addresses.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from tensor_engine.helpers import inverse_permutation, matching_axes, strides_for_shape
from tensor_engine.uop.linear_form import weighted_sum
from tensor_engine.uop.op import AxisType, GroupOp, Ops
from tensor_engine.uop.symbolic import simplify
from tensor_engine.uop.uop import UOp, as_index, sint

Index = tuple[UOp, ...]


class Place(NamedTuple):
    """One element of a node's value: an index for each axis, and the condition under which it is needed at all."""

    node: UOp
    at: Index
    gate: UOp | None


ZERO = as_index(0)


def both(first: UOp | None, second: UOp | None) -> UOp | None:
    """The conjunction of two conditions, where None is always true."""
    if first is None or second is None:
        return first if second is None else second
    return simplify(first & second)


def flat_index(index: Index, shape: tuple[sint, ...]) -> UOp:
    """The row-major position."""
    strides = strides_for_shape(shape)
    return weighted_sum([(i, s) if isinstance(s, int) else (simplify(i * s), 1) for i, s in zip(index, strides)])


def unflatten_index(flat: UOp, shape: tuple[sint, ...]) -> Index:
    """The index of a row-major position.

    The outermost axis needs no remainder. That matters where `flat` can lie outside of the shape, behind a gate.
    """
    index: list[UOp] = []
    outermost = True
    for size, stride in zip(shape, strides_for_shape(shape)):
        if size == 1:
            index.append(ZERO)
            continue
        index.append(simplify(flat // stride if outermost else (flat // stride) % size))
        outermost = False
    return tuple(index)


def reshape_index(index: Index, shape: tuple[sint, ...], below: tuple[sint, ...]) -> Index:
    """Where element `index` of the reshaped value lies in the operand; axes that stay as they are keep their index."""
    result: list[UOp] = []
    for own, theirs in matching_axes(shape, below):
        group = tuple(shape[i] for i in own)
        inner = tuple(below[i] for i in theirs)
        if group == inner:
            result.extend(index[i] for i in own)
        else:
            flat = flat_index(tuple(index[i] for i in own), group)
            result.extend(unflatten_index(flat, inner))
    return tuple(result)


class Rangeify:
    """Turns one stored tensor expression into a scalar value over RANGEs.

    `memory_of` gives the memory of a node that has some of its own, where the descent ends in a LOAD; else None.
    """

    def __init__(self, memory_of: Callable[[UOp], UOp | None]):
        self.memory_of = memory_of
        self.values: dict[Place, UOp] = {}
        self.count = 0

    def new_range(self, size: sint, kind: AxisType) -> UOp:
        """The next loop counter; an axis of one element needs no loop."""
        if size == 1:
            return ZERO
        self.count += 1
        return UOp.range(size, self.count - 1, kind)

    def value(self, node: UOp, index: Index) -> UOp:
        """The scalar at `index`. A work list instead of recursion: graphs are deeper than Python's stack."""
        root = Place(node, index, None)
        stack = [root]
        waiting: dict[Place, tuple[list[Place], Callable[[list[UOp]], UOp]]] = {}
        while stack:
            place = stack[-1]
            if place in self.values:
                stack.pop()
                continue
            if place not in waiting:
                waiting[place] = self.step(place)
            needs, combine = waiting[place]
            missing = [need for need in needs if need not in self.values]
            if missing:
                stack.extend(missing)
                continue
            self.values[place] = combine([self.values[need] for need in needs])
            stack.pop()
        return self.values[root]

    def step(self, place: Place) -> tuple[list[Place], Callable[[list[UOp]], UOp]]:
        """What this element is made of: the elements below that it needs, and how they become its value."""
        node, index, gate = place
        memory = self.memory_of(node)
        if memory is not None:
            address = memory.index(flat_index(index, node.shape), gate)
            return [], lambda _: load(address, node)
        if node.op in GroupOp.MOVEMENT:
            return self.move(place)
        if node.op is Ops.REDUCE_AXIS:
            return self.reduce(place)
        if node.op is Ops.CONST:
            return [], lambda _: UOp.const(node.dtype, node.arg)
        if node.op is Ops.ARANGE:
            return [], lambda _: index[0].cast(node.dtype)
        if node.op is Ops.BIND:
            return [], lambda _: node
        if node.op in GroupOp.ELEMENTWISE:
            needs = [Place(s, index, gate) for s in node.src]
            return needs, lambda values: UOp(node.op, node.dtype, tuple(values), node.arg)
        if node.op in (Ops.CONTIGUOUS, Ops.DETACH, Ops.CONTIGUOUS_BACKWARD):
            return [Place(node.src[0], index, gate)], lambda values: values[0]
        raise NotImplementedError(f"{node.op} cannot be computed inside a kernel")

    def move(self, place: Place) -> tuple[list[Place], Callable[[list[UOp]], UOp]]:
        """Movement: the same element at another index."""
        node, index, gate = place
        if node.op is Ops.PAD:
            return self.pad(place)
        return [Place(node.src[0], moved_index(node, index), gate)], lambda values: values[0]

    def pad(self, place: Place) -> tuple[list[Place], Callable[[list[UOp]], UOp]]:
        """Inside the operand its element, outside zero. What lies below is only read where the condition holds."""
        node, index, gate = place
        below, inside = moved_index(node, index), inside_padding(node, index)
        if inside is None:
            return [Place(node.src[0], below, gate)], lambda values: values[0]
        zero = UOp.const(node.dtype, 0)
        if inside.op is Ops.CONST and not inside.arg:
            return [], lambda _: zero
        needs = [Place(node.src[0], below, both(gate, inside))]
        return needs, lambda values: inside.alu(Ops.WHERE, values[0], zero)

    def reduce(self, place: Place) -> tuple[list[Place], Callable[[list[UOp]], UOp]]:
        """New loops over the axes that are combined."""
        node, index, gate = place
        op, axes = node.arg
        shape = node.src[0].shape
        inner = tuple(
            self.new_range(size, AxisType.REDUCE) if axis in axes else index[axis] for axis, size in enumerate(shape)
        )
        loops = [inner[axis] for axis in axes if inner[axis].op is Ops.RANGE]
        return [Place(node.src[0], inner, gate)], lambda values: values[0].reduce(op, *loops)


def load(address: UOp, node: UOp) -> UOp:
    """Read an element; zero where the address's gate says that it must not be read."""
    alternative = (UOp.const(node.dtype, 0),) if len(address.src) == 3 else ()
    return address.load(*alternative, dtype=node.dtype)


def inside_padding(node: UOp, index: Index) -> UOp | None:
    """The condition under which the element `index` of a PAD is one of its operand's; None: under any."""
    inside: UOp | None = None
    for position, size, (before, after) in zip(index, node.src[0].shape, node.arg):
        if before:
            inside = both(inside, simplify((position < before).logical_not()))
        if after:
            inside = both(inside, simplify(position < before + size))
    return inside


def shows_padding(view: UOp, pad: UOp) -> bool:
    """Is any element of a view one that the PAD below it added?"""
    index = tuple(UOp.range(size, axis) for axis, size in enumerate(view.shape))
    while view is not pad:
        view, index = view.src[0], index if view.op is Ops.DETACH else moved_index(view, index)
    inside = inside_padding(pad, index)
    return inside is not None and not (inside.op is Ops.CONST and inside.arg)


def moved_index(node: UOp, index: Index) -> Index:
    """Where the element `index` of a movement operation lies in its operand."""
    return index_below(node.op, node.arg, node.shape, node.src[0].shape, index)


@functools.lru_cache(maxsize=8192)  # layers of a network repeat each other's shapes
def index_below(op: Ops, arg: Any, shape: tuple[sint, ...], below: tuple[sint, ...], index: Index) -> Index:
    """The index into an operand of shape `below` that a movement operation turns `index` into."""
    if op is Ops.RESHAPE:
        return reshape_index(index, shape, below)
    if op is Ops.PERMUTE:
        return tuple(index[i] for i in inverse_permutation(arg))
    if op is Ops.EXPAND:
        return tuple(ZERO if size == 1 else position for position, size in zip(index, below))
    if op is Ops.SHRINK:
        return tuple(simplify(position + start) if start else position for position, (start, _) in zip(index, arg))
    if op is Ops.FLIP:
        flipped = zip(index, below, arg)
        return tuple(simplify(position * -1 + (size - 1)) if flip else position for position, size, flip in flipped)
    if op is Ops.SHEAR:
        axis, along, step = arg
        moved = simplify(index[axis] + index[along] * step)
        return tuple(moved if i == axis else position for i, position in enumerate(index))
    if op is Ops.PAD:
        return tuple(simplify(position - before) if before else position for position, (before, _) in zip(index, arg))
    raise NotImplementedError(f"{op} is not a movement operation")


def kernel_loops(node: UOp, memory_of: Callable[[UOp], UOp | None], address: Callable[[Index], UOp]) -> UOp:
    """The loops that compute `node`, element by element: END(STORE(address, value), loops)."""
    rangeify = Rangeify(memory_of)
    index = tuple(rangeify.new_range(size, AxisType.LOOP) for size in node.shape)
    store = address(index).store(rangeify.value(node, index))
    return store.end(*(r for r in index if r.op is Ops.RANGE))
