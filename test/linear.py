"""Kernels written by hand in the linear form, and ways to run them on each CPU path."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tensor_engine.device import Buffer, Device, numpy_dtype
from tensor_engine.dtype import AddrSpace, DType, dtypes
from tensor_engine.helpers import Context
from tensor_engine.renderer import Renderer
from tensor_engine.uop.op import AxisType, GroupOp, Ops
from tensor_engine.uop.uop import UOp

BACKENDS = ["CPU:LLVM", "CPU:C", "PYTHON"]


class Info(NamedTuple):
    """What the SINK of these kernels carries."""

    name: str


class Kernel:
    """A list of linear uops under construction; each method appends what it needs, operands first."""

    def __init__(self, name: str = "kernel"):
        self.name = name
        self.uops: dict[UOp, None] = {}
        self.loops: list[UOp] = []
        self.registers = 0

    def add(self, op: Ops, dtype: DType, src: tuple[UOp, ...] = (), arg: object = None) -> UOp:
        uop = UOp(op, dtype, src, arg)
        self.uops[uop] = None
        return uop

    def const(self, dtype: DType, value: float) -> UOp:
        scalar = self.add(Ops.CONST, dtype.scalar(), (), value)
        return scalar if dtype.count == 1 else self.add(Ops.VECTORIZE, dtype, (scalar,))

    def param(self, number: int, dtype: DType, size: int) -> UOp:
        return self.add(Ops.PARAM, dtype.ptr(size), (), number)

    def variable(self, name: str, low: int = 0, high: int = 1 << 30) -> UOp:
        return self.add(Ops.DEFINE_VAR, dtypes.int64, (), (name, low, high))

    def register(self, dtype: DType) -> UOp:
        self.registers += 1
        return self.add(Ops.DEFINE_REG, dtype.ptr(1, AddrSpace.REG), (), self.registers)

    def loop(self, size: int | UOp, kind: AxisType = AxisType.LOOP) -> UOp:
        size = self.const(dtypes.int32, size) if isinstance(size, int) else size
        numbers = sum(u.op is Ops.RANGE for u in self.uops)
        return self.add(Ops.RANGE, size.dtype, (size,), (numbers, kind))

    def end(self, body: UOp, loop: UOp) -> UOp:
        return self.add(Ops.END, dtypes.void, (body, loop))

    def alu(self, op: Ops, *src: UOp) -> UOp:
        dtype = src[-1].dtype
        if op in GroupOp.COMPARE:
            dtype = dtypes.bool.vec(dtype.count)
        return self.add(op, dtype, src)

    def cast(self, value: UOp, dtype: DType) -> UOp:
        return self.add(Ops.CAST, dtype.vec(value.dtype.count), (value,))

    def index(self, pointer: UOp, offset: UOp | int, gate: UOp | None = None) -> UOp:
        offset = self.const(dtypes.int32, offset) if isinstance(offset, int) else offset
        return self.add(Ops.INDEX, pointer.dtype, (pointer, offset) if gate is None else (pointer, offset, gate))

    def load(
        self, pointer: UOp, offset: UOp | int, count: int = 1, gate: UOp | None = None, otherwise: UOp | None = None
    ) -> UOp:
        address = self.index(pointer, offset, gate)
        src = (address,) if otherwise is None else (address, otherwise)
        return self.add(Ops.LOAD, pointer.dtype.base.vec(count), src)

    def store(self, pointer: UOp, offset: UOp | int, value: UOp, gate: UOp | None = None) -> UOp:
        return self.add(Ops.STORE, dtypes.void, (self.index(pointer, offset, gate), value))

    def read(self, register: UOp) -> UOp:
        return self.add(Ops.LOAD, register.dtype.base, (register,))

    def write(self, register: UOp, value: UOp) -> UOp:
        return self.add(Ops.STORE, dtypes.void, (register, value))

    def after(self, value: UOp, *events: UOp) -> UOp:
        return self.add(Ops.AFTER, value.dtype, (value, *events))

    def linear(self) -> list[UOp]:
        body = [*self.uops]
        return [*body, UOp(Ops.SINK, dtypes.void, (body[-1],), Info(self.name))]


class Compiled:
    """A kernel on one path, run on numpy arrays that it changes."""

    def __init__(self, kernel: Kernel, backend: str, renderer: Renderer | None = None):
        uops = kernel.linear()
        self.params = {u.arg: u.dtype.base for u in uops if u.op is Ops.PARAM}
        with Context(DEV=backend):
            self.device = Device.DEFAULT
            runtime = Device[self.device]
            self.source = (renderer or runtime.renderer).render(uops)
            self.binary = runtime.compiler.compile(self.source)
        self.program = runtime.load(kernel.name, self.binary)

    def __call__(self, *arrays: np.ndarray, vals: tuple[int, ...] = ()) -> None:
        buffers = [Buffer.from_numpy(a, self.params[i], self.device) for i, a in enumerate(arrays)]
        self.program(*[b.opaque for b in buffers], vals=vals)


def run(kernel: Kernel, backend: str, *arrays: np.ndarray, vals: tuple[int, ...] = ()) -> None:
    """Compile and run once."""
    Compiled(kernel, backend)(*arrays, vals=vals)


def empty(dtype: DType, size: int) -> np.ndarray:
    """An array whose content a kernel must not leave as it is."""
    return np.full(size, 77, np.uint8).repeat(dtype.itemsize).view(numpy_dtype(dtype)) if size else np.empty(0)
