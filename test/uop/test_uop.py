"""Nodes: equal ones are one object, derived properties, deep graphs; what prints."""
from __future__ import annotations

import gc
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from tensor_engine.dtype import dtypes
from tensor_engine.uop.op import Ops
from tensor_engine.uop.render import render_graph
from tensor_engine.uop.uop import UOp, UOpMeta

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def const(value: float) -> UOp:
    return UOp.const(dtypes.float32, value)


def chain(length: int) -> UOp:
    """A graph as deep as it is long."""
    node = UOp.new_buffer("CPU", 4, dtypes.float32)
    for number in range(length):
        node = node + float(number % 7 + 1)
    return node


class TestIdentity:
    def test_equal_fields_are_one_object(self) -> None:
        assert const(1.0) is const(1.0)
        assert const(1.0) + const(2.0) is const(1.0) + const(2.0)

    def test_what_python_calls_equal_is_told_apart(self) -> None:
        assert const(0.0) is not const(-0.0)
        assert UOp.const(dtypes.int32, 1) is not UOp.const(dtypes.bool, True)
        assert UOp.const(dtypes.int32, 1) is not UOp.const(dtypes.int64, 1)
        assert const(math.nan) is const(math.nan)

    def test_pickling_keeps_identity(self) -> None:
        node = const(1.5) + const(2.5)
        assert pickle.loads(pickle.dumps(node)) is node

    def test_nodes_that_nobody_holds_are_forgotten(self) -> None:
        gc.collect()
        before = len(UOpMeta.alive)
        node = chain(200)
        assert len(UOpMeta.alive) > before + 200
        del node
        assert len(UOpMeta.alive) <= before + 8  # constants may live on in caches

    def test_replace_and_substitute(self) -> None:
        x, y = const(1.0), const(2.0)
        total = UOp(Ops.ADD, dtypes.float32, (x, y))
        assert total.replace(op=Ops.MUL) is UOp(Ops.MUL, dtypes.float32, (x, y))
        assert total.substitute({y: x}) is UOp(Ops.ADD, dtypes.float32, (x, x))
        assert total.substitute({}) is total


class TestDeepGraphs:
    """Deeper than Python's stack: nothing recurses."""

    def test_everything_that_is_derived(self) -> None:
        node = chain(20_000)
        assert node.shape == (4,) and node.device == "CPU"
        assert len(node.toposort()) > 20_000
        assert len(node.key) == 16 and node.ranges == frozenset()
        assert node.substitute({const(1.0): const(9.0)}) is not node

    def test_printing(self) -> None:
        assert render_graph(chain(3000)).count("\n") > 3000

    def test_freeing(self) -> None:
        node = chain(20_000)
        del node  # a recursive destructor would end the process


class TestToposort:
    def test_operands_come_first_and_each_node_once(self) -> None:
        x = UOp.new_buffer("CPU", 3, dtypes.float32)
        y = x + x
        z = y * x + y
        order = z.toposort()
        assert len(order) == len(set(order))
        assert all(order.index(s) < order.index(node) for node in order for s in node.src)

    def test_it_stops_where_it_is_told_to(self) -> None:
        x = UOp.new_buffer("CPU", 3, dtypes.float32)
        y = x * x
        assert x not in (y + y).toposort(lambda node: node is not y)


KEY_SCRIPT = """
from tensor_engine.dtype import dtypes
from tensor_engine.uop.uop import UOp
i = UOp.range(4, 0)
print((i * 3 + UOp.range(5, 1)).key.hex())
"""


def test_the_key_is_the_same_in_every_process() -> None:
    keys = set()
    for seed in ("1", "2"):
        command = [sys.executable, "-c", KEY_SCRIPT]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        keys.add(subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, check=True).stdout)
    assert len(keys) == 1 and keys.pop().strip()


def test_keys_tell_graphs_apart() -> None:
    i, j = UOp.range(4, 0), UOp.range(4, 1)
    graphs = [i, j, i + j, j + i, i * 2, i * 3, i < 2, const(0.0), const(-0.0), const(1.0)]
    assert len({graph.key for graph in graphs}) == len(graphs)


def test_a_graph_prints_one_numbered_line_a_node() -> None:
    i = UOp.range(4, 0)
    text = render_graph(UOp.sink((i * 3).cast(dtypes.float32)))
    assert text.splitlines() == [
        "   0 RANGE index (4) (0, AxisType.LOOP)",
        "   1 MUL index (%0, 3)",
        "   2 CAST float32 (%1)",
        "   3 SINK (%2)",
    ]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_shapes_follow_movement(size: int) -> None:
    x = UOp.new_buffer("CPU", 6 * size, dtypes.float32).reshape((2, 3, size))
    assert x.permute((2, 0, 1)).shape == (size, 2, 3)
    assert x.pad(((1, 0), (0, 2), (0, 0))).shape == (3, 5, size)
    assert x.shrink(((0, 1), (1, 3), (0, size))).shape == (1, 2, size)
    assert x.reduce_axis(Ops.ADD, (0, 2)).shape == (1, 3, 1)
