"""`tensor-engine bench --scaling`: how time and memory grow with the number of operations."""

from __future__ import annotations

import math
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from tensor_engine.cli.console import print_json, print_table, progress
from tensor_engine.device import Device
from tensor_engine.engine.program import kernel_for
from tensor_engine.engine.realize import execute, realized
from tensor_engine.helpers import Context
from tensor_engine.schedule.schedule import create_schedule
from tensor_engine.tensor import Tensor
from tensor_engine.uop.op import Ops

SIZES = (1000, 2000, 4000, 8000)
STEPS = ("building", "scheduling", "compiling", "running")


def fused(x: Tensor, count: int) -> Tensor:
    """Elementwise operations: few kernels, and large ones."""
    for _ in range(count // 2):
        x = x * 0.5 + 1
    return x


def stored(x: Tensor, count: int) -> Tensor:
    """Values that are each stored: a kernel for each."""
    for _ in range(count):
        x = (x + 1).contiguous()
    return x


CHAINS: dict[str, Callable[[Tensor, int], Tensor]] = {"fused": fused, "stored": stored}


def report_scaling(as_json: bool) -> None:
    """Measure chains of operations of several lengths, and print what was found."""
    chains = measured_chains()
    if as_json:
        return print_json({"device": Device.DEFAULT, "chains": chains})
    columns = {"chain": "left", "operations": "right", "kernels": "right"}
    columns |= {f"{step}, s": "right" for step in STEPS} | {"peak, MB": "right"}
    for name, chain in chains.items():
        rows = [[name, run["operations"], run["kernels"], *cells(run)] for run in chain["runs"]]
        exponents = [f"n^{chain['growth'][what]:.2f}" for what in (*STEPS, "peak_bytes")]
        print_table(f"{name}: {CHAINS[name].__doc__}", columns, [*rows, ["growth", "", "", *exponents]])


def cells(run: dict[str, Any]) -> list[str]:
    """Seconds of each step, and megabytes."""
    return [*(f"{run[step]:.3f}" for step in STEPS), f"{run['peak_bytes'] / 1e6:.0f}"]


def measured_chains() -> dict[str, Any]:
    """All chains at all sizes, each in a process of its own: only then is the peak of its memory its own."""
    chains: dict[str, Any] = {}
    with progress() as bar:
        task = bar.add_task("measuring", total=len(CHAINS) * len(SIZES))
        for name in CHAINS:
            runs = []
            for count in SIZES:
                with multiprocessing.get_context("spawn").Pool(1) as process:
                    runs.append(process.apply(measure, (name, count)))
                bar.update(task, advance=1)
            growth = {what: growth_exponent(runs, what) for what in (*STEPS, "peak_bytes")}
            chains[name] = {"runs": runs, "growth": growth}
    return chains


def measure(chain: str, count: int) -> dict[str, Any]:
    """Seconds of each step, with nothing compiled yet, and by how many bytes the peak of the memory rose."""
    with Context(CACHE=0):
        x = Tensor.ones(1024).contiguous().realize()
        before, times = peak_bytes(), [time.perf_counter()]
        root = CHAINS[chain](x, count).uop
        times.append(time.perf_counter())
        schedule = create_schedule([root], realized, Device.DEFAULT)
        times.append(time.perf_counter())
        kernels = [step for step in schedule.linear.src if step.op is Ops.KERNEL]
        for step in kernels:
            kernel_for(step.arg, Device.DEFAULT)
        times.append(time.perf_counter())
        execute([root], schedule)
        times.append(time.perf_counter())
    seconds = {step: after - start for step, start, after in zip(STEPS, times, times[1:])}
    return {"operations": count, "kernels": len(kernels), **seconds, "peak_bytes": peak_bytes() - before}


def peak_bytes() -> int:
    """The most memory that this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def growth_exponent(runs: list[dict[str, Any]], what: str) -> float:
    """k where the measured amounts grow like n**k: the slope of the line that fits their logarithms best."""
    points = [(math.log(run["operations"]), math.log(max(run[what], 1e-9))) for run in runs]
    x_mean, y_mean = (sum(values) / len(points) for values in zip(*points))
    slope = sum((x - x_mean) * (y - y_mean) for x, y in points)
    return slope / sum((x - x_mean) ** 2 for x, _ in points)
