"""From tensors to a LINEAR of kernels: choose the stores, build a kernel for each, put them in order."""
from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tensor_engine.helpers import SPEC, dedup, prod
from tensor_engine.schedule.contraction import arrange_contractions
from tensor_engine.schedule.old_values import keep_old_values
from tensor_engine.schedule.rangeify import Index, flat_index, kernel_loops, moved_index
from tensor_engine.schedule.stores import StoreChooser
from tensor_engine.schedule.tidy import tidy_tensors
from tensor_engine.uop import provenance
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.size import add_value
from tensor_engine.uop.spec import check_tensor_graph
from tensor_engine.uop.symbolic import simplify
from tensor_engine.uop.uop import KernelInfo, UOp


class Schedule(NamedTuple):
    """`linear`: KERNELs and COPYs in order. `roots`: what was asked for, tidied. `memory`: the BUFFER of each store.

    `values`: what the variables are bound to.
    """

    linear: UOp
    roots: list[UOp]
    memory: dict[UOp, UOp]
    values: dict[str, int]

    def lasting(self) -> dict[UOp, UOp]:
        """The part of `memory` that is written once: its values are not overwritten on the way."""
        writes = Counter(step.src[0] for step in self.linear.src)
        values = {node: buffer for node, buffer in self.memory.items() if node.op is not Ops.ASSIGN}
        return {node: buffer for node, buffer in values.items() if writes[buffer] == 1}


@dataclass
class Step:
    """One stored node on its way to a KERNEL: what it writes, what it reads, and which steps it has to follow."""

    node: UOp
    operation: UOp
    writes: UOp
    reads: tuple[UOp, ...]
    after: set[int] = field(default_factory=set)


def create_schedule(roots: list[UOp], realized: Mapping[UOp, UOp], default_device: str) -> Schedule:
    """The kernels that compute `roots`, in an order that respects every read and write.

    `realized` holds nodes that are in memory already, with the BUFFER that has them. What is made of constants alone
    is computed on `default_device`. Raises ValueError when an assignment needs the value that another one overwrites.
    """
    sink = keep_old_values(arrange_contractions(tidy_tensors(UOp.sink(*roots), realized)))
    if SPEC:
        check_tensor_graph(sink)
    roots = list(sink.src)
    stores = plan_stores(StoreChooser(roots).choose(), default_device)
    linear = UOp(Ops.LINEAR, src=tuple(step.operation for step in stores.steps))
    return Schedule(linear, roots, stores.memory, stores.values)


def plan_stores(nodes: list[UOp], default_device: str, aside: frozenset[UOp] = frozenset()) -> Stores:
    """The steps that store `nodes`, in order.

    Where assignments wait for each other, each to read what another one overwrites, their values go `aside` first.
    """
    stores = Stores(default_device, aside)
    for node in nodes:
        with provenance.blame(node):
            stores.add(node)
    add_dependencies(stores.steps)
    ordered = in_order(stores.steps)
    done = {step.node for step in ordered}
    waiting = frozenset(node for node in nodes if node.op is Ops.ASSIGN and node not in done)
    if len(ordered) == len(stores.steps):
        stores.steps = ordered
        return stores
    if waiting <= aside:
        raise ValueError("assignments each need the value that another one overwrites; realize one of them first")
    return plan_stores(nodes, default_device, aside | waiting)


# ---- a kernel a store -------------------------------------------------------------------------------------------


class Stores:
    """Makes the steps that store one node after another; `memory` is where each of them then lies.

    The values of the assignments in `aside` are stored elsewhere first. `values` are those of the variables.
    """

    def __init__(self, default_device: str, aside: frozenset[UOp]):
        self.default_device, self.aside = default_device, aside
        self.memory: dict[UOp, UOp] = {}
        self.steps: list[Step] = []
        self.values: dict[str, int] = {}

    def add(self, node: UOp) -> None:
        """Plan the store of `node`, whose stored operands were added before."""
        if node.op is Ops.ASSIGN:
            self.assign(node)
        elif node.op is Ops.CALL:
            self.memory[node] = self.memory.get(node.src[0], node.src[0].base)
            self.steps.append(call_step(node, self.memory))
        elif node.op is Ops.COPY:
            self.copy(node)
        else:
            self.memory[node] = self.compute(node, node.src[0] if node.op is Ops.CONTIGUOUS else node)

    def memory_of(self, node: UOp) -> UOp | None:
        """The BUFFER that holds a node's value, if one does."""
        return node if node.op is Ops.BUFFER else self.memory.get(node)

    def new_buffer(self, node: UOp) -> UOp:
        return UOp.new_buffer(node.device or self.default_device, prod(node.shape), node.dtype)

    def compute(self, node: UOp, value: UOp) -> UOp:
        """A kernel that stores `value`, which is that of `node`, in new memory, in row order."""
        target = self.new_buffer(node)
        loops = kernel_loops(value, self.memory_of, lambda index: target.index(flat_index(index, node.shape)))
        self.steps.append(kernel_step(node, loops, target, self.values))
        return target

    def copy(self, node: UOp) -> None:
        """Bring memory to another device."""
        source = self.memory.get(node.src[0], node.src[0].base)
        target = self.memory[node] = self.new_buffer(node)
        self.steps.append(Step(node, UOp(Ops.COPY, src=(target, source)), target, (source,)))

    def assign(self, node: UOp) -> None:
        """Store a value over (a view of) a buffer; by way of other memory if it reads what it overwrites."""
        _, view, value = node.src
        target = self.memory[node] = node.buffer
        loops = self.loops_into(target, view, value)
        if node in self.aside or reads_elsewhere(loops, target):
            aside = self.compute(value.contiguous(), value)
            loops = self.loops_into(target, view, aside.reshape(view.shape))
        self.steps.append(kernel_step(node, loops, target, self.values))

    def loops_into(self, target: UOp, view: UOp, value: UOp) -> UOp:
        return kernel_loops(value, self.memory_of, lambda index: target.index(address_in_view(view, index)))


