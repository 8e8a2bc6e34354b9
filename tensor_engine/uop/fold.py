"""What an operation makes of Python numbers: constant folding, and the meaning of every ALU op in one place."""
from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from tensor_engine.dtype import ConstType, DType, dtypes, truncate
from tensor_engine.uop.op import Ops


def _quiet(function: Callable[[float], float]) -> Callable[[float], float]:
    """A math function that gives NaN or inf where Python would raise."""

    def safe(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return safe


def _log2(x: float) -> float:
    return -math.inf if x == 0 else math.log2(x) if x > 0 else math.nan


def _divide(x: float, y: float) -> float:
    if y == 0:
        return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1.0, y)
    return x / y


def _maximum(x: Any, y: Any) -> Any:
    return x if x != x else y if y != y else max(x, y)


def _shift_left(x: int, y: int) -> int:
    return x << y if 0 <= y < 64 else 0


def _shift_right(x: int, y: int) -> int:
    return x >> (y if 0 <= y < 64 else 64)


_PYTHON: dict[Ops, Callable[..., Any]] = {
    Ops.NEG: operator.neg,
    Ops.EXP2: _quiet(lambda x: 2.0**x),
    Ops.LOG2: _log2,
    Ops.SIN: _quiet(math.sin),
    Ops.SQRT: _quiet(math.sqrt),
    Ops.RECIPROCAL: lambda x: _divide(1.0, x),
    Ops.TRUNC: lambda x: math.copysign(math.trunc(x), x) if math.isfinite(x) else x,
    Ops.ADD: operator.add,
    Ops.SUB: operator.sub,
    Ops.MUL: operator.mul,
    Ops.FDIV: _divide,
    Ops.IDIV: lambda x, y: x // y if y else 0,
    Ops.MOD: lambda x, y: x % y if y else 0,
    Ops.MAX: _maximum,
    Ops.CMPLT: operator.lt,
    Ops.CMPNE: operator.ne,
    Ops.CMPEQ: operator.eq,
    Ops.AND: operator.and_,
    Ops.OR: operator.or_,
    Ops.XOR: operator.xor,
    Ops.SHL: _shift_left,
    Ops.SHR: _shift_right,
    Ops.WHERE: lambda condition, yes, no: yes if condition else no,
    Ops.MULACC: lambda x, y, z: x * y + z,
}


def can_fold(op: Ops) -> bool:
    """True if `fold_alu` knows the operation."""
    return op in _PYTHON


def fold_alu(op: Ops, dtype: DType, operands: list[Any]) -> ConstType:
    """The value of `op` on Python numbers, rounded or wrapped to `dtype`."""
    result = _PYTHON[op](*operands)
    if op in (Ops.MUL, Ops.ADD, Ops.SUB) and dtype is dtypes.bool:
        return bool(result)
    return truncate(result, dtype)
