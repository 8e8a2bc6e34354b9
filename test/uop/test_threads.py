"""Threads that build graphs at the same time: equal nodes are the same object, memory is nobody else's."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tensor_engine.dtype import dtypes
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp, UOpMeta

THREADS = 4
NODES = 2000


@pytest.fixture
def impatient_threads() -> Iterator[None]:
    """Threads that take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(make: Callable[[], Any]) -> list[Any]:
    """What `make` gives in each of several threads at once."""
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(make())) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == THREADS
    return results


def chain() -> list[UOp]:
    """Nodes that no other test makes."""
    start = UOp(Ops.ARANGE, dtypes.int64, (), 7919)
    return [start.alu(Ops.ADD, UOp.const(dtypes.int64, 10**12 + number)) for number in range(NODES)]


def test_threads_that_make_equal_nodes_get_the_same_ones(impatient_threads: None) -> None:
    made = in_threads(chain)
    for same in zip(*made):
        assert all(node is same[0] for node in same)


def test_threads_never_get_each_others_memory(impatient_threads: None) -> None:
    made = in_threads(lambda: [UOp.new_buffer("CPU", 4, dtypes.int32) for _ in range(NODES)])
    assert len({node for nodes in made for node in nodes}) == THREADS * NODES
    made = in_threads(lambda: [UOp.unique_const(dtypes.float32, 1.0) for _ in range(NODES)])
    assert len({node for nodes in made for node in nodes}) == THREADS * NODES


def test_nodes_that_nobody_has_are_forgotten(impatient_threads: None) -> None:
    gc.collect()
    before = len(UOpMeta.alive)
    in_threads(lambda: len(chain()))
    gc.collect()
    assert len(UOpMeta.alive) == before
