"""What the README and the design promise, shown: laziness, fusion, names, what DEBUG prints, where errors point."""
from __future__ import annotations

import dataclasses
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensor_engine
from tensor_engine import Context, GlobalCounters, Tensor
from tensor_engine.device import Device
from tensor_engine.engine import program
from tensor_engine.helpers import DEBUG
from tensor_engine.mixin import OpMixin
from tensor_engine.mixin.hooks import Hooks
from tensor_engine.schedule.schedule import create_schedule
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp

REPOSITORY = Path(__file__).resolve().parent.parent
needs_c = pytest.mark.skipif(
    not any((Path(folder) / name).exists() for folder in os.get_exec_path() for name in ("clang", "gcc", "cc")),
    reason="no C compiler on this machine",
)


def kernels(*tensors: Tensor) -> int:
    """How many kernels computing these runs."""
    GlobalCounters.reset()
    tensors[0].realize(*tensors[1:])
    return GlobalCounters.kernel_count


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# ---- lazy, and one kernel between two stores -------------------------------------------------------------------------


class TestMatmulOf256:
    """reshape, multiply, sum: fused when lazy, a temporary of 256³ floats when the product is asked for."""

    a, b = numbers(256, 256), numbers(256, 256, seed=1)

    def product(self) -> Tensor:
        self.inputs = a, b = Tensor(self.a), Tensor(self.b)
        return a.reshape(256, 1, 256) * b.permute(1, 0).reshape(1, 256, 256)

    def test_lazily_it_is_one_kernel(self) -> None:
        result = self.product().sum(2)
        assert kernels(result) == 1
        np.testing.assert_allclose(result.numpy(), self.a @ self.b, atol=1e-3)

    def test_a_product_that_is_realised_is_a_second_kernel_and_a_temporary(self) -> None:
        product = self.product()
        before = GlobalCounters.mem_used
        assert kernels(product) == 1
        assert product.numel() == 16_777_216
        assert GlobalCounters.mem_used - before == 16_777_216 * 4
        result = product.sum(2)
        assert kernels(result) == 1
        np.testing.assert_allclose(result.numpy(), self.a @ self.b, atol=1e-3)


def test_twenty_elementwise_operations_and_a_sum_are_one_kernel() -> None:
    data = numbers(1000)
    x, want = Tensor(data).realize(), data.astype(np.float64)
    for number in range(20):
        x, want = (x * 0.9, want * 0.9) if number % 2 else (x + number, want + number)
    total = x.sum()
    assert kernels(total) == 1
    np.testing.assert_allclose(total.item(), want.sum(), rtol=1e-5)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.reshape(3, 8), lambda x: x.permute(1, 0), lambda x: x[1:3], lambda x: x.flip(0), lambda x: x[2],
        lambda x: x.unsqueeze(0), lambda x: x.expand(4, 6), lambda x: x.transpose(0, 1)[2:4].reshape(2, 2, 2),
    ],
)  # fmt: skip
def test_a_view_costs_no_kernel(view: object) -> None:
    data = numbers(4, 6)
    x = Tensor(data).realize()
    assert kernels(view(x)) == 0  # type: ignore[operator]
    np.testing.assert_array_equal(view(x).numpy(), view(Numpy(data)).array)  # type: ignore[operator]


class Numpy:
    """numpy under Tensor's method names."""

    def __init__(self, array: np.ndarray):
        self.array = array

    def __getitem__(self, key: object) -> Numpy:
        return Numpy(self.array[key])  # type: ignore[index]

    def reshape(self, *shape: int) -> Numpy:
        return Numpy(self.array.reshape(shape))

    def permute(self, *order: int) -> Numpy:
        return Numpy(self.array.transpose(order))

    def flip(self, axis: int) -> Numpy:
        return Numpy(np.flip(self.array, axis))

    def unsqueeze(self, axis: int) -> Numpy:
        return Numpy(np.expand_dims(self.array, axis))

    def expand(self, *shape: int) -> Numpy:
        return Numpy(np.broadcast_to(self.array, shape))

    def transpose(self, first: int, second: int) -> Numpy:
        return Numpy(np.swapaxes(self.array, first, second))


