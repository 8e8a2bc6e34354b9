"""Reductions, scans and activation functions against numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mixin.agree import agree
from mixin.evaluate import evaluate

from tensor_engine import Tensor, dtypes

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(3, 4, 5)).astype(np.float32)
AXES = [None, 0, -1, (0, 2), (1,), ()]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean"])
def test_floats(name, axis, keepdim):
    agree(getattr(Tensor(X), name)(axis, keepdim), getattr(np, name)(X, axis=axis, keepdims=keepdim), rtol=1e-5)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", ["any", "all"])
def test_bools(name, axis):
    agree(getattr(Tensor(X > 0), name)(axis), getattr(np, name)(X > 0, axis=axis))


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("correction", [0, 1])
def test_var_and_std(axis, correction):
    agree(Tensor(X).var(axis, correction=correction), X.var(axis, ddof=correction), rtol=1e-5)
    agree(Tensor(X).std(axis, correction=correction), X.std(axis, ddof=correction), rtol=1e-5)


def test_the_types_of_sums():
    def of(dtype):
        return Tensor(np.ones(3, dtype)).sum().dtype.name

    assert [of(t) for t in ("bool", "int8", "uint8", "int64", "uint64")] == [
        "int32",
        "int32",
        "uint32",
        "int64",
        "uint64",
    ]
    assert [of(t) for t in ("float16", "float32", "float64")] == ["float16", "float32", "float64"]
    agree(Tensor(np.full(300, 200, np.uint8)).sum(), np.uint32(60000))
    agree(Tensor(np.ones(3, np.float16)).sum(dtype=dtypes.float32), np.float32(3))


def test_half_does_not_overflow_on_the_way():
    agree(Tensor(np.full(100, 60000, np.float16)).mean(), np.float16(60000))
    x = np.array([0, 400] * 200, np.float16)
    agree(Tensor(x).var(correction=0), np.float16(40000))
    agree(Tensor(x).std(correction=0), np.float16(200))
    assert math.isinf(evaluate(Tensor(np.ones(70000, np.float16)).sum().uop))


def test_nan_is_found():
    x = np.array([[1, np.nan, 3], [4, 5, 6]], np.float32)
    agree(Tensor(x).max(1), x.max(1))
    agree(Tensor(x).min(1), x.min(1))
    agree(Tensor(x).argmax(1), x.argmax(1).astype(np.int32))
    agree(Tensor(np.float32([np.nan, 3])).argmax(), np.int32(0))
    agree(Tensor(np.float32([3, np.nan, np.nan])).argmin(), np.int32(1))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_argmax_and_argmin_take_the_first(axis):
    x = RANDOM.integers(0, 3, (4, 5, 6)).astype(np.int32)
    agree(Tensor(x).argmax(axis), x.argmax(axis).astype(np.int32))
    agree(Tensor(x).argmin(axis), x.argmin(axis).astype(np.int32))
    agree(Tensor(x).argmax(axis, keepdim=True), np.argmax(x, axis, keepdims=True).astype(np.int32))


def test_extremes_at_the_ends_of_a_type():
    x = np.int32([-(2**31), 2**31 - 1])
    agree(Tensor(x).min(), x.min())
    agree(Tensor(x).argmin(), np.int32(0))
    agree(Tensor(np.uint8([3, 0, 255])).min(), np.uint8(0))
    agree(Tensor(np.float32([-np.inf, -np.inf])).argmax(), np.int32(0))
    agree(Tensor([True, False]).min(), np.array(False))


def test_nothing_to_reduce():
    empty = Tensor.zeros(0, 3)
    agree(empty.sum(0), np.zeros(3, np.float32))
    agree(empty.prod(0), np.ones(3, np.float32))
    agree(empty.any(), np.array(False))
    agree(empty.all(0), np.array([True] * 3))
    agree(empty.mean(0), np.full(3, np.nan, np.float32))
    agree(empty.max(1), np.zeros(0, np.float32))
    with pytest.raises(ValueError, match="no elements"):
        empty.max(0)


def test_axes_that_cannot_be():
    with pytest.raises(IndexError, match="axis 3 is out of range"):
        Tensor(X).sum(3)
    with pytest.raises(ValueError, match="twice"):
        Tensor(X).sum((0, -3))


def test_a_scalar_reduces_to_itself():
    agree(Tensor(3.0).sum(), np.float32(3))
    agree(Tensor(3.0).sum(0), np.float32(3))
    agree(Tensor(3.0).argmax(), np.int32(0))


# ---- exponentials


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_and_logsumexp(axis):
    big = X * 100
    agree(Tensor(big).softmax(axis), softmax(big, axis), rtol=1e-5)
    agree(Tensor(big).log_softmax(axis), np.log(softmax(big.astype(np.float64), axis)).astype(np.float32), rtol=1e-5)
    agree(Tensor(big).logsumexp(axis), np.logaddexp.reduce(big, axis), rtol=1e-5)


def test_logsumexp_of_infinities():
    agree(Tensor(np.float32([-np.inf, -np.inf])).logsumexp(), np.float32(-np.inf))
    agree(Tensor(np.float32([np.inf, 1])).logsumexp(), np.float32(np.inf))
    agree(Tensor(X).logsumexp(keepdim=True), np.logaddexp.reduce(X, None, keepdims=True), rtol=1e-5)


# ---- scans


@pytest.mark.parametrize("length", [1, 5, 128, 129, 200, 1022])
def test_cumsum(length):
    x = RANDOM.integers(-5, 5, (2, length)).astype(np.int32)
    agree(Tensor(x).cumsum(1), np.cumsum(x, 1, dtype=np.int32))
    agree(Tensor(x.T).cumsum(0), np.cumsum(x.T, 0, dtype=np.int32))
    agree(Tensor(x.astype(np.float32)).cummax(1)[0], np.maximum.accumulate(x, 1).astype(np.float32))
    agree(Tensor(x).cummin(1)[0], np.minimum.accumulate(x, 1))
    agree(Tensor(np.ones(length, np.float16)).cumsum(), np.arange(1, length + 1).astype(np.float16))


def test_a_scan_over_chunks_of_chunks():
    x = RANDOM.integers(0, 100, 64 * 129 + 5).astype(np.int32)
    agree(Tensor(x).cumsum(), np.cumsum(x, dtype=np.int32))


def test_cumprod():
    x = RANDOM.uniform(0.9, 1.1, 150)
    agree(Tensor(x).cumprod(), np.cumprod(x))


def test_a_scan_keeps_infinity_where_it_belongs():
    x = np.float32([1, np.inf, 2, np.nan, 3])
    agree(Tensor(x).cumsum(), np.cumsum(x))


# ---- activation functions

V = np.concatenate([np.linspace(-12, 12, 97), [-100, 100, 1e-4, -1e-4]]).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def erf(x):
    return np.vectorize(math.erf)(x.astype(np.float64))


CURVES = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x < 0, x * 0.01, x),
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "hardsigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "sigmoid": sigmoid,
    "logsigmoid": lambda x: -np.logaddexp(0, -x.astype(np.float64)),
    "silu": lambda x: x * sigmoid(x),
    "swish": lambda x: x * sigmoid(x),
    "quick_gelu": lambda x: x * sigmoid(x * 1.702),
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "celu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    "softplus": lambda x: np.logaddexp(0, x.astype(np.float64)),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x.astype(np.float64))),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x.astype(np.float64) ** 3))),
    "erf": erf,
}


@pytest.mark.parametrize("name", CURVES)
def test_curves(name):
    agree(getattr(Tensor(V), name)(), CURVES[name](V).astype(np.float32), rtol=2e-5, atol=3e-7)


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "softplus", "erf"])
def test_small_values_keep_their_digits(name):
    x = np.float32([1e-6, -1e-6, 1e-3, 0.04, 0.06, -20, -30])
    agree(getattr(Tensor(x), name)(), CURVES[name](x).astype(np.float32), rtol=5e-6, atol=0)


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "erf", "relu", "mish", "softplus"])
def test_infinities(name):
    limits = {"sigmoid": (0, 1), "tanh": (-1, 1), "erf": (-1, 1), "relu": (0, np.inf), "softplus": (0, np.inf)}
    low, high = limits.get(name, (np.nan, np.inf))
    agree(getattr(Tensor(np.float32([-np.inf, np.inf])), name)(), np.float32([low, high]))
    assert np.isnan(evaluate(getattr(Tensor([math.nan]), name)().uop))


def test_exact_gelu():
    agree(Tensor(V).gelu("none"), (V * 0.5 * (1 + erf(V / math.sqrt(2)))).astype(np.float32), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="approximate"):
        Tensor(V).gelu("exact")


def test_spread_and_mean_together():
    for name in ("var", "std"):
        spread, mean = getattr(Tensor(X), f"{name}_mean")(0, keepdim=True, correction=0)
        agree(spread, getattr(np, name)(X, 0, keepdims=True), rtol=1e-5)
        agree(mean, X.mean(0, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("p", [0, 1, 2, 3, 2.5])
@pytest.mark.parametrize("dim", [0, 1])
def test_normalize(p, dim):
    x = np.array([[3, -4, 0], [0, 0, 1]], np.float64)
    norm = np.linalg.norm(x, p, dim, keepdims=True)
    agree(Tensor(x).normalize(p, dim), x / norm.clip(1e-12), rtol=1e-9)
    agree(Tensor(np.zeros((2, 2))).normalize(p, dim), np.zeros((2, 2)))


def test_softmin_and_allclose():
    x = np.array([[1.0, 2, 4]])
    agree(Tensor(x).softmin(), np.exp(-x) / np.exp(-x).sum(), rtol=1e-9)
    agree(Tensor(x).allclose(x + 1e-9), True)
    agree(Tensor(x).allclose(Tensor(x + 1e-3)), False)
    agree(Tensor([np.nan]).allclose(np.nan, equal_nan=True), True)


def test_exponentials_of_no_elements():
    for shape, axis in [((0,), 0), ((2, 0), -1), ((0, 3), 0), ((0, 3), 1)]:
        x = Tensor(np.zeros(shape, np.float32))
        agree(x.softmax(axis), np.zeros(shape, np.float32))
        agree(x.log_softmax(axis), np.zeros(shape, np.float32))
        agree(x.logsumexp(axis), np.full(np.sum(np.zeros(shape), axis).shape, -np.inf, np.float32))
    for extreme in (Tensor.max, Tensor.min, Tensor.argmax):
        with pytest.raises(ValueError, match="no elements"):
            extreme(Tensor(np.zeros((2, 0), np.float32)), 1)
