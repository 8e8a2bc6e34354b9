"""Running graphs: schedule, plan memory, compile, launch."""
from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import MappingProxyType
from typing import NamedTuple

from tensor_engine.device import Buffer, Device
from tensor_engine.dtype import dtypes
from tensor_engine.engine.program import Kernel, kernel_for
from tensor_engine.helpers import DEBUG, GlobalCounters, dedup, human_size
from tensor_engine.schedule.memory import plan_memory
from tensor_engine.schedule.schedule import Schedule, create_schedule
from tensor_engine.schedule.tidy import tidy_tensors
from tensor_engine.uop import provenance
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.size import Values, with_values
from tensor_engine.uop.uop import UOp

# the BUFFER behind each node that was realized; it lives as long as the node
realized: weakref.WeakKeyDictionary[UOp, UOp] = weakref.WeakKeyDictionary()
# the names that memory had before the one that it has now
former: weakref.WeakKeyDictionary[UOp, weakref.WeakSet[UOp]] = weakref.WeakKeyDictionary()


class Launch(NamedTuple):
    """One step of a run: a kernel, its buffers and the values of its variables, or (kernel None) a copy to the first
    buffer from the second. `constants`: those of the variables that stand for constants, and never change."""

    kernel: Kernel | None
    buffers: tuple[Buffer, ...]
    vals: tuple[int, ...] = ()
    constants: Values = MappingProxyType({})


class Observers(threading.local):
    """Who is told of every launch in this thread: a capture must not take another thread's kernels for its own."""

    def __init__(self) -> None:
        self.entries: list[Callable[[Launch], None]] = []

    def __iter__(self) -> Iterator[Callable[[Launch], None]]:
        return iter(self.entries)

    def append(self, observe: Callable[[Launch], None]) -> None:
        """From now on `observe` is told."""
        self.entries.append(observe)

    def remove(self, observe: Callable[[Launch], None]) -> None:
        """`observe` is not told any more."""
        self.entries.remove(observe)


observers = Observers()


def attach(node: UOp, buffer: Buffer) -> UOp:
    """Give a BUFFER node its memory, which lives as long as the node."""
    node.__dict__["memory"] = buffer
    return node


def attached(node: UOp) -> Buffer | None:
    """The memory of a BUFFER node, if it was given any."""
    return node.__dict__.get("memory")


def buffer_of(node: UOp) -> Buffer:
    """The memory of a BUFFER, or of the BUFFER below a chain of reshapes. It may not be filled yet."""
    base = node if node.op is Ops.BUFFER else node.base
    if base.op is not Ops.BUFFER:
        raise ValueError(f"{base.op} has no memory of its own; realize it first")
    found = attached(base)
    if found is None:
        found = Buffer(base.arg.device, base.arg.capacity, base.dtype)
        attach(base, found)
    return found


def is_realized(node: UOp) -> bool:
    """True for memory, views of memory, and constants: nothing has to run."""
    return node.base.op in (Ops.BUFFER, Ops.CONST)


def realize(*roots: UOp, held: Iterable[UOp] = ()) -> list[UOp]:
    """Run what has to run; the same values as (views of) buffers.

    Of the nodes in `held`, which somebody may ask for later, those that are stored on the way are remembered.
    """
    todo = [root for root in roots if not is_realized(root) and root not in realized]
    if todo:
        todo = list(dict.fromkeys([*pending_assignments(todo), *todo]))
        execute(todo, create_schedule(todo, realized, Device.DEFAULT), held)
    return [realized.get(root, root) for root in roots]


def pending_assignments(roots: list[UOp]) -> list[UOp]:
    """The assignments that computing `roots` will carry out, in their order."""
    pending = UOp.sink(*roots).toposort(lambda node: node not in realized)
    return [node for node in pending if node.op is Ops.ASSIGN and node not in realized]


def nodes_reading(roots: list[UOp], assignments: list[UOp]) -> set[UOp]:
    """Of all nodes below `roots`, those that need the memory that `assignments` write as it was before.

    Of several assignments to the same memory each but the last is itself something that the next one overwrites.
    """
    last = {name_now(node): node for node in assignments}
    overwritten = set(assignments) - set(last.values())
    done = set(assignments)
    found: set[UOp] = set()
    for node in UOp.sink(*roots).toposort(lambda node: node not in realized and node not in done):
        reads = (node.op is Ops.BUFFER or node in realized) and name_now(realized.get(node, node)) in last
        if node in overwritten or node not in done and (reads or not found.isdisjoint(node.src)):
            found.add(node)
    return found


def rename(buffer: UOp, version: UOp) -> None:
    """From now on `version` stands for the memory that `buffer`, and others before it, stood for."""
    names = former.pop(buffer, weakref.WeakSet())
    names.add(buffer)
    for name in names:
        realized[name] = version
    former[version] = names


def name_now(view: UOp) -> UOp:
    """The BUFFER that stands for a view's memory now: every run of assignments gives it a new one."""
    buffer = view.buffer
    while buffer in realized:
        buffer = realized[buffer].buffer
    return buffer


