"""TinyJit: a function's kernels, captured once and replayed with new inputs.

The first call runs the function. The second runs it too and captures every kernel that it launches. Later calls
only replace the addresses of inputs and results and launch; no graph is built, nothing is scheduled.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable, Container
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from tensor_engine.device import Buffer, Device, KernelCall
from tensor_engine.engine import realize
from tensor_engine.engine.realize import Launch
from tensor_engine.helpers import DEBUG, JIT, GlobalCounters
from tensor_engine.mixin import random
from tensor_engine.tensor import Tensor, is_whole_buffer, tensors_in_scope
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp

Result = TypeVar("Result")


class JitError(ValueError):
    """A captured function was called with, or returned, what a replay cannot honour."""


class TinyJit(Generic[Result]):
    """`fast = TinyJit(function)`, or a decorator. See the head of this file.

    Inputs are the Tensors among the arguments. All other arguments are constants: the captured kernels have their
    values inside, so calling with others raises JitError, as do Tensors of another shape, dtype or device. What the
    function returns must be Tensors (in tuples, lists or dicts) or None. `reset()` forgets the capture.

    A replay writes over what the function assigned to, without a look at tensors that are yet to be computed from the
    old values: realize those before.
    """

    def __init__(self, function: Callable[..., Result]):
        self.function = function
        self.calls = 0
        self.captured: Capture | None = None
        self.bound: weakref.WeakKeyDictionary[Any, TinyJit[Result]] = weakref.WeakKeyDictionary()

    def __get__(self, instance: Any, owner: type | None = None) -> TinyJit[Result]:
        """A method is captured for each object on its own."""
        if instance is None:
            return self
        if instance not in self.bound:
            self.bound[instance] = TinyJit(weak_method(self.function.__get__(instance, owner)))
        return self.bound[instance]

    def reset(self) -> None:
        """Forget the capture: the next call runs the function, the one after it captures anew."""
        self.calls, self.captured = 0, None

    def __call__(self, *args: Any, **kwargs: Any) -> Result:
        if self.captured is not None and JIT:
            return self.captured(args, kwargs)
        self.calls += 1
        if self.calls < 2 or not JIT:
            result = self.function(*args, **kwargs)
            realize_all(result)
            return result
        self.captured, result = capture(self.function, args, kwargs)
        return result


def weak_method(method: Any) -> Callable[..., Any]:
    """A method that does not keep its object alive: what captures it lives as long as the object."""
    reference = weakref.WeakMethod(method)

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = reference()
        assert bound is not None, "a method was called without its object"
        return bound(*args, **kwargs)

    return call


# ---- arguments and results --------------------------------------------------------------------------------------


def take_apart(value: Any, leaves: list[Any]) -> Any:
    """How tuples, lists and dicts are nested, without what is in them, which goes to `leaves`."""
    if isinstance(value, (tuple, list)):
        return type(value), [take_apart(item, leaves) for item in value]
    if isinstance(value, dict):
        return type(value), [(key, take_apart(item, leaves)) for key, item in in_order(value)]
    leaves.append(value)
    return None


def in_order(value: dict[Any, Any]) -> list[tuple[Any, Any]]:
    """Entries by name: in which order they were given says nothing."""
    return sorted(value.items(), key=lambda entry: str(entry[0])) if len(value) > 1 else list(value.items())


def leaves_of(value: Any) -> list[Any]:
    """What is in nested tuples, lists and dicts."""
    leaves: list[Any] = []
    take_apart(value, leaves)
    return leaves


def rebuild(value: Any, make: Callable[[Any], Any]) -> Any:
    """The same nesting with each leaf replaced, in the order of `leaves_of`."""
    if isinstance(value, (tuple, list)):
        items = [rebuild(item, make) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        made = {key: rebuild(item, make) for key, item in in_order(value)}
        return {key: made[key] for key in value}
    return make(value)


def realize_all(value: Any) -> None:
    """Compute all Tensors in a result."""
    tensors = [leaf for leaf in leaves_of(value) if isinstance(leaf, Tensor)]
    if tensors:
        tensors[0].realize(*tensors[1:])


class InputSpec(NamedTuple):
    """What an input must look like in every call."""

    shape: tuple[Any, ...]
    dtype: Any
    device: str


def spec_of(tensor: Tensor) -> InputSpec:
    """What the tensor looks like from outside."""
    return InputSpec(tensor.shape, tensor.dtype, tensor.device)


def in_memory(tensor: Tensor) -> Tensor:
    """The tensor if it lies in memory in row order, else a copy that does. Constants get there without a kernel."""
    if tensor.uop.op is Ops.CONST:
        value = np.array([tensor.uop.arg])
        return Tensor(value, tensor.device, tensor.dtype).reshape(())
    if not is_whole_buffer(tensor.uop):
        tensor.realize()
    return tensor if is_whole_buffer(tensor.uop) else tensor.clone().realize()


def is_input(leaf: Any) -> bool:
    """True for a Tensor that has elements: one without has no memory to put in another's place."""
    return isinstance(leaf, Tensor) and 0 not in leaf.shape


