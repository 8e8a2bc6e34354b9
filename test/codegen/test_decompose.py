"""What decomposition makes of operations: the documented meaning, for every sign and extreme, on every path."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from linear import BACKENDS

from tensor_engine import Tensor
from tensor_engine.dtype import DType, dtypes, float_to_int
from tensor_engine.helpers import Context
from tensor_engine.uop.op import Ops
from tensor_engine.uop.symbolic import simplify
from tensor_engine.uop.uop import UOp

on_every_path = pytest.mark.parametrize("path", BACKENDS)
for_integers = pytest.mark.parametrize("dtype", dtypes.ints, ids=lambda d: d.name)


def extremes(dtype: DType) -> np.ndarray:
    low, high = int(dtype.min), int(dtype.max)
    near = [n for n in (low, low + 1, -8, -7, -2, -1, 0, 1, 2, 3, 7, 8, 100, high - 1, high) if low <= n <= high]
    return np.array(near, dtype.name)


def wrapped(value: int, dtype: DType) -> int:
    """Modulo 2**bits, in the range of the type."""
    value %= 1 << dtype.bits
    return value - (1 << dtype.bits) if dtype.kind == "i" and value > dtype.max else value


# ---- division -----------------------------------------------------------------------------------------------------


def quotient(x: int, y: int) -> int:
    return x // y if y else 0


def remainder(x: int, y: int) -> int:
    return x % y if y else 0


def expect(function: Any, xs: np.ndarray, ys: np.ndarray, dtype: DType) -> np.ndarray:
    values = [wrapped(function(x, y), dtype) for x, y in zip(xs.tolist(), ys.tolist())]
    return np.array(values, dtype.name)


@on_every_path
@for_integers
def test_division_and_remainder_for_all_pairs_of_extremes(path: str, dtype: DType) -> None:
    xs, ys = (a.ravel() for a in np.meshgrid(extremes(dtype), extremes(dtype)))
    with Context(DEV=path):
        x, y = Tensor(xs), Tensor(ys)
        np.testing.assert_array_equal((x // y).numpy(), expect(quotient, xs, ys, dtype))
        np.testing.assert_array_equal((x % y).numpy(), expect(remainder, xs, ys, dtype))


@on_every_path
@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.uint8], ids=lambda d: d.name)
def test_division_by_constants(path: str, dtype: DType) -> None:
    """Powers of two become shifts and masks, -1 and 0 have rules of their own."""
    xs = extremes(dtype)
    constants = [c for c in (int(dtype.min), -7, -2, -1, 0, 1, 3, 8, int(dtype.max)) if c in xs]
    with Context(DEV=path):
        x = Tensor(xs)
        pairs = [(x // c, x % c) for c in constants]
        whole, rest = Tensor.stack(*[p[0] for p in pairs]).numpy(), Tensor.stack(*[p[1] for p in pairs]).numpy()
    for c, w, r in zip(constants, whole, rest):
        divisors = np.full_like(xs, c)
        np.testing.assert_array_equal(w, expect(quotient, xs, divisors, dtype), err_msg=f"// {c}")
        np.testing.assert_array_equal(r, expect(remainder, xs, divisors, dtype), err_msg=f"% {c}")


# ---- shifts -------------------------------------------------------------------------------------------------------

AMOUNTS = [0, 1, 3, 7, 8, 15, 16, 31, 32, 33, 40, 63, 64, 65, 127]


def shifted_left(x: int, y: int, bits: int) -> int:
    return x << y if 0 <= y < bits else 0


def shifted_right(x: int, y: int, bits: int) -> int:
    return x >> (y if 0 <= y < bits else bits)


@on_every_path
@for_integers
def test_shifts_by_any_amount(path: str, dtype: DType) -> None:
    amounts = np.array([n for n in (*AMOUNTS, -1, -40) if dtype.min <= n <= dtype.max], dtype.name)
    xs, ys = (a.ravel() for a in np.meshgrid(extremes(dtype), amounts))
    with Context(DEV=path):
        x, y = Tensor(xs), Tensor(ys)
        left = expect(lambda x, y: shifted_left(x, y, dtype.bits), xs, ys, dtype)
        right = expect(lambda x, y: shifted_right(x, y, dtype.bits), xs, ys, dtype)
        np.testing.assert_array_equal((x << y).numpy(), left)
        np.testing.assert_array_equal((x >> y).numpy(), right)
        np.testing.assert_array_equal(((x >> y) < 0).numpy(), right < 0)


@on_every_path
@pytest.mark.parametrize("amount", [0, 5, 31, 32, 40, -1])
def test_shifts_by_constants(path: str, amount: int) -> None:
    xs = extremes(dtypes.int32)
    ys = np.full_like(xs, amount)
    with Context(DEV=path):
        left = expect(lambda x, y: shifted_left(x, y, 32), xs, ys, dtypes.int32)
        np.testing.assert_array_equal((Tensor(xs) << amount).numpy(), left)
        right = expect(lambda x, y: shifted_right(x, y, 32), xs, ys, dtypes.int32)
        np.testing.assert_array_equal((Tensor(xs) >> amount).numpy(), right)
        np.testing.assert_array_equal((Tensor.full((3,), -5) >> amount).numpy(), [shifted_right(-5, amount, 32)] * 3)


# ---- casts --------------------------------------------------------------------------------------------------------

FLOATS = [0.0, -0.0, 0.5, -0.5, 0.999, -0.999, 1.5, -1.5, 127.9, -128.9, 128.0, 255.5, 256.0, 300.0, -300.0, 65504.0,
          2147483646.0, 2147483648.0, -2147483648.0, -2147483649.0, 4294967295.0, 4294967296.0, 1e10, -1e10, 2.0**62,
          2.0**63, -(2.0**63), 2.0**64, 1e19, 1e30, -1e30, math.inf, -math.inf, math.nan]  # fmt: skip


@on_every_path
@pytest.mark.parametrize("source", [dtypes.float16, dtypes.float32, dtypes.float64], ids=lambda d: d.name)
def test_floats_to_every_integer_type(path: str, source: DType) -> None:
    """In range numpy's value; out of range what `float_to_int` documents, and never the end of the process."""
    with np.errstate(over="ignore"):
        values = np.array(FLOATS).astype(source.name)
    for target in dtypes.ints:
        with Context(DEV=path):
            found = Tensor(values).cast(target).numpy()
        want = np.array([float_to_int(v, target) for v in values.tolist()], target.name)
        np.testing.assert_array_equal(found, want, err_msg=target.name)
        wide = np.trunc(values.astype(np.float64))
        fits = np.isfinite(wide) & (wide >= target.min) & (wide <= float(target.max) * 0.99)
        np.testing.assert_array_equal(found[fits], values[fits].astype(target.name), err_msg=target.name)