def test_nothing_computes_before_it_is_asked_for() -> None:
    GlobalCounters.reset()
    used = GlobalCounters.mem_used
    x = Tensor(numbers(8, 8))
    y = (x @ x).softmax().sum(0).sort()[0]
    assert repr(y).endswith("not computed>") and y.shape == (8,)
    assert GlobalCounters.kernel_count == GlobalCounters.global_ops == 0
    assert GlobalCounters.mem_used == used + 8 * 8 * 4  # the copy of the array, and no more
    y.realize()
    assert GlobalCounters.kernel_count > 0


@pytest.mark.parametrize("ask", [Tensor.realize, Tensor.numpy, Tensor.tolist, lambda x: x.sum().item()])
def test_asking_for_a_value_computes(ask: object) -> None:
    x = Tensor(numbers(3)) + 1
    GlobalCounters.reset()
    ask(x)  # type: ignore[operator]
    assert GlobalCounters.kernel_count > 0


# ---- the graph -------------------------------------------------------------------------------------------------------


def test_equal_graphs_are_the_same_object() -> None:
    assert (Tensor(3) + 4).uop is (Tensor(3) + 4).uop
    assert (Tensor(3) + 4).uop is not (Tensor(3) + 5).uop
    assert (Tensor(0.0) + 1).uop is not (Tensor(-0.0) + 1).uop


def test_tensor_and_uop_share_their_methods() -> None:
    shared = [name for name, value in inspect.getmembers(OpMixin, inspect.isfunction) if not name.startswith("_")]
    hooks = {name for name, _ in inspect.getmembers(Hooks, inspect.isfunction)}
    assert Tensor.add is UOp.add and Tensor.matmul is UOp.matmul
    differing = {name for name in shared if getattr(Tensor, name) is not getattr(UOp, name)}
    # of a UOp that is a bound variable, unbind() tells the variable and its value
    assert differing <= hooks | {"unbind"}, "a shared operation is written twice"
    assert len(shared) > 100


def test_tensor_has_four_slots_and_uop_four_fields() -> None:
    assert Tensor.__slots__ == ("uop", "is_param", "grad", "storage")
    assert not hasattr(Tensor(1), "__dict__")
    assert [field.name for field in dataclasses.fields(UOp)] == ["op", "dtype", "src", "arg"]


def test_public_names() -> None:
    for name in ("Tensor", "TinyJit", "Device", "dtypes", "Variable", "GlobalCounters", "Context"):
        assert hasattr(tensor_engine, name)


# ---- kernels and what is told about them --------------------------------------------------------------------------


def names(*tensors: Tensor) -> list[str]:
    """The names of the kernels that compute these."""
    steps = create_schedule([t.uop for t in tensors], {}, Device.DEFAULT).linear.src
    return [program.get_kernel(step.arg, Device.DEFAULT).name for step in steps if step.op is Ops.KERNEL]


def test_names_tell_the_loops() -> None:
    a = Tensor(numbers(4, 4)).realize()
    assert names(a @ a) == ["r_4_4_4"]
    assert names(a + 1) == ["E_16"]
    assert names(a + a.T) == ["E_4_4"]
    assert names(a.sum()) == ["r_16"]


class TestMatmulOfFourInC:
    def source(self, capsys: pytest.CaptureFixture[str]) -> str:
        a, b = Tensor(numbers(4, 4)).realize(), Tensor(numbers(4, 4, seed=1)).realize()
        with Context(DEV="CPU:C", DEBUG=4):
            program.programs.clear()
            (a @ b).realize()
        return re.search(r"void r_4_4_4\(.*?^}", capsys.readouterr().out, re.S | re.M).group()  # type: ignore[union-attr]

    @needs_c
    def test_it_is_vector_loads_and_a_chain_of_multiply_adds(self, capsys: pytest.CaptureFixture[str]) -> None:
        source = self.source(capsys)
        loop = source[source.index("for (") :]
        assert source.count("for (") == 1, "the sum is written out"
        assert loop.count("*(float4*)(data1") == 1 and "data1[" not in source, "a row is one vector load"
        assert source.count("*(float4*)data2") + source.count("*(float4*)(data2") == 4 and "data2" not in loop
        assert loop.count(" * ") >= 4 and re.search(r"(\S+ \* \S+ \+ ){3}", loop), "four products in one chain"
        assert loop.count("<<") == 1 and not re.search(r"[/%]|idx0 \*", loop), "one shift is all the index arithmetic"


