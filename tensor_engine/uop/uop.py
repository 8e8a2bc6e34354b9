"""UOp: the one node type of every graph, from what a user writes to what a renderer prints."""
from __future__ import annotations

import hashlib
import itertools
import struct
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Union

from tensor_engine.dtype import ConstType, DType, dtypes, truncate
from tensor_engine.helpers import at_most, prod
from tensor_engine.mixin import OpMixin
from tensor_engine.uop.op import AxisType, GroupOp, Ops

sint = Union[int, "UOp"]


class BufferArg(NamedTuple):
    """What a BUFFER names: a number of its own, where it lives, and how many elements it has."""

    number: int
    device: str
    size: sint

    @property
    def capacity(self) -> int:
        """How many elements there is room for: as many as a size that is a variable may become."""
        return at_most(self.size)


# numbers that no other node has; threads never draw the same one
numbers = itertools.count(1)


class _Entry(weakref.ref):
    """A node in the table of all nodes, and the key that it stands under."""

    __slots__ = ("key",)
    key: tuple[Any, ...]


def _forget(entry: _Entry) -> None:
    found = UOpMeta.alive.pop(entry.key, None)
    if found is not None and found is not entry:  # another thread has made the node anew meanwhile
        UOpMeta.alive.setdefault(entry.key, found)


class KernelInfo(NamedTuple):
    """What a SINK says about its kernel: its name and its strategy (None: not chosen yet)."""

    name: str = ""
    options: tuple[object, ...] | None = None


class UOpMeta(type):
    """Hash-consing: a second node with the same four fields is the first one, whichever thread asks for it.

    Float constants are told apart by their bits, because 0.0 == -0.0 and NaN != NaN.
    """

    alive: dict[tuple[Any, ...], _Entry] = {}

    def __call__(
        cls, op: Ops, dtype: DType = dtypes.void, src: tuple[UOp, ...] = (), arg: Any = None
    ) -> UOp:
        key = (op, dtype, src, struct.pack("d", arg) if type(arg) is float else arg)
        entry = UOpMeta.alive.get(key)
        if entry is not None:
            found = entry()
            if found is not None:
                return found
        node = object.__new__(UOp)  # without the call of a class, which takes as long as all the rest of this
        node.op, node.dtype, node.src, node.arg = op, dtype, src, arg
        entry = _Entry(node, _forget)
        entry.key = key
        known = UOpMeta.alive.setdefault(key, entry)  # in one step: another thread may make the same node now
        if known is not entry:
            found = known()
            if found is not None:
                return found
            UOpMeta.alive[key] = entry  # one that has gone, and is not forgotten yet
        return node


class derived:
    """A property of a UOp that is computed once, for the sources first: a deep graph needs no deep recursion."""

    def __init__(self, compute: Callable[[UOp], Any]):
        self.compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, node: UOp | None, owner: type | None = None) -> Any:
        if node is None:
            return self
        name = self.name
        for source in node.src:
            if name not in source.__dict__:
                self._compute_below(node)
                break
        value = node.__dict__[name] = self.compute(node)
        return value

    def _compute_below(self, node: UOp) -> None:
        """The property of everything below, the lowest first."""
        name = self.name
        stack = list(node.src)
        while stack:
            top = stack[-1]
            missing = [s for s in top.src if name not in s.__dict__]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if name not in top.__dict__:
                top.__dict__[name] = self.compute(top)