@on_every_path
@pytest.mark.parametrize("source", dtypes.all, ids=lambda d: d.name)
def test_bool_is_whether_a_value_is_not_zero(path: str, source: DType) -> None:
    values = [0.0, -0.0, 0.25, 3.0, math.nan, math.inf] if source.kind == "f" else [0, 1, 2, 100]
    with Context(DEV=path):
        found = Tensor(values, dtype=source).bool().numpy()
    assert found.tolist() == [v != 0 for v in np.array(values).astype("bool" if source.kind == "b" else float).tolist()]


@on_every_path
@for_integers
def test_integers_wrap_when_cast(path: str, dtype: DType) -> None:
    for source in dtypes.ints:
        values = extremes(source)
        with Context(DEV=path):
            found = Tensor(values).cast(dtype).numpy()
        assert found.tolist() == [wrapped(v, dtype) for v in values.tolist()], source


def test_a_constant_is_cast_like_what_is_in_memory() -> None:
    """By the graph's own `cast`, and by the rule that meets a cast of a constant later."""
    for value in FLOATS:
        for target in dtypes.ints:
            constant = UOp.const(dtypes.float64, value)
            later = simplify(UOp(Ops.CAST, target, (constant,)))
            for folded in (constant.cast(target), later):
                assert folded.op is Ops.CONST and folded.arg == float_to_int(value, target)


@on_every_path
def test_maximum_gives_nan_if_either_is(path: str) -> None:
    values = np.array([math.nan, 1.0, -math.inf, math.inf, -0.0], np.float32)
    xs, ys = (a.ravel() for a in np.meshgrid(values, values))
    with Context(DEV=path):
        np.testing.assert_array_equal(Tensor(xs).maximum(Tensor(ys)).numpy(), np.maximum(xs, ys))
        assert np.isnan(Tensor(values).max().item())


# ---- random bits --------------------------------------------------------------------------------------------------

# kat_vectors of Random123 1.14 (https://github.com/DEShawResearch/random123): threefry2x32 with 20 rounds.
# counter words, key words, result words
KNOWN_ANSWERS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]
MASK = 0xFFFFFFFF


def both(words: tuple[int, int]) -> int:
    """Two 32-bit words as one number, the first one low."""
    return words[0] | words[1] << 32


def threefry(counter: tuple[int, int], key: tuple[int, int]) -> tuple[int, int]:
    """Threefry-2x32-20 as section 4 of the paper describes it (Salmon et al., SC 2011), one round after another."""
    rotations = [13, 15, 26, 6, 17, 29, 16, 24]
    keys = [*key, 0x1BD11BDA ^ key[0] ^ key[1]]
    x, y = counter
    for number in range(20):
        if number % 4 == 0:
            x, y = x + keys[number // 4 % 3], y + keys[(number // 4 + 1) % 3] + number // 4
        x = (x + y) & MASK
        turned = y & MASK
        amount = rotations[number % 8]
        y = (turned << amount | turned >> 32 - amount) & MASK ^ x
    return (x + keys[5 % 3]) & MASK, (y + keys[6 % 3] + 5) & MASK


def random_bits(counters: list[int], keys: list[int]) -> list[int]:
    counter, key = Tensor(np.array(counters, np.uint64)), Tensor(np.array(keys, np.uint64))
    return counter.alu(Ops.THREEFRY, key).tolist()


@on_every_path
def test_threefry_gives_the_published_answers(path: str) -> None:
    counters, keys, answers = zip(*KNOWN_ANSWERS)
    with Context(DEV=path):
        found = random_bits([both(c) for c in counters], [both(k) for k in keys])
    assert found == [both(a) for a in answers]


def test_the_plain_threefry_gives_them_too() -> None:
    assert [threefry(counter, key) for counter, key, _ in KNOWN_ANSWERS] == [answer for _, _, answer in KNOWN_ANSWERS]


@on_every_path
def test_threefry_of_many_counters(path: str) -> None:
    random = np.random.default_rng(3)
    counters, keys = random.integers(0, 2**32, (2, 37, 2)).tolist()
    with Context(DEV=path):
        found = random_bits([both(tuple(c)) for c in counters], [both(tuple(k)) for k in keys])
    assert found == [both(threefry(tuple(c), tuple(k))) for c, k in zip(counters, keys)]
