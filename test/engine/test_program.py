"""Compiled kernels: kept in memory and on disk, shared by processes, made again where they are damaged."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tensor_engine import Context, GlobalCounters, Tensor
from tensor_engine.engine import program

REPOSITORY = Path(__file__).resolve().parent.parent.parent

SCRIPT = """
import numpy as np
from tensor_engine import Tensor
from tensor_engine.engine import program

compiled, compile_kernel = [], program.compile_kernel
program.compile_kernel = lambda *args: compiled.append(args) or compile_kernel(*args)
x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
print(len(compiled), ((x @ x.T).relu() + 1).softmax().sum(1).tolist(), len(compiled))
"""


def in_another_process(folder: Path) -> tuple[list[float], int]:
    """The values that the script finds, and how many kernels it had to compile."""
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, cwd=REPOSITORY,
        env={**os.environ, "CACHEDIR": str(folder), "PYTHONHASHSEED": "random"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    before, *values, compiled = result.stdout.replace("[", "").replace("]", "").replace(",", "").split()
    assert before == "0"
    return [float(v) for v in values], int(compiled)


def test_a_second_process_compiles_nothing_and_damaged_entries_are_made_again(cold_cache: Path) -> None:
    values, compiled = in_another_process(cold_cache)
    assert values == pytest.approx([1, 1, 1]) and compiled > 0
    assert in_another_process(cold_cache) == (values, 0)
    entries = [path for path in cold_cache.rglob("*") if path.is_file()]
    assert len(entries) == compiled
    for number, path in enumerate(entries):
        content = bytearray(path.read_bytes())
        content[-1 - number] ^= 0xFF
        path.write_bytes(bytes(content) if number % 2 else bytes(content[:-7]))
    assert in_another_process(cold_cache) == (values, compiled)


def test_other_settings_compile_for_themselves(cold_cache: Path) -> None:
    x = Tensor(np.ones(64, np.float32)).realize()
    (x * 11).realize()
    known = len(program.programs)
    with Context(NOOPT=1):
        assert (x * 11).tolist() == [11] * 64
    assert len(program.programs) == known + 1


def test_equal_kernels_are_compiled_once(cold_cache: Path) -> None:
    first = Tensor(np.ones((3, 5), np.float32)).realize()
    second = Tensor(np.ones((3, 5), np.float32)).realize()
    (first * 3 + 1).realize()
    known = len(program.programs)
    (second * 3 + 1).realize()
    (second.T * 3 + 1).realize()
    assert len(program.programs) == known + 1, "only the transposed one is another kernel"


def test_memory_keeps_a_limited_number(monkeypatch: pytest.MonkeyPatch, cold_cache: Path) -> None:
    monkeypatch.setattr(program, "MAX_PROGRAMS", 4)
    monkeypatch.setattr(program, "programs", type(program.programs)())
    x = Tensor(np.ones(3, np.float32)).realize()
    with Context(CACHE=0):
        for number in range(10):
            assert (x * (number + 0.5)).tolist() == [number + 0.5] * 3
    assert len(program.programs) == 4


def test_what_fails_to_compile_is_not_remembered(monkeypatch: pytest.MonkeyPatch, cold_cache: Path) -> None:
    def fail(*_: object) -> bytes:
        raise RuntimeError("no luck today")

    x = Tensor(np.ones(7, np.float32)).realize()
    compile_kernel = program.compile_kernel
    monkeypatch.setattr(program, "compile_kernel", fail)
    with pytest.raises(RuntimeError, match="no luck today"):
        (x * 9).realize()
    monkeypatch.setattr(program, "compile_kernel", compile_kernel)
    assert (x * 9).tolist() == [9] * 7


def test_operations_and_bytes_of_a_kernel() -> None:
    x, y = (Tensor(np.ones((4, 8), np.float32)).realize() for _ in range(2))
    GlobalCounters.reset()
    (x * y + 1).realize()
    assert (GlobalCounters.global_ops, GlobalCounters.global_mem) == (2 * 32, 3 * 32 * 4)
    GlobalCounters.reset()
    x.sum(1).realize()
    assert (GlobalCounters.global_ops, GlobalCounters.global_mem) == (32, (32 + 4) * 4)
