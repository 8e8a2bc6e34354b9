"""Every operation on every type it takes, at any shape: each path computes what numpy says the graph means.

The shapes have axes of 0 and of 1 element, and the values are those at which something changes: zeros of both signs,
infinities, nan, the smallest and the largest number of a type.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from mixin.differentiable import ARRANGED, ELEMENTWISE, PAIRS, REDUCTIONS, Case
from mixin.evaluate import evaluate

from tensor_engine import Tensor, dtypes
from tensor_engine.dtype import DType
from tensor_engine.helpers import Context

PATHS = [(path, noopt) for path in ("CPU:LLVM", "CPU:C", "PYTHON") for noopt in (0, 1)]
FLOATS = [dtypes.float16, dtypes.float32, dtypes.float64]
NUMBERS = [*FLOATS, *dtypes.ints]
ALL = [*NUMBERS, dtypes.bool]

common = settings(deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate], database=None)


class Operation(NamedTuple):
    """What it does to how many tensors of the same type, and which types; `exact`: it rounds as numpy does."""

    name: str
    engine: Callable[..., Tensor]
    count: int
    kinds: list[DType]
    exact: bool = True


EXACT = [
    Operation("neg", lambda x: -x, 1, NUMBERS),
    Operation("abs", lambda x: x.abs(), 1, ALL),
    Operation("sign", lambda x: x.sign(), 1, ALL),
    Operation("square", lambda x: x.square(), 1, NUMBERS),
    Operation("reciprocal", lambda x: x.reciprocal(), 1, [dtypes.float32, dtypes.float64]),
    Operation("sqrt", lambda x: x.sqrt(), 1, [dtypes.float32, dtypes.float64]),
    Operation("floor", lambda x: x.floor(), 1, NUMBERS),
    Operation("ceil", lambda x: x.ceil(), 1, NUMBERS),
    Operation("round", lambda x: x.round(), 1, NUMBERS),
    Operation("trunc", lambda x: x.trunc(), 1, NUMBERS),
    Operation("relu", lambda x: x.relu(), 1, NUMBERS),
    Operation("isnan", lambda x: x.isnan(), 1, FLOATS),
    Operation("isinf", lambda x: x.isinf(), 1, ALL),
    Operation("isfinite", lambda x: x.isfinite(), 1, ALL),
    Operation("logical_not", lambda x: x.logical_not(), 1, ALL),
    Operation("bitwise_not", lambda x: ~x, 1, [*dtypes.ints, dtypes.bool]),
    Operation("plus zero", lambda x: x + 0, 1, NUMBERS),
    Operation("minus zero", lambda x: x - 0, 1, NUMBERS),
    Operation("times zero", lambda x: x * 0, 1, NUMBERS),
    Operation("times one", lambda x: x * 1 / 1, 1, FLOATS),
    Operation("by itself", lambda x: x / x, 1, FLOATS),
    Operation("minus itself", lambda x: x - x, 1, NUMBERS),
    Operation("by zero", lambda x: x / 0, 1, FLOATS),
    Operation("whole by zero", lambda x: x // 0 + x % 0, 1, dtypes.ints),
    Operation("by minus three", lambda x: x // -3 + x % -3, 1, dtypes.sints),
    Operation("by eight", lambda x: x // 8 + x % 8, 1, dtypes.ints),
    Operation("shifted too far", lambda x: (x << 70) | (x >> 70), 1, [dtypes.int32, dtypes.int64, dtypes.uint64]),
    Operation("cube", lambda x: x**3, 1, dtypes.ints),
    Operation("add", lambda x, y: x + y, 2, ALL),
    Operation("sub", lambda x, y: x - y, 2, NUMBERS),
    Operation("mul", lambda x, y: x * y, 2, ALL),
    Operation("div", lambda x, y: x / y, 2, [dtypes.float32, dtypes.float64]),
    Operation("floordiv", lambda x, y: x // y, 2, [*NUMBERS, dtypes.bool]),
    Operation("mod", lambda x, y: x % y, 2, [*dtypes.ints, dtypes.bool]),
    Operation("maximum", lambda x, y: x.maximum(y), 2, ALL),
    Operation("minimum", lambda x, y: x.minimum(y), 2, ALL),
    Operation("less", lambda x, y: x < y, 2, ALL),
    Operation("at most", lambda x, y: x <= y, 2, ALL),
    Operation("greater", lambda x, y: x > y, 2, ALL),
    Operation("at least", lambda x, y: x >= y, 2, ALL),
    Operation("equal", lambda x, y: x == y, 2, ALL),
    Operation("different", lambda x, y: x != y, 2, ALL),
    Operation("and", lambda x, y: x & y, 2, [*dtypes.ints, dtypes.bool]),
    Operation("or", lambda x, y: x | y, 2, [*dtypes.ints, dtypes.bool]),
    Operation("xor", lambda x, y: x ^ y, 2, [*dtypes.ints, dtypes.bool]),
    Operation("left shift", lambda x, y: x << y, 2, dtypes.ints),
    Operation("right shift", lambda x, y: x >> y, 2, dtypes.ints),
    Operation("power", lambda x, y: x**y, 2, dtypes.ints),
    Operation("copysign", lambda x, y: x.copysign(y), 2, FLOATS),
    Operation("where", lambda x, y: (x < y).where(x, y), 2, ALL),
    Operation("max", lambda x: x.max(-1), 1, ALL),
    Operation("min", lambda x: x.min(0), 1, ALL),
    Operation("argmax", lambda x: x.argmax(-1), 1, ALL),
    Operation("argmin", lambda x: x.argmin(), 1, ALL),
    Operation("any", lambda x: x.any(-1), 1, ALL),
    Operation("all", lambda x: x.all(0), 1, ALL),
    Operation("whole sum", lambda x: x.sum(-1), 1, [*dtypes.ints, dtypes.bool]),
    Operation("whole product", lambda x: x.prod(0), 1, [*dtypes.ints, dtypes.bool]),
    Operation("whole cumsum", lambda x: x.cumsum(-1), 1, [*dtypes.ints, dtypes.bool]),
    Operation("cummax", lambda x: x.cummax(-1)[0], 1, ALL),
    Operation("sort", lambda x: x.sort(-1)[0], 1, ALL),
    Operation("argsort", lambda x: x.argsort(0, descending=True), 1, ALL),
    Operation("flip", lambda x: x.flip(-1), 1, ALL),
    Operation("permute", lambda x: x.transpose(0, -1), 1, ALL),
    Operation("pad", lambda x: x.pad([(1, 2)] * x.ndim, value=1), 1, ALL),
    Operation("repeat", lambda x: x.repeat(*[2] * x.ndim), 1, ALL),
    Operation("slice", lambda x: x[..., ::-2], 1, ALL),
    Operation("cat", lambda x: x.cat(x[1:], x), 1, ALL),
    Operation("roll", lambda x: x.roll(1, 0), 1, ALL),
    Operation("tril", lambda x: x.unsqueeze(0).tril(), 1, ALL),
    Operation("one_hot", lambda x: x.one_hot(3), 1, dtypes.ints),
    *[Operation(f"to {d.name}", lambda x, d=d: x.cast(d), 1, [*ALL, dtypes.bfloat16]) for d in dtypes.all],
]  # fmt: skip


def rounding(case: Case) -> Operation:
    return Operation(case.method, case.ours, len(case.shapes or "x"), FLOATS, exact=False)


NARROW = {"half", "float", "double", "cast"}
ROUNDING = [*map(rounding, (case for case in [*ELEMENTWISE, *REDUCTIONS] if case.method not in NARROW))]
ROUNDING_PAIRS = [rounding(case)._replace(count=2) for case in PAIRS if case.method != "mod"]
NEED_ELEMENTS = {"max", "min", "argmax", "argmin", "topk"}
EITHER_ZERO = {"max", "min", "maximum", "minimum", "relu", "cummax", "sort"}  # IEEE 754: of 0.0 and -0.0, either
SCALARS_TOO = {case.method for case in [*ELEMENTWISE, *PAIRS]} | {op.name for op in EXACT[:47]}


# ---- numbers at which something changes -------------------------------------------------------------------------


def edges(dtype: DType) -> list[Any]:
    if dtype.kind == "b":
        return [False, True]
    if dtype.kind == "f":
        info = np.finfo(np.float32 if dtype is dtypes.bfloat16 else dtype.name)
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, -info.max, info.tiny, info.smallest_subnormal]
        return [*special, 2147483647.0, -2147483648.0, 4294967296.0, 9.3e18, 300.0, -1.5, 2.5]
    few = [0, 1, 2, 3, 7, dtype.bits - 1, dtype.bits, dtype.max, dtype.max - 1]
    return few if dtype.kind == "u" else [*few, -1, -2, -3, -7, dtype.min, dtype.min + 1]


def array(dtype: DType, shape: tuple[int, ...], random: np.random.Generator, mild: bool) -> Tensor:
    """Small numbers, and edges unless `mild`."""
    if dtype.kind == "f":
        numbers = random.integers(-8, 9, shape) / 4
    else:
        numbers = random.integers(0 if dtype.kind in "bu" else -9, 2 if dtype.kind == "b" else 10, shape)
    values = np.array(numbers, dtype="float32" if dtype is dtypes.bfloat16 else dtype.name)
    if not mild:
        with np.errstate(over="ignore"):
            chosen = np.array(edges(dtype)).astype(values.dtype)
        values = np.where(random.integers(0, 2, shape) == 0, values, random.choice(chosen, shape))
    return Tensor(np.asarray(values)).cast(dtype).contiguous()


shapes = st.lists(st.sampled_from([1, 1, 2, 3, 5, 8, 17]), max_size=3).map(tuple)
seeds = st.integers(0, 2**32 - 1)


def check(operation: Operation, data: Any) -> None:
    (path, noopt), dtype = data.draw(st.sampled_from(PATHS)), data.draw(st.sampled_from(operation.kinds))
    shape, empty = data.draw(shapes), data.draw(st.integers(0, 4)) == 0
    if not shape and operation.name not in SCALARS_TOO:
        shape = (1,)
    if empty and shape and operation.name not in NEED_ELEMENTS:
        shape = (0, *shape[1:])
    random = np.random.default_rng(data.draw(seeds))
    with Context(DEV=path, NOOPT=noopt):
        narrow = shape if not shape or random.integers(0, 2) else (*shape[:-1], 1)
        operands = [array(dtype, s, random, not operation.exact) for s in (shape, narrow)[: operation.count]]
        operands[0].realize(*operands[1:])
        result = operation.engine(*operands)
        expected = evaluate(result.uop)
        found = result.numpy()
    compare(found, expected, operation.exact, f"{operation.name} {dtype} {shape} on {path} NOOPT={noopt}")


def compare(found: np.ndarray, expected: np.ndarray, exact: bool, what: str) -> None:
    assert found.shape == expected.shape and found.dtype == expected.dtype, what
    if exact:
        np.testing.assert_array_equal(found, expected, err_msg=what)
        zeros = (expected == 0) & (expected.dtype.kind == "f") & (what.split()[0] not in EITHER_ZERO)
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]), err_msg=what)
        return
    digits = {"float16": 2e-2, "float32": 2e-5, "float64": 1e-10}[found.dtype.name]
    np.testing.assert_allclose(found, expected, rtol=digits, atol=digits, err_msg=what)


def identify(operation: Operation) -> str:
    return operation.name


each_operation = pytest.mark.parametrize("operation", [*EXACT, *ROUNDING, *ROUNDING_PAIRS], ids=identify)


def for_each_draw(check: Callable[[Any, Any], None], subject: Any, name: str, examples: int) -> None:
    """Call check(subject, data) for draws that are the subject's own, and the same every time."""

    @seed(zlib.crc32(name.encode()))
    @settings(common, max_examples=examples)
    @given(data=st.data())
    def draw(data: Any) -> None:
        check(subject, data)

    draw()


