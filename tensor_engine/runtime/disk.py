"""Files as memory: a handle is the part of a mapped file. Nothing is computed here, bytes come and go."""
from __future__ import annotations

from tensor_engine.device import Allocator, Buffer, Compiler, DeviceRuntime, Program
from tensor_engine.dtype import DType
from tensor_engine.renderer import Renderer
from tensor_engine.runtime.system import system

NO_KERNELS = "a file's values are not computed with where they are: bring them to a device by .to()"


class DiskAllocator(Allocator):
    """Parts of mapped files. Only what is copied is read."""

    def alloc(self, nbytes: int) -> memoryview:
        raise TypeError(NO_KERNELS)

    def free(self, opaque: memoryview, nbytes: int) -> None:
        opaque.release()

    def offset(self, opaque: memoryview, nbytes: int, start: int) -> memoryview:
        return opaque[start : start + nbytes]

    def copyin(self, dest: memoryview, src: memoryview) -> None:
        if dest.readonly:
            raise PermissionError("the file is read-only")
        dest[:] = src.cast("B")

    def copyout(self, dest: memoryview, src: memoryview) -> None:
        dest.cast("B")[:] = src

    def as_memoryview(self, opaque: memoryview, nbytes: int) -> memoryview:
        return opaque


class DiskRuntime(DeviceRuntime):
    """All files."""

    name = "DISK"

    def __init__(self) -> None:
        self.allocator = DiskAllocator()

    @property
    def renderer(self) -> Renderer:
        raise TypeError(NO_KERNELS)

    @property
    def compiler(self) -> Compiler:
        raise TypeError(NO_KERNELS)

    def load(self, name: str, binary: bytes) -> Program:
        raise TypeError(NO_KERNELS)


def file_of(device: str) -> str:
    """The path in "DISK:path"."""
    return device.partition(":")[2]


def map_file(device: str, dtype: DType) -> Buffer:
    """The whole of a file as elements of a type; bytes that are left over at its end are left out.

    Raises FileNotFoundError.
    """
    return mapped(device, system.file_size(file_of(device)) // dtype.itemsize, dtype)


def new_file(device: str, size: int, dtype: DType) -> Buffer:
    """The first elements of a file, which is made, or made longer, where they need it."""
    system.grow_file(file_of(device), size * dtype.itemsize)
    return mapped(device, size, dtype)


def mapped(device: str, size: int, dtype: DType) -> Buffer:
    """The first elements of a file that is as long."""
    buffer = Buffer(device, size, dtype)
    memory = system.map_file(file_of(device)) if buffer.nbytes else memoryview(b"")
    buffer._opaque = buffer.owner = memory[: buffer.nbytes]
    return buffer
