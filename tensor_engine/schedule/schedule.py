"""From tensors to a LINEAR of kernels: choose the stores, build a kernel for each, put them in order."""
from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tensor_engine.helpers import dedup, prod
from tensor_engine.schedule.rangeify import Index, flat_index, kernel_loops, moved_index
from tensor_engine.schedule.stores import StoreChooser
from tensor_engine.schedule.tidy import tidy_tensors
from tensor_engine.uop import provenance
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.symbolic import simplify
from tensor_engine.uop.uop import UOp


class KernelInfo(NamedTuple):
    """What a SINK says about its kernel: a name, the strategy (None: not chosen yet), and where it was written."""

    name: str = ""
    options: tuple[object, ...] | None = None


class Schedule(NamedTuple):
    """`linear`: KERNELs and COPYs in order. `roots`: what was asked for, tidied. `memory`: the BUFFER of each store.

    `values`: what the variables are bound to.
    """

    linear: UOp
    roots: list[UOp]
    memory: dict[UOp, UOp]
    values: dict[str, int]


@dataclass
class Step:
    """One stored node on its way to a KERNEL: what it writes, what it reads, and which steps it has to follow."""

    node: UOp
    operation: UOp
    writes: UOp
    reads: tuple[UOp, ...]
    after: set[int] = field(default_factory=set)


def create_schedule(roots: list[UOp], realized: Mapping[UOp, UOp]) -> Schedule:
    """The kernels that compute `roots`, in an order that respects every read and write.

    `realized` holds nodes that are in memory already, with the BUFFER that has them.
    Raises ValueError when an assignment needs the value that another one overwrites.
    """
    roots = [tidy_tensors(root, realized) for root in roots]
    values = bound_values(roots)
    memory: dict[UOp, UOp] = {}
    steps: list[Step] = []
    for node in StoreChooser(roots).choose():
        with provenance.blame(node):
            steps.extend(make_steps(node, memory))
    add_dependencies(steps)
    ordered = in_order(steps)
    return Schedule(UOp(Ops.LINEAR, src=tuple(step.operation for step in ordered)), roots, memory, values)


def bound_values(roots: list[UOp]) -> dict[str, int]:
    """The values of the variables. Raises ValueError if one has two."""
    values: dict[str, int] = {}
    for node in UOp.sink(*roots).toposort():
        if node.op is Ops.BIND:
            name, value = node.src[0].arg[0], node.src[1].arg
            if values.setdefault(name, value) != value:
                raise ValueError(f"the variable {name!r} is bound to {values[name]} and to {value} in one computation")
    return values


# ---- a kernel a store -------------------------------------------------------------------------------------------


def device_of(node: UOp) -> str:
    """The device that computes the node; constants are computed on the default device."""
    from tensor_engine.device import Device

    return node.device or Device.DEFAULT


def make_steps(node: UOp, memory: dict[UOp, UOp]) -> list[Step]:
    """The operation that stores `node`; an assignment that reads what it overwrites takes two."""
    if node.op is Ops.ASSIGN:
        return assign_steps(node, memory)
    target = UOp.new_buffer(device_of(node), prod(node.shape), node.dtype)
    if node.op is Ops.CALL:
        memory[node] = memory[node.src[0]]
        return [call_step(node, memory)]
    if node.op is Ops.COPY:
        source = memory.get(node.src[0], node.src[0].base)
        memory[node] = target
        return [Step(node, UOp(Ops.COPY, src=(target, source)), target, (source,))]
    value = node.src[0] if node.op is Ops.CONTIGUOUS else node
    loops = kernel_loops(value, memory_reader(memory), lambda index: target.index(flat_index(index, node.shape)))
    memory[node] = target  # only now: the kernel itself computes the value
    return [kernel_step(node, loops, target)]


def memory_reader(memory: dict[UOp, UOp]) -> Callable[[UOp], UOp | None]:
    """Where a node's value lies, if it lies anywhere."""

    def memory_of(node: UOp) -> UOp | None:
        return node if node.op is Ops.BUFFER else memory.get(node)

    return memory_of


def assign_steps(node: UOp, memory: dict[UOp, UOp]) -> list[Step]:
    """Store a value over (a view of) a buffer."""
    target, value = node.src
    buffer = target.base
    reader = memory_reader(memory)

    def address(index: Index) -> UOp:
        return buffer.index(address_in_view(target, index))

    loops = kernel_loops(value, reader, address)
    if not reads_elsewhere(loops, buffer):
        return [kernel_step(node, loops, buffer)]
    aside = UOp.new_buffer(device_of(node), prod(node.shape), node.dtype)
    first = kernel_loops(value, reader, lambda index: aside.index(flat_index(index, node.shape)))
    second = kernel_loops(aside.reshape(node.shape), reader, address)
    return [kernel_step(value, first, aside), kernel_step(node, second, buffer)]


