"""Random programs: every path gives the bits that numpy gives."""
from __future__ import annotations

import numpy as np
import pytest
from graphs import Program, programs, run_engine, run_numpy
from hypothesis import HealthCheck, given, settings

from tensor_engine.helpers import Context

PATHS = [("CPU:LLVM", 0), ("CPU:LLVM", 1), ("CPU:C", 0), ("CPU:C", 1), ("PYTHON", 0), ("PYTHON", 1)]

fast = settings(max_examples=25, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
long = settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))


def check(program: Program, path: str, noopt: int) -> None:
    expected = run_numpy(program)
    with Context(DEV=path, NOOPT=noopt):
        found = run_engine(program, path.split(":")[0])
    for number, want, have in zip(program.outputs, expected, found):
        assert have.dtype == want.dtype, f"v{number}: {have.dtype} for {want.dtype}"
        np.testing.assert_array_equal(have, want, err_msg=f"v{number} on {path} NOOPT={noopt}")


@pytest.mark.parametrize("path, noopt", PATHS)
@given(program=programs())
@fast
def test_programs(path: str, noopt: int, program: Program) -> None:
    check(program, path, noopt)


@pytest.mark.parametrize("path, noopt", PATHS)
@given(program=programs(specials=True))
@fast
def test_programs_with_nan_and_inf(path: str, noopt: int, program: Program) -> None:
    check(program, path, noopt)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("path, noopt", PATHS)
@pytest.mark.parametrize("specials", [False, True])
def test_many_programs(path: str, noopt: int, specials: bool) -> None:
    @given(program=programs(most_steps=20, specials=specials))
    @long
    def run(program: Program) -> None:
        check(program, path, noopt)

    run()
