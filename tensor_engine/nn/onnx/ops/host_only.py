"""Operators that are computed while the graph is built, or not at all.

What they give is text, or has a size that depends on values; a graph of tensors with fixed shapes has no place for
either. On values that are known at that time they are as good as any other.
"""

import numpy as np

from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.tensor import Tensor


@operator("Compress", "MelWeightMatrix", "NonMaxSuppression", "NonZero", "Unique")
def size_depends_on_values(*inputs: np.ndarray | Tensor, **attributes: object) -> None:
    raise OnnxError(
        "the size of its result depends on the values of its inputs, but a program has fixed shapes: "
        "name the values before it as `outputs`, or export the model without it"
    )


@operator("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer")
@operator("LabelEncoder", domain="ai.onnx.ml")
def text(*inputs: np.ndarray | Tensor, **attributes: object) -> None:
    raise OnnxError("text is handled only where it is known when the graph is built")


@operator("Constant", "ImageDecoder")
def known(*inputs: np.ndarray | Tensor, **attributes: object) -> None:
    raise OnnxError("it needs inputs that are known when the graph is built")
