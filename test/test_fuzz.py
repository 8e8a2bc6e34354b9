"""Random programs: every path gives the bits that numpy gives, or, where functions round, is close to float64."""
from __future__ import annotations

import numpy as np
import pytest
from graphs import (
    Program,
    programs,
    run_engine,
    run_numpy,
    run_smooth_numpy,
    smooth_programs,
)
from hypothesis import HealthCheck, Phase, given, settings

from tensor_engine.helpers import Context

PATHS = [("CPU:LLVM", 0), ("CPU:LLVM", 1), ("CPU:C", 0), ("CPU:C", 1), ("PYTHON", 0), ("PYTHON", 1)]
on_every_path = pytest.mark.parametrize("path, noopt", PATHS)

common = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
}
quick = settings(max_examples=20, derandomize=True, **common)  # type: ignore[arg-type]
long = settings(max_examples=300, **common)  # type: ignore[arg-type]


def check(program: Program, path: str, noopt: int) -> None:
    expected = run_numpy(program)
    with Context(DEV=path, NOOPT=noopt):
        found = run_engine(program, path.split(":")[0])
    for number, want, have in zip(program.outputs, expected, found):
        assert have.dtype == want.dtype, f"v{number}: {have.dtype} for {want.dtype}"
        np.testing.assert_array_equal(have, want, err_msg=f"v{number} on {path} NOOPT={noopt}")


def check_smooth(program: Program, path: str, noopt: int) -> None:
    expected = run_smooth_numpy(program)
    with Context(DEV=path, NOOPT=noopt):
        found = run_engine(program, path.split(":")[0])
    for number, want, have in zip(program.outputs, expected, found):
        assert have.dtype == np.float32 and have.shape == want.shape
        atol = 1e-5 * max(1.0, float(np.abs(want).max())) if want.size else 0
        np.testing.assert_allclose(have, want, rtol=0, atol=atol, err_msg=f"v{number} on {path} NOOPT={noopt}")


@on_every_path
@given(program=programs())
@quick
def test_programs(path: str, noopt: int, program: Program) -> None:
    check(program, path, noopt)


@on_every_path
@given(program=programs(specials=True))
@quick
def test_programs_with_nan_and_inf(path: str, noopt: int, program: Program) -> None:
    check(program, path, noopt)


@on_every_path
@given(program=smooth_programs())
@quick
def test_programs_of_functions_that_round(path: str, noopt: int, program: Program) -> None:
    check_smooth(program, path, noopt)


@pytest.mark.slow
@pytest.mark.timeout(0)
@on_every_path
@given(program=programs(most_steps=20))
@long
def test_many_programs(path: str, noopt: int, program: Program) -> None:
    check(program, path, noopt)


@pytest.mark.slow
@pytest.mark.timeout(0)
@on_every_path
@given(program=programs(most_steps=20, specials=True))
@long
def test_many_programs_with_nan_and_inf(path: str, noopt: int, program: Program) -> None:
    check(program, path, noopt)


@pytest.mark.slow
@pytest.mark.timeout(0)
@on_every_path
@given(program=smooth_programs(most_steps=20))
@long
def test_many_programs_of_functions_that_round(path: str, noopt: int, program: Program) -> None:
    check_smooth(program, path, noopt)
