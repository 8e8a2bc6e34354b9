"""exp2, exp, log2 and sin against a wider type, in units in the last place, over all bit patterns."""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from linear import BACKENDS

from tensor_engine import Tensor
from tensor_engine.helpers import Context

Function = Callable[[Tensor], Tensor]
BITS = {"float32": np.uint32, "float64": np.uint64}
COUNT = {"CPU:LLVM": 50_000, "CPU:C": 50_000, "PYTHON": 2_000}
needs_long_double = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant <= 52, reason="this machine has no type wider than double to judge by"
)


def ulps(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The distance in spacings of the result's type; 0 where both are the same infinity, zero or nan."""
    dtype = found.dtype
    with np.errstate(all="ignore"):
        want = exact.astype(dtype)
        spacing = np.spacing(np.abs(np.where(np.isfinite(want), want, 0))).astype(np.longdouble)
        distance = np.abs(found.astype(np.longdouble) - exact) / spacing
    agree = (found == want) | np.isnan(found) & np.isnan(want)
    return np.where(agree, 0, np.where(np.isnan(distance), np.inf, distance))


def check(function: Function, oracle: Callable[..., np.ndarray], x: np.ndarray, limit: float, path: str) -> None:
    with Context(DEV=path):
        found = function(Tensor(x)).numpy()
    with np.errstate(all="ignore"):
        distance = ulps(found, oracle(x.astype(np.longdouble)))
    worst = int(np.argmax(distance))
    assert distance[worst] <= limit, f"at {x[worst]!r}: {found[worst]!r}, off by {distance[worst]} ulps"


def all_patterns(dtype: str, count: int) -> np.ndarray:
    """Every exponent, both signs, subnormals, infinities and nan."""
    random = np.random.default_rng(7)
    bits = random.integers(0, np.iinfo(BITS[dtype]).max, count, dtype=BITS[dtype], endpoint=True).view(dtype)
    info = np.finfo(dtype)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, info.tiny, -info.tiny, info.smallest_subnormal, info.max, info.min]
    return np.concatenate([bits, np.array(edges, dtype)])


def spread(dtype: str, count: int, *limits: float) -> np.ndarray:
    """Evenly within each of the limits."""
    random = np.random.default_rng(8)
    return np.concatenate([random.uniform(-limit, limit, count // len(limits)) for limit in limits]).astype(dtype)


def everywhere(dtype: str, path: str, *limits: float) -> np.ndarray:
    """All patterns, and numbers within the limits."""
    return np.concatenate([all_patterns(dtype, COUNT[path]), spread(dtype, COUNT[path], *limits)])


@needs_long_double
@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("path", BACKENDS)
class TestAccuracy:
    def test_exp2(self, path: str, dtype: str) -> None:
        check(Tensor.exp2, np.exp2, everywhere(dtype, path, 1, 150, 1080), 1, path)

    def test_log2(self, path: str, dtype: str) -> None:
        check(Tensor.log2, np.log2, np.abs(everywhere(dtype, path, 2, 100)), 3, path)

    def test_log(self, path: str, dtype: str) -> None:
        check(Tensor.log, np.log, np.abs(everywhere(dtype, path, 2, 100)), 3, path)

    @pytest.mark.parametrize("factor", [1, -1, -2])
    def test_exp(self, path: str, dtype: str, factor: int) -> None:
        """Also where a factor stands before the argument: a power of two is free."""
        x = everywhere(dtype, path, 1, 20, 110, 760)
        check(lambda x: (x * factor).exp(), lambda x: np.exp(factor * x), x, 1.1, path)

    def test_sin(self, path: str, dtype: str) -> None:
        """Also near multiples of π/2, where a reduction that is a little off leaves nothing right, and for the float32
        and the float64 that come closest to one."""
        multiples = np.arange(1, COUNT[path]) * np.float64(np.pi / 2)
        closest = np.array([math.ldexp(16367173, 72), math.ldexp(6381956970095103, 797)])
        with np.errstate(over="ignore"):
            near = np.concatenate([multiples, closest]).astype(dtype)
        check(Tensor.sin, np.sin, np.concatenate([everywhere(dtype, path, 1, 100, 1e6), near]), 2, path)


@needs_long_double
@pytest.mark.parametrize("path", BACKENDS)
def test_sine_of_a_large_number_that_a_user_reported(path: str) -> None:
    check(Tensor.sin, np.sin, np.array([39800.0]), 1, path)


@pytest.mark.parametrize("dtype", BITS)
def test_cosine_is_close_wherever_sine_is(dtype: str) -> None:
    x = spread(dtype, 50_000, 1, 100, 1e6)
    np.testing.assert_allclose(Tensor(x).cos().numpy(), np.cos(x), rtol=0, atol=4 * np.finfo(dtype).eps)


@needs_long_double
@pytest.mark.parametrize("path", BACKENDS)
@pytest.mark.parametrize("dtype, limit", [("float16", 1), ("float32", 1), ("float64", 200)])
def test_powers(dtype: str, limit: float, path: str) -> None:
    """In the next wider type; double has none, and exp2 magnifies the rounding of the logarithm."""
    random = np.random.default_rng(9)
    base = random.uniform(0.01, 100, COUNT[path]).astype(dtype)
    exponent = random.uniform(-2 if dtype == "float16" else -18, 18, base.size).astype(dtype)
    check(lambda x: x ** Tensor(exponent), lambda x: x ** exponent.astype(np.longdouble), base, limit, path)


HALF = {"exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos, "sqrt": np.sqrt,
        "atan": np.arctan, "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x))}  # fmt: skip
ROUNDED_TWICE = {"tanh", "sigmoid"}  # made of several operations, each rounded to half


@pytest.mark.parametrize("name", HALF)
@pytest.mark.parametrize("path", BACKENDS)
def test_half_is_computed_in_single(path: str, name: str) -> None:
    x = np.arange(0, 0x7C00, 17, dtype=np.uint16).view(np.float16)
    with Context(DEV=path):
        found = getattr(Tensor(x), name)().numpy()
    with np.errstate(all="ignore"):
        exact = HALF[name](x.astype(np.float64))
        want = exact.astype(np.float16)
    assert found.dtype == np.float16
    if name in ROUNDED_TWICE:
        np.testing.assert_allclose(found, want, rtol=4e-3, atol=2e-3)
    else:
        np.testing.assert_array_max_ulp(found[1:], want[1:], 1)