def address_in_view(view: UOp, index: Index) -> UOp:
    """The position in the memory below of an element of a view, none of whose elements is padding."""
    while view.op in GroupOp.MOVEMENT:
        view, index = view.src[0], moved_index(view, index)
    return flat_index(index, view.shape)


def reads_elsewhere(loops: UOp, buffer: UOp) -> bool:
    """Does the kernel read elements of `buffer` that another iteration overwrites?"""
    nodes = loops.toposort()
    written = next(n.src[0] for n in nodes if n.op is Ops.STORE)
    reads = [n.src[0] for n in nodes if n.op is Ops.LOAD and n.src[0].src[0] is buffer]
    return any(simplify(read.src[1]) is not simplify(written.src[1]) for read in reads)


def kernel_step(node: UOp, loops: UOp, target: UOp, values: dict[str, int]) -> Step:
    """A KERNEL: loops over PARAMs, which stand for the buffers in the order in which they are met.

    Variables are parameters, too: what they are bound to goes to `values`.
    """
    nodes = loops.toposort()
    buffers = dedup([target] + [n for n in nodes if n.op is Ops.BUFFER])
    params = {b: UOp(Ops.PARAM, b.dtype.ptr(b.arg.capacity), (), number) for number, b in enumerate(buffers)}
    for bound in [n for n in nodes if n.op is Ops.BIND]:
        add_value(values, bound)
        params[bound] = bound.src[0]
    ast = UOp.sink(loops.substitute(params), arg=KernelInfo())
    kernel = provenance.inherit(UOp(Ops.KERNEL, src=tuple(buffers), arg=ast), node)
    return Step(node, kernel, target, tuple(buffers[1:]))


def call_step(node: UOp, memory: dict[UOp, UOp]) -> Step:
    """A kernel that was written by hand, on the memory of its operands; it writes the first."""
    buffers = tuple(memory.get(s, s.base) for s in node.src)
    params = [UOp(Ops.PARAM, b.dtype.ptr(b.arg.capacity), (), number) for number, b in enumerate(buffers)]
    ast = UOp.sink(node.arg(*params), arg=KernelInfo(options=()))
    return Step(node, UOp(Ops.KERNEL, src=buffers, arg=ast), buffers[0], buffers)


# ---- order ------------------------------------------------------------------------------------------------------


def add_dependencies(steps: list[Step]) -> None:
    """Who must run before whom because of the buffers that they share.

    Steps that write the same buffer run in the order of the graph. So one that reads it has to follow the last of those
    whose result it sees, and to come before the first of the others. Of assignments it sees those that it was written
    on top of; everything else was meant to see the memory as it was before. Sets of assignments are a bit each.
    """
    assignments = [number for number, step in enumerate(steps) if step.node.op is Ops.ASSIGN]
    bits = {steps[number].node: 1 << place for place, number in enumerate(assignments)}
    seen_by = assignments_below(steps, bits)
    assigned: dict[UOp, int] = {}
    written: dict[UOp, int] = {}  # by the last step so far, and by the last that is no assignment
    made: dict[UOp, int] = {}
    for number, step in enumerate(steps):
        if step.writes in written:
            step.after.add(written[step.writes])
        written[step.writes] = number
        if step.node in bits:
            assigned[step.writes] = assigned.get(step.writes, 0) | bits[step.node]
        else:
            made[step.writes] = number
    for number, step in enumerate(steps):
        for buffer in dict.fromkeys(step.reads):
            if buffer is step.writes:
                continue
            if buffer in made:
                step.after.add(made[buffer])
            seen = assigned.get(buffer, 0) & seen_by.get(step.node, 0)
            others = assigned.get(buffer, 0) & ~seen
            if seen:
                step.after.add(assignments[seen.bit_length() - 1])
            if others:
                steps[assignments[lowest_bit(others)]].after.add(number)


def lowest_bit(bits: int) -> int:
    """The place of the lowest bit that is set."""
    return (bits & -bits).bit_length() - 1


def assignments_below(steps: list[Step], bits: dict[UOp, int]) -> dict[UOp, int]:
    """For each node that was written on top of assignments, which ones."""
    below: dict[UOp, int] = {}
    for node in UOp.sink(*(step.node for step in steps)).toposort() if bits else ():
        found = bits.get(node, 0)
        for s in node.src:
            found |= below.get(s, 0)
        if found:
            below[node] = found
    return below


def in_order(steps: list[Step]) -> list[Step]:
    """The steps sorted by their dependencies, otherwise as they come; those that wait for each other are left out."""
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
    return ordered


