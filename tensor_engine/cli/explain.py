"""`tensor-engine explain`: the kernels that a network became."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tensor_engine.cli.console import print_json, print_line, print_table, progress
from tensor_engine.cli.networks import captured, open_network, random_input
from tensor_engine.cli.options import FILE, as_json
from tensor_engine.device import Device
from tensor_engine.engine.realize import Launch
from tensor_engine.helpers import Context

REPEATS = 5  # the fastest of so many runs is a kernel's time


@click.command()
@click.argument("model", type=FILE)
@as_json
def explain(model: Path, as_json: bool) -> None:
    """List the kernels of MODEL's captured network in the order in which they run, with the options
    chosen for each.

    An option is a choice of strategy for a loop: OPTION(loop, size). The time is the best of a few
    runs alone.
    """
    network = open_network(model)
    image, program = random_input(network), captured(network)
    with progress() as bar, Context(JIT=1):
        bar.add_task("compiling", total=None)
        program(image)
        program(image)
    assert program.captured is not None, "the second call captures"
    kernels = [describe(launch) for launch in program.captured.launches]
    if as_json:
        return print_json({"model": str(model), "device": Device.DEFAULT, "kernels": kernels})
    columns = {"": "right", "kernel": "left", "µs": "right", "GFLOPS": "right", "GB/s": "right", "options": "left"}
    print_table(str(model), columns, (row(number, kernel) for number, kernel in enumerate(kernels, 1)))
    print_line(f"{len(kernels)} kernels, {sum(kernel['seconds'] for kernel in kernels) * 1e3:.2f} ms alone")


def describe(launch: Launch) -> dict[str, Any]:
    """A launch's name, options, operations, bytes and time."""
    if launch.kernel is None:
        return {"name": "copy", "options": "", "operations": 0, "bytes": launch.buffers[0].nbytes, "seconds": 0.0}
    kernel = launch.kernel
    handles = [buffer.opaque for buffer in launch.buffers]
    runs = [kernel.program(*handles, vals=launch.vals, wait=True) or 0.0 for _ in range(REPEATS)]
    return {
        "name": kernel.name,
        "options": kernel.options,
        "operations": kernel.operations,
        "bytes": kernel.bytes_moved,
        "seconds": min(runs),
    }


def row(number: int, kernel: dict[str, Any]) -> list[str]:
    """Number, name, time, rates and options."""
    seconds = kernel["seconds"] or float("nan")
    rates = [f"{kernel[amount] / seconds / 1e9:.1f}" for amount in ("operations", "bytes")]
    return [str(number), kernel["name"], f"{seconds * 1e6:.1f}", *rates, kernel["options"][1:-1].rstrip(",")]
