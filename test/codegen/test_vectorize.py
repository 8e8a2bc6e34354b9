"""Lanes: what a vector is loaded from when its address doesn't move by one a lane."""

from __future__ import annotations

import numpy as np
import pytest
from linear import BACKENDS

from tensor_engine import Context, Tensor
from tensor_engine.codegen.pipeline import linear_uops
from tensor_engine.renderer.llvmir import LLVMRenderer
from tensor_engine.schedule.schedule import create_schedule
from tensor_engine.uop.op import Ops

RANDOM = np.random.default_rng(4)


def values(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("times", [2, 3, 4, 8])
def test_an_element_for_several_lanes(times: int, backend: str) -> None:
    x, y = values(3, 16), values(3, 16 * times)
    with Context(DEV=backend):
        result = (Tensor(x).realize().repeat_interleave(times, 1) * Tensor(y).realize()).numpy()
    np.testing.assert_array_equal(result, x.repeat(times, 1) * y)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sum_over_repeated_elements(backend: str) -> None:
    x, y = values(5, 20), values(5, 40)
    with Context(DEV=backend):
        result = (Tensor(x).realize().repeat_interleave(2, 1) * Tensor(y).realize()).sum(1).numpy()
    np.testing.assert_allclose(result, (x.repeat(2, 1) * y).sum(1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("times", "lanes"), [(2, 4), (4, 2), (8, 1)])
def test_each_element_is_loaded_once(times: int, lanes: int) -> None:
    """A vector of 8 lanes, in which 8 / times elements stand `times` times, is made of one load of those."""
    tensor = Tensor(values(3, 16)).realize().repeat_interleave(times, 1) + 1
    (kernel,) = create_schedule([tensor.uop], {}, "CPU").linear.src
    loads = [uop for uop in linear_uops(kernel.arg, LLVMRenderer(vector_bytes=32)) if uop.op is Ops.LOAD]
    assert [load.dtype.count for load in loads] == [lanes]
