"""TinyJit: a function's kernels, captured once and replayed with new inputs.

The first call runs the function. The second runs it too and captures every kernel that it launches. Later calls
only replace the addresses of inputs and results and launch; no graph is built, nothing is scheduled.
"""
from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from tensor_engine.device import Buffer
from tensor_engine.engine import realize
from tensor_engine.engine.arguments import (
    Argument,
    Constant,
    Input,
    JitError,
    Looks,
    Nesting,
    Size,
    in_memory,
    is_input,
    memory_of,
    sizes_in,
)  # fmt: skip
from tensor_engine.engine.nesting import leaves_of, rebuild
from tensor_engine.engine.realize import Launch
from tensor_engine.engine.references import Overwritten
from tensor_engine.engine.replay import Replay
from tensor_engine.engine.results import Results
from tensor_engine.helpers import JIT
from tensor_engine.mixin import random
from tensor_engine.storage import is_part, tensors_in_scope
from tensor_engine.tensor import Tensor
from tensor_engine.uop.size import values_in
from tensor_engine.uop.uop import UOp

__all__ = ["JitError", "TinyJit"]

Result = TypeVar("Result")


class TinyJit(Generic[Result]):
    """`fast = TinyJit(function)`, or a decorator. See the head of this file.

    Inputs are the Tensors among the arguments. Variables among them, and in the shapes of Tensors, may be bound to
    another value in each call, and the results' shapes follow. All other arguments are constants: the captured kernels
    have their values inside, so calling with others raises JitError, as do Tensors of another shape, dtype or device.
    What the function returns must be Tensors (in tuples, lists or dicts) or None. `reset()` forgets the capture.

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
        if self.captured is not None and JIT.value:
            return self.captured.run(args, kwargs)
        self.calls += 1
        # a capture inside another one would copy its inputs unseen by that
        if self.calls < 2 or not JIT or realize.observers.entries:
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


def realize_all(value: Any) -> None:
    """Compute all Tensors in a result."""
    tensors = [leaf for leaf in leaves_of(value) if isinstance(leaf, Tensor)]
    if tensors:
        tensors[0].realize(*tensors[1:])


# ---- capture ----------------------------------------------------------------------------------------------------


def capture(function: Callable[..., Result], args: Any, kwargs: Any) -> tuple[Capture, Result]:
    """Run the function on copies of its inputs and note every launch.

    Each input gets memory of its own, so that two arguments that are the same tensor, or a tensor that the function
    also knows from elsewhere, are not mistaken for each other.
    """
    inputs = [stand_in(leaf) for leaf in leaves_of((args, kwargs)) if is_input(leaf)]
    remaining = iter(inputs)
    own_args, own_kwargs = rebuild((args, kwargs), lambda leaf: next(remaining) if is_input(leaf) else leaf)
    launches: list[Launch] = []
    first_new = next(Buffer.numbers)
    before = [(tensor, tensor.uop) for tensor in tensors_in_scope()]
    realize.observers.append(launches.append)
    try:
        result = function(*own_args, **own_kwargs)
        realize_all(result)
    finally:
        realize.observers.remove(launches.append)
    memory = [memory_of(tensor) for tensor in inputs]
    captured = Capture(args, kwargs, memory, launches, result, first_new)
    own_result = captured.finish(args, kwargs, memory)
    captured.keep_values(before, first_new)
    return captured, own_result


def stand_in(tensor: Tensor) -> Tensor:
    """A tensor with the same value in new memory."""
    own = in_memory(tensor)
    source = memory_of(own)
    node = UOp.new_buffer(source.device, own.uop.base.arg.size, source.dtype)
    copy = Buffer(source.device, source.size, source.dtype).copyin(source.as_memoryview())
    realize.attach(node, copy)
    return Tensor.from_uop(node.reshape(tensor.shape))


class Capture:
    """Launches, the arguments whose memory they read, and the results that they write."""

    def __init__(
        self, args: Any, kwargs: Any, inputs: list[Buffer], launches: list[Launch], result: Any, first_new: int
    ):
        """`inputs`: the memory of the captured call's inputs. Memory numbered from `first_new` on was made in it."""
        self.lock = threading.Lock()
        self.launches = launches
        used = dict.fromkeys(buffer for launch in launches for buffer in launch.buffers)
        self.written = {id(launch.buffers[0]) for launch in launches}
        self.results = Results(result, inputs, self.written, first_new)
        self.nesting = Nesting(args, kwargs)
        leaves = self.nesting.leaves(args, kwargs)
        self.values = values_in(sizes_in(leaves))
        self.variables = self.check_variables()
        self.replay = Replay(launches, [*inputs, *self.results.fresh], self.values)
        self.arguments = self.describe(leaves)
        self.inputs = [argument for argument in self.arguments if isinstance(argument, Input)]
        self.assigned = [argument for argument, memory in zip(self.inputs, inputs) if id(memory) in self.written]
        self.random_states = [buffer for buffer in used if buffer in random.states]
        self.overwritten: list[Overwritten] = []
        self.place_results()

    def describe(self, leaves: Sequence[Any]) -> list[Argument]:
        """What each argument must be."""
        places = itertools.count()
        arguments: list[Argument] = []
        for number, leaf in enumerate(leaves):
            if is_input(leaf):
                arguments.append(Input(number, leaf, functools.partial(self.replay.place, next(places))))
            elif isinstance(leaf, UOp):
                arguments.append(Size(number, leaf))
            else:
                arguments.append(Looks(number, leaf) if isinstance(leaf, Tensor) else Constant(number, leaf))
        return arguments

    def check_variables(self) -> set[str]:
        """The variables that kernels and results depend on. Raises JitError if calls could not give another value."""
        names = set(self.results.variables)
        for launch in self.launches:
            if launch.kernel is not None:
                names.update(name for name in launch.kernel.variables if name not in launch.constants)
        if hidden := sorted(names - self.values.keys()):
            raise JitError(
                f"the function uses the variable {hidden[0]!r}, whose value every replay would repeat; pass what bind()"
                " gave as an argument"
            )
        return names

    def run(self, args: Any, kwargs: Any) -> Any:
        """Replay with other arguments. Raises JitError for what it cannot honour."""
        with self.lock:  # what is in place belongs to one call
            leaves = self.take(args, kwargs)
            if not self.results.fit(self.result_memory, self.values):
                self.place_results()
            for state in self.random_states:
                random.advance(state)
            self.replay.run(self.memory_in_place)
            if self.assigned or self.overwritten:
                self.note_changes(leaves)
            return self.results.make(self.result_memory, self.inputs)

    def take(self, args: Any, kwargs: Any) -> Sequence[Any]:
        """Check the arguments and put their memory in place."""
        leaves = self.nesting.leaves(args, kwargs)
        for argument, leaf in zip(self.arguments, leaves):
            argument.take(leaf)
        if self.variables:
            self.values = values_in(sizes_in(leaves))
            self.replay.bind(self.values)
        if self.assigned and len({id(argument.memory) for argument in self.inputs}) < len(self.inputs):
            raise JitError("two arguments have the same memory, and the function assigns to one; pass a clone()")
        if any(is_part(leaves[argument.number].uop) for argument in self.assigned):
            raise JitError("the function assigns to an argument that is a part of a tensor; pass the whole tensor")
        return leaves

    def place_results(self) -> None:
        """Put memory in place that no kept result is in."""
        self.result_memory = self.results.memory(self.values)
        for number, buffer in enumerate(self.result_memory.buffers, len(self.inputs)):
            self.replay.place(number, buffer)

    def memory_in_place(self) -> list[Buffer]:
        """The memory of inputs and results."""
        return [*[argument.memory for argument in self.inputs], *self.result_memory.buffers]

    # ---- what a replay writes over

    def note_changes(self, leaves: Sequence[Any]) -> None:
        """What was computed from the content before is not computed from the content now."""
        for argument in self.assigned:
            argument.note_change(leaves[argument.number])
        for entry in self.overwritten:
            entry.note_change(self.overwrites)

    def overwrites(self, tensor: Tensor) -> bool:
        """Is this a tensor that replays write over?"""
        buffer = realize.attached(tensor.uop.base)
        return id(buffer) in self.written and not any(buffer is fresh for fresh in self.results.fresh)

    # ---- the captured call

    def finish(self, args: Any, kwargs: Any, stand_ins: list[Buffer]) -> Any:
        """What the captured call did to its stand-ins it does to its inputs; its result, out of the way of replays."""
        leaves = self.take(args, kwargs)
        for argument, stand_in in zip(self.inputs, stand_ins):
            if argument in self.assigned:
                argument.memory.copyin(stand_in.as_memoryview())
        for own, captured in zip(self.result_memory.buffers, self.results.fresh):
            own.copyin(captured.as_memoryview())
        self.note_changes(leaves)
        return self.results.make(self.result_memory, self.inputs)

    def keep_values(self, before: list[tuple[Tensor, UOp]], first_new: int) -> None:
        """Tensors of others that were computed along, as the function overwrites what they are made of: out of the way
        of replays."""
        for tensor, node in before:
            if tensor.uop is not node and self.overwrites(tensor) and memory_of(tensor).number >= first_new:
                tensor.replace(stand_in(tensor))
        self.overwritten = [Overwritten(t) for t in tensors_in_scope() if self.overwrites(t)]