def execute(roots: list[UOp], schedule: Schedule, held: Iterable[UOp] = ()) -> None:
    """Run the schedule of `roots`, and remember where they are, and where those `held` are that are stored anyway."""
    known = stored_on_the_way(roots, held, schedule)
    assignments = [tidy for tidy in schedule.roots if tidy.op is Ops.ASSIGN]
    versions = {buffer: next_version(buffer) for buffer in dedup(tidy.buffer for tidy in assignments)}
    memory = {**schedule.memory, **{tidy: versions[tidy.buffer] for tidy in assignments}}
    results = [view_of_result(root, tidy, memory) for root, tidy in zip(roots, schedule.roots)]
    results += known.values()
    plan = plan_memory(schedule.linear, keep=[*(r.base for r in results), *already_used(schedule.linear)])
    arenas = {device: Buffer(device, size, dtypes.uint8) for device, size in plan.arena_sizes.items()}
    for node, offset in plan.offsets.items():
        attach(node, arenas[node.arg.device].view(node.arg.capacity, node.dtype, offset))
    run_linear(schedule.linear, schedule.values)
    for buffer, version in versions.items():
        rename(buffer, version)
    for root, result in zip([*roots, *known], results):
        realized[root] = result


def stored_on_the_way(roots: list[UOp], held: Iterable[UOp], schedule: Schedule) -> dict[UOp, UOp]:
    """Of the nodes below `roots` that are `held`, those that the schedule stores, and where.

    None in a capture: what is remembered there a replay would write over, unseen.
    """
    if observers.entries:
        return {}
    pending = set(UOp.sink(*roots).toposort(lambda node: node not in realized)).difference(roots, realized)
    below = [node for node in dict.fromkeys(held) if node in pending and not is_realized(node)]
    if not below:
        return {}
    memory, tidied = schedule.lasting(), tidy_tensors(UOp.sink(*below), realized).src
    return {node: memory[tidy].reshape(node.shape) for node, tidy in zip(below, tidied) if tidy in memory}


def already_used(linear: UOp) -> list[UOp]:
    """Buffers that have memory before the run."""
    return [buffer for step in linear.src for buffer in step.src if attached(buffer) is not None]


def view_of_result(root: UOp, tidy: UOp, memory: dict[UOp, UOp]) -> UOp:
    """Where the value of a root will be, in its shape."""
    if tidy in memory:
        return memory[tidy].reshape(root.shape)
    below = tidy
    while below.op in GroupOp.MOVEMENT and below not in memory:
        below = below.src[0]
    value = memory[below].reshape(below.shape) if below in memory else below
    return moved_like(tidy, below, value)


def moved_like(view: UOp, below: UOp, value: UOp, values: Values | None = None) -> UOp:
    """The movement operations from `below` up to `view`, on `value`; with these `values` of their variables."""
    moves: list[UOp] = []
    while view is not below:
        moves.append(view)
        view = view.src[0]
    for move in reversed(moves):
        value = UOp(move.op, move.dtype, (value,), with_values(move.arg, values) if values else move.arg)
    return value


def next_version(view: UOp, values: Values | None = None) -> UOp:
    """The same view of the same memory when it has another content; with these `values` of its variables.

    It is another BUFFER, so that what was computed from the old content isn't taken to be computed from the new.
    """
    base = view.base
    size = with_values(base.arg.size, values) if values else base.arg.size
    after = attach(UOp.new_buffer(base.arg.device, size, base.dtype), buffer_of(base))
    return moved_like(view, base, after, values)


def run_linear(linear: UOp, values: dict[str, int]) -> None:
    """Launch the steps in order, with the values of the variables."""
    for step in linear.src:
        with provenance.blame(step):
            launch = prepare(step, values)
            run_launch(launch)


def prepare(step: UOp, values: dict[str, int]) -> Launch:
    """Compile the kernel of a step and find its buffers."""
    memory = tuple(buffer_of(b) for b in step.src)
    if step.op is not Ops.KERNEL:
        return Launch(None, memory)
    kernel, constants = kernel_for(step.arg, step.src[0].arg.device)
    known = {**values, **constants}
    unbound = [name for name in kernel.variables if name not in known]
    if unbound:
        raise ValueError(f"the variable {unbound[0]!r} has no value: use what its bind(value) gives")
    return Launch(kernel, memory, tuple(known[name] for name in kernel.variables), constants)


def run_launch(launch: Launch) -> None:
    """Run one kernel or copy, and tell those who watch."""
    if launch.kernel is None:
        copy(*launch.buffers)
    else:
        run_kernel(launch.kernel, launch.buffers, launch.vals)
    for observe in observers:
        observe(launch)


def run_kernel(kernel: Kernel, memory: tuple[Buffer, ...], vals: tuple[int, ...]) -> None:
    """Launch and count; timed if DEBUG asks for it."""
    handles = [buffer.opaque for buffer in memory]
    seconds = kernel.program(*handles, vals=vals, wait=DEBUG >= 2)
    GlobalCounters.kernel_count += 1
    GlobalCounters.global_ops += kernel.operations
    GlobalCounters.global_mem += kernel.bytes_moved
    if DEBUG >= 1:
        report(kernel, memory, seconds)


def copy(target: Buffer, source: Buffer) -> None:
    """Between devices, through host memory."""
    target.copyin(source.as_memoryview())
    GlobalCounters.kernel_count += 1
    GlobalCounters.global_mem += target.nbytes


def report(kernel: Kernel, memory: tuple[Buffer, ...], seconds: float | None) -> None:
    """DEBUG=1 and 2: one line a kernel."""
    line = f"*** {memory[0].device:8} {GlobalCounters.kernel_count:5} {kernel.name:40} {len(memory):3} buffers"
    if seconds is not None:
        GlobalCounters.time_sum_s += seconds
        rates = human_size(kernel.operations / seconds, "FLOPS"), human_size(kernel.bytes_moved / seconds, "B/s")
        used = human_size(GlobalCounters.mem_used, "B")
        line += f"  {seconds * 1e6:10.1f} us  {rates[0]:>14} {rates[1]:>12}  mem {used}"
    print(line)
