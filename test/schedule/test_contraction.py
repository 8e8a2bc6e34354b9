"""Sums of products that are arranged for vectors and the cache: the same values, and only where it pays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from mixin.evaluate import evaluate

from tensor_engine import GlobalCounters, Tensor
from tensor_engine.schedule import contraction
from tensor_engine.schedule.contraction import arrange_contractions
from tensor_engine.schedule.tidy import tidy_tensors
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp


def data(*shape: int) -> Tensor:
    random = np.random.default_rng(len(shape))
    return Tensor(random.standard_normal(shape).astype(np.float32)).realize()


def weight_gradient(batch: int = 4, channels: int = 3, out: int = 16, size: int = 9, **how: int) -> Tensor:
    x, w = data(batch, channels, size, size), data(out, channels // how.get("groups", 1), 3, 3)
    result = x.conv2d(w, **how)
    return result.gradient(w, gradient=data(*result.shape))[0]


GRAPHS: dict[str, Callable[[], Tensor]] = {
    "a weight's gradient": weight_gradient,
    "… with a stride": lambda: weight_gradient(stride=2),
    "… of every channel alone": lambda: weight_gradient(channels=16, groups=16),
    "… of 1x1": lambda: data(4, 6, 5, 5).conv2d(w := data(16, 6, 1, 1)).square().sum().gradient(w)[0],
    "small places, forward": lambda: data(8, 5, 6, 6).conv2d(data(16, 5, 3, 3)),
    "a matrix product": lambda: data(20, 30) @ data(30, 40),
    "… of a transposed matrix": lambda: data(20, 30) @ data(40, 30).T,
    "… of two": lambda: data(30, 20).T @ data(40, 30).T,
    "… along the outermost axis of both": lambda: data(60, 20).T @ data(60, 40),
    "a product that is flipped and padded": lambda: (data(9, 8).flip(0).pad((1, 2)) * data(9, 11)).sum(0),
    "one axis": lambda: (data(64) * data(64)).sum(),
}


def arranged(tensor: Tensor) -> UOp:
    return arrange_contractions(tidy_tensors(UOp.sink(tensor.uop), {})).src[0]


@pytest.mark.parametrize("name", GRAPHS)
def test_values_stay(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is worth what: with thresholds so low that all that can be arranged is."""
    for threshold in ("MUCH_USED", "LONG_ROW", "CACHE", "BEYOND_CACHE"):
        monkeypatch.setattr(contraction, threshold, 8)
    tensor = GRAPHS[name]()
    np.testing.assert_allclose(evaluate(arranged(tensor)), evaluate(tensor.uop), rtol=1e-4, atol=1e-4)


def ops(node: UOp) -> list[Ops]:
    return [n.op for n in node.toposort()]


def test_a_factor_is_stored_with_an_axis_for_vectors_last() -> None:
    """7 places in a row are no vector. The 16 channels out are, and each gradient is used for 32 * 9 weights."""
    node = arranged(weight_gradient(batch=64, channels=32))
    stored = [n for n in node.toposort() if n.op is Ops.CONTIGUOUS]
    assert [n.shape[-1] for n in stored] == [16]


@pytest.mark.parametrize("size", [10, 26])
def test_rows_that_make_vectors_are_left_as_they_are(size: int) -> None:
    assert Ops.CONTIGUOUS not in ops(arranged(weight_gradient(batch=64, channels=32, size=size)))


def test_what_is_hardly_used_is_not_stored() -> None:
    assert Ops.CONTIGUOUS not in ops(arranged(weight_gradient(batch=64, channels=8)))


def test_a_sum_over_more_than_the_cache_holds_is_made_in_parts() -> None:
    """64 images with 64 channels of 30x30, and gradients of 28x28, are 26 MiB: 32 parts, of two images each."""
    node = arranged(weight_gradient(batch=64, channels=64, out=64, size=30))
    sums = [n for n in node.toposort() if n.op is Ops.REDUCE_AXIS]
    assert [n.src[0].shape[0] for n in sums] == [32, 32]


def test_a_matrix_product_is_one_kernel() -> None:
    a, b = data(600, 600), data(600, 600)
    for product in (a @ b, a.T @ b, a @ b.T, a.T @ b.T):
        GlobalCounters.reset()
        product.realize()
        assert GlobalCounters.kernel_count == 1