SCRIPT = """
from tensor_engine import Tensor
import numpy as np
a = Tensor(np.ones((4, 4), np.float32))
print(a.matmul(a).numpy()[0, 0])
"""


def printed(level: int, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, cwd=REPOSITORY,
        env={**os.environ, "DEBUG": str(level), "CACHE": "0", **environment},
    )  # fmt: skip
    return result.stdout


class TestDebug:
    """Each level prints what it promises, and all that the ones below it print."""

    def test_0_only_the_program_speaks(self) -> None:
        assert printed(0) == "4.0\n"

    def test_1_kernels(self) -> None:
        assert re.search(r"^\*\*\* CPU +1 r_4_4_4 +2 buffers$", printed(1), re.M)

    def test_2_times(self) -> None:
        assert re.search(r"r_4_4_4 .* us .*FLOPS .*B/s", printed(2))

    def test_3_graph_and_options(self) -> None:
        text = printed(3)
        assert re.search(r"^ +\d+ REDUCE float32 .* ADD$", text, re.M)
        assert re.search(r"^r_4_4_4: [A-Z]+\(\d", text, re.M)
        assert "define void" not in text

    def test_4_source(self) -> None:
        assert re.search(r"define .*void @r_4_4_4\(", printed(4)) and "---- after" not in printed(4)

    def test_5_passes(self) -> None:
        from tensor_engine.codegen.pipeline import PASSES

        text = printed(5)
        positions = [text.index(f"---- after {step.name}: ") for step in PASSES]
        assert positions == sorted(positions)

    def test_6_machine_code(self) -> None:
        assert len(printed(6)) > len(printed(5)) and re.search(r"\bret[qlw]?\b", printed(6).split("define void")[-1])


# ---- settings and counters -------------------------------------------------------------------------------------------


def test_counters_tell_kernels_operations_and_bytes() -> None:
    a, b = Tensor(numbers(64, 32)).realize(), Tensor(numbers(32, 16)).realize()
    GlobalCounters.reset()
    (a @ b).realize()
    assert GlobalCounters.kernel_count == 1
    assert GlobalCounters.global_ops == 2 * 64 * 32 * 16
    assert GlobalCounters.global_mem == 4 * (64 * 32 + 32 * 16 + 64 * 16)


def test_memory_in_use_comes_back() -> None:
    before = GlobalCounters.mem_used
    x = (Tensor(numbers(1000)) + 1).realize()
    assert GlobalCounters.mem_used >= before + 4000
    del x
    assert GlobalCounters.mem_used == before


def test_context_changes_settings_for_a_while() -> None:
    before = DEBUG.value
    with Context(DEBUG=before + 1), Context(DEBUG=before + 2):
        assert DEBUG.value == before + 2
    assert DEBUG.value == before
    with pytest.raises(RuntimeError), Context(DEBUG=7):
        raise RuntimeError
    assert DEBUG.value == before
    with pytest.raises(KeyError, match="no setting named DEPUG"):
        Context(DEPUG=1)


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_an_error_at_realize_names_the_line_where_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(ast: UOp, device: str) -> bytes:
        raise ValueError("out of luck")

    monkeypatch.setattr(program, "get_kernel", broken)
    monkeypatch.setattr("tensor_engine.engine.realize.kernel_for", broken)
    x = Tensor(numbers(4, 5)).realize()
    line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
    total = x.sum(0)
    with pytest.raises(RuntimeError, match=f"{re.escape(__file__)}:{line}.*out of luck"):
        total.realize()


def test_an_error_in_a_shape_shows_at_once() -> None:
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(4,\)"):
        Tensor(numbers(2, 3)) + Tensor(numbers(4))
