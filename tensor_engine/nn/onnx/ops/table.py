"""The operator table: one Python function for each ONNX operator, found by domain, name and opset.

The signature of such a function is its whole declaration. Positional parameters are the operator's inputs, in the
specification's order: one annotated `Tensor` is handed over as a Tensor, `np.ndarray` as a host array (the value
must be known while the graph is built), both as a host array if possible, `Value` as it comes. Keyword parameters
are the attributes, with the specification's defaults. The keyword `output_count`, where there is one, is the number
of outputs the node asks for.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np

from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.nn.onnx.value import Value, is_host, to_tensor
from tensor_engine.tensor import Tensor

Function = Callable[..., Any]
OUTPUT_COUNT = "output_count"


@dataclass(frozen=True)
class Operator:
    """One row of the table: what an operator means from opset `since` on."""

    domain: str
    name: str
    since: int
    function: Function

    @cached_property
    def _parameters(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self.function).parameters.values())

    @cached_property
    def inputs(self) -> list[inspect.Parameter]:
        return [p for p in self._parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]

    def has_attribute(self, name: str) -> bool:
        return any(p.kind == p.VAR_KEYWORD or p.name == name for p in self._parameters)

    @cached_property
    def counts_outputs(self) -> bool:
        return any(p.name == OUTPUT_COUNT for p in self._parameters)

    def input(self, position: int) -> inspect.Parameter:
        """The parameter that takes the input at a position; the last one may take all that follow."""
        return self.inputs[min(position, len(self.inputs) - 1)]

    def takes(self, kind: type, position: int) -> bool:
        """Whether the input at a position may be a `Tensor`, or an `np.ndarray`, by its declaration."""
        annotation = self.input(position).annotation
        return kind in (annotation, *get_args(annotation))

    def needs(self, kind: type, position: int) -> bool:
        """Whether it must be one."""
        return all(self.takes(k, position) == (k is kind) for k in (Tensor, np.ndarray))

    def __call__(
        self,
        inputs: list[Value],
        attributes: dict[str, Any],
        output_count: int,
        device: str | None = None,
    ) -> tuple[Value, ...]:
        """Builds the operator's outputs from its inputs."""
        arguments = [self._argument(i, value, device) for i, value in enumerate(inputs)]
        if self.counts_outputs:
            attributes = {**attributes, OUTPUT_COUNT: output_count}
        result = self.function(*arguments, **attributes)
        return result if isinstance(result, tuple) else (result,)

    def _argument(self, position: int, value: Value, device: str | None) -> Value:
        if value is None:
            return None
        if self.needs(Tensor, position):
            return to_tensor(value, device)
        if self.needs(np.ndarray, position) and not is_host(value):
            raise OnnxError(
                f"its input '{self.input(position).name}' decides shapes, so it must be known when the graph is built, "
                "but it is computed from the values of tensors"
            )
        return value


_TABLE: dict[tuple[str, str], list[Operator]] = {}


def operator(*names: str, since: int = 1, domain: str = "") -> Callable[[Function], Function]:
    """Enters the decorated function into the table, under each of the names."""

    def enter(function: Function) -> Function:
        for name in names:
            rows = _TABLE.setdefault((domain, name), [])
            rows.append(Operator(domain, name, since, function))
            rows.sort(key=lambda row: row.since)
        return function

    return enter


def find_operator(domain: str, name: str, opset: int) -> Operator | None:
    """The newest row that holds for the opset, or None where the operator is not in the table."""
    rows = [row for row in _TABLE.get((domain, name), []) if row.since <= opset]
    return rows[-1] if rows else None


def operator_names() -> list[tuple[str, str]]:
    """(domain, name) of all operators in the table."""
    return sorted(_TABLE)
