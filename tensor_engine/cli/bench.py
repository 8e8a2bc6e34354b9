"""`tensor-engine bench`: how long a captured call of a network takes, and how steadily."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tensor_engine.cli.console import milliseconds, print_json, print_table, progress
from tensor_engine.cli.networks import captured, open_network, random_input
from tensor_engine.cli.options import FILE, as_json
from tensor_engine.cli.scaling import report_scaling
from tensor_engine.perception.extras import require
from tensor_engine.perception.network import Network
from tensor_engine.perception.timing import percentile
from tensor_engine.tensor import Tensor

PERCENTS = (50, 90, 99, 99.9)
WARM_UP = 3  # calls before the clock starts: ours runs, captures and replays once

Call = Callable[[], Any]


@click.command()
@click.argument("model", type=FILE, required=False)
@click.option("--runs", type=click.IntRange(min=1), default=200, show_default=True, help="Calls of each engine.")
@click.option("--against", type=click.Choice(["onnxruntime"]), help="Another engine, called in turn on one thread.")
@click.option("--scaling", is_flag=True, help="Measure no MODEL, but graphs of 1000 to 8000 operations.")
@as_json
def bench(model: Path | None, runs: int, against: str | None, scaling: bool, as_json: bool) -> None:
    """Measure the network of MODEL on one thread: the first call, and then percentiles of the
    captured ones.

    The engines take turns, call by call, so that a disturbance meets both. A percentile that the
    number of runs cannot tell is left out.

    With --scaling: the seconds that building, scheduling, compiling and running a graph take, and
    the peak of its memory, each with the exponent by which it grows with the number of operations.
    """
    if scaling == (model is not None):
        raise click.UsageError("give a MODEL, or --scaling and no MODEL")
    if model is None:
        return report_scaling(as_json)
    report = measure(model, runs, against)
    if as_json:
        return print_json(report)
    columns = {"engine": "left", "first call": "right", "min": "right"}
    columns |= {f"p{percent}": "right" for percent in PERCENTS} | {"max": "right"}
    rows = [[name, *map(cell, values.values())] for name, values in report["engines"].items()]
    print_table(f"{model}, {runs} runs, one thread, ms", columns, rows)


def cell(seconds: float | None) -> str:
    """Milliseconds; a dash where too few runs can tell."""
    return "–" if seconds is None else milliseconds(seconds)


def measure(model: Path, runs: int, against: str | None) -> dict[str, Any]:
    """Seconds of the first call and of the later ones, for each engine."""
    network = open_network(model)
    image = random_input(network)
    ours = captured(network)
    calls: dict[str, Call] = {"tensor_engine": lambda: ours(image)}
    if against:
        calls[against] = onnxruntime_call(model, network, image)
    firsts = {name: warmed_up(call) for name, call in calls.items()}
    samples = interleaved(calls, runs)
    engines = {name: {"first": firsts[name], **summary(samples[name])} for name in calls}
    return {"model": str(model), "runs": runs, "input": list(network.input_shape), "engines": engines}


def onnxruntime_call(model: Path, network: Network, image: Tensor) -> Call:
    """A call of the same network in onnxruntime, on one thread."""
    runtime = require("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = runtime.InferenceSession(fixed_size(model, network), options, providers=["CPUExecutionProvider"])
    given = {network.input: image.numpy()}
    return lambda: session.run(None, given)


def fixed_size(path: Path, network: Network) -> bytes:
    """The model file with the input size that the network was given."""
    model = require("onnx").load(str(path))
    declared = next(value for value in model.graph.input if value.name == network.input)
    for dimension, size in zip(declared.type.tensor_type.shape.dim, network.input_shape):
        dimension.dim_value = size
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return model.SerializeToString()


def warmed_up(call: Call) -> float:
    """The seconds of the first call; then calls until it has settled."""
    first = timed(call)
    for _ in range(WARM_UP - 1):
        call()
    return first


def interleaved(calls: dict[str, Call], runs: int) -> dict[str, list[float]]:
    """The seconds of each call, all engines in turn."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    with progress() as bar:
        task = bar.add_task("measuring", total=runs)
        for _ in range(runs):
            for name, call in calls.items():
                samples[name].append(timed(call))
            bar.update(task, advance=1)
    return samples


def timed(call: Call) -> float:
    """The seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def summary(samples: list[float]) -> dict[str, float | None]:
    """The least, the percentiles that so many samples can tell, and the greatest."""
    known = {percent: len(samples) * (100 - percent) / 100 >= 1 for percent in PERCENTS}
    middle = {f"p{p}": percentile(samples, p) if known[p] else None for p in PERCENTS}
    return {"min": min(samples), **middle, "max": max(samples)}
