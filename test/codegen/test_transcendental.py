"""exp2, log2 and sin against a wider type, in units in the last place, over all bit patterns."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from linear import BACKENDS

from tensor_engine import Tensor
from tensor_engine.helpers import Context

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


def check(function: str, oracle: Callable[..., np.ndarray], x: np.ndarray, limit: float, path: str) -> None:
    with Context(DEV=path):
        found = getattr(Tensor(x), function)().numpy()
    with np.errstate(all="ignore"):
        distance = ulps(found, oracle(x.astype(np.longdouble)))
    worst = int(np.argmax(distance))
    assert distance[worst] <= limit, f"{function}({x[worst]!r}) = {found[worst]!r}, off by {distance[worst]} ulps"


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


@needs_long_double
@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("path", BACKENDS)
class TestAccuracy:
    def test_exp2(self, path: str, dtype: str) -> None:
        check("exp2", np.exp2, all_patterns(dtype, COUNT[path]), 1, path)
        check("exp2", np.exp2, spread(dtype, COUNT[path], 1, 150, 1080), 1, path)

    def test_log2(self, path: str, dtype: str) -> None:
        check("log2", np.log2, all_patterns(dtype, COUNT[path]), 3, path)
        check("log2", np.log2, np.abs(spread(dtype, COUNT[path], 2, 100)), 3, path)

    def test_sin(self, path: str, dtype: str) -> None:
        check("sin", np.sin, spread(dtype, COUNT[path], 1, 100, 1e6), 3, path)
        check("sin", np.sin, np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype), 0, path)


@needs_long_double
@pytest.mark.parametrize("path", BACKENDS)
def test_sine_of_a_large_number_that_a_user_reported(path: str) -> None:
    check("sin", np.sin, np.array([39800.0]), 1, path)


@pytest.mark.parametrize("dtype", BITS)
def test_cosine_is_close_wherever_sine_is(dtype: str) -> None:
    x = spread(dtype, 50_000, 1, 100, 1e6)
    np.testing.assert_allclose(Tensor(x).cos().numpy(), np.cos(x), rtol=0, atol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("path", BACKENDS)
def test_half_is_computed_in_single(path: str) -> None:
    x = np.arange(0, 0x7C00, 17, dtype=np.uint16).view(np.float16)
    with Context(DEV=path):
        found = Tensor(x).log2().numpy()
    with np.errstate(divide="ignore"):
        np.testing.assert_array_max_ulp(found[1:], np.log2(x.astype(np.float64)).astype(np.float16)[1:], 1)
    assert found.dtype == np.float16 and found[0] == -np.inf


@pytest.mark.parametrize("path", ["CPU:LLVM", "CPU:C"])
@pytest.mark.parametrize("dtype", BITS)
def test_sine_of_large_numbers_is_close_or_nan(dtype: str, path: str) -> None:
    x = spread(dtype, 20_000, 1e7, 8e9)
    with Context(DEV=path):
        assert np.abs(Tensor(x).sin().numpy() - np.sin(x.astype(np.float64))).max() < 1e-6
        assert np.isnan(Tensor(np.array([1e10, -1e18, 1e30], dtype)).sin().numpy()).all()
