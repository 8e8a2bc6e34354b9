"""Large graphs: kernels stay of a size that compilers like, and work, memory and recursion do not run away.

What must grow linearly is counted, not timed.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tensor_engine import Tensor
from tensor_engine.device import Device
from tensor_engine.engine import realize
from tensor_engine.schedule.old_values import keep_old_values
from tensor_engine.schedule.schedule import Stores, add_dependencies, create_schedule
from tensor_engine.schedule.stores import BRANCH, MAX_WORK, StoreChooser
from tensor_engine.schedule.tidy import tidy_tensors
from tensor_engine.uop.op import GroupOp
from tensor_engine.uop.uop import UOp

DEPTH = 20_000
ONES = np.ones(8, np.float32)


def ones() -> Tensor:
    return Tensor(ONES).realize()


def repeated(step: Callable[[Tensor], Tensor], value: Tensor, count: int) -> Tensor:
    for _ in range(count):
        value = step(value)
    return value


def kernels(value: Tensor) -> list[UOp]:
    return [step.arg for step in create_schedule([value.uop], realize.realized, Device.DEFAULT).linear.src]


def diamonds(x: Tensor, count: int) -> Tensor:
    return repeated(lambda value: value * 0.5 + value.abs() * 0.5, x, count)


def growing(x: Tensor, count: int) -> Tensor:
    return repeated(lambda value: value.cat(x), x, count)


def total(x: Tensor, count: int) -> Tensor:
    return sum((Tensor(ONES).realize() for _ in range(count)), x)


GRAPHS = {
    "one after the other": (lambda x, n: repeated(lambda v: v * 0.5 + 0.5, x, n), 700, 1),
    "diamonds": (diamonds, 150, 1),
    "a sum of many": (total, 600, 601),
    "a cat of many": (lambda x, n: x.cat(*[x] * (n - 1)).sum(), 100, 800),
    "cats of cats": (growing, 40, 1),
    "sums, each of the one before": (lambda x, n: repeated(lambda v: v + v.sum() - v, x, n) / 8.0**n, 30, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_values_and_kernels(name: str) -> None:
    graph, count, expected = GRAPHS[name]
    value = graph(ones(), count)
    for ast in kernels(value):
        assert sum(node.op in GroupOp.ALU for node in ast.toposort()) < 4 * MAX_WORK
    np.testing.assert_allclose(value.numpy(), np.full(value.shape, expected), rtol=1e-5)


@pytest.mark.parametrize("name", GRAPHS)
def test_twice_the_graph_is_about_twice_the_kernels_and_their_nodes(name: str) -> None:
    graph, count, _ = GRAPHS[name]
    once, twice = (kernels(graph(ones(), n * count)) for n in (1, 2))
    nodes = [sum(len(ast.toposort()) for ast in found) for found in (once, twice)]
    assert len(twice) <= 2.5 * len(once) + 2
    assert nodes[1] <= 2.5 * nodes[0]


def test_a_small_graph_is_not_cut() -> None:
    assert len(kernels(repeated(lambda v: v * 0.5 + 1, ones(), MAX_WORK // 3))) == 1
    assert len(kernels(growing(ones(), MAX_WORK // (3 * BRANCH)))) == 1


STEPS = {
    "arithmetic": lambda v: -v,
    "choice": lambda v: (v > 2).where(v, 1.0),
    "movement": lambda v: v.reshape(2, 4).T.reshape(8),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_depth(step: Callable[[Tensor], Tensor]) -> None:
    value = repeated(step, ones(), DEPTH)
    assert len(repr(value.uop).splitlines()) > DEPTH / 2
    np.testing.assert_array_equal(value.numpy(), ONES)


def test_depth_of_a_gradient() -> None:
    x = ones()
    repeated(lambda v: v * 1.0, x, DEPTH).sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), ONES)


def test_many_roots_at_once() -> None:
    x = ones()
    roots = [x * 2 + i % 3 for i in range(300)] + [Tensor(np.full(4, i, np.float32)) * 2 for i in range(300)]
    roots[0].realize(*roots[1:])
    assert [r.numpy()[0] for r in roots] == [2 + i % 3 for i in range(300)] + [2 * i for i in range(300)]


def dependencies(root: Tensor) -> tuple[int, int]:
    """The steps of a schedule, and how many others they wait for in all."""
    sink = keep_old_values(tidy_tensors(UOp.sink(root.uop), realize.realized))
    stores = Stores(Device.DEFAULT, frozenset())
    for node in StoreChooser(list(sink.src)).choose():
        stores.add(node)
    add_dependencies(stores.steps)
    return len(stores.steps), sum(len(step.after) for step in stores.steps)


def test_assignments_in_a_row_wait_for_the_one_before() -> None:
    w = ones()
    for _ in range(200):
        w.assign(w + 1)
    steps, waits = dependencies(w)
    assert steps == 200 and waits <= 3 * steps
    np.testing.assert_array_equal(w.numpy(), ONES + 200)


def test_readers_between_assignments_see_what_they_were_made_of() -> None:
    w, seen = ones(), []
    for _ in range(60):
        seen.append((w * 2).contiguous())
        w.assign(w + seen[-1] * 0 + 1)
    w.realize(*seen)
    np.testing.assert_array_equal(w.numpy(), ONES + 60)
    assert [s.numpy()[0] for s in seen] == [2 * (1 + number) for number in range(60)]