def address_in_view(view: UOp, index: Index) -> UOp:
    """The position in the buffer below of an element of a view."""
    while view.op in GroupOp.MOVEMENT:
        view, index = view.src[0], moved_index(view, index)
    return flat_index(index, view.shape)


def reads_elsewhere(loops: UOp, buffer: UOp) -> bool:
    """Does the kernel read elements of `buffer` that another iteration overwrites?"""
    nodes = loops.toposort()
    written = next(n.src[0] for n in nodes if n.op is Ops.STORE)
    reads = [n.src[0] for n in nodes if n.op is Ops.LOAD and n.src[0].src[0] is buffer]
    return any(simplify(read.src[1]) is not simplify(written.src[1]) for read in reads)


def kernel_step(node: UOp, loops: UOp, target: UOp) -> Step:
    """A KERNEL: loops over PARAMs, which stand for the buffers in the order in which they are met."""
    buffers = [target] + [n for n in loops.toposort() if n.op is Ops.BUFFER]
    buffers = dedup(buffers)
    params = {b: UOp(Ops.PARAM, b.dtype.ptr(b.arg.size), (), number) for number, b in enumerate(buffers)}
    ast = UOp.sink(loops.substitute(params), arg=KernelInfo())
    kernel = provenance.inherit(UOp(Ops.KERNEL, src=tuple(buffers), arg=ast), node)
    return Step(node, kernel, target, tuple(buffers[1:]))


def call_step(node: UOp, memory: dict[UOp, UOp]) -> Step:
    """A kernel that was written by hand, on the memory of its operands; it writes the first."""
    buffers = tuple(memory.get(s, s.base) for s in node.src)
    params = [UOp(Ops.PARAM, b.dtype.ptr(b.arg.size), (), number) for number, b in enumerate(buffers)]
    ast = UOp.sink(node.arg(*params), arg=KernelInfo(options=()))
    return Step(node, UOp(Ops.KERNEL, src=buffers, arg=ast), buffers[0], buffers)


# ---- order ------------------------------------------------------------------------------------------------------


def add_dependencies(steps: list[Step]) -> None:
    """Who must run before whom because of the buffers that they share."""
    writers: dict[UOp, list[int]] = {}
    for number, step in enumerate(steps):
        writers.setdefault(step.writes, []).append(number)
    above = nodes_above_assignments(steps)
    for number, step in enumerate(steps):
        for buffer in dict.fromkeys((*step.reads, step.writes)):
            for writer in writers.get(buffer, ()):
                if writer == number:
                    continue
                if sees_result_of(step, steps[writer], above) or buffer is step.writes and writer < number:
                    step.after.add(writer)
                elif steps[writer].node.op is Ops.ASSIGN:
                    steps[writer].after.add(number)


def sees_result_of(reader: Step, writer: Step, above: dict[UOp, set[UOp]]) -> bool:
    """Does a step that shares memory with `writer` read what that writes?

    Of an assignment only what was written on top of it does. Everything else was meant to see the memory as it was
    before, and must run first. A CALL changes what the step of its first operand made, and comes after that.
    """
    if writer.node.op is Ops.CALL and writer.node.src[0] is reader.node:
        return False
    return writer.node.op is not Ops.ASSIGN or writer.node in above.get(reader.node, ())


def nodes_above_assignments(steps: list[Step]) -> dict[UOp, set[UOp]]:
    """For each node, the assignments that it was written on top of."""
    assignments = [step.node for step in steps if step.node.op is Ops.ASSIGN]
    if not assignments:
        return {}
    below: dict[UOp, set[UOp]] = {}
    for node in UOp.sink(*(step.node for step in steps)).toposort():
        below[node] = set().union(*(below[s] for s in node.src)) | ({node} if node in assignments else set())
    return {node: found - {node} for node, found in below.items() if found}


def in_order(steps: list[Step]) -> list[Step]:
    """The steps sorted by their dependencies, otherwise as they come."""
    blocked = [len(step.after) for step in steps]
    users: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        for before in step.after:
            users.setdefault(before, []).append(number)
    ready = [number for number, count in enumerate(blocked) if count == 0]
    ordered: list[Step] = []
    while ready:
        number = heapq.heappop(ready)
        ordered.append(steps[number])
        for user in users.get(number, ()):
            blocked[user] -= 1
            if blocked[user] == 0:
                heapq.heappush(ready, user)
    if len(ordered) != len(steps):
        raise ValueError("two assignments each need the value that the other one overwrites; realize one of them first")
    return ordered


