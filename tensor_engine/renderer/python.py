"""Linear uops → text for the PYTHON device, one JSON list a line, and back. It holds data only, nothing that is run.

    [number, "MUL", "float32x4", [sources], arg]
"""
from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from tensor_engine.dtype import AddrSpace, DType, PtrDType, dtypes, to_dtype
from tensor_engine.renderer import Renderer, RenderError, kernel_name
from tensor_engine.uop.op import AxisType, GroupOp, Ops
from tensor_engine.uop.uop import UOp

LEAVES = {Ops.CONST, Ops.PARAM, Ops.DEFINE_VAR, Ops.DEFINE_REG, Ops.DEFINE_LOCAL}
MEMORY = {Ops.INDEX, Ops.LOAD, Ops.STORE, Ops.AFTER, Ops.GROUP, Ops.SINK}
KNOWN = LEAVES | MEMORY | {Ops.RANGE, Ops.END, Ops.VECTORIZE, Ops.GEP} | (GroupOp.ELEMENTWISE - {Ops.THREEFRY})
POINTER = re.compile(r"(\w+)\*(-?\d+)@(\w+)")


class Instruction(NamedTuple):
    """A linear uop whose sources are line numbers."""

    op: Ops
    dtype: DType
    src: tuple[int, ...]
    arg: Any


class PythonRenderer(Renderer):
    """Writes the uops down as they are. Knows every operation, on scalars and vectors, EXP2, LOG2 and SIN too."""

    name = "PYTHON"
    device = "PYTHON"
    vector_bytes = 16
    masked_memory = True
    code_for_op = dict.fromkeys(GroupOp.ALU - {Ops.THREEFRY}, str)
    vector_ops = frozenset(code_for_op) | {Ops.CAST, Ops.BITCAST}

    def render(self, uops: list[UOp]) -> str:
        kernel_name(uops)
        numbers = {uop: number for number, uop in enumerate(uops)}
        if len(numbers) < len(uops):
            raise RenderError("a uop occurs twice in the list")
        return "\n".join(_to_line(number, uop, numbers) for uop, number in numbers.items())


def parse(text: str) -> list[Instruction]:
    """What `PythonRenderer.render` wrote."""
    return [_from_line(line) for line in text.splitlines()]


def _to_line(number: int, uop: UOp, numbers: dict[UOp, int]) -> str:
    if uop.op not in KNOWN:
        raise RenderError(f"the PYTHON device does not know {uop.op}")
    arg: Any = uop.arg
    if uop.op is Ops.RANGE:
        arg = [arg[0], arg[1].value]
    elif uop.op is Ops.SINK:
        arg = arg.name
    sources = [numbers[s] for s in uop.src]
    return json.dumps([number, uop.op.name, _dtype_to_text(uop.dtype), sources, arg])


def _from_line(line: str) -> Instruction:
    _, name, dtype, src, arg = json.loads(line)
    op = Ops[name]
    if op is Ops.RANGE:
        arg = (arg[0], AxisType(arg[1]))
    return Instruction(op, _dtype_from_text(dtype), tuple(src), tuple(arg) if isinstance(arg, list) else arg)


def _dtype_to_text(dtype: DType) -> str:
    if isinstance(dtype, PtrDType):
        return f"{_dtype_to_text(dtype.target)}*{dtype.size}@{dtype.space.value}"
    return dtype.name if dtype.count == 1 else f"{dtype.name}x{dtype.count}"


def _dtype_from_text(text: str) -> DType:
    if pointer := POINTER.fullmatch(text):
        target, size, space = pointer.groups()
        return _dtype_from_text(target).ptr(int(size), AddrSpace(space))
    name, _, count = text.partition("x")
    return dtypes.void if name == "void" else to_dtype(name).vec(int(count or 1))
