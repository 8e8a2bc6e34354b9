"""Every operation on every type, scalar and vector, on every CPU path, against numpy."""
import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear import BACKENDS, Compiled, Kernel, empty

from tensor_engine.device import Device, numpy_dtype
from tensor_engine.dtype import DType, dtypes
from tensor_engine.helpers import Context
from tensor_engine.uop.op import Ops

SIZE = 16
NUMBERS = [d for d in dtypes.all if d is not dtypes.bfloat16]
FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)




def quotient(a, b):
    """Python's integers, rounded towards zero as machines do it."""
    pairs = [(int(x), int(y)) for x, y in zip(a, b)]
    return np.array([abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs], a.dtype)


def remainder(a, b):
    """What the quotient leaves, with the sign of the dividend."""
    pairs = [(int(x), int(y)) for x, y in zip(a, b)]
    return np.array([abs(x) % abs(y) * (-1 if x < 0 else 1) for x, y in pairs], a.dtype)


FLOAT_OPS = {
    Ops.ADD: np.add, Ops.SUB: np.subtract, Ops.MUL: np.multiply, Ops.FDIV: np.divide, Ops.MAX: np.maximum,
    Ops.CMPLT: np.less, Ops.CMPNE: np.not_equal, Ops.CMPEQ: np.equal,
    Ops.NEG: np.negative, Ops.SQRT: np.sqrt, Ops.TRUNC: np.trunc, Ops.RECIPROCAL: lambda a: a.dtype.type(1) / a,
    Ops.EXP2: np.exp2, Ops.LOG2: np.log2, Ops.SIN: np.sin,
}  # fmt: skip
INT_OPS = {
    Ops.ADD: np.add, Ops.SUB: np.subtract, Ops.MUL: np.multiply, Ops.MAX: np.maximum,
    Ops.CMPLT: np.less, Ops.CMPNE: np.not_equal, Ops.CMPEQ: np.equal, Ops.NEG: np.negative,
    Ops.AND: np.bitwise_and, Ops.OR: np.bitwise_or, Ops.XOR: np.bitwise_xor,
}  # fmt: skip
BOOL_OPS = {
    Ops.ADD: np.logical_or, Ops.MUL: np.logical_and, Ops.MAX: np.logical_or,
    Ops.CMPLT: np.less, Ops.CMPNE: np.not_equal, Ops.CMPEQ: np.equal,
    Ops.AND: np.logical_and, Ops.OR: np.logical_or, Ops.XOR: np.logical_xor,
}  # fmt: skip
# these need a second operand that is not just anything
DIVISIONS = {Ops.IDIV: quotient, Ops.MOD: remainder}
SHIFTS = {Ops.SHL: np.left_shift, Ops.SHR: np.right_shift}
UNARY = {Ops.NEG, Ops.SQRT, Ops.TRUNC, Ops.RECIPROCAL, Ops.EXP2, Ops.LOG2, Ops.SIN}


def operations(dtype: DType):
    return {"f": FLOAT_OPS, "b": BOOL_OPS}.get(dtype.kind, INT_OPS)


def renderer_of(backend: str):
    with Context(DEV=backend):
        return Device[Device.DEFAULT].renderer


