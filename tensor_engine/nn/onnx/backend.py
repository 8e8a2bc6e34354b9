"""The standard interface of ONNX backends: `prepare(model).run(inputs)`, as `onnx.backend.base` describes it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto
from onnx.backend.base import Backend, BackendRep

from tensor_engine.dtype import dtypes
from tensor_engine.nn.onnx.runner import OnnxRunner
from tensor_engine.nn.onnx.value import Value, numpy_dtype_of
from tensor_engine.tensor import Tensor


class TensorEngineBackend(Backend):
    """Runs ONNX models, from arrays to arrays."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **options: Any) -> "PreparedModel":
        """A model that can be run. Devices are those of the engine."""
        return PreparedModel(model, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models run on the device, by ONNX's name."""
        return device == "CPU"


class PreparedModel(BackendRep):
    """A model for inputs of any shape: it is loaded anew for shapes that differ from those declared."""

    def __init__(self, model: ModelProto, device: str) -> None:
        super().__init__()
        self._model, self._device = model, device
        self._runners: dict[tuple[tuple[int, ...] | None, ...], OnnxRunner] = {}

    def run(self, inputs: Sequence[Value], **options: Any) -> tuple[Any, ...]:
        """The outputs for the inputs, both in the order in which the model lists them."""
        weights = {weight.name for weight in self._model.graph.initializer}
        names = [i.name for i in self._model.graph.input if i.name not in weights]
        feeds = {
            name: np.asarray(v) if isinstance(v, np.generic) else v
            for name, v in zip(names, inputs)
        }
        outputs = self._runner(feeds)(feeds)
        return tuple(_as_array(value) for value in outputs.values())

    def _runner(self, feeds: dict[str, Value]) -> OnnxRunner:
        shapes = {name: v.shape for name, v in feeds.items() if isinstance(v, np.ndarray)}
        key = tuple(shapes.get(name) for name in feeds)
        if key not in self._runners:
            self._runners[key] = OnnxRunner(self._model, input_shapes=shapes, device=self._device)
        return self._runners[key]


def _as_array(value: Value) -> Any:
    if isinstance(value, list):
        return [_as_array(item) for item in value]
    if not isinstance(value, Tensor):
        return value
    if value.dtype == dtypes.bfloat16:
        return value.bitcast(dtypes.uint16).numpy().view(numpy_dtype_of(value.dtype))
    return value.numpy()
