"""Constant folding agrees with numpy, for every operation and type, at all extremes."""
from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from mixin.evaluate import ALU

from tensor_engine.dtype import DType, dtypes
from tensor_engine.uop.fold import can_fold, fold_alu
from tensor_engine.uop.op import GroupOp, Ops

ARITHMETIC = [Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ]
WHOLE = [Ops.IDIV, Ops.MOD, Ops.AND, Ops.OR, Ops.XOR]
EXACT_FLOAT = [*ARITHMETIC, Ops.FDIV]
NUMPY_FLOATS = [dtypes.float16, dtypes.float32, dtypes.float64]


def numbers(dtype: DType) -> list[Any]:
    if dtype.kind == "f":
        info = np.finfo(dtype.name)
        tiny, huge = float(info.smallest_subnormal), float(info.max)
        ordinary = [0.0, -0.0, 1.0, -1.0, 1.5, -0.5, -2.75, 3.0, 0.1]
        return [*ordinary, tiny, -tiny, huge, -huge, math.inf, -math.inf, math.nan]
    low, high = int(dtype.min), int(dtype.max)
    return [n for n in (low, low + 1, -7, -3, -1, 0, 1, 2, 3, 7, high - 1, high) if low <= n <= high]


def numpy_result(op: Ops, dtype: DType, operands: list[Any]) -> np.generic:
    arrays = [np.array(v, dtype.name) for v in operands]
    with np.errstate(all="ignore"):
        return np.asarray(ALU[op](*arrays))[()]


def same(found: Any, want: np.generic, dtype: DType) -> bool:
    """To the bit, but for the bits of a NaN."""
    own = np.array(found, dtype.name)[()]
    return own.tobytes() == want.astype(dtype.name).tobytes() or bool(found != found and want != want)


@pytest.mark.parametrize("dtype", dtypes.ints, ids=lambda d: d.name)
@pytest.mark.parametrize("op", [*ARITHMETIC, *WHOLE], ids=lambda op: op.name)
def test_integers(op: Ops, dtype: DType) -> None:
    result_type = dtypes.bool if op in GroupOp.COMPARE else dtype
    for a, b in itertools.product(numbers(dtype), repeat=2):
        found = fold_alu(op, result_type, [a, b])
        assert same(found, numpy_result(op, dtype, [a, b]), result_type), f"{a} {op} {b} = {found}"


@pytest.mark.parametrize("dtype", NUMPY_FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("op", EXACT_FLOAT, ids=lambda op: op.name)
def test_floats(op: Ops, dtype: DType) -> None:
    result_type = dtypes.bool if op in GroupOp.COMPARE else dtype
    values = [float(np.array(v, dtype.name)) for v in numbers(dtype)]
    for a, b in itertools.product(values, repeat=2):
        found = fold_alu(op, result_type, [a, b])
        want = numpy_result(op, dtype, [a, b])
        zeros = op is Ops.MAX and a == b == 0  # which zero is larger is nobody's business
        assert zeros or same(found, want, result_type), f"{a} {op} {b} = {found}, numpy {want}"


@pytest.mark.parametrize("dtype", NUMPY_FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("op", [Ops.SQRT, Ops.RECIPROCAL, Ops.TRUNC, Ops.NEG], ids=lambda op: op.name)
def test_float_functions_that_are_rounded_correctly(op: Ops, dtype: DType) -> None:
    for a in [float(np.array(v, dtype.name)) for v in numbers(dtype)]:
        found = fold_alu(op, dtype, [a])
        assert same(found, numpy_result(op, dtype, [a]), dtype), f"{op} {a} = {found}"


@pytest.mark.parametrize("op", [Ops.EXP2, Ops.LOG2, Ops.SIN], ids=lambda op: op.name)
def test_transcendental_functions(op: Ops) -> None:
    for a in [*numbers(dtypes.float64), 1024.0, 1023.5, -1074.0, -1080.0, 39800.0, 1e15]:
        found, want = fold_alu(op, dtypes.float64, [a]), numpy_result(op, dtypes.float64, [a])
        np.testing.assert_allclose(found, want, rtol=4e-16, atol=0, err_msg=f"{op} {a}")


@pytest.mark.parametrize("dtype", dtypes.ints, ids=lambda d: d.name)
@pytest.mark.parametrize("op", [Ops.SHL, Ops.SHR], ids=lambda op: op.name)
def test_shifts(op: Ops, dtype: DType) -> None:
    for a, b in itertools.product(numbers(dtype), range(dtype.bits)):
        found = fold_alu(op, dtype, [a, b])
        assert same(found, numpy_result(op, dtype, [a, b]), dtype), f"{a} {op} {b} = {found}"


@pytest.mark.parametrize("amount", [-1, 64, 65])
def test_all_bits_leave_in_shifts_that_are_too_wide(amount: int) -> None:
    assert fold_alu(Ops.SHL, dtypes.int64, [-3, amount]) == fold_alu(Ops.SHR, dtypes.uint64, [3, amount]) == 0
    assert fold_alu(Ops.SHR, dtypes.int64, [-3, amount]) == -1


def test_division_by_zero_is_zero() -> None:
    assert fold_alu(Ops.IDIV, dtypes.int32, [7, 0]) == fold_alu(Ops.MOD, dtypes.int32, [7, 0]) == 0


def test_smallest_integer_divided_by_minus_one_wraps() -> None:
    assert fold_alu(Ops.IDIV, dtypes.int32, [-(2**31), -1]) == -(2**31)


def test_all_arithmetic_but_random_bits_folds() -> None:
    assert {op for op in GroupOp.ALU if not can_fold(op)} == {Ops.THREEFRY}
