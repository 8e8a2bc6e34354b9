"""A second opinion on gradients: the slope of the function itself, along a random direction, in double precision.

Values and gradients are found by `evaluate`, so that nothing here runs a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from mixin.evaluate import evaluate

from tensor_engine import Tensor

STEP = 1e-6


def check_gradient(function: Callable[..., Tensor], *arrays: np.ndarray, seed: int = 0, rtol: float = 2e-5) -> None:
    """Assert that the gradients of `function` for all its arguments (float64) are its slopes there."""
    random = np.random.default_rng(seed)
    tensors = [Tensor(array) for array in arrays]
    result = function(*tensors)
    weights = random.normal(size=result.shape)
    gradients = result.gradient(*tensors, gradient=Tensor(weights))
    for number, (tensor, gradient) in enumerate(zip(tensors, gradients)):
        assert (gradient.shape, gradient.dtype) == (tensor.shape, tensor.dtype)
        direction = random.normal(size=tensor.shape)
        expected = slope(result, tensors, list(arrays), number, direction, weights)
        found = (evaluate(gradient.uop) * direction).sum()
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=2e-6, err_msg=f"argument {number}")


def slope(
    result: Tensor,
    tensors: Sequence[Tensor],
    arrays: Sequence[np.ndarray],
    number: int,
    direction: np.ndarray,
    weights: np.ndarray,
) -> float:
    """The central difference of the weighted result, when one argument moves in a direction."""

    def moved(distance: float) -> np.ndarray:
        changed = [array + distance * direction if i == number else array for i, array in enumerate(arrays)]
        return evaluate(result.uop, {t.uop.base: a.ravel() for t, a in zip(tensors, changed) if a.size})

    return float((weights * (moved(STEP) - moved(-STEP))).sum() / (2 * STEP))
