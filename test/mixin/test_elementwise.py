"""Elementwise operations against numpy: values at the edges, types, and how operands meet."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from mixin.agree import agree
from mixin.evaluate import evaluate

from tensor_engine import Tensor, dtypes
from tensor_engine.mixin.random import RandomMixin
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp

FLOATS = np.array(
    [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, 3.5, -2.5, 1e-30, -7.25, 100.3, 3e38, np.inf, -np.inf, np.nan],
    np.float32,
)
INTS = np.array([0, 1, -1, 2, -2, 3, -3, 7, -7, 100, 2**31 - 1, -(2**31)], np.int32)


def pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every value with every other."""
    a, b = np.meshgrid(values, values)
    return a.ravel(), b.ravel()


# ---- two operands

BOTH = [operator.add, operator.sub, operator.mul, np.maximum, np.minimum]
BOTH += [operator.lt, operator.gt, operator.le, operator.ge, operator.eq, operator.ne]
INTEGER = [operator.and_, operator.or_, operator.xor, operator.floordiv, operator.mod]
NUMPY = {operator.lt: np.less, operator.gt: np.greater}


def apply(op, a, b):
    return getattr(a, op.__name__)(b) if op in (np.maximum, np.minimum) else op(a, b)


@pytest.mark.parametrize("op", BOTH + INTEGER, ids=lambda op: op.__name__)
@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int8, np.int64, np.uint64])
def test_integers(op, dtype):
    a, b = pairs(INTS.astype(dtype))
    if op in (operator.floordiv, operator.mod):
        a, b = a[b != 0], b[b != 0]
    with np.errstate(all="ignore"):
        agree(apply(op, Tensor(a), Tensor(b)), op(a, b))