@each_operation
def test_operations(operation: Operation) -> None:
    for_each_draw(check, operation, operation.name, examples=3)


@pytest.mark.slow
@pytest.mark.timeout(0)
@each_operation
def test_operations_at_length(operation: Operation) -> None:
    for_each_draw(check, operation, operation.name, examples=60)


def check_folded(operation: Operation, data: Any) -> None:
    """Constants for operands: what the engine folds is what it would compute."""
    dtype = data.draw(st.sampled_from([d for d in operation.kinds if d is not dtypes.bfloat16]))
    numbers = [data.draw(st.sampled_from(edges(dtype))) for _ in range(operation.count)]
    result = operation.engine(*[Tensor(number, dtype=dtype) for number in numbers])
    compare(result.numpy(), evaluate(result.uop), operation.exact, f"{operation.name} {dtype} {numbers} folded")


@pytest.mark.parametrize("operation", [op for op in EXACT if op.name in SCALARS_TOO], ids=identify)
def test_constants_fold(operation: Operation) -> None:
    for_each_draw(check_folded, operation, operation.name, examples=8)


def check_case(case: Case, data: Any) -> None:
    assert case.shapes is not None
    (path, noopt), dtype = data.draw(st.sampled_from(PATHS)), data.draw(st.sampled_from([*FLOATS[1:]]))
    with Context(DEV=path, NOOPT=noopt):
        operands = [Tensor(a, dtype=dtype).realize() for a in case.arguments(case.shapes, data.draw(seeds))]
        result = case.ours(*operands)
        compare(result.numpy(), evaluate(result.uop), False, f"{case.method} on {path} NOOPT={noopt}")


@pytest.mark.parametrize("number", range(len(ARRANGED)), ids=lambda number: ARRANGED[number].method)
def test_other_methods(number: int) -> None:
    for_each_draw(check_case, ARRANGED[number], str(number), examples=1)