def memory_of(tensor: Tensor) -> Buffer:
    """The memory of a tensor that is `in_memory`."""
    return realize.buffer_of(tensor.uop)


def same_constant(first: Any, second: Any) -> bool:
    """The same object, or equal values of one type: 1, 1.0 and True are three constants."""
    return first is second or (type(first) is type(second) and bool(first == second))


def constant(leaf: Any) -> Any:
    """An argument whose value is captured. Raises JitError for an array: it could change without being noticed."""
    if isinstance(leaf, np.ndarray):
        raise JitError("an argument is an array, whose values every replay would repeat; pass Tensor(array)")
    return leaf


# ---- capture ----------------------------------------------------------------------------------------------------


def capture(function: Callable[..., Result], args: Any, kwargs: Any) -> tuple[Capture, Result]:
    """Run the function on copies of its inputs and note every launch.

    Each input gets memory of its own, so that two arguments that are the same tensor, or a tensor that the function
    also knows from elsewhere, are not mistaken for each other.
    """
    originals = [leaf for leaf in leaves_of((args, kwargs)) if is_input(leaf)]
    inputs = [stand_in(tensor) for tensor in originals]
    remaining = iter(inputs)
    own_args, own_kwargs = rebuild((args, kwargs), lambda leaf: next(remaining) if is_input(leaf) else leaf)
    launches: list[Launch] = []
    state = {id(buffer): buffer for buffer in realize.buffers.values()}
    before = [(tensor, tensor.uop) for tensor in tensors_in_scope()]
    realize.observers.append(launches.append)
    try:
        result = function(*own_args, **own_kwargs)
        realize_all(result)
    finally:
        realize.observers.remove(launches.append)
    captured = Capture((args, kwargs), [memory_of(tensor) for tensor in inputs], launches, result, state)
    own = [in_memory(tensor) for tensor in originals]
    captured.check_memory([memory_of(tensor) for tensor in own])
    captured.write_back(originals)
    for tensor, node in before:
        if tensor.uop is not node:
            captured.keep_value(tensor, state)
    return captured, captured.first_result(own)


def stand_in(tensor: Tensor) -> Tensor:
    """A tensor with the same value in new memory."""
    source = memory_of(in_memory(tensor))
    node = UOp.new_buffer(source.device, source.size, source.dtype)
    copy = Buffer(source.device, source.size, source.dtype).copyin(source.as_memoryview())
    realize.attach(node, copy)
    return Tensor.from_uop(node.reshape(tensor.shape))


class Output(NamedTuple):
    """A returned Tensor: the number of its memory among inputs or results (or fixed memory), and the view of it."""

    node: UOp
    input_number: int | None
    result_number: int | None


