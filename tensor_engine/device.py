"""What a backend must provide, and the devices there are.

A backend is four things: an `Allocator` (memory), a renderer (linear uops → text), a `Compiler` (text → bytes) and a
`Program` (bytes → something to call). A `DeviceRuntime` holds them together. Memory is named by an *opaque handle*,
which only the device's own allocator and programs understand: an address on the CPU, an array on PYTHON.
"""
from __future__ import annotations

import functools
import importlib
import itertools
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensor_engine.dtype import DType, dtypes
from tensor_engine.helpers import DEV, GlobalCounters, human_size

if TYPE_CHECKING:
    from tensor_engine.renderer import Renderer

Opaque = Any


class CompileError(RuntimeError):
    """A kernel's text that its compiler does not take: the compiler's own words and the text."""


# ---- what a backend provides --------------------------------------------------------------------------------------


class Compiler(ABC):
    """Text → bytes. `key` holds everything else that determines the bytes: compiler, version, flags, target."""

    key: str

    @abstractmethod
    def compile(self, source: str) -> bytes:
        """The binary. Raises CompileError."""

    def disassemble(self, binary: bytes) -> str:
        """The machine code, for people."""
        return f"no disassembler for {self.key}"


class Program(ABC):
    """A loaded kernel, ready to be called."""

    name: str

    @abstractmethod
    def __call__(self, *buffers: Opaque, vals: tuple[int, ...] = (), wait: bool = False) -> float | None:
        """Run on memory handles and the values of the variables; with `wait`, give the seconds it took."""


class Allocator(ABC):
    """Memory of a device."""

    @abstractmethod
    def alloc(self, nbytes: int) -> Opaque:
        """New memory, its content undefined. Raises MemoryError."""

    @abstractmethod
    def free(self, opaque: Opaque, nbytes: int) -> None:
        """Give back what `alloc(nbytes)` gave."""

    @abstractmethod
    def offset(self, opaque: Opaque, nbytes: int, start: int) -> Opaque:
        """The part of this memory that begins `start` bytes in and has `nbytes` bytes."""

    @abstractmethod
    def copyin(self, dest: Opaque, src: memoryview) -> None:
        """Host memory → device memory."""

    @abstractmethod
    def copyout(self, dest: memoryview, src: Opaque) -> None:
        """Device memory → host memory."""

    def wrap(self, array: np.ndarray) -> Opaque | None:
        """The handle of a contiguous array's own memory; None where the device cannot use host memory."""
        return None

    def as_memoryview(self, opaque: Opaque, nbytes: int) -> memoryview | None:
        """The memory as the host sees it; None where the host cannot see it."""
        return None

    def release_unused(self) -> None:  # noqa: B027 (most devices keep nothing)
        """Give memory that is kept for reuse back to the system."""


class LRUAllocator(Allocator):
    """Keeps freed blocks for the next `alloc` of the same size, the longest unused ones leave first."""

    def __init__(self, keep_bytes: int = 256 << 20):
        self.keep_bytes = keep_bytes
        self.kept_bytes = 0
        self.kept: OrderedDict[Opaque, int] = OrderedDict()
        self.by_size: dict[int, list[Opaque]] = {}
        self.lock = threading.RLock()

    @abstractmethod
    def alloc_new(self, nbytes: int) -> Opaque:
        """New memory from the system. Raises MemoryError."""

    @abstractmethod
    def free_now(self, opaque: Opaque, nbytes: int) -> None:
        """Give memory back to the system."""

    def alloc(self, nbytes: int) -> Opaque:
        with self.lock:
            if blocks := self.by_size.get(nbytes):
                opaque = blocks.pop()
                self.kept_bytes -= self.kept.pop(opaque)
                return opaque
        try:
            return self.alloc_new(nbytes)
        except MemoryError:
            self.release_unused()
            return self.alloc_new(nbytes)

    def free(self, opaque: Opaque, nbytes: int) -> None:
        with self.lock:
            self.kept[opaque] = nbytes
            self.by_size.setdefault(nbytes, []).append(opaque)
            self.kept_bytes += nbytes
            self._shrink(self.keep_bytes)

    def release_unused(self) -> None:
        with self.lock:
            self._shrink(0)

    def _shrink(self, limit: int) -> None:
        while self.kept_bytes > limit:
            opaque, nbytes = self.kept.popitem(last=False)
            self.by_size[nbytes].remove(opaque)
            self.kept_bytes -= nbytes
            self.free_now(opaque, nbytes)


