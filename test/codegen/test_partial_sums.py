"""Long sums are made in parts: what the pass makes of loops of any size, and what it is for."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from linear import BACKENDS

from tensor_engine import Context, Tensor, dtypes
from tensor_engine.codegen.partial_sums import LONGEST, is_long, partial_sums, size_of
from tensor_engine.helpers import prod
from tensor_engine.uop.op import AxisType, Ops
from tensor_engine.uop.spec import check_kernel
from tensor_engine.uop.uop import KernelInfo, UOp

few = settings(max_examples=25, derandomize=True, phases=[Phase.generate])


def sum_over(sizes: list[int]) -> UOp:
    """A kernel that adds up all elements of a buffer, over loops of these sizes."""
    loops = [UOp.range(size, i, AxisType.REDUCE) for i, size in enumerate(sizes)]
    offset = sum((loop * prod(sizes[i + 1 :]) for i, loop in enumerate(loops)), start=UOp.const(dtypes.index, 0))
    data, result = (UOp(Ops.PARAM, dtypes.float32.ptr(n), (), i) for i, n in enumerate((prod(sizes), 1)))
    total = data.index(offset).load(dtype=dtypes.float32).reduce(Ops.ADD, *loops)
    return UOp.sink(result.index(UOp.const(dtypes.index, 0)).store(total), arg=KernelInfo())


def terms(node: UOp) -> int:
    """How many elements of the buffer a value adds up."""
    if node.op is Ops.REDUCE:
        return terms(node.src[0]) * prod(map(size_of, node.src[1:]))
    return terms(node.src[0]) + terms(node.src[1]) if node.op is Ops.ADD else 1


@given(st.lists(st.sampled_from([2, 3, 64, 211, 4096, 4099, 70_000, 2**25, 1_000_003]), min_size=1, max_size=3))
@few
def test_no_sum_stays_long_and_no_element_is_lost(sizes: list[int]) -> None:
    sink = partial_sums(sum_over(sizes))
    check_kernel(sink, ["partial sums"])
    assert not any(is_long(node) for node in sink.toposort())
    assert terms(sink.src[0].src[1]) == prod(sizes)


@pytest.mark.parametrize("noopt", [0, 1])
@pytest.mark.parametrize("path", BACKENDS)
@pytest.mark.parametrize("shape, axes", [((3, 4099), 1), ((67, 2, 97), (0, 2)), ((8192,), 0)])
def test_values(path: str, noopt: int, shape: tuple[int, ...], axes: int | tuple[int, ...] | None) -> None:
    numbers = np.random.default_rng(0).integers(-50, 100, shape).astype(np.float32)
    with Context(DEV=path, NOOPT=noopt):
        np.testing.assert_array_equal(Tensor(numbers).sum(axes).numpy(), numbers.sum(axes))


def test_ones_are_counted_beyond_two_to_the_24() -> None:
    """One after the other they would stop at 2**24, where float32 has no room for one more."""
    assert Tensor.ones(2**25 + 4).contiguous().sum().item() == 2**25 + 4


def test_a_sum_of_equal_numbers_does_not_drift() -> None:
    numbers = np.full(1_000_003, 0.1, np.float32)
    exact = 1_000_003 * float(np.float32(0.1))
    assert Tensor(numbers).sum().item() == pytest.approx(exact, rel=LONGEST * 2.0**-25)
