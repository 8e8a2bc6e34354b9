"""Control flow: a graph has none, so branches are chosen and loops are unrolled while it is built."""

from collections.abc import Callable

import numpy as np

from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.nn.onnx.value import Value, is_host, to_tensor
from tensor_engine.tensor import Tensor

Body = Callable[..., list[Value]]  # a subgraph as a function


@operator("If")
def if_(
    condition: np.ndarray | Tensor, *, then_branch: Body, else_branch: Body
) -> tuple[Value, ...]:
    """One branch if the condition is known; otherwise both, and the result is chosen element by element."""
    if isinstance(condition, Tensor):
        return tuple(_choose(condition, a, b) for a, b in zip(then_branch(), else_branch()))
    return tuple(then_branch() if condition.item() else else_branch())


def _choose(condition: Tensor, a: Value, b: Value) -> Tensor:
    a, b = to_tensor(a, condition.device), to_tensor(b, condition.device)
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or a.shape != b.shape:
        raise OnnxError(
            "its condition is computed from tensors, and its branches give results of different shapes"
        )
    return condition.reshape(()).where(a, b)


@operator("Loop")
def loop(
    trip_count: np.ndarray | None,
    condition: np.ndarray | None,
    *state: Value,
    body: Body,
    output_count: int,
) -> tuple[Value, ...]:
    """The body once for each trip while the condition holds; then the state and, stacked, what each trip gave."""
    values = list(state)
    scanned: list[list[Value]] = [[] for _ in range(output_count - len(state))]
    trip = 0
    while (trip_count is None or trip < trip_count.item()) and (
        condition is None or condition.item()
    ):
        condition, *results = body(np.array(trip, np.int64), _or_true(condition), *values)
        if not is_host(condition):
            raise OnnxError(
                "whether to go on is computed from tensors: the number of trips must be known"
            )
        values = results[: len(state)]
        for row, value in zip(scanned, results[len(state) :]):
            row.append(value)
        trip += 1
    return (*values, *(_stacked(row, 0) for row in scanned))


def _or_true(condition: np.ndarray | None) -> np.ndarray:
    return np.array(True) if condition is None else condition


def _stacked(rows: list[Value], axis: int) -> Value:
    if not rows:
        raise OnnxError("it makes no trip, so the shape of what it collects is not known")
    if all(is_host(row) for row in rows):
        return np.stack(rows, axis)
    tensors = [to_tensor(row) for row in rows]
    return tensors[0].stack(*tensors[1:], dim=axis)


@operator("Scan")
def scan_of_batch(
    lengths: Value,
    *values: Value,
    body: Body,
    num_scan_inputs: int,
    directions: list[int] | None = None,
) -> tuple[Value, ...]:
    """Opset 8: all values have a batch dimension in front, and sequences their whole length."""
    if lengths is not None:
        raise OnnxError("sequences of different lengths are not supported")
    rows = [
        scan(
            *(v[i] for v in values),
            body=body,
            num_scan_inputs=num_scan_inputs,
            scan_input_directions=directions,
        )
        for i in range(values[0].shape[0])
    ]
    return tuple(_stacked(list(column), 0) for column in zip(*rows))


@operator("Scan", since=9)
def scan(
    *values: Value,
    body: Body,
    num_scan_inputs: int,
    scan_input_axes: list[int] | None = None,
    scan_input_directions: list[int] | None = None,
    scan_output_axes: list[int] | None = None,
    scan_output_directions: list[int] | None = None,
) -> tuple[Value, ...]:
    """The body once for each slice of the scanned inputs, passing the state on."""
    split = len(values) - num_scan_inputs
    state, scanned = list(values[:split]), values[split:]
    axes = scan_input_axes or [0] * num_scan_inputs
    backward = scan_input_directions or [0] * num_scan_inputs
    rows: list[list[Value]] = []
    for step in range(scanned[0].shape[axes[0]]):
        results = body(*state, *(_slice(v, a, b, step) for v, a, b in zip(scanned, axes, backward)))
        state = results[:split]
        rows.append(results[split:])
    columns = list(zip(*rows))
    out_axes = scan_output_axes or [0] * len(columns)
    out_backward = scan_output_directions or [0] * len(columns)
    collected = [
        _stacked(list(c[::-1] if b else c), a) for c, a, b in zip(columns, out_axes, out_backward)
    ]
    return (*state, *collected)


def _slice(value: Value, axis: int, backward: int, step: int) -> Value:
    position = value.shape[axis] - 1 - step if backward else step
    return value[(slice(None),) * (axis % len(value.shape)) + (position,)]


@operator("SequenceMap")
def sequence_map(
    sequence: Value, *others: Value, body: Body, output_count: int
) -> tuple[list[Value], ...]:
    """The body on each element; other sequences go along with it, tensors are the same every time."""
    rows = [
        body(item, *(o[i] if isinstance(o, list) else o for o in others))
        for i, item in enumerate(sequence)
    ]
    return tuple([row[i] for row in rows] for i in range(output_count))
