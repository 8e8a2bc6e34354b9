"""Tensor: a lazy array. An operation writes a node of the graph down and returns; asking for a value runs it."""

from __future__ import annotations

import functools
import struct
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Union

import numpy as np

from tensor_engine.device import Buffer, Device, is_file, numpy_dtype
from tensor_engine.dtype import ConstType, DType, dtypes, to_dtype
from tensor_engine.engine.realize import buffer_of, is_realized, moved_like, realize
from tensor_engine.files import create_file, read_as, read_file, write_file
from tensor_engine.from_data import node_from_data, scalar_node
from tensor_engine.helpers import prod
from tensor_engine.mixin import random
from tensor_engine.mixin.inplace import InPlaceMixin
from tensor_engine.mixin.sizes import as_shape
from tensor_engine.storage import (
    Storage,
    alive,
    copied,
    is_whole_buffer,
    readers_of_old_values,
    tensors_in_scope,
    what_to_store,
    write,
)
from tensor_engine.uop import provenance
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.size import value_of
from tensor_engine.uop.uop import UOp

Data = Union[ConstType, list, tuple, bytes, np.ndarray, np.generic, Path, UOp, "Tensor", None]


class Tensor(InPlaceMixin):
    """An array of one dtype on one device. Nothing is computed before `realize`, `numpy`, `item` or `tolist`.

    `data` is a number, a nested list of numbers, a numpy array (copied), bytes (uint8), a Path, or a graph node. Python
    floats become the default float, ints the default int (int64 where that is too narrow). `is_param` tells optimisers
    that this tensor is theirs to update. A Path is a file, whose bytes stay there: slice them, `bitcast` them, and read
    what is left by `.to(device)`. Raises TypeError or ValueError for what is no array of numbers.
    """

    __slots__ = ("uop", "is_param", "grad", "storage")
    __array_ufunc__ = None  # `array + tensor` is a Tensor's operation, not numpy's

    uop: UOp
    is_param: bool
    grad: Tensor | None
    storage: Storage

    def __init__(self, data: Data, device: str | None = None, dtype: DType | str | None = None, is_param: bool = True):
        dtype = None if dtype is None else to_dtype(dtype)
        device = None if device is None else Device.canonicalize(device)
        self.uop = node_from_data(data.uop if isinstance(data, Tensor) else data, dtype, device)
        self.is_param, self.grad, self.storage = is_param, None, Storage()
        alive.add(weakref.ref(self, alive.discard))
        provenance.record(self.uop)

    # ---- the hooks of the mixins

    @classmethod
    def from_uop(cls, uop: UOp) -> Tensor:
        """The tensor whose value is this node's."""
        return cls._stored(uop, Storage())

    @classmethod
    def _stored(cls, uop: UOp, storage: Storage) -> Tensor:
        """The tensor whose value is this node's, in a storage that views of it share."""
        tensor = object.__new__(cls)
        tensor.uop, tensor.is_param, tensor.grad, tensor.storage = uop, True, None, storage
        alive.add(weakref.ref(tensor, alive.discard))
        if "provenance" not in uop.__dict__:
            provenance.record(uop)
        return tensor

    @classmethod
    def const(cls, dtype: DType, value: ConstType, device: str | None = None) -> Tensor:
        """A constant of shape ()."""
        return cls.from_uop(scalar_node(value, dtype, device and Device.canonicalize(device)))

    @classmethod
    def _random_state(cls, count: int, device: str | None) -> Tensor:
        state = cls(random.generator.draw(count), device)
        random.states[state._buffer()] = count
        return state

    @classmethod
    def empty(cls, *shape: Any, dtype: DType | str | None = None, device: str | None = None) -> Tensor:
        """Memory whose content is undefined, floats unless another type is given.

        On the device "disk:path" it is the start of a file, which is made, or made longer, where that is needed.
        """
        sizes, place = as_shape(shape), Device.canonicalize(device)
        kind = to_dtype(dtype or dtypes.default_float)
        if 0 in sizes:
            return cls.zeros(sizes, dtype=kind, device=device)
        if is_file(place):
            return cls.from_uop(create_file(place, sizes, kind))
        return cls.from_uop(UOp.new_buffer(place, prod(sizes), kind).reshape(sizes))

    def empty_like(self, dtype: DType | str | None = None, device: str | None = None) -> Tensor:
        """Memory in this shape and type, whose content is undefined."""
        return Tensor.empty(self.shape, dtype=dtype or self.dtype, device=device or self.device)

    @classmethod
    def as_operand(cls, value: Any) -> Tensor:
        if isinstance(value, (np.ndarray, np.generic, list, tuple)):
            return cls(value)
        raise TypeError(f"a Tensor and a {type(value).__name__} don't go together: {value!r:.80}")

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.uop.shape

    @property
    def dtype(self) -> DType:
        return self.uop.dtype

    @property
    def device(self) -> str:
        return self.uop.device or Device.DEFAULT

    def alu(self, op: Ops, *operands: Tensor) -> Tensor:
        self._check_devices(operands)
        return Tensor.from_uop(self.uop.alu(op, *[operand.uop for operand in operands]))

    def _check_devices(self, operands: tuple[Tensor, ...]) -> None:
        device = self.uop.device
        for operand in operands:
            other = operand.uop.device
            if device is None:
                device = other
            elif other is not None and other != device:
                raise ValueError(f"tensors on {device} and {other} don't meet: use .to(device)")

    def cast(self, dtype: DType | str) -> Tensor:
        """The values in another type. Floats are cut towards zero; see `dtype.float_to_int` for what doesn't fit."""
        dtype = to_dtype(dtype)
        return self if dtype is self.dtype else Tensor.from_uop(self.uop.cast(dtype))

    def bitcast(self, dtype: DType | str) -> Tensor:
        """The same bits read as another type; the last axis grows or shrinks where the widths differ.

        Low bits come first. Raises ValueError if elements are left over, and for bools of another width.
        """
        dtype = to_dtype(dtype)
        if is_file(self.device):
            return Tensor.from_uop(read_as(self.uop, dtype))
        if dtype.bits != self.dtype.bits:
            return self.regrouped_bits(dtype)
        return self if dtype is self.dtype else Tensor.from_uop(self.uop.bitcast(dtype))

    def const_like(self, value: ConstType, dtype: DType | None = None) -> Tensor:
        # the bits tell 0.0 from -0.0, which are equal
        key = struct.pack("d", value) if isinstance(value, float) else value
        return Tensor.from_uop(constant_node(self.uop.shape, dtype or self.uop.dtype, key))

    def movement(self, op: Ops, arg: Any) -> Tensor:
        return Tensor._stored(self.uop.movement(op, arg), self.storage)

    def reduce_axis(self, op: Ops, axes: tuple[int, ...]) -> Tensor:
        return Tensor.from_uop(self.uop.reduce_axis(op, axes)) if axes else self

    def contiguous(self) -> Tensor:
        return Tensor.from_uop(self.uop.contiguous())

    def detach(self) -> Tensor:
        return Tensor._stored(self.uop.detach(), self.storage)

    # ---- values

    def realize(self, *others: Tensor) -> Tensor:
        """Compute this and the others now, in one schedule. Returns this.

        What was made of a value that this overwrites is computed along.
        """
        tensors, held = [self, *others], []
        if any(not is_realized(tensor.uop) for tensor in tensors):
            tensors += readers_of_old_values(tensors)
            held = [tensor.uop for tensor in tensors_in_scope()]
        stored = [what_to_store(tensor) for tensor in tensors]
        in_memory = zip(tensors, stored, realize(*stored, held=held))
        results = [moved_like(tensor.uop, node, result) for tensor, node, result in in_memory]
        for tensor, result in zip(tensors, results):
            tensor.uop = result
        return self

    def _buffer(self) -> Buffer:
        """The memory that holds exactly these elements, in row order."""
        if is_whole_buffer(self.uop):
            return buffer_of(self.uop)
        if is_file(self.device):
            return self.to(None)._buffer()
        # while training the graph stays: a loss may be looked at before backward()
        keeps = Tensor.training or what_to_store(self) is not self.uop
        stored = (Tensor.from_uop(self.uop) if keeps else self).realize()
        if not is_whole_buffer(stored.uop):
            stored = stored.contiguous().realize()
        return buffer_of(stored.uop.base)

    def _known_shape(self) -> tuple[Any, ...]:
        """The shape in ints: what its variables are bound to."""
        return tuple(map(value_of, self.shape))

    def data(self) -> memoryview:
        """The elements in this shape: the memory itself, kept alive, where the host sees it, else a copy.

        Its format says the type, as for numpy (bfloat16 comes as its bits); `bytes(tensor.data())` are its bytes.
        """
        shape = self._known_shape()
        count = prod(shape)
        return self._buffer().numpy()[:count].reshape(shape).data if count else self.numpy().data

    def numpy(self) -> np.ndarray:
        """The values as an array of their own. bfloat16, which numpy lacks, comes as float32.

        A size that is a variable is what that is bound to.
        """
        shape = self._known_shape()
        if not prod(shape):
            return np.empty(shape, numpy_dtype(dtypes.float32 if self.dtype is dtypes.bfloat16 else self.dtype))
        values = self._buffer().array(shape)
        return (values.astype(np.uint32) << 16).view(np.float32) if self.dtype is dtypes.bfloat16 else values

    def item(self) -> ConstType:
        """The only element, as a Python number. Raises ValueError if there are more, or none."""
        if prod(self._known_shape()) != 1:
            raise ValueError(f"item() needs one element, but shape {self.shape} has {self.numel()}")
        return self.numpy().item()

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers; one number for shape ()."""
        return self.numpy().tolist()

    def sequential(self, ll: Iterable[Callable[[Tensor], Tensor]]) -> Tensor:
        """What comes out of one step after the other."""
        return functools.reduce(lambda value, step: step(value), ll, self)

    def __str__(self) -> str:
        """The values, which are computed: `print(tensor)` shows them. `repr` computes nothing."""
        values = np.array2string(self.numpy(), separator=", ", prefix="Tensor(", threshold=1000)
        return f"Tensor({values}, {self.dtype})"

    def __float__(self) -> Any:
        return self.cast(dtypes.float64).item()

    def __int__(self) -> Any:
        return self.cast(dtypes.int64).item()

    def __repr__(self) -> str:
        state = "" if is_whole_buffer(self.uop) else ", not computed"
        return f"<Tensor {self.shape} {self.dtype} on {self.device}{state}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: the values, not how they are made."""
        device = None if is_file(self.device) else self.device
        return restored, (self.numpy(), device, self.dtype, self.is_param, self.grad)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    # ---- devices and memory

    def to_(self, device: str | None) -> Tensor:
        """Move to another device, with the gradient. Returns this."""
        self.uop = self.to(device).uop
        if self.grad is not None:
            self.grad.to_(device)
        return self

    def is_param_(self, is_param: Any = True) -> Tensor:
        """Set `is_param`: whether optimisers update this. Returns this."""
        self.is_param = is_param
        return self

    def to(self, device: str | None) -> Tensor:
        """The values on another device. "disk:path" writes them to the start of a file, now."""
        target = Device.canonicalize(device)
        if target == self.device:
            return self
        if is_file(target):
            return Tensor.empty(self.shape, dtype=self.dtype, device=target).assign(self)
        if is_file(self.device):
            return Tensor.from_uop(read_file(self.uop, target))
        return Tensor.from_uop(self.uop.copy_to_device(target))

    def assign(self, x: Tensor | Data) -> Tensor:
        """Write `x` into the memory that this is, or is a view of, once it is realised. Returns this.

        All views of the same memory show it. What was computed from them, realised or not, keeps the old value, and so
        do clones. A file takes values from any device, and is written to now. Raises ValueError if the type or the
        device is another, or the shape doesn't broadcast to this one; PermissionError for a file that is read-only.
        """
        on_disk = is_file(self.device)
        new = x if isinstance(x, Tensor) else Tensor(x, None if on_disk else self.device, self.dtype)
        if new.dtype is not self.dtype:
            raise ValueError(f"can't assign {new.dtype} to {self.dtype}: use .cast")
        if on_disk:
            write_file(self.uop, new.expand(self.shape))
            return self
        if new.uop.device not in (None, self.device):
            raise ValueError(f"can't assign values on {new.device} to a tensor on {self.device}: use .to")
        node = new.expand(self.shape).uop
        if node is not self.uop and 0 not in self.shape:
            write(self, node)
        return self

    def replace(self, x: Tensor) -> Tensor:
        """Become `x`'s value, whatever this was. Shapes and types must agree. Returns this."""
        if self.shape != x.shape or self.dtype is not x.dtype:
            raise ValueError(f"can't replace {self.shape} {self.dtype} by {x.shape} {x.dtype}")
        self.uop = x.uop
        return self

    def clone(self, device: str | None = None) -> Tensor:
        """The values in memory of their own, on another device if one is given."""
        if device is not None and Device.canonicalize(device) != self.device:
            return self.to(device)
        return Tensor.from_uop(copied(self.uop))

    def __setitem__(self, indices: Any, value: Tensor | Data) -> None:
        """`x[i] = value` for every index that `x[i]` takes: `value`, cast to this type, is assigned to these places.

        Ints and slices write only the elements that they name; computed places write all of x.
        """
        device = None if is_file(self.device) else self.uop.device
        new = (value if isinstance(value, Tensor) else Tensor(value, device, self.dtype)).cast(self.dtype)
        picks = indices if isinstance(indices, tuple) else (indices,)
        if any(isinstance(self._as_index(pick), Tensor) for pick in picks):
            self.assign(self.written(indices, new))
            return
        part = self[picks]
        surplus = max(new.ndim - part.ndim, 0)
        part.assign(new.squeeze(tuple(range(surplus))))

    # ---- sizes

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one axis."""
        return self.shape if dim is None else self.shape[self.resolve_axis(dim)]

    # ---- as Python sees it

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        return self.eq(other)

    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        return self.ne(other)

    __hash__ = object.__hash__

    def __bool__(self) -> Any:
        raise TypeError("a Tensor has no truth value before it is computed: use .item(), .any() or .all()")

    def __len__(self) -> Any:
        if not self.shape:
            raise TypeError("a Tensor of shape () has no length")
        if not isinstance(self.shape[0], int):
            raise TypeError(f"the length of a Tensor of shape {self.shape} depends on a variable: use x.shape[0]")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise TypeError("a Tensor of shape () can't be iterated")
        return (self[i] for i in range(len(self)))

    # ---- training

    def backward(self, gradient: Tensor | None = None) -> Tensor:
        """Add to the `grad` of every floating tensor in scope that this depends on the gradient of this for it.

        `gradient` is as for `gradient()`. Returns this. Raises GradientError if there is no such tensor.
        """
        from tensor_engine.uop.gradient import FORGETTING, GradientError, compute_gradient

        floats = [tensor for tensor in tensors_in_scope() if tensor.dtype.kind == "f"]
        found = compute_gradient(self.uop, self._own_gradient(gradient).uop, [t.uop for t in floats if t is not self])
        if len(found) == 1:
            raise GradientError(f"this depends on no floating tensor. {FORGETTING}")
        for tensor in floats:
            if tensor.uop in found:
                tensor._add_gradient(Tensor.from_uop(found[tensor.uop]))
        return self

    def _add_gradient(self, gradient: Tensor) -> None:
        """In place where the sum so far is in memory, so that captured steps add up, too."""
        if self.grad is None:
            self.grad = gradient
        elif self.grad.uop.base.op in GroupOp.MEMORY:
            self.grad.assign(self.grad + gradient)
        else:
            self.grad = self.grad + gradient


def restored(values: np.ndarray, device: str | None, dtype: DType, is_param: bool, grad: Tensor | None) -> Tensor:
    """The Tensor that was pickled or copied."""
    tensor = Tensor(values, device, dtype, is_param)
    tensor.grad = grad
    return tensor


@functools.lru_cache(maxsize=4096)
def constant_node(shape: tuple[Any, ...], dtype: DType, key: int | bytes) -> UOp:
    """A constant of a shape. Operations are full of the same few, so the last ones are kept."""
    scalar = UOp.const(dtype, struct.unpack("d", key)[0] if isinstance(key, bytes) else key)
    return scalar.reshape((1,) * len(shape)).expand(shape) if shape else scalar
