"""Tensors in files. A view of one is a part of the file; `.to(device)` reads the bytes of that part and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensor_engine.device import Buffer
from tensor_engine.dtype import DType, dtypes
from tensor_engine.engine.realize import attach, buffer_of, moved_like
from tensor_engine.helpers import prod
from tensor_engine.runtime.disk import file_of, map_file, new_file
from tensor_engine.schedule.rangeify import ZERO, flat_index
from tensor_engine.schedule.schedule import address_in_view
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.symbolic import simplify
from tensor_engine.uop.uop import UOp, as_index

if TYPE_CHECKING:
    from tensor_engine.tensor import Tensor


def open_file(path: Any, dtype: DType | None) -> UOp:
    """All of a file, as elements of `dtype` (uint8). Raises FileNotFoundError."""
    return named(map_file(f"DISK:{path}", dtype or dtypes.uint8))


def create_file(device: str, shape: tuple[int, ...], dtype: DType) -> UOp:
    """Elements at the start of a file, which is made, or made longer, where they need it."""
    return named(new_file(device, prod(shape), dtype)).reshape(shape)


def named(buffer: Buffer) -> UOp:
    """A node for memory."""
    return attach(UOp.new_buffer(buffer.device, buffer.size, buffer.dtype), buffer)


def part(view: UOp, dtype: DType) -> UOp | None:
    """What a view of a file shows, read as `dtype`; None unless its elements lie side by side in the file."""
    start = first_place(view)
    if start is None:
        return None
    whole = buffer_of(view.base)
    return named(whole.view(view.size * whole.dtype.itemsize // dtype.itemsize, dtype, start * whole.dtype.itemsize))


def first_place(view: UOp) -> int | None:
    """Where the first element of a view lies, if the others follow it in order."""
    below = view
    while below.op in GroupOp.VIEW:
        below = below.src[0]
    if below.op is not Ops.BUFFER:
        return None
    index = tuple(ZERO if size == 1 else UOp.range(size, axis) for axis, size in enumerate(view.shape))
    address = simplify(address_in_view(view, index))
    start = simplify(address.substitute({place: as_index(0) for place in index}))
    in_order = simplify(flat_index(index, view.shape) + start)
    return start.arg if start.op is Ops.CONST and in_order is address else None


def read_as(view: UOp, dtype: DType) -> UOp:
    """The bits of a file's part as another type, still in the file; the last axis grows or shrinks.

    Raises ValueError if elements are left over, or don't lie side by side.
    """
    *rest, last = view.shape or (1,)
    nbytes = last * view.dtype.itemsize
    if nbytes % dtype.itemsize:
        raise ValueError(f"can't bitcast {view.shape} {view.dtype} to {dtype}: {nbytes} bytes are no whole number")
    shape = (*rest, nbytes // dtype.itemsize) if view.shape else ()
    if 0 in view.shape:
        return UOp.const(dtype, 0).reshape((1,) * len(shape)).expand(shape)
    found = part(view, dtype)
    if found is None:
        raise ValueError("this part of a file is not in one piece: bring it to a device by .to() first")
    return found.reshape(shape)


def read_file(view: UOp, device: str) -> UOp:
    """A file's part on a device; what isn't in one piece comes with the rest of the file."""
    if 0 in view.shape:
        return view.const_like(0)
    found = part(view, view.dtype)
    if found is None:
        return moved_like(view, view.base, view.base.copy_to_device(device))
    return found.copy_to_device(device).reshape(view.shape)


def write_file(view: UOp, value: Tensor) -> None:
    """Write to a file, now. Raises PermissionError if it is read-only."""
    found = part(view, view.dtype)
    if found is None:
        raise ValueError("this part of a file is not in one piece: assign to smaller ones")
    target = buffer_of(found)
    if target.opaque.readonly:
        raise PermissionError(f"{file_of(target.device)} is read-only")
    target.copyin(value.data())
