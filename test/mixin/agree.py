"""How the tests of this folder compare: the graph's value, found by `evaluate`, with what numpy says."""

from __future__ import annotations

from typing import Any

import numpy as np
from mixin.evaluate import evaluate, numpy_type

from tensor_engine import Tensor
from tensor_engine.dtype import DType


def agree(tensor: Tensor, expected: Any, rtol: float = 1e-6, atol: float = 1e-6, dtype: DType | None = None) -> None:
    """Assert that `tensor` has the shape and values of `expected`, and its type (or `dtype`, if given)."""
    expected = np.asarray(expected)
    assert tensor.shape == expected.shape
    wanted = expected.dtype if dtype is None else numpy_type(dtype)
    assert numpy_type(tensor.dtype) == wanted, f"{tensor.dtype}, numpy {wanted}"
    np.testing.assert_allclose(evaluate(tensor.uop), expected.astype(wanted), rtol=rtol, atol=atol)