class Parameter(NamedTuple):
    """An argument that a frame program takes from its parameters, which may be set before each run."""

    number: int


class KernelCall(NamedTuple):
    """A kernel with its arguments: memory handles and the values of its variables."""

    program: Program
    buffers: tuple[Opaque | Parameter, ...]
    vals: tuple[int | Parameter, ...] = ()


class FrameProgram:
    """Kernels with their arguments, run in order by one call. This one loops in Python; devices have better ones.

    The memory belongs to the caller. Parameters must not be set while the program runs.
    """

    def __init__(self, calls: Sequence[KernelCall], parameters: Sequence[Opaque] = ()):
        """`parameters`: their first values, memory handles or values of variables. Raises IndexError for a call that
        asks for others."""
        self.calls = list(calls)
        self.parameters = list(parameters)
        arguments = [argument for call in calls for argument in (*call.buffers, *call.vals)]
        for number in {argument.number for argument in arguments if isinstance(argument, Parameter)}:
            if not 0 <= number < len(parameters):
                raise IndexError(f"a kernel asks for parameter {number} of {len(parameters)}")

    def __call__(self) -> None:
        """Run all kernels."""
        for program, buffers, vals in self.calls:
            program(*self._filled(buffers), vals=self._filled(vals))

    def set(self, parameter: int, value: Opaque) -> None:
        """Give a parameter another value. Raises IndexError."""
        self.parameters[parameter] = value

    def _filled(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([self.parameters[a.number] if isinstance(a, Parameter) else a for a in arguments])


class DeviceRuntime(ABC):
    """One open device."""

    name: str
    allocator: Allocator

    @property
    @abstractmethod
    def renderer(self) -> Renderer:
        """The renderer in use now: the DEV setting may name another one than the default."""

    @property
    @abstractmethod
    def compiler(self) -> Compiler:
        """The compiler that belongs to `renderer`."""

    @abstractmethod
    def load(self, name: str, binary: bytes) -> Program:
        """A compiled kernel, ready to be called."""

    def link(self, calls: Sequence[KernelCall], parameters: Sequence[Opaque] = ()) -> FrameProgram:
        """The kernels as one program that is started with one call, and the first values of its parameters."""
        return FrameProgram(calls, parameters)

    def synchronize(self) -> None:  # noqa: B027 (where a launch waits for its end, there is nothing to do)
        """Return when everything that was launched has run."""


# ---- the devices there are ----------------------------------------------------------------------------------------

# device → (module, class of its runtime); after the colon of DEV, the renderers it has
DEVICES: dict[str, tuple[str, str]] = {
    "CPU": ("tensor_engine.runtime.cpu", "CPURuntime"),
    "PYTHON": ("tensor_engine.runtime.python", "PythonRuntime"),
    "DISK": ("tensor_engine.runtime.disk", "DiskRuntime"),
}
RENDERERS: dict[str, tuple[str, ...]] = {"CPU": ("LLVM", "C"), "PYTHON": ("PYTHON",)}


def is_file(device: str | None) -> bool:
    """True for "DISK:path": a file, whose bytes can be copied and not computed with."""
    return device is not None and device.startswith("DISK:")


class _Devices:
    """`Device["CPU"]` opens a device once; `Device.DEFAULT` is what the DEV setting names."""

    def __init__(self) -> None:
        self.opened: dict[str, DeviceRuntime] = {}
        self.lock = threading.RLock()

    @property
    def DEFAULT(self) -> str:
        """The default device, from the DEV setting without its renderer."""
        return self.canonicalize(DEV.value)

    def canonicalize(self, name: str | None) -> str:
        """ "cpu" and "CPU:C" → "CPU", "disk:path" → "DISK:path", None → the default.

        Raises ValueError for what is no device.
        """
        return self.DEFAULT if name is None else self._parse(name)[0]

    def renderer_name(self, device: str) -> str:
        """The renderer that DEV asks for on this device, else the device's first one."""
        default, asked = self._parse(DEV.value)
        return asked if default == device and asked else RENDERERS[device][0]

    def __getitem__(self, name: str | None) -> DeviceRuntime:
        runtime = self.opened.get(name) if name is not None else None
        return runtime if runtime is not None else self._open(self.canonicalize(name))

    def _open(self, device: str) -> DeviceRuntime:
        kind = "DISK" if is_file(device) else device
        with self.lock:
            if kind not in self.opened:
                module, runtime = DEVICES[kind]
                self.opened[kind] = getattr(importlib.import_module(module), runtime)()
            return self.opened[kind]

    @staticmethod
    @functools.lru_cache(maxsize=64)
    def _parse(name: str) -> tuple[str, str]:
        device, _, renderer = name.upper().partition(":")
        if device == "DISK" and renderer:
            return f"DISK:{name[len('DISK:') :]}", ""
        if device not in RENDERERS or (renderer and renderer not in RENDERERS[device]):
            known = [d if len(r) == 1 else f"{d}:{choice}" for d, r in RENDERERS.items() for choice in r]
            there = ", ".join(dict.fromkeys([*RENDERERS, *known, "DISK:path"]))
            raise ValueError(f"there is no device {name!r}; there are {there}")
        return device, renderer


Device = _Devices()


# ---- memory with a type -------------------------------------------------------------------------------------------


class Buffer:
    """`size` elements of `dtype` on a device. The memory comes with the first use and goes with the object.

    A buffer may also be a part of another one (`view`) or use a numpy array's memory (`from_numpy`); it keeps
    that alive and frees nothing.
    """

    __slots__ = ("number", "device", "size", "dtype", "nbytes", "base", "start", "owner", "_opaque", "__weakref__")

    numbers = itertools.count()

    def __init__(self, device: str, size: int, dtype: DType, *, base: Buffer | None = None, start: int = 0):
        self.number = next(Buffer.numbers)  # tells which of two was made first
        self.device, self.size, self.dtype = device, size, dtype
        self.nbytes = size * dtype.itemsize
        self.base, self.start = base, start
        self.owner: Any = None
        self._opaque: Opaque = None

    def __repr__(self) -> str:
        state = "" if self._opaque is not None else ", not allocated"
        return f"Buffer({self.device}, {self.size}, {self.dtype}{state})"

    @property
    def is_allocated(self) -> bool:
        """True if there is memory behind it."""
        return self._opaque is not None

    @property
    def opaque(self) -> Opaque:
        """The device's handle of the memory, which is allocated if there is none yet."""
        if self._opaque is None:
            self.allocate()
        return self._opaque

    def allocate(self) -> Buffer:
        """Get memory, unless there is some. Raises MemoryError with the sizes."""
        if self._opaque is not None:
            return self
        allocator = Device[self.device].allocator
        if self.base is not None:
            self._opaque = allocator.offset(self.base.opaque, self.nbytes, self.start)
            return self
        try:
            self._opaque = allocator.alloc(self.nbytes)
        except MemoryError:
            raise MemoryError(
                f"{self.device} has no {human_size(self.nbytes, 'B')} left for {self.size} elements of {self.dtype};"
                f" {human_size(GlobalCounters.mem_used, 'B')} are in use"
            ) from None
        GlobalCounters.mem_used += self.nbytes
        return self

    def __del__(self) -> None:
        if getattr(self, "_opaque", None) is None or self.base is not None or self.owner is not None:
            return
        GlobalCounters.mem_used -= self.nbytes
        Device.opened[self.device].allocator.free(self._opaque, self.nbytes)

    # ---- other memory

    def view(self, size: int, dtype: DType, start: int = 0) -> Buffer:
        """The part that begins `start` bytes in, read as `size` elements of `dtype`. Raises ValueError outside."""
        nbytes = size * dtype.itemsize
        if start < 0 or start + nbytes > self.nbytes:
            raise ValueError(f"bytes {start} to {start + nbytes} are not all within {self}")
        if self.base is not None:
            return Buffer(self.device, size, dtype, base=self.base, start=self.start + start)
        return Buffer(self.device, size, dtype, base=self, start=start)

    @staticmethod
    def from_numpy(array: np.ndarray, dtype: DType, device: str = "CPU") -> Buffer:
        """A buffer over the array's own memory where the device can, with a copy of it elsewhere.

        The array must be contiguous and of a type as wide as `dtype`. Later changes to it may show in the buffer.
        """
        if not array.flags.c_contiguous:
            raise ValueError("only a contiguous array's memory can be used; pass numpy.ascontiguousarray(array)")
        buffer = Buffer(Device.canonicalize(device), array.size, dtype)
        if array.nbytes != buffer.nbytes:
            raise ValueError(f"{array.dtype} elements cannot be read as {dtype}: they differ in width")
        opaque = Device[buffer.device].allocator.wrap(array)
        if opaque is None:
            return buffer.copyin(array.data)
        buffer._opaque, buffer.owner = opaque, array
        return buffer

    # ---- content

    def copyin(self, src: memoryview) -> Buffer:
        """Fill from host memory of exactly as many bytes."""
        self._check_bytes(src)
        Device[self.device].allocator.copyin(self.opaque, src)
        return self

    def copyout(self, dest: memoryview) -> memoryview:
        """Copy into host memory of exactly as many bytes, when all kernels have run."""
        self._check_bytes(dest)
        runtime = Device[self.device]
        runtime.synchronize()
        runtime.allocator.copyout(dest, self.opaque)
        return dest

    def _check_bytes(self, host: memoryview) -> None:
        if host.nbytes != self.nbytes:
            raise ValueError(f"{host.nbytes} bytes do not fit {self}, which has {self.nbytes}")

    def as_memoryview(self) -> memoryview:
        """The bytes: the memory itself where the host sees it (valid while the buffer lives), else a copy."""
        runtime = Device[self.device]
        runtime.synchronize()
        seen = runtime.allocator.as_memoryview(self.opaque, self.nbytes)
        return self.copyout(memoryview(bytearray(self.nbytes))) if seen is None else seen

    def numpy(self) -> np.ndarray:
        """The elements as a flat array: a view of the memory where the host sees it, else a copy.

        A view keeps the buffer alive. bfloat16, which numpy lacks, comes as its bits in uint16.
        """
        array = np.frombuffer(self.as_memoryview(), dtype=numpy_dtype(self.dtype), count=self.size)
        return _View(array, self).array()

    def array(self, shape: tuple[int, ...]) -> np.ndarray:
        """The elements in an array of their own, in this shape. bfloat16 comes as its bits, too."""
        return np.ndarray(shape, numpy_dtype(self.dtype), self.as_memoryview()).copy()


class _View:
    """Makes an array that keeps a buffer alive: numpy holds on to what gave it the memory."""

    def __init__(self, array: np.ndarray, buffer: Buffer):
        self.buffer = buffer
        self.source = array
        self.__array_interface__ = array.__array_interface__

    def array(self) -> np.ndarray:
        return np.asarray(self)


@functools.cache
def numpy_dtype(dtype: DType) -> np.dtype:
    """The numpy type of one element; uint16 for bfloat16."""
    return np.dtype("uint16" if dtype.scalar() is dtypes.bfloat16 else dtype.scalar().name)