@pytest.mark.parametrize("op", [*BOTH, operator.truediv], ids=lambda op: op.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_floats(op, dtype):
    with np.errstate(all="ignore"):
        a, b = pairs(FLOATS.astype(dtype))
        agree(apply(op, Tensor(a), Tensor(b)), op(a, b))


@pytest.mark.parametrize("op", [operator.floordiv, operator.mod], ids=lambda op: op.__name__)
def test_floor_division_of_floats_has_numpys_signs(op):
    a, b = pairs(np.array([1, -1, 2.5, -2.5, 7, -7, 0.5, 1e5], np.float32))
    agree(op(Tensor(a), Tensor(b)), op(a, b))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_floor_division_of_floats_whose_quotient_is_rounded_up(dtype):
    a, b = pairs(np.array([0.1, 0.3, -0.1, 0.7, 1, 3, 5, -5, 1000], dtype))
    agree(Tensor(a) // Tensor(b), a // b)
    agree(Tensor(a) % Tensor(b), a % b)
    large = np.array([1e10, 2**24 - 1] if dtype is np.float32 else [60000, 2047], dtype)
    agree(Tensor(large) % 3, large % dtype(3))


def test_floor_division_at_the_exceptional_values():
    a = np.array([5, 5, 1, np.inf, np.nan], np.float32)
    b = np.array([np.inf, 0, np.nan, 2, 1], np.float32)
    with np.errstate(all="ignore"):
        agree(Tensor(a) % Tensor(b), a % b)
    assert (Tensor([110.0]) // 55).uop.dtype is dtypes.float32
    agree(Tensor([110.0]) // 55, np.float32([2]))


def test_integer_division_by_zero_is_zero():
    agree(Tensor([1, 0, -5]) // Tensor([0, 0, 0]), np.int32([0, 0, 0]))
    agree(Tensor([1, 0, -5]) % Tensor([0, 0, 0]), np.int32([0, 0, 0]))


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor, np.maximum, np.minimum])
def test_bools(op):
    a, b = pairs(np.array([True, False]))
    agree(apply(op, Tensor(a), Tensor(b)), op(a, b))


def test_shifts():
    a = np.array([1, -1, 5, 2**30], np.int32)
    agree(Tensor(a) << 1, a << 1)
    agree(Tensor(a) >> 3, a >> 3)
    agree(1 << Tensor([0, 3]), np.int32([1, 8]))


@pytest.mark.parametrize("op", [operator.and_, operator.lshift])
def test_bits_of_floats_are_refused(op):
    with pytest.raises(TypeError, match="integers"):
        op(Tensor([1.0]), Tensor([1.0]))


def test_bools_cannot_be_subtracted():
    with pytest.raises(TypeError, match="subtracted"):
        Tensor([True]) - Tensor([False])


REFLECTED = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow]


@pytest.mark.parametrize("op", REFLECTED, ids=lambda op: op.__name__)
def test_a_number_on_the_left(op):
    x = np.array([1, 2, 3.5], np.float32)
    agree(op(2.0, Tensor(x)), op(np.float32(2), x))


# ---- how operands meet


@pytest.mark.parametrize(
    ("array", "scalar", "result"),
    [
        (np.int8, 3, "int8"),
        (np.uint8, 3, "uint8"),
        (np.uint8, -1, "int16"),
        (np.uint8, 300, "int16"),
        (np.int32, 2**40, "int64"),
        (np.int32, 1.0, "float32"),
        (np.float16, 1.0, "float16"),
        (np.float64, 1, "float64"),
        (np.bool_, True, "bool"),
        (np.bool_, 1, "int32"),
        (np.bool_, 1.0, "float32"),
        (np.float32, True, "float32"),
    ],
)
def test_a_python_number_is_weak(array, scalar, result):
    value = Tensor(np.ones(2, array)) + scalar
    assert value.dtype.name == result
    np.testing.assert_array_equal(evaluate(value.uop), np.ones(2) + scalar if result != "bool" else [True, True])


def test_a_comparison_with_a_number_that_the_type_cannot_hold_is_right():
    x = Tensor(np.array([0, 200], np.uint8))
    agree(x < 300, np.array([True, True]))
    agree(x > -1, np.array([True, True]))


def test_a_number_that_no_type_can_hold_is_an_error():
    with pytest.raises(OverflowError, match="fits no integer type"):
        Tensor(np.zeros(1, np.uint64)) + -1
    with pytest.raises(OverflowError, match="fits no integer type"):
        Tensor([1]) + 2**70


def test_tensors_meet_in_the_least_type_above_both():
    def meet(a, b):
        return (Tensor(np.ones(1, a)) + Tensor(np.ones(1, b))).dtype.name

    assert meet(np.uint8, np.int8) == "int16"
    assert meet(np.int64, np.float16) == "float16"
    assert meet(np.uint64, np.int64) == "float32"
    assert meet(np.bool_, np.uint8) == "uint8"


def test_shapes_broadcast():
    a, b = np.ones((3, 1, 4), np.float32), np.arange(5, dtype=np.float32).reshape(5, 1)
    agree(Tensor(a) + Tensor(b), a + b)
    with pytest.raises(ValueError, match=r"\(3,\) and \(4,\) don't broadcast"):
        Tensor([1, 2, 3]) + Tensor([1, 2, 3, 4])


def test_arrays_and_lists_are_operands():
    x = np.array([1, 2], np.float32)
    agree(Tensor(x) + x, x + x)
    agree(x * Tensor(x), x * x)
    agree(Tensor(x) - [1, 1], x - 1)
    with pytest.raises(TypeError, match="don't go together"):
        Tensor(x) + "x"


def test_methods_are_the_same_functions_in_both_classes():
    names = [name for name in dir(Tensor) if name in dir(UOp) and callable(getattr(Tensor, name))]
    own = set(vars(Tensor)) | set(vars(RandomMixin)) | set(vars(UOp)) | set(dir(object))
    own |= {"__init_subclass__", "__subclasshook__"}
    shared = [name for name in names if name not in own and not isinstance(getattr(Tensor, name), type(Tensor.full))]
    assert len(shared) > 150
    assert all(getattr(Tensor, name) is getattr(UOp, name) for name in shared)
    assert Tensor.add is UOp.add


def test_equality_of_nodes_is_identity():
    a = UOp.const(dtypes.int32, 1)
    assert (a == a) is True
    assert (a == UOp.const(dtypes.int32, 2)) is False
    assert a.eq(a).op is Ops.CMPEQ


# ---- one operand

ONE = {
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.round,
    "square": np.square,
    "sqrt": np.sqrt,
    "reciprocal": np.reciprocal,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "logical_not": np.logical_not,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "tanh": np.tanh,
}


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_floats(name, dtype):
    values = np.concatenate([FLOATS, np.linspace(-5, 5, 41, dtype=np.float32), np.float32([1e-5, -1e-5, 88, -88])])
    values = values.astype(dtype)
    with np.errstate(all="ignore"):
        agree(getattr(Tensor(values), name)(), ONE[name](values), rtol=1e-5 if dtype is np.float32 else 1e-12)


@pytest.mark.parametrize("name", ["neg", "abs", "sign", "floor", "ceil", "trunc", "round", "square"])
def test_functions_of_integers(name):
    with np.errstate(all="ignore"):
        agree(getattr(Tensor(INTS), name)(), ONE[name](INTS))


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_trigonometry(name):
    small = np.linspace(-10, 10, 201)
    agree(getattr(Tensor(small), name)(), getattr(np, name)(small), rtol=1e-9)
    large = np.array([39800.0, -39800, 1e6, 1e15])
    agree(getattr(Tensor(large), name)(), getattr(np, name)(large), rtol=1e-9)
    angles = small.astype(np.float32)
    agree(getattr(Tensor(angles), name)(), getattr(np, name)(angles), rtol=1e-5, atol=2e-6)


def test_bitwise_not():
    agree(~Tensor(INTS), ~INTS)
    agree(~Tensor([True, False]), np.array([False, True]))


def test_sign_of_zero_survives_where_it_must():
    assert np.signbit(evaluate(Tensor([0.0]).neg().uop))[0]
    assert np.signbit(evaluate(Tensor([-0.2]).ceil().uop))[0]
    agree(Tensor([3.0, 3.0]).copysign(Tensor([-0.0, 0.0])), np.float32([-3, 3]))
    zeros = np.array([0.0, -0.0], np.float32)
    for name in ("tanh", "erf", "sin", "trunc"):
        np.testing.assert_array_equal(np.signbit(getattr(Tensor(zeros), name)().numpy()), [False, True], name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_a_value_without_its_sign_has_none(dtype):
    zeros = Tensor(np.array([0.0, -0.0], dtype))
    assert not np.signbit(zeros.abs().numpy()).any()
    assert (1 / zeros.abs()).tolist() == [math.inf, math.inf]
    signed = zeros.copysign(Tensor(np.array([-1, 1], dtype)))
    assert np.signbit(signed.numpy()).tolist() == [True, False]


# ---- choice


def test_where_and_its_types():
    condition = np.array([True, False, True])
    x = np.array([1, 2, 3], np.float32)
    agree(Tensor(condition).where(Tensor(x), 0), np.where(condition, x, np.float32(0)))
    agree(Tensor(condition).where(1, Tensor(x)), np.where(condition, np.float32(1), x))
    assert Tensor(condition).where(1, 0).dtype is dtypes.int32
    assert Tensor(condition).where(1, 0.5).dtype is dtypes.float32
    agree(Tensor(condition).where(Tensor([[1], [2]]), 0), np.where(condition, np.int32([[1], [2]]), np.int32(0)))


def test_where_keeps_what_is_not_chosen_out():
    agree(Tensor([True, False]).where(1.0, Tensor([np.nan, 2.0])), np.float32([1, 2]))


def test_clamp():
    x = np.array([-5, 0, 5, np.nan], np.float32)
    agree(Tensor(x).clamp(-1, 1), np.clip(x, -1, 1))
    agree(Tensor(x).clip(min_=0), np.maximum(x, 0))
    with pytest.raises(ValueError, match="minimum or a maximum"):
        Tensor(x).clamp()


def test_isclose():
    a, b = pairs(np.array([0, 1, 1 + 1e-6, np.inf, -np.inf, np.nan], np.float32))
    agree(Tensor(a).isclose(Tensor(b)), np.isclose(a, b))
    agree(Tensor(a).isclose(Tensor(b), equal_nan=True), np.isclose(a, b, equal_nan=True))


def test_logaddexp():
    a, b = pairs(np.array([0, 1, -1, 100, -1000, 1000, np.inf, -np.inf, np.nan], np.float32))
    with np.errstate(all="ignore"):
        agree(Tensor(a).logaddexp(Tensor(b)), np.logaddexp(a, b), rtol=1e-5)


# ---- powers


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 19, -1, -2, 0.5, -0.5, 1.5, 2.0, 100, math.inf, math.nan])
def test_constant_powers_of_floats(exponent):
    x = np.array([0, -0.0, 1, -1, 2, -2, 0.5, 3, 1.25, np.inf, -np.inf, np.nan], np.float32)
    with np.errstate(all="ignore"):
        agree(Tensor(x) ** exponent, x ** np.float32(exponent), rtol=2e-5)


def test_powers_of_floats_to_floats():
    a, b = pairs(np.array([0, 1, -1, 2, -2, 3, 0.5, -0.5, 2.5, -3, np.inf, -np.inf, np.nan], np.float32))
    with np.errstate(all="ignore"):
        agree(Tensor(a) ** Tensor(b), a**b, rtol=1e-5)


def test_powers_of_integers_are_exact():
    agree(Tensor([3, -3, 1, 0]) ** 19, np.int32([3, -3, 1, 0]) ** 19)
    a, b = pairs(np.arange(-5, 13, dtype=np.int32))
    a, b = a[b >= 0], b[b >= 0]
    agree(Tensor(a) ** Tensor(b), a**b)
    agree(Tensor([1, -1, -1, 2]) ** Tensor([-3, -3, -2, -1]), np.int32([1, -1, 1, 0]))
    agree(2 ** Tensor([0, 5, 30]), np.int32([1, 32, 2**30]))


# ---- tinygrad's forms


def test_reverse_exchanges_the_operands():
    a, b = np.array([1, -2, 3], np.int32), np.array([2, 3, -5], np.int32)
    x, y = Tensor(a), Tensor(b)
    agree(x.sub(y, reverse=True), b - a)
    agree(x.div(y, reverse=True), (b / a).astype(np.float32))
    agree(x.mod(y, reverse=True), b % a)
    agree(x.pow(2, reverse=True), np.int32([2, 0, 8]))
    agree(y.abs().lshift(1, reverse=True), np.int32(1) << abs(b))
    agree(x.add(1, reverse=True), a + 1)
    agree(5 - x, 5 - a)


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.float32, np.float64])
def test_division_that_rounds(dtype):
    a, b = pairs(np.array([7, -7, 5, -5, 1, -1, 2, -2], dtype))
    agree(Tensor(a).div(Tensor(b), rounding_mode="trunc"), np.trunc(a / b).astype(dtype))
    agree(Tensor(a).div(Tensor(b), rounding_mode="floor"), (a // b).astype(dtype))
    agree(Tensor(a).fmod(Tensor(b)), np.fmod(a, b))
    with pytest.raises(ValueError, match="rounding_mode"):
        Tensor(a).div(2, rounding_mode="up")


def test_fmod_of_unsigned_integers_and_of_large_floats():
    agree(Tensor(np.uint8([200, 7])).fmod(Tensor(np.uint8([7, 200]))), np.uint8([4, 7]))
    a, b = np.float32([1e10, -1e10, 5.5, -0.3]), np.float32([3, 3, -2, 0.1])
    agree(Tensor(a).fmod(Tensor(b)), np.fmod(a, b))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["asin", "acos", "atan"])
def test_inverse_angles(name, dtype):
    x = np.concatenate([np.linspace(-1, 1, 101), [1.5, -2, 1e30, np.inf, -np.inf, np.nan, 1e-30]]).astype(dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, "arc" + name[1:])(x)
    agree(getattr(Tensor(x), name)(), expected, rtol=1e-6 if dtype is np.float32 else 1e-12, atol=1e-6)
    agree(getattr(Tensor(np.int32([0, 1])), name)(), getattr(np, "arc" + name[1:])(np.float32([0, 1])))


@pytest.mark.parametrize("name", ["asin", "acos", "atan"])
def test_inverse_angles_have_slopes(name):
    x = np.array([-0.9, -0.5, -0.2, 0, 0.1, 0.5, 0.7])
    slope = {"asin": 1 / np.sqrt(1 - x * x), "acos": -1 / np.sqrt(1 - x * x), "atan": 1 / (1 + x * x)}[name]
    tensor = Tensor(x)
    agree(getattr(tensor, name)().sum().gradient(tensor)[0], slope, rtol=1e-9)
