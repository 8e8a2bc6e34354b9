"""The CPU: kernels are native functions, memory is the process's own, a handle is an address."""
from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensor_engine.device import (
    Compiler,
    Device,
    DeviceRuntime,
    FrameProgram,
    KernelCall,
    LRUAllocator,
    Program,
)  # fmt: skip
from tensor_engine.helpers import CC
from tensor_engine.renderer import Renderer
from tensor_engine.renderer.cstyle import CRenderer
from tensor_engine.runtime import llvm
from tensor_engine.runtime.cc import CCompiler
from tensor_engine.runtime.elf import LoadedObject
from tensor_engine.runtime.frame import NativeFrameProgram
from tensor_engine.runtime.system import PAGE, system

CACHE_LINE = 64
# ctypes calls functions of no more arguments than this; a kernel that reads more buffers is called by native code
MAX_CTYPES_ARGUMENTS = 1024


class CPUAllocator(LRUAllocator):
    """Memory from the system, aligned to a cache line, or to a page if it is a page or more."""

    def alloc_new(self, nbytes: int) -> int:
        return system.allocate(max(nbytes, 1), PAGE if nbytes >= PAGE else CACHE_LINE)

    def free_now(self, opaque: int, nbytes: int) -> None:
        system.free(opaque)

    def offset(self, opaque: int, nbytes: int, start: int) -> int:
        return opaque + start

    def wrap(self, array: np.ndarray) -> int:
        return array.ctypes.data

    def as_memoryview(self, opaque: int, nbytes: int) -> memoryview:
        return memoryview(_octets(nbytes).from_address(opaque)).cast("B")

    def copyin(self, dest: int, src: memoryview) -> None:
        self.as_memoryview(dest, src.nbytes)[:] = _flat(src)

    def copyout(self, dest: memoryview, src: int) -> None:
        _flat(dest)[:] = self.as_memoryview(src, dest.nbytes)


@functools.lru_cache(maxsize=1024)
def _octets(count: int) -> Any:
    return ctypes.c_ubyte * count


def _flat(view: memoryview) -> memoryview:
    return view.cast("B")


class CPUProgram(Program):
    """A kernel in executable memory. Python's lock is free while it runs."""

    def __init__(self, name: str, binary: bytes):
        self.name = name
        self.loaded = LoadedObject(binary)
        self.address = self.loaded[name]
        self._calls: dict[tuple[int, int], Callable[..., None]] = {}

    def __call__(self, *buffers: int, vals: tuple[int, ...] = (), wait: bool = False) -> float | None:
        call = self._calls.get((len(buffers), len(vals))) or self._make_call(len(buffers), len(vals))
        if not wait:
            call(*buffers, *vals)
            return None
        start = system.seconds()
        call(*buffers, *vals)
        return system.seconds() - start

    def _make_call(self, buffers: int, vals: int) -> Callable[..., None]:
        if buffers + vals > MAX_CTYPES_ARGUMENTS:
            return lambda *arguments: NativeFrameProgram([KernelCall(self, arguments)])()
        types = [ctypes.c_void_p] * buffers + [ctypes.c_int64] * vals
        call = self._calls[buffers, vals] = ctypes.CFUNCTYPE(None, *types)(self.address)
        return call


class CPURuntime(DeviceRuntime):
    """The CPU this process runs on."""

    name = "CPU"

    def __init__(self) -> None:
        self.allocator = CPUAllocator()
        self.target = llvm.host()
        self._backends: dict[tuple[str, str], tuple[Renderer, Compiler]] = {}

    def _backend(self) -> tuple[Renderer, Compiler]:
        name = Device.renderer_name(self.name)
        key = name, CC.value
        if key not in self._backends:
            self._backends[key] = self._make_backend(name)
        return self._backends[key]

    def _make_backend(self, name: str) -> tuple[Renderer, Compiler]:
        if name == "C":
            return CRenderer(self.target.vector_bytes, self.target.registers), CCompiler()
        return llvm.renderer_for(self.target), llvm.LLVMCompiler(self.target)

    @property
    def renderer(self) -> Renderer:
        return self._backend()[0]

    @property
    def compiler(self) -> Compiler:
        return self._backend()[1]

    def load(self, name: str, binary: bytes) -> CPUProgram:
        return CPUProgram(name, binary)

    def link(self, calls: Sequence[KernelCall], parameters: Sequence[int] = ()) -> FrameProgram:
        return NativeFrameProgram(calls, parameters)
