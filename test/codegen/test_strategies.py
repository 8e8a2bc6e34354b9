"""Any strategy gives the same values: random options instead of the heuristics, and targets that do not exist."""
from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from graphs import Program, run_engine, run_numpy, write_program

from tensor_engine import Context
from tensor_engine.codegen import pipeline
from tensor_engine.codegen.opt.options import Option, OptionError, apply_option
from tensor_engine.device import Device
from tensor_engine.engine import program
from tensor_engine.renderer import Renderer
from tensor_engine.uop.op import AxisType, Ops
from tensor_engine.uop.uop import UOp

MOST_NODES = 3000
PROGRAMS = 40


def random_program(seed: int) -> Program:
    return write_program(random.Random(seed).randint, most_steps=14)


def check(seed: int) -> None:
    """The same bits as numpy, on the device that checks every access."""
    case = random_program(seed)
    with Context(DEV="PYTHON"):
        for want, found in zip(run_numpy(case), run_engine(case, "PYTHON")):
            np.testing.assert_array_equal(found, want, err_msg=repr(case))


@pytest.fixture(autouse=True)
def no_kernels_from_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "programs", type(program.programs)())


# ---- random options ------------------------------------------------------------------------------------------------


def random_option(sink: UOp, choices: random.Random, has_lanes: bool) -> Option | None:
    """An option that fits some loop of the kernel."""
    loops = [n for n in sink.toposort() if n.op is Ops.RANGE and n.arg[1] in (AxisType.LOOP, AxisType.REDUCE)]
    if not loops:
        return None
    loop = choices.choice(loops)
    size = loop.src[0].arg
    kinds = [AxisType.LOOP, AxisType.UPCAST if loop.arg[1] is AxisType.LOOP else AxisType.UNROLL]
    kind = choices.choice(kinds if has_lanes else [*kinds, AxisType.VECTOR])
    if kind is AxisType.LOOP:
        return Option(kind, loop.arg[0], choices.randint(1, size - 1)) if size > 2 else None
    most = size if size <= 8 else size - 1
    amounts = [d for d in range(2, min(most, 16) + 1) if size % d == 0]
    amounts = [d for d in amounts if kind is not AxisType.VECTOR or d in (2, 4, 8, 16)]
    return Option(kind, loop.arg[0], choices.choice(amounts)) if amounts else None


def random_strategy(choices: random.Random) -> Callable[[UOp, Renderer], tuple[list[Option], UOp]]:
    """A stand-in for the heuristics."""

    def choose(sink: UOp, _: Renderer) -> tuple[list[Option], UOp]:
        options: list[Option] = []
        for _ in range(choices.randint(0, 5)):
            if len(sink.toposort()) > MOST_NODES:
                break
            option = random_option(sink, choices, any(o.kind is AxisType.VECTOR for o in options))
            if option is not None:
                sink = apply_option(sink, option)
                options.append(option)
        return options, sink

    return choose


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_options(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "choose_options", random_strategy(random.Random(seed)))
    check(seed)


# ---- targets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("vector_bytes, registers", [(4, 8), (8, 16), (32, 16), (64, 32)])
def test_targets_that_do_not_exist(
    vector_bytes: int, registers: int, masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    renderer = Device["PYTHON"].renderer
    monkeypatch.setattr(renderer, "vector_bytes", vector_bytes)
    monkeypatch.setattr(renderer, "registers", registers)
    monkeypatch.setattr(renderer, "masked_memory", masked)
    for seed in range(100, 104):
        check(seed)


# ---- options that do not fit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "option, message",
    [
        (Option(AxisType.UPCAST, 7, 2), "no loop number 7"),
        (Option(AxisType.UPCAST, 0, 5), "cannot be split by 5"),
        (Option(AxisType.VECTOR, 0, 1), "cannot be split by 1"),
    ],
)
def test_an_option_that_does_not_fit(option: Option, message: str) -> None:
    loop = UOp.range(12, 0)
    with pytest.raises(OptionError, match=message):
        apply_option(UOp.sink(UOp.group(loop.end(loop))), option)
