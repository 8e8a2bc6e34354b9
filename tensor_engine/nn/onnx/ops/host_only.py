"""Operators that are computed while the graph is built, or not at all.

What they give is text, or has a size that depends on values; a graph of tensors with fixed shapes has no place for
either. On values that are known at that time they are as good as any other.
"""

import numpy as np

from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.nn.onnx.ops.table import operator

SIZE_DEPENDS_ON_VALUES = ("Compress", "MelWeightMatrix", "NonMaxSuppression", "NonZero", "Unique")
TEXT = ("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer")


@operator("Constant", "ImageDecoder", *SIZE_DEPENDS_ON_VALUES, *TEXT)
@operator("LabelEncoder", domain="ai.onnx.ml")
def on_host_only(*inputs: np.ndarray, **attributes: object) -> None:
    raise OnnxError("it can only be computed from values that are known when the graph is built")
