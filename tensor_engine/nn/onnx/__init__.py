"""ONNX import: `OnnxRunner(path)(inputs)` builds the outputs of a model as lazy Tensors."""

from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.nn.onnx.runner import OnnxRunner
from tensor_engine.nn.onnx.spec import TensorSpec

__all__ = ["OnnxError", "OnnxRunner", "TensorSpec"]