@dataclass(eq=False, repr=False)
class UOp(OpMixin, metaclass=UOpMeta):
    """A node: an operation, the type of its value, its operands, and what else defines it.

    Equal nodes are the same object. Shape, device, bounds and the like are derived. Never change a field.
    """

    op: Ops
    dtype: DType = dtypes.void
    src: tuple[UOp, ...] = ()
    arg: Any = None

    def __repr__(self) -> str:
        from tensor_engine.uop.render import render_graph

        return render_graph(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return UOp, (self.op, self.dtype, self.src, self.arg)

    def replace(self, **fields: Any) -> UOp:
        """The node with some fields changed."""
        return UOp(
            fields.get("op", self.op), fields.get("dtype", self.dtype), fields.get("src", self.src),
            fields.get("arg", self.arg),
        )  # fmt: skip

    # ---- walking

    def toposort(self, enter: Callable[[UOp], bool] | None = None) -> list[UOp]:
        """All nodes below and including this one, operands before users. `enter` False: do not go below."""
        done: dict[UOp, None] = {}
        entered: set[UOp] = set()
        stack = [self]
        while stack:
            node = stack.pop()
            if node in done:
                continue
            if node in entered or not node.src or enter is not None and not enter(node):
                done[node] = None
                continue
            entered.add(node)
            stack.append(node)  # again, when its operands are done
            for s in reversed(node.src):
                if s not in done:
                    stack.append(s)
        return list(done)

    def substitute(self, replacements: dict[UOp, UOp]) -> UOp:
        """This graph with every node that is a key replaced by its value."""
        if not replacements:
            return self
        done = dict(replacements)
        for node in self.toposort(lambda n: n not in replacements):
            if node in done:
                continue
            src = tuple([done[s] for s in node.src])
            done[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        return done[self]

    # ---- what can be derived: tensors

    @derived
    def shape(self) -> tuple[sint, ...]:
        """The sizes of the axes; () for everything inside a kernel."""
        return _shape(self)

    @derived
    def device(self) -> str | None:
        """Where the value lives; None for constants, which live everywhere."""
        if self.op is Ops.BUFFER:
            return self.arg.device
        if self.op is Ops.DEVICE:
            return self.arg
        if self.op is Ops.COPY:
            return self.src[1].device
        for s in self.src:
            if s.device is not None:
                return s.device
        return None

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def base(self) -> UOp:
        """What lies below the movement operations."""
        node = self
        while node.op in GroupOp.MOVEMENT or node.op is Ops.DETACH:
            node = node.src[0]
        return node

    @property
    def buffer(self) -> UOp:
        """The BUFFER below the movement operations and all assignments; what there is instead if there is none."""
        node, passed = self.base, []
        while node.op is Ops.ASSIGN:
            passed.append(node)
            node = node.__dict__.get("assigned", node.src[0].base)
        for assignment in passed:  # remembered, as many stand on top of each other
            assignment.__dict__["assigned"] = node
        return node

    # ---- what can be derived: values

    @derived
    def min_max(self) -> tuple[ConstType, ConstType]:
        """Bounds that the value never leaves."""
        from tensor_engine.uop.bounds import min_max

        return min_max(self)

    @property
    def vmin(self) -> ConstType:
        """A value that this never falls below."""
        return self.min_max[0]

    @property
    def vmax(self) -> ConstType:
        """A value that this never exceeds."""
        return self.min_max[1]

    @property
    def simplified(self) -> UOp:
        """The index or condition in its simplest form: equal sizes are the same node."""
        from tensor_engine.uop.symbolic import simplify

        return simplify(self)

    def __bool__(self) -> bool:
        """False for a condition that never holds. Raises ValueError if that depends on variables' values."""
        if self.dtype is not dtypes.bool or self.shape:
            return True
        low, high = self.min_max
        if low != high:
            raise ValueError(f"{self!r} holds for some values of its variables only, and so can't decide anything here")
        return bool(low)

    def __index__(self) -> int:
        """A size that is known as an int. Raises TypeError for one that depends on variables."""
        if self.op is Ops.CONST and self.dtype is dtypes.index:
            return self.arg
        raise TypeError(f"{self!r} is no int: its value may change while what is made of it here would not")

    __int__ = __index__

    @derived
    def ranges(self) -> frozenset[UOp]:
        """The loops that this node runs in."""
        inside: set[UOp] = set()
        for s in self.src:
            inside |= s.ranges
        if self.op is Ops.RANGE:
            inside.add(self)
        elif self.op in (Ops.REDUCE, Ops.END):
            inside.difference_update(s for s in self.src[1:] if s.op is Ops.RANGE)
        elif self.op is Ops.AFTER:
            return self.src[0].ranges.union(*(s.ranges for s in self.src[1:]))
        return frozenset(inside)

    @derived
    def key(self) -> bytes:
        """A digest of the graph: equal in every process for equal graphs."""
        if self.op is Ops.BIND:  # one kernel serves all values, so none may show in it
            return self.src[0].key
        parts = (self.op.name, repr(self.dtype), repr(self.arg), *(s.key.hex() for s in self.src))
        return hashlib.blake2b("|".join(parts).encode(), digest_size=16).digest()

    # ---- the hooks of the mixins

    def alu(self, op: Ops, *operands: UOp) -> UOp:
        """`op` of this and the operands, which have the same shape and fitting types already."""
        dtype = self.dtype
        if op is Ops.WHERE:
            dtype = operands[0].dtype
        elif op in GroupOp.COMPARE:
            dtype = dtypes.bool.vec(self.dtype.count)
        node = UOp(op, dtype, (self, *operands))
        # sizes are simplified as they are made, so that equal ones are the same node; inside loops the passes do that
        return node.simplified if self.dtype is dtypes.index and not node.ranges else node

    def cast(self, dtype: DType) -> UOp:
        """The value in another type."""
        if self.dtype.count != dtype.count:
            dtype = dtype.vec(self.dtype.count)
        if dtype is self.dtype:
            return self
        if self.op is Ops.CONST and not self.src:
            return self.const_like(truncate(truncate(self.arg, self.dtype), dtype), dtype)
        return UOp(Ops.CAST, dtype, (self,))

    def bitcast(self, dtype: DType) -> UOp:
        """The same bits read as another type of the same width."""
        return self if dtype is self.dtype else UOp(Ops.BITCAST, dtype, (self,))

    def const_like(self, value: ConstType, dtype: DType | None = None) -> UOp:
        """A constant with this node's shape, and its type unless another is given."""
        const = UOp.const(dtype or self.dtype, value)
        return const if self.shape == () else const.reshape((1,) * len(self.shape)).expand(self.shape)

    def movement(self, op: Ops, arg: Any) -> UOp:
        """A movement operation."""
        return UOp(op, self.dtype, (self,), arg)

    def reduce_axis(self, op: Ops, axes: tuple[int, ...]) -> UOp:
        """Combine along the axes, which stay with size 1."""
        return UOp(Ops.REDUCE_AXIS, self.dtype, (self,), (op, tuple(sorted(axes)))) if axes else self

    def contiguous(self) -> UOp:
        """Store the value in memory of its own, in row order."""
        return self if self.op is Ops.CONTIGUOUS else UOp(Ops.CONTIGUOUS, self.dtype, (self,))

    def detach(self) -> UOp:
        """The value without its gradient."""
        return UOp(Ops.DETACH, self.dtype, (self,))

    def copy_to_device(self, device: str) -> UOp:
        """The value on another device."""
        return UOp(Ops.COPY, self.dtype, (self, UOp(Ops.DEVICE, arg=device)))

    # ---- making nodes

    @staticmethod
    def const(dtype: DType, value: ConstType, device: str | None = None) -> UOp:
        """A constant scalar, or a vector with the same value in every lane."""
        value = truncate(value, dtype.scalar())
        if dtype.count > 1:
            return UOp(Ops.VECTORIZE, dtype, (UOp(Ops.CONST, dtype.scalar(), (), value),))
        return UOp(Ops.CONST, dtype, (UOp(Ops.DEVICE, arg=device),) if device else (), value)

    @staticmethod
    def unique_const(dtype: DType, value: ConstType, device: str | None = None) -> UOp:
        """A constant scalar that no other node names. What a gradient is asked for must not be mistaken for others."""
        const = UOp.const(dtype, value, device)
        return UOp(Ops.CONST, dtype, (*const.src, UOp(Ops.UNIQUE, arg=next(numbers))), const.arg)

    @staticmethod
    def range(size: sint, number: int, kind: AxisType = AxisType.LOOP) -> UOp:
        """A loop counter from 0 to size-1."""
        return UOp(Ops.RANGE, dtypes.index, (as_index(size),), (number, kind))

    @staticmethod
    def sink(*src: UOp, arg: Any = None) -> UOp:
        """The root of a graph."""
        return UOp(Ops.SINK, dtypes.void, src, arg)

    @staticmethod
    def group(*src: UOp) -> UOp:
        """Things that happen, in no order."""
        return src[0] if len(src) == 1 else UOp(Ops.GROUP, dtypes.void, src)

    @staticmethod
    def new_buffer(device: str, size: sint, dtype: DType) -> UOp:
        """A BUFFER that no other node names."""
        return UOp(Ops.BUFFER, dtype, (), BufferArg(next(numbers), device, size))

    # ---- variables

    @staticmethod
    def variable(name: str, low: int, high: int) -> UOp:
        """An integer, `low` to `high`, whose value comes with each launch: one kernel serves all of them.

        What `bind(value)` gives may be an operand, a size, or a place: `x[:n.bind(3)]`. A size takes memory for `high`.
        """
        if not name.isidentifier() or low > high:
            raise ValueError(f"a variable needs an identifier and bounds in order, not {name!r}, {low}, {high}")
        return UOp(Ops.DEFINE_VAR, dtypes.index, (), (name, low, high))

    def bind(self, value: int) -> UOp:
        """This variable with a value. Raises ValueError if it is out of bounds."""
        if self.op is not Ops.DEFINE_VAR:
            raise ValueError(f"only a variable can be bound, not {self.op}")
        name, low, high = self.arg
        if not low <= value <= high:
            raise ValueError(f"the variable {name!r} goes from {low} to {high}; {value} is outside")
        return UOp(Ops.BIND, self.dtype, (self, UOp.const(self.dtype, value)))

    def unbind(self, dim: int = 0) -> Any:
        """A bound variable, and its value apart. Of anything else, as of a Tensor, the slices along an axis."""
        return (self.src[0], self.src[1].arg) if self.op is Ops.BIND else super().unbind(dim)

    # ---- inside kernels

    def index(self, offset: UOp, gate: UOp | None = None) -> UOp:
        """The address of an element of this pointer; its dtype is the element's."""
        return UOp(Ops.INDEX, self.dtype.base, (self, offset) if gate is None else (self, offset, gate))

    def load(self, *alternative: UOp, dtype: DType | None = None) -> UOp:
        """What lies at this address or in this register."""
        return UOp(Ops.LOAD, dtype or self.dtype.base, (self, *alternative))

    def store(self, value: UOp) -> UOp:
        """Write a value to this address or register."""
        return UOp(Ops.STORE, dtypes.void, (self, value))

    def end(self, *ranges: UOp) -> UOp:
        """The end of the loops around this."""
        return UOp(Ops.END, dtypes.void, (self, *ranges)) if ranges else self

    def reduce(self, op: Ops, *ranges: UOp) -> UOp:
        """The values of all iterations, combined."""
        return UOp(Ops.REDUCE, self.dtype, (self, *ranges), op) if ranges else self

    def after(self, *events: UOp) -> UOp:
        """This, not before the events happened."""
        return UOp(Ops.AFTER, self.dtype, (self, *events)) if events else self

    def broadcast(self, count: int) -> UOp:
        """A vector with this scalar in every lane."""
        return self if count == 1 else UOp(Ops.VECTORIZE, self.dtype.vec(count), (self,))

    def lane(self, number: int) -> UOp:
        """One lane of a vector."""
        if self.dtype.count == 1:
            return self
        if self.op is Ops.VECTORIZE:
            return self.src[0] if len(self.src) == 1 else self.src[number]
        return UOp(Ops.GEP, self.dtype.scalar(), (self,), (number,))


def as_index(value: sint) -> UOp:
    """An int as an index constant; a UOp as it is."""
    return UOp(Ops.CONST, dtypes.index, (), value) if isinstance(value, int) else value


def as_size(value: sint) -> sint:
    """An index as an int where it is a constant; else as it is."""
    return value.arg if isinstance(value, UOp) and value.op is Ops.CONST else value


_SHAPELESS = {Ops.SINK, Ops.DEVICE, Ops.KERNEL, Ops.LINEAR}


def _shape(node: UOp) -> tuple[sint, ...]:
    op, arg = node.op, node.arg
    if op in GroupOp.ELEMENTWISE:
        return node.src[0].shape
    if op is Ops.BUFFER:
        return (arg.size,)
    if op is Ops.ARANGE:
        return (arg,)
    if not node.src or op in _SHAPELESS or op is Ops.CONST:
        return ()
    below = node.src[0].shape
    if op in (Ops.RESHAPE, Ops.EXPAND):
        return arg
    if op is Ops.PERMUTE:
        return tuple(below[i] for i in arg)
    if op is Ops.PAD:
        return tuple([as_size(size + before + after) for size, (before, after) in zip(below, arg)])
    if op is Ops.SHRINK:
        return tuple([as_size(stop - start) for start, stop in arg])
    if op is Ops.SHEAR:
        axis, along, step = arg
        return tuple([as_size(size - step * (below[along] - 1)) if i == axis else size for i, size in enumerate(below)])
    if op is Ops.REDUCE_AXIS:
        return tuple(1 if i in arg[1] else size for i, size in enumerate(below))
    return below


Variable = UOp.variable
