"""Simplification of kernels: gathers read one element, gates move to loads, indices get the width that they need."""
from __future__ import annotations

import numpy as np
import pytest
from linear import BACKENDS

from tensor_engine import Context, Tensor
from tensor_engine.codegen.pipeline import linear_uops
from tensor_engine.codegen.simplify import merge_loops, pm_simplify
from tensor_engine.dtype import dtypes
from tensor_engine.renderer.cstyle import CRenderer
from tensor_engine.schedule.schedule import create_schedule
from tensor_engine.uop.op import Ops
from tensor_engine.uop.rewrite import graph_rewrite
from tensor_engine.uop.uop import KernelInfo, UOp

TARGET = CRenderer(vector_bytes=32, registers=16)


def kernels(tensor: Tensor) -> list[UOp]:
    """The kernels that compute a tensor, simplified."""
    steps = create_schedule([tensor.uop], {}, "CPU").linear.src
    return [merge_loops(graph_rewrite(step.arg, pm_simplify)) for step in steps]


def count(sink: UOp, op: Ops) -> int:
    return sum(node.op is op for node in sink.toposort())


def zeros(*shape: int, dtype: str = "float32") -> Tensor:
    return Tensor(np.zeros(shape, dtype))


# ---- load collapse -------------------------------------------------------------------------------------------------

SUMS = {
    "index == counter": lambda table, index, counter: (index == counter).where(table, 0),
    "counter == index": lambda table, index, counter: (counter == index).where(table, 0),
    "index != counter, the other way round": lambda table, index, counter: (index != counter).where(0, table),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_of_which_one_element_counts_is_a_load(name: str) -> None:
    table, index = zeros(50), zeros(6, dtype="int32")
    counter = Tensor.arange(50).reshape(1, 50)
    picked = SUMS[name](table.reshape(1, 50).expand(6, 50), index.reshape(6, 1), counter).sum(1)
    (kernel,) = kernels(picked)
    assert count(kernel, Ops.REDUCE) == 0 and count(kernel, Ops.RANGE) == 1


@pytest.mark.parametrize("path", BACKENDS)
def test_an_index_outside_picks_nothing(path: str) -> None:
    table = np.arange(1, 8, dtype=np.float32)
    index = np.array([0, 6, 7, -1, 2**31 - 1, -(2**31), 3], np.int32)
    with Context(DEV=path):
        one_hot = Tensor(index).reshape(-1, 1) == Tensor.arange(7).reshape(1, 7)
        picked = one_hot.where(Tensor(table).reshape(1, 7), 0).sum(1)
        assert picked.tolist() == [1, 7, 0, 0, 0, 0, 4]


@pytest.mark.parametrize("path", BACKENDS)
def test_a_picked_expression_of_the_counter(path: str) -> None:
    """What is summed may contain the counter itself, other loads, and choices."""
    random = np.random.default_rng(2)
    table, index = random.integers(-9, 9, (5, 7)).astype(np.float32), random.integers(0, 7, 4).astype(np.int32)
    with Context(DEV=path):
        counter = Tensor.arange(7)
        values = Tensor(table) * counter + (counter < 3).where(Tensor(table).abs(), 2)
        found = (Tensor(index).reshape(4, 1, 1) == counter).where(values, 0).sum(2)
        want = (table * np.arange(7) + np.where(np.arange(7) < 3, abs(table), 2))[:, index].T
        np.testing.assert_array_equal(found.numpy(), want)


def test_two_gathers_in_a_row_are_two_loads() -> None:
    table, rows, columns = zeros(20, 30), zeros(4, dtype="int32"), zeros(5, dtype="int32")
    for kernel in kernels(table[rows][:, columns]):
        assert count(kernel, Ops.REDUCE) == 0


# ---- gates ---------------------------------------------------------------------------------------------------------


def test_padding_is_a_gated_load() -> None:
    (kernel,) = kernels(zeros(4, 6).pad(((1, 1), (2, 0))) + 1)
    loads = [node for node in kernel.toposort() if node.op is Ops.LOAD]
    assert len(loads) == 1 and len(loads[0].src[0].src) == 3 and count(kernel, Ops.WHERE) == 0


def test_a_gate_that_is_always_open_or_closed_is_none() -> None:
    (inside,) = kernels(zeros(8).pad(((2, 2),)).shrink(((2, 10),)) + 1)
    assert all(len(node.src) == 2 for node in inside.toposort() if node.op is Ops.INDEX)
    (outside,) = kernels((zeros(8).pad(((8, 0),)).shrink(((0, 4),)) + 1).contiguous())
    assert count(outside, Ops.LOAD) == 0


def test_concatenation_reads_each_part_behind_its_gate() -> None:
    (kernel,) = kernels(zeros(3, 4).cat(zeros(5, 4), dim=0))
    gates = [node.src[2] for node in kernel.toposort() if node.op is Ops.INDEX and len(node.src) == 3]
    assert len(gates) == 2


# ---- loops ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, loops",
    [
        (lambda: zeros(3, 4, 5) + 1, 1),
        (lambda: zeros(3, 4, 5).permute(2, 0, 1) + 1, 2),
        (lambda: zeros(3, 4, 5).permute(2, 1, 0) + 1, 3),
        (lambda: zeros(3, 4, 5) + zeros(5), 2),
        (lambda: zeros(3, 4, 5).sum(), 1),
        (lambda: zeros(3, 4, 5).sum((1, 2)), 2),
        (lambda: zeros(3, 4, 5).sum((0, 2)), 3),
        (lambda: zeros(1, 1, 1) + 1, 0),
    ],
)
def test_loops_that_run_through_memory_in_one_go_are_one(make: object, loops: int) -> None:
    (kernel,) = kernels(make())  # type: ignore[operator]
    assert count(kernel, Ops.RANGE) == loops


def test_a_sum_of_the_same_number_needs_no_loop() -> None:
    (kernel,) = kernels((zeros(4, dtype="int32").reshape(4, 1).expand(4, 9) + 2).sum(1))
    assert count(kernel, Ops.REDUCE) == 0


# ---- the width of indices -------------------------------------------------------------------------------------------


def copy_of(size: int, factor: int = 1) -> list[UOp]:
    """The linear form of a kernel that copies `size` elements, `factor` apart."""
    target, source = (UOp(Ops.PARAM, dtypes.uint8.ptr(size * factor), (), number) for number in range(2))
    loop = UOp.range(size, 0)
    body = target.index(loop * factor).store(source.index(loop * factor).load())
    with Context(NOOPT=1):
        return linear_uops(UOp.sink(body.end(loop), arg=KernelInfo()), TARGET)


@pytest.mark.parametrize(
    "size, factor, width",
    [(100, 1, dtypes.int32), (2**31 - 1, 1, dtypes.int32), (2**31 + 1, 1, dtypes.int64), (2**20, 2**12, dtypes.int64)],
)
def test_an_index_beyond_32_bits_has_64(size: int, factor: int, width: object) -> None:
    uops = copy_of(size, factor)
    assert {node.dtype for node in uops if node.op is Ops.RANGE} == {width}
    assert {node.src[1].dtype for node in uops if node.op is Ops.INDEX} == {width}