@functools.cache
def compiled(backend: str, dtype: DType, lanes: int, ops: tuple[Ops, ...], operands: int) -> Compiled:
    """One kernel with an output for each operation."""
    kernel = Kernel("ops")
    results = [dtypes.bool if op in (Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ) else dtype for op in ops]
    outputs = [kernel.param(i, d, SIZE) for i, d in enumerate(results)]
    inputs = [kernel.param(len(ops) + i, dtype, SIZE) for i in range(operands)]
    loop = kernel.loop(SIZE // lanes)
    offset = kernel.alu(Ops.MUL, loop, kernel.const(dtypes.int32, lanes))
    values = [kernel.load(p, offset, lanes) for p in inputs]
    for op, output in zip(ops, outputs):
        last = kernel.store(output, offset, kernel.alu(op, *(values[:1] if op in UNARY else values)))
    kernel.end(last, loop)
    return Compiled(kernel, backend)


def check(backend: str, lanes: int, dtype: DType, table: dict, *inputs: np.ndarray) -> None:
    renderer = renderer_of(backend)
    ops = tuple(op for op in table if op in renderer.code_for_op and (lanes == 1 or op in renderer.vector_ops))
    if not ops:
        return
    outputs = [empty(dtypes.bool if op in (Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ) else dtype, SIZE) for op in ops]
    compiled(backend, dtype, lanes, ops, len(inputs))(*outputs, *inputs)
    for op, output in zip(ops, outputs):
        with np.errstate(all="ignore"):
            expected = table[op](*(inputs[:1] if op in UNARY else inputs))
        np.testing.assert_array_equal(output, expected, err_msg=f"{op} {dtype} {inputs}")


def values(dtype: DType):
    """Arrays of any bits at all, with many special values among them."""
    element = numpy_dtype(dtype)
    if dtype.kind == "f":
        special = np.array([0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan], element)
    else:
        special = np.array([0, 1, dtype.min, dtype.max], element)
    return st.builds(
        lambda raw, choice: mixed(raw, np.frombuffer(choice, np.uint8), special),
        st.binary(min_size=SIZE * dtype.itemsize, max_size=SIZE * dtype.itemsize),
        st.binary(min_size=SIZE, max_size=SIZE),
    )


def mixed(raw: bytes, choice: np.ndarray, special: np.ndarray) -> np.ndarray:
    """The raw elements, with special ones in place of about half of them."""
    if special.dtype == bool:
        raw = bytes(b & 1 for b in raw)
    number = choice // 2 % len(special)
    return np.where(choice % 2, special[number], np.frombuffer(raw, special.dtype))


def amounts(dtype: DType):
    """Arrays of numbers of bits to shift by."""
    return values(dtype).map(lambda a: (a % a.dtype.type(dtype.bits)).astype(a.dtype))


fuzz = settings(max_examples=12, deadline=None, database=None)
on_every_path = pytest.mark.parametrize("backend", BACKENDS)
scalar_and_vector = pytest.mark.parametrize("lanes", [1, 8])


@on_every_path
@scalar_and_vector
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_operations_agree_with_numpy(backend, lanes, dtype):
    @fuzz
    @given(values(dtype), values(dtype))
    def agree(a, b):
        check(backend, lanes, dtype, operations(dtype), a, b)

    agree()


@on_every_path
@scalar_and_vector
@pytest.mark.parametrize("dtype", dtypes.ints, ids=str)
def test_division_rounds_towards_zero(backend, lanes, dtype):
    @fuzz
    @given(values(dtype), values(dtype))
    def agree(a, b):
        b = np.where(b == 0, b.dtype.type(3), b)
        if dtype.kind == "i":  # the smallest number divided by -1 is a trap on many machines
            b = np.where((b == -1) & (a == dtype.min), b.dtype.type(3), b)
        check(backend, lanes, dtype, DIVISIONS, a, b)

    agree()


@on_every_path
@scalar_and_vector
@pytest.mark.parametrize("dtype", dtypes.ints, ids=str)
def test_shifts_agree_with_numpy(backend, lanes, dtype):
    @fuzz
    @given(values(dtype), amounts(dtype))
    def agree(a, amount):
        check(backend, lanes, dtype, SHIFTS, a, amount)

    agree()


@on_every_path
@scalar_and_vector
@pytest.mark.parametrize("dtype", [*FLOATS, *dtypes.ints], ids=str)
def test_multiply_add_is_within_one_rounding_of_each_step(backend, lanes, dtype):
    @fuzz
    @given(*[values(dtype)] * 3)
    def agree(a, b, c):
        if not can(backend, Ops.MULACC, lanes):
            return
        output = empty(dtype, SIZE)
        compiled(backend, dtype, lanes, (Ops.MULACC,), 3)(output, a, b, c)
        with np.errstate(all="ignore"):
            expected = a * b + c
            if dtype.kind != "f":
                return np.testing.assert_array_equal(output, expected)
            wide_a, wide_b, wide_c = (x.astype(np.longdouble) for x in (a, b, c))
            fused = (wide_a * wide_b + wide_c).astype(a.dtype)
        same = (output == expected) | (output == fused) | (np.isnan(expected) & np.isnan(output))
        assert same.all(), (output, expected, fused)

    agree()


def can(backend: str, op: Ops, lanes: int) -> bool:
    return lanes == 1 or op in renderer_of(backend).vector_ops


@functools.cache
def compiled_where(backend: str, dtype: DType, lanes: int) -> Compiled:
    kernel = Kernel("choose")
    output, condition = kernel.param(0, dtype, SIZE), kernel.param(1, dtypes.bool, SIZE)
    yes, no = kernel.param(2, dtype, SIZE), kernel.param(3, dtype, SIZE)
    loop = kernel.loop(SIZE // lanes)
    offset = kernel.alu(Ops.MUL, loop, kernel.const(dtypes.int32, lanes))
    operands = [kernel.load(p, offset, lanes) for p in (condition, yes, no)]
    kernel.end(kernel.store(output, offset, kernel.alu(Ops.WHERE, *operands)), loop)
    return Compiled(kernel, backend)


@on_every_path
@scalar_and_vector
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_where_takes_one_of_two(backend, lanes, dtype):
    @fuzz
    @given(values(dtypes.bool), values(dtype), values(dtype))
    def agree(condition, yes, no):
        if can(backend, Ops.WHERE, lanes):
            output = empty(dtype, SIZE)
            compiled_where(backend, dtype, lanes)(output, condition, yes, no)
            np.testing.assert_array_equal(output, np.where(condition, yes, no))

    agree()
