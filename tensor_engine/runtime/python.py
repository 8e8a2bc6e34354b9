"""The PYTHON device: an interpreter of linear uops, slow and obvious, the oracle for code generation.

A value is a numpy array with one element a lane, so arithmetic rounds and wraps as the type does. Every access to
memory is checked. bfloat16 is held as its bits, and takes part in no arithmetic.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensor_engine.device import Allocator, Compiler, DeviceRuntime, Program, numpy_dtype
from tensor_engine.dtype import DType, PtrDType, dtypes, float_to_bfloat16_bits
from tensor_engine.renderer.python import Instruction, PythonRenderer, parse
from tensor_engine.runtime.system import system
from tensor_engine.uop.op import Ops

Value = np.ndarray


# ---- arithmetic ---------------------------------------------------------------------------------------------------


def _divide(a: Value, b: Value) -> Value:
    """Rounds towards zero, and fails where a machine does."""
    if not b.all():
        raise ZeroDivisionError("an integer division by zero ends a process on most machines")
    quotient = a // b
    inexact = quotient * b != a
    return (quotient + (inexact & ((a < 0) != (b < 0)))).astype(a.dtype)


def _shift(shift: Callable[..., Value], a: Value, b: Value) -> Value:
    """Fails where a machine may do one thing or another."""
    if not ((b >= 0) & (b < a.dtype.itemsize * 8)).all():
        raise ValueError(f"a shift of {a.dtype} by {b.tolist()} bits")
    return shift(a, b.astype(a.dtype))


ALU: dict[Ops, Callable[..., Value]] = {
    Ops.NEG: np.negative,
    Ops.EXP2: np.exp2,
    Ops.LOG2: np.log2,
    Ops.SIN: np.sin,
    Ops.SQRT: np.sqrt,
    Ops.RECIPROCAL: lambda a: a.dtype.type(1) / a,
    Ops.TRUNC: np.trunc,
    Ops.ADD: np.add,
    Ops.SUB: np.subtract,
    Ops.MUL: np.multiply,
    Ops.FDIV: np.divide,
    Ops.IDIV: _divide,
    Ops.MOD: lambda a, b: a - _divide(a, b) * b,
    Ops.MAX: np.maximum,
    Ops.CMPLT: np.less,
    Ops.CMPNE: np.not_equal,
    Ops.CMPEQ: np.equal,
    Ops.AND: np.bitwise_and,
    Ops.OR: np.bitwise_or,
    Ops.XOR: np.bitwise_xor,
    Ops.SHL: lambda a, b: _shift(np.left_shift, a, b),
    Ops.SHR: lambda a, b: _shift(np.right_shift, a, b),
    Ops.WHERE: np.where,
    Ops.MULACC: lambda a, b, c: a * b + c,
}


def _cast(value: Value, of: DType, to: DType) -> Value:
    if of.scalar() is dtypes.bfloat16 and to.scalar() is not dtypes.bfloat16:
        return (value.astype(np.uint32) << 16).view(np.float32).astype(numpy_dtype(to))
    if to.scalar() is dtypes.bfloat16 and of.scalar() is not dtypes.bfloat16:
        return np.array([float_to_bfloat16_bits(float(lane)) for lane in value], np.uint16)
    return value.astype(numpy_dtype(to))


# ---- memory -------------------------------------------------------------------------------------------------------


@dataclass
class Memory:
    """What a PARAM or DEFINE_LOCAL points to."""

    name: str
    elements: np.ndarray


@dataclass
class Register:
    """An accumulator; it has no value before the first store."""

    value: Value | None = None


@dataclass
class Address:
    """An element of memory, or one in each lane from there on; and which lanes may be touched (None: all)."""

    memory: Memory
    offset: int
    gate: Value | None = None

    def lanes(self, count: int) -> np.ndarray:
        """The numbers of the lanes that are touched. Raises IndexError if one of them is outside."""
        lanes = np.arange(count)
        if self.gate is not None:
            lanes = lanes[np.broadcast_to(self.gate, (count,))]
        places, size = self.offset + lanes, len(self.memory.elements)
        outside = places[(places < 0) | (places >= size)]
        if len(outside):
            raise IndexError(f"{self.memory.name}[{outside[0]}] is outside of its {size} elements")
        return lanes


# ---- the interpreter ----------------------------------------------------------------------------------------------


@dataclass
class Run:
    """One run of a kernel: `values` has what each line gave."""

    code: list[Instruction]
    buffers: tuple[np.ndarray, ...]
    vals: dict[str, int]
    values: list[Any] = field(default_factory=list)
    line: int = 0
    next: int = 0

    def __post_init__(self) -> None:
        self.values = [None] * len(self.code)
        self.ends = {i.src[1]: number for number, i in enumerate(self.code) if i.op is Ops.END}

    def run(self) -> None:
        """Run to the last line."""
        while self.line < len(self.code):
            line, self.next = self.line, self.line + 1
            self.values[line] = self.step(self.code[line])
            self.line = self.next

    def step(self, i: Instruction) -> Any:
        """The value of one line."""
        sources = [self.values[s] for s in i.src]
        return ALU[i.op](*sources) if i.op in ALU else STEPS[i.op](self, i, *sources)

    # ---- leaves

    def const(self, i: Instruction) -> Value:
        value = float_to_bfloat16_bits(i.arg) if i.dtype is dtypes.bfloat16 else i.arg
        return np.array([value], numpy_dtype(i.dtype))

    def param(self, i: Instruction) -> Memory:
        dtype = i.dtype
        assert isinstance(dtype, PtrDType)
        elements = self.buffers[i.arg].view(numpy_dtype(dtype.target))
        if len(elements) < dtype.size:
            raise IndexError(f"data{i.arg} has {len(elements)} elements, and the kernel wants {dtype.size}")
        return Memory(f"data{i.arg}", elements if dtype.size < 0 else elements[: dtype.size])

    def variable(self, i: Instruction) -> Value:
        return np.array([self.vals[i.arg[0]]], np.int64)

    def register(self, i: Instruction) -> Register:
        return Register()

    def local(self, i: Instruction) -> Memory:
        assert isinstance(i.dtype, PtrDType)
        return Memory(f"local{i.arg}", np.zeros(i.dtype.size, numpy_dtype(i.dtype.target)))

    # ---- loops

    def begin_loop(self, i: Instruction, size: Value) -> Value:
        if size[0] <= 0:
            self.next = self.ends[self.line] + 1
        return np.zeros(1, numpy_dtype(i.dtype))

    def end_loop(self, i: Instruction, body: Any, counter: Value) -> None:
        loop = i.src[1]
        size = self.values[self.code[loop].src[0]]
        if counter[0] + 1 < size[0]:
            self.values[loop] = counter + 1
            self.next = loop + 1

    # ---- memory

    def index(self, i: Instruction, memory: Memory, offset: Value, gate: Value | None = None) -> Address:
        return Address(memory, int(offset[0]), gate)

    def load(self, i: Instruction, source: Address | Register, otherwise: Value | None = None) -> Value:
        if isinstance(source, Register):
            if source.value is None:
                raise ValueError("an accumulator is read before anything was stored in it")
            return source.value
        value = np.zeros(i.dtype.count, numpy_dtype(i.dtype))
        if source.gate is not None:
            if otherwise is None:
                raise ValueError(f"a load of {source.memory.name} has a gate and no value for where it is closed")
            value[:] = otherwise
        lanes = source.lanes(i.dtype.count)
        value[lanes] = source.memory.elements[source.offset + lanes]
        return value

    def store(self, i: Instruction, target: Address | Register, value: Value) -> None:
        if isinstance(target, Register):
            target.value = value
            return
        lanes = target.lanes(len(value))
        target.memory.elements[target.offset + lanes] = value[lanes]

    # ---- vectors and casts

    def vectorize(self, i: Instruction, *lanes: Value) -> Value:
        return np.repeat(lanes[0], i.dtype.count) if len(lanes) == 1 else np.concatenate(lanes)

    def gep(self, i: Instruction, vector: Value) -> Value:
        return vector[list(i.arg)]

    def cast(self, i: Instruction, value: Value) -> Value:
        return _cast(value, self.code[i.src[0]].dtype, i.dtype)

    def bitcast(self, i: Instruction, value: Value) -> Value:
        return value.view(numpy_dtype(i.dtype))

    def alias(self, i: Instruction, *sources: Any) -> Any:
        return sources[0] if sources else None


STEPS: dict[Ops, Callable[..., Any]] = {
    Ops.CONST: Run.const,
    Ops.PARAM: Run.param,
    Ops.DEFINE_VAR: Run.variable,
    Ops.DEFINE_REG: Run.register,
    Ops.DEFINE_LOCAL: Run.local,
    Ops.RANGE: Run.begin_loop,
    Ops.END: Run.end_loop,
    Ops.INDEX: Run.index,
    Ops.LOAD: Run.load,
    Ops.STORE: Run.store,
    Ops.VECTORIZE: Run.vectorize,
    Ops.GEP: Run.gep,
    Ops.CAST: Run.cast,
    Ops.BITCAST: Run.bitcast,
    Ops.AFTER: Run.alias,
    Ops.GROUP: Run.alias,
    Ops.SINK: Run.alias,
}


# ---- the device ---------------------------------------------------------------------------------------------------


class PythonProgram(Program):
    """A kernel that is interpreted. Errors name the kernel and the line."""

    def __init__(self, name: str, binary: bytes):
        self.name = name
        self.code = parse(binary.decode())
        self.variables = sorted(i.arg[0] for i in self.code if i.op is Ops.DEFINE_VAR)
        for i in self.code:
            if i.op in ALU and i.op is not Ops.WHERE and self.code[i.src[0]].dtype.scalar() is dtypes.bfloat16:
                raise TypeError(f"{i.op} on bfloat16, which has no arithmetic: cast it to float32")

    def __call__(self, *buffers: np.ndarray, vals: tuple[int, ...] = (), wait: bool = False) -> float | None:
        run = Run(self.code, buffers, dict(zip(self.variables, vals)))
        start = system.seconds()
        with np.errstate(all="ignore"):
            try:
                run.run()
            except Exception as error:
                raise type(error)(f"kernel {self.name}, line {run.line}, {self.code[run.line].op}: {error}") from error
        return system.seconds() - start if wait else None


class PythonCompiler(Compiler):
    """The interpreter takes the text as it is."""

    key = "python"

    def compile(self, source: str) -> bytes:
        return source.encode()

    def disassemble(self, binary: bytes) -> str:
        return binary.decode()


class PythonAllocator(Allocator):
    """A handle is an array of bytes."""

    def alloc(self, nbytes: int) -> np.ndarray:
        return np.empty(nbytes, np.uint8)

    def free(self, opaque: np.ndarray, nbytes: int) -> None:
        """The array goes with its last user."""

    def offset(self, opaque: np.ndarray, nbytes: int, start: int) -> np.ndarray:
        return opaque[start : start + nbytes]

    def wrap(self, array: np.ndarray) -> np.ndarray:
        return array.reshape(-1).view(np.uint8)

    def as_memoryview(self, opaque: np.ndarray, nbytes: int) -> memoryview:
        return opaque.data

    def copyin(self, dest: np.ndarray, src: memoryview) -> None:
        dest.data[:] = src.cast("B")

    def copyout(self, dest: memoryview, src: np.ndarray) -> None:
        dest.cast("B")[:] = src.data


class PythonRuntime(DeviceRuntime):
    """The interpreter as a device."""

    name = "PYTHON"

    def __init__(self) -> None:
        self.allocator = PythonAllocator()
        self._renderer, self._compiler = PythonRenderer(), PythonCompiler()

    @property
    def renderer(self) -> PythonRenderer:
        return self._renderer

    @property
    def compiler(self) -> PythonCompiler:
        return self._compiler

    def load(self, name: str, binary: bytes) -> PythonProgram:
        return PythonProgram(name, binary)
