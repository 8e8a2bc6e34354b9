"""What a captured function may be called with: the same nesting, the same constants, Tensors that look the same."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from tensor_engine.device import Buffer
from tensor_engine.dtype import DType
from tensor_engine.engine.nesting import take_apart
from tensor_engine.engine.realize import attached, buffer_of, next_version
from tensor_engine.storage import is_whole_buffer
from tensor_engine.tensor import Tensor
from tensor_engine.uop.op import Ops
from tensor_engine.uop.size import nodes_in, without_values
from tensor_engine.uop.uop import UOp


class JitError(ValueError):
    """A captured function was called with, or returned, what a replay cannot honour."""


class Nesting:
    """How the arguments of the captured call were nested and named."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]):
        leaves: list[Any] = []
        self.form = take_apart((args, kwargs), leaves)
        self.count = len(leaves)
        self.is_flat = not kwargs and self.count == len(args) and all(map(same_object, leaves, args))

    def leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | tuple[Any, ...]:
        """What is in the arguments of another call. Raises JitError if they are nested or named otherwise."""
        if self.is_flat and not kwargs and len(args) == self.count:
            return args
        leaves: list[Any] = []
        if take_apart((args, kwargs), leaves) != self.form:
            raise JitError("the arguments are nested or named otherwise than in the captured call; call reset()")
        return leaves


def same_object(first: Any, second: Any) -> bool:
    """`first is second`, as a function."""
    return first is second


# ---- one argument -----------------------------------------------------------------------------------------------


class Argument(ABC):
    """One of the arguments, as it was in the captured call."""

    def __init__(self, number: int):
        self.number = number

    @abstractmethod
    def take(self, leaf: Any) -> None:
        """Use what another call gives in its place. Raises JitError for what a replay cannot take."""


class Constant(Argument):
    """An argument whose value is part of the captured kernels. 1, 1.0 and True are three values."""

    def __init__(self, number: int, value: Any):
        if isinstance(value, np.ndarray):  # it could change without being noticed
            raise JitError("an argument is an array, whose values every replay would repeat; pass Tensor(array)")
        super().__init__(number)
        self.value = value

    def take(self, leaf: Any) -> None:
        if leaf is self.value or (type(leaf) is type(self.value) and bool(leaf == self.value)):
            return
        raise JitError(
            f"argument {self.number} was captured as {self.value!r:.80} and is {leaf!r:.80} now; its value is part"
            " of the captured kernels. Pass it as a Tensor, or call reset()"
        )


class Size(Argument):
    """A size that depends on variables. Their values come with each call."""

    def __init__(self, number: int, size: UOp):
        super().__init__(number)
        self.form = without_values(size)

    def take(self, leaf: Any) -> None:
        if not isinstance(leaf, UOp) or without_values(leaf) is not self.form:
            raise JitError(
                f"argument {self.number} was captured as {self.form!r:.80} and is {leaf!r:.80} now: only the values of"
                " variables may differ; call reset()"
            )


class Looks(Argument):
    """A Tensor of which only the looks count: it has no elements."""

    def __init__(self, number: int, tensor: Tensor):
        super().__init__(number)
        self.shape, self.dtype, self.device = looks_of(tensor)

    def take(self, leaf: Any) -> None:
        if not isinstance(leaf, Tensor):
            raise self.refuse(type(leaf).__name__)
        node = leaf.uop
        same_shape = node.shape == self.shape or without_values(node.shape) == self.shape
        if not same_shape or node.dtype is not self.dtype or (node.device or leaf.device) != self.device:
            raise self.refuse(looks_of(leaf))

    def refuse(self, found: object) -> JitError:
        """The error for something that looks different."""
        expected = self.shape, self.dtype, self.device
        return JitError(f"argument {self.number} was captured as {expected} and is {found} now; call reset()")


def looks_of(tensor: Tensor) -> tuple[tuple[Any, ...], DType, str]:
    """What the tensor looks like from outside, whatever the variables in its shape are bound to."""
    return without_values(tensor.shape), tensor.dtype, tensor.device


def sizes_in(leaves: Iterable[Any]) -> Iterator[UOp]:
    """The sizes that depend on variables: those among the arguments, and those in the shapes of Tensors."""
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            yield from nodes_in(leaf.uop.shape)
        elif isinstance(leaf, UOp):
            yield leaf


class Input(Looks):
    """A Tensor whose memory takes the place of what the captured kernels read: `place` puts it there."""

    def __init__(self, number: int, tensor: Tensor, place: Callable[[Buffer], None]):
        super().__init__(number, tensor)
        self.place = place
        self.node: UOp | None = None  # what is there now

    def take(self, leaf: Any) -> None:
        if type(leaf) is Tensor and leaf.uop is self.node:
            return
        memory = self.plain_memory(leaf.uop) if isinstance(leaf, Tensor) else None
        if memory is None:
            super().take(leaf)
            leaf = in_memory(leaf)
            memory = memory_of(leaf)
        self.node = leaf.uop
        self.place(memory)

    def plain_memory(self, node: UOp) -> Buffer | None:
        """The memory of a node that is written as a captured one is, so that nothing has to be derived, else None."""
        base = node.src[0] if node.op is Ops.RESHAPE else node
        if base.op is not Ops.BUFFER or base.dtype is not self.dtype or base.arg.device != self.device:
            return None
        shape = (base.arg.size,) if base is node else node.arg
        return attached(base) if shape == self.shape else None

    def note_change(self, tensor: Tensor) -> None:
        """A replay has assigned to the tensor, which is a copy of what was given if that wasn't memory."""
        assert self.node is not None, "no argument was taken yet"
        self.node = tensor.uop = next_version(self.node)

    @property
    def memory(self) -> Buffer:
        """The memory that is in place."""
        assert self.node is not None, "no argument was taken yet"
        return buffer_of(self.node)


def is_input(leaf: Any) -> bool:
    """True for a Tensor that has elements: one without has no memory to put in another's place."""
    return isinstance(leaf, Tensor) and 0 not in leaf.shape


def in_memory(tensor: Tensor) -> Tensor:
    """The tensor if it lies in memory in row order, else a copy that does. Constants get there without a kernel."""
    if is_whole_buffer(tensor.uop):
        return tensor
    if tensor.uop.op is Ops.CONST:
        value = np.array([tensor.uop.arg])
        return Tensor(value, tensor.device, tensor.dtype).reshape(())
    tensor.realize()
    return tensor if is_whole_buffer(tensor.uop) else tensor.clone().realize()


def memory_of(tensor: Tensor) -> Buffer:
    """The memory of a tensor that is `in_memory`."""
    return buffer_of(tensor.uop)
