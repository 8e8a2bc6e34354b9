"""Distinct constants: the kernels stay few, and every result has the bits that a kernel of its own would give."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from linear import BACKENDS

from tensor_engine import Context, Tensor, TinyJit, dtypes
from tensor_engine.dtype import DType
from tensor_engine.engine import constants, program

SIGNED = np.random.default_rng(5).standard_normal(37) * 20
TYPES = (dtypes.half, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.uint64)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The kernels that are loaded meanwhile. No family is known at the start."""
    names: list[str] = []
    load, unpack = program.programs.copy(), program.unpack
    monkeypatch.setattr(constants, "families", type(constants.families)())
    monkeypatch.setattr(program, "unpack", lambda *args: (kernel := unpack(*args), names.append(kernel.name))[0])
    program.programs.clear()
    yield names
    program.programs.update(load)


def exactly(make: Callable[[], Tensor], monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The bits of the value when all constants are inside the kernels."""
    with monkeypatch.context() as patch:
        patch.setattr(program, "with_arguments", lambda ast: (ast, {}))
        return make().numpy().tobytes()


@pytest.mark.parametrize("path", BACKENDS)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.name)
def test_the_bits_are_those_of_a_kernel_of_its_own(path: str, dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    scale = 0.37 if dtypes.is_float(dtype) else 3
    with Context(DEV=path):
        x = Tensor(SIGNED, dtype=dtype).realize()
        for i in range(3, 5 + constants.MEMBERS):
            def make(number: float = i * scale) -> Tensor:
                chosen = (x < number).where(x * number + number, x - number * 7).maximum(number * 2)
                return chosen / number if dtypes.is_float(dtype) else chosen // number % (number + 2)
            assert make().numpy().tobytes() == exactly(make, monkeypatch), i


def test_only_constants_that_differ_are_passed(compiled: list[str]) -> None:
    x = Tensor(SIGNED).realize()
    for i in range(20):
        (x * (0.09 * i + 3) + 0.7).realize()
    (family,) = constants.families.values()
    assert len(family.members[0]) == 2 and len(family.differing) == 1
    (x * 0.3 + 0.9).realize()
    assert len(family.differing) == 2
    assert len(compiled) == constants.MEMBERS + 2


def test_values_that_stand_for_something_keep_a_kernel_of_their_own(compiled: list[str]) -> None:
    x = Tensor(SIGNED, dtype=dtypes.float32).realize()
    plain = [0.3, 0.7, 0.9, 1.3, 1.7, 1.9]
    special = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 4.0, 0.25]
    for number in plain + special:
        expected = SIGNED.astype(np.float32) * np.float32(number)
        np.testing.assert_array_equal((x * number).numpy(), expected, strict=True)
    assert len(compiled) == constants.MEMBERS + 1 + len(special)


def test_constants_among_themselves_are_computed_before_anything_runs(compiled: list[str]) -> None:
    x = Tensor(SIGNED, dtype=dtypes.float32).realize()
    for i in range(8):
        folded = (Tensor(0.3 * i + 3).exp() * x).realize()
        np.testing.assert_allclose(folded.numpy(), np.exp(np.float32(0.3 * i + 3)) * SIGNED, rtol=2e-6)


def test_an_index_keeps_its_bounds() -> None:
    table = Tensor(np.arange(100, dtype=np.int32)).realize()
    for i in range(2, 10):
        assert table[Tensor([i, 3 * i]) + i].tolist() == [2 * i, 4 * i]
        assert (table[:8] + Tensor.arange(8) * i).tolist() == [k + k * i for k in range(8)]


def test_a_capture_keeps_its_values(compiled: list[str]) -> None:
    x = Tensor(SIGNED, dtype=dtypes.float32).realize()
    captured: list[TinyJit[Tensor]] = []
    for i in range(8):
        captured.append(TinyJit(lambda t, i=i: (t * (i + 0.3)).realize()))
        for _ in range(2):
            captured[-1](x)
    for i, function in enumerate(captured):
        np.testing.assert_array_equal(function(x).numpy(), SIGNED.astype(np.float32) * np.float32(i + 0.3))
    assert len(compiled) == constants.MEMBERS + 1


def test_families_are_forgotten_in_the_end(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "MAX_FAMILIES", 3)
    for size in range(2, 8):
        (Tensor(SIGNED[:size]).realize() * 0.3).realize()
    assert len(constants.families) == 3
