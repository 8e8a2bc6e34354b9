"""The operators, a file a family. Importing this package fills the table."""

from tensor_engine.nn.onnx.ops import (  # noqa: F401
    activation,
    control,
    conv,
    creation,
    elementwise,
    host_only,
    indexing,
    linear,
    movement,
    normalization,
    pool,
    quantize,
    recurrent,
    reduce,
    resize,
    sampling,
    sequence,
    signal,
)
from tensor_engine.nn.onnx.ops.table import Operator, find_operator, operator, operator_names

__all__ = ["Operator", "find_operator", "operator", "operator_names"]