class Capture:
    """Launches with their inputs and results as parameters."""

    def __init__(
        self, arguments: Any, inputs: list[Buffer], launches: list[Launch], result: Any, state: Container[int]
    ):
        given: list[Any] = []
        self.nesting = take_apart(arguments, given)
        self.specs = [spec_of(leaf) if isinstance(leaf, Tensor) else None for leaf in given]
        self.constants = [None if isinstance(leaf, Tensor) else constant(leaf) for leaf in given]
        self.launches = launches
        self.result = result
        self.inputs = inputs
        self.written = {id(launch.buffers[0]) for launch in launches}
        self.fresh: list[Buffer] = []
        self.outputs = {id(leaf): self.describe(leaf, state) for leaf in leaves_of(result)}
        self.segments = link(launches)
        self.input_places = [self.places(buffer) for buffer in inputs]
        self.fresh_places = [self.places(buffer) for buffer in self.fresh]
        read = {id(buffer): buffer for launch in launches for buffer in launch.buffers}
        self.random_states = [buffer for buffer in read.values() if buffer in random.states]
        self.changed = [weakref.ref(tensor) for tensor in tensors_in_scope() if self.changes(tensor)]

    def changes(self, tensor: Tensor) -> bool:
        """Is this a tensor that replays write over?"""
        base = tensor.uop.base
        buffer = realize.buffers.get(base) if base.op is Ops.BUFFER else None
        return id(buffer) in self.written and not any(buffer is fresh for fresh in self.fresh)

    def describe(self, leaf: Any, state: Container[int]) -> Output | None:
        """Where a returned Tensor's value comes from. `state`: ids of the memory that was there before the call."""
        if leaf is None:
            return None
        if not isinstance(leaf, Tensor):
            raise JitError(
                f"a captured function returned {leaf!r:.80}, which every replay would repeat; return Tensors"
            )
        if leaf.uop.base.op is Ops.CONST:
            return Output(leaf.uop, None, None)
        buffer = realize.buffer_of(leaf.uop)
        for number, memory in enumerate(self.inputs):
            if memory is buffer:
                return Output(leaf.uop, number, None)
        if id(buffer) not in self.written or id(buffer) in state:
            return Output(leaf.uop, None, None)
        if not any(buffer is known for known in self.fresh):
            self.fresh.append(buffer)
        number = next(i for i, known in enumerate(self.fresh) if known is buffer)
        return Output(leaf.uop, None, number)

    def places(self, buffer: Buffer) -> list[tuple[Segment, int, int]]:
        """Where a buffer stands among the launches' arguments."""
        return [
            (segment, call, position)
            for segment in self.segments
            for call, launch in enumerate(segment.launches)
            for position, other in enumerate(launch.buffers)
            if other is buffer
        ]

    # ---- replay

    def __call__(self, args: Any, kwargs: Any) -> Any:
        given: list[Any] = []
        if take_apart((args, kwargs), given) != self.nesting:
            raise JitError("the arguments are nested or named otherwise than in the captured call; call reset()")
        self.check(given)
        tensors = [in_memory(leaf) for leaf in given if is_input(leaf)]
        memory = [memory_of(tensor) for tensor in tensors]
        self.check_memory(memory)
        fresh = [Buffer(buffer.device, buffer.size, buffer.dtype) for buffer in self.fresh]
        for places, buffer in zip(self.input_places + self.fresh_places, memory + fresh):
            for segment, call, position in places:
                segment.set_buffer(call, position, buffer)
        for state in self.random_states:
            random.advance(state)
        for segment in self.segments:
            segment.run()
        self.note_changes(tensors)
        return self.make_result(tensors, fresh)

    def note_changes(self, tensors: list[Tensor]) -> None:
        """What was computed from the content before is not computed from the content now."""
        inputs = [tensor for tensor, memory in zip(tensors, self.inputs) if id(memory) in self.written]
        known = [tensor for tensor in [entry() for entry in self.changed] if tensor is not None]
        for tensor in [*inputs, *filter(self.changes, known)]:
            tensor.uop = realize.next_version(tensor.uop)

    def check(self, given: list[Any]) -> None:
        """Raise JitError unless the arguments are what was captured, but for the inputs' values."""
        for number, (leaf, spec, constant) in enumerate(zip(given, self.specs, self.constants)):
            if spec is None:
                if not same_constant(leaf, constant):
                    raise JitError(
                        f"argument {number} was captured as {constant!r:.80} and is {leaf!r:.80} now; its value is part"
                        " of the captured kernels. Pass it as a Tensor, or call reset()"
                    )
            elif not isinstance(leaf, Tensor) or spec_of(leaf) != spec:
                found = tuple(spec_of(leaf)) if isinstance(leaf, Tensor) else type(leaf).__name__
                raise JitError(f"argument {number} was captured as {tuple(spec)} and is {found} now; call reset()")

    def check_memory(self, memory: list[Buffer]) -> None:
        """Raise JitError if an input that the function assigns to may be another input, too."""
        if any(id(buffer) in self.written for buffer in self.inputs) and len(set(map(id, memory))) < len(memory):
            raise JitError("two arguments have the same memory, and the function assigns to one; pass a clone()")

    def keep_value(self, tensor: Tensor, state: Container[int]) -> None:
        """A tensor of others that was computed along, as the function overwrites what it is made of: out of the way
        of replays."""
        if self.changes(tensor) and id(realize.buffer_of(tensor.uop)) not in state:
            tensor.replace(stand_in(tensor))

    def write_back(self, originals: list[Tensor]) -> None:
        """What the function assigned to its inputs it assigned to their stand-ins: bring that home."""
        for tensor, copy in zip(originals, self.inputs):
            if id(copy) in self.written:
                memory_of(in_memory(tensor)).copyin(copy.as_memoryview())

    def make_result(self, tensors: list[Tensor], fresh: list[Buffer]) -> Any:
        """The returned Tensors of this call, on this call's memory."""
        nodes = [
            realize.attach(UOp.new_buffer(buffer.device, buffer.size, buffer.dtype), buffer) for buffer in fresh
        ]

        def remake(leaf: Any) -> Any:
            output = self.outputs[id(leaf)]
            if output is None:
                return None
            base: UOp | None = None
            if output.result_number is not None:
                base = nodes[output.result_number]
            elif output.input_number is not None:
                base = tensors[output.input_number].uop.base
            node = output.node
            if base is None and node.base.op is Ops.BUFFER:
                return Tensor.from_uop(realize.next_version(node))
            return Tensor.from_uop(node if base is None else realize.moved_like(node, node.base, base))

        return rebuild(self.result, remake)

    def first_result(self, originals: list[Tensor]) -> Any:
        """The result of the capturing call itself, on memory that no replay will touch."""
        fresh = [Buffer(b.device, b.size, b.dtype).copyin(b.as_memoryview()) for b in self.fresh]
        return self.make_result(originals, fresh)


