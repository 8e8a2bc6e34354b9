"""Scans against numpy, short and in chunks; where the extremes stand as PyTorch says it."""

from __future__ import annotations

import numpy as np
import pytest
from mixin.agree import agree
from mixin.derivative import check_gradient
from mixin.evaluate import evaluate

from tensor_engine import Tensor

RANDOM = np.random.default_rng(9)


@pytest.mark.parametrize("length", [0, 1, 2, 128, 129, 300])
def test_logcumsumexp(length):
    x = RANDOM.normal(size=(2, length)) * 30
    agree(Tensor(x).logcumsumexp(1), np.logaddexp.accumulate(x, 1), rtol=1e-9)
    agree(Tensor(x.T).logcumsumexp(), np.logaddexp.accumulate(x.T, 0), rtol=1e-9)


def test_logcumsumexp_far_from_the_largest():
    x = np.array([-1000.0, -999, 0, -5, 1000])
    agree(Tensor(x).logcumsumexp(), np.logaddexp.accumulate(x), rtol=1e-12)
    check_gradient(lambda t: t.logcumsumexp(), RANDOM.normal(size=5))


def last_extreme(x: np.ndarray, is_better) -> np.ndarray:
    """By definition: where the best of the elements up to here stands, the last one of equals."""
    best, places = 0, []
    for place, value in enumerate(x.tolist()):
        if not is_better(x[best], value):
            best = place
        places.append(best)
    return np.array(places, np.int32)


@pytest.mark.parametrize("length", [1, 7, 200])
def test_where_extremes_stand(length):
    x = RANDOM.integers(-3, 4, length).astype(np.int32)
    values, places = Tensor(x).cummax()
    agree(values, np.maximum.accumulate(x))
    agree(places, last_extreme(x, lambda best, value: best > value))
    values, places = Tensor(x).cummin()
    agree(values, np.minimum.accumulate(x))
    agree(places, last_extreme(x, lambda best, value: best < value))


def test_extremes_of_nothing_and_of_one():
    assert [part.shape for part in Tensor(np.zeros((2, 0), np.float32)).cummax(1)] == [(2, 0), (2, 0)]
    assert [part.item() for part in Tensor(3.0).cummin()] == [3.0, 0]


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_as_pytorch(name):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")
    x = np.array([[1, 3, 3, np.nan, 5, np.nan, 2], [-np.inf, np.inf, 0, 0, -0.0, -1, -1]], np.float32)
    for dim in (0, 1):
        expected = getattr(torch, name)(torch.tensor(x), dim)
        for got, theirs in zip(getattr(Tensor(x), name)(dim), expected, strict=True):
            np.testing.assert_array_equal(evaluate(got.uop), theirs.numpy())