# ---- launches, linked -------------------------------------------------------------------------------------------


class Segment:
    """Consecutive launches, run one by one."""

    def __init__(self, launches: list[Launch]):
        self.launches = launches
        self.buffers = [list(launch.buffers) for launch in launches]

    def set_buffer(self, call: int, position: int, buffer: Buffer) -> None:
        """Other memory for one argument."""
        self.buffers[call][position] = buffer

    def run(self) -> None:
        """Launch in order."""
        for launch, buffers in zip(self.launches, self.buffers):
            realize.run_launch(launch._replace(buffers=tuple(buffers)))


class LinkedSegment(Segment):
    """Consecutive kernels on one device, linked into one native call."""

    def __init__(self, launches: list[Launch]):
        super().__init__(launches)
        calls = [
            KernelCall(launch.kernel.program, tuple(b.opaque for b in launch.buffers), launch.vals)
            for launch in launches
            if launch.kernel is not None
        ]
        self.program = Device[launches[0].buffers[0].device].link(calls)

    def set_buffer(self, call: int, position: int, buffer: Buffer) -> None:
        super().set_buffer(call, position, buffer)
        self.program.set_buffer(call, position, buffer.opaque)

    def run(self) -> None:
        """Launch all kernels; one by one inside another capture, which has to see them."""
        if realize.observers:
            return super().run()
        self.program()
        GlobalCounters.kernel_count += len(self.launches)


def link(launches: list[Launch]) -> list[Segment]:
    """Runs of kernels on one device become one native call each, unless DEBUG wants to see every kernel."""
    runs: list[list[Launch]] = []
    for launch in launches:
        if runs and segment_kind(runs[-1][-1]) == segment_kind(launch):
            runs[-1].append(launch)
        else:
            runs.append([launch])
    return [Segment(run) if DEBUG >= 1 or run[0].kernel is None else LinkedSegment(run) for run in runs]


def segment_kind(launch: Launch) -> str:
    """Launches of one kind can be linked."""
    return "copy" if launch.kernel is None else launch.buffers[0].device
