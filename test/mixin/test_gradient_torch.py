"""First and second derivatives against PyTorch, where it is installed: also at corners, which have no slope."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from mixin.differentiable import ARRANGED, ELEMENTWISE, PAIRS, REDUCTIONS
from mixin.evaluate import evaluate

from tensor_engine import Tensor

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")

shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
rows = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=4, derandomize=True, phases=[Phase.generate])


def agree(ours, theirs, *arrays, rtol=1e-7, atol=1e-7):
    """Assert that both functions have the same values, the same gradients for the same random weights of their results,
    and that these gradients, weighted again, have the same gradients.
    """
    mine = [Tensor(array) for array in arrays]
    others = [torch.tensor(array, requires_grad=True) for array in arrays]
    result, expected = ours(*mine), theirs(*others)
    assert result.shape == tuple(expected.shape)
    np.testing.assert_allclose(evaluate(result.uop), expected.numpy(force=True), rtol=rtol, atol=atol)
    random = np.random.default_rng(0)
    weights, again = random.normal(size=result.shape), [random.normal(size=array.shape) for array in arrays]
    first = result.gradient(*mine, gradient=Tensor(weights))
    their_first = torch.autograd.grad(expected, others, torch.tensor(weights), create_graph=True)
    second = total(first, map(Tensor, again)).gradient(*mine, materialize_grads=True)
    for gradient, other in zip((*first, *second), (*their_first, *second_derivatives(their_first, again, others))):
        np.testing.assert_allclose(evaluate(gradient.uop), other.numpy(force=True), rtol=rtol, atol=atol)


def total(gradients, weights):
    return sum((gradient * weight).sum() for gradient, weight in zip(gradients, weights))


def second_derivatives(gradients, weights, others):
    value = total(gradients, map(torch.tensor, weights))
    if not value.requires_grad:
        return [torch.zeros_like(other) for other in others]
    return torch.autograd.grad(value, others, materialize_grads=True)


def check(case, shapes, seed):
    tolerance = 1e-5 if case.approximate else 1e-7
    agree(case.ours, case.theirs, *case.arguments(shapes, seed), rtol=tolerance, atol=tolerance)


def identify(case):
    return case.method


@pytest.mark.parametrize("case", ELEMENTWISE, ids=identify)
@given(shape=shapes, seed=seeds)
@few
def test_functions(case, shape, seed):
    check(case, (shape,), seed)


@pytest.mark.parametrize("case", PAIRS, ids=identify)
@given(shape=shapes, seed=seeds, axis=st.integers(0, 2))
@few
def test_pairs(case, shape, seed, axis):
    narrow = tuple(1 if i == axis else size for i, size in enumerate(shape))
    check(case, (shape, narrow), seed)


@pytest.mark.parametrize("case", REDUCTIONS, ids=identify)
@given(shape=rows, seed=seeds)
@few
def test_reductions(case, shape, seed):
    check(case, (shape,), seed)


@pytest.mark.parametrize("case", ARRANGED, ids=identify)
def test_other_methods(case):
    check(case, case.shapes, 5)


def test_second_derivatives_of_compositions():
    x = np.random.default_rng(5).normal(size=(3, 4))
    agree(lambda x: x.tanh() * x.softmax(-1), lambda x: x.tanh() * x.softmax(-1), x)
    agree(lambda x: (x @ x.T).relu().sum(1).sqrt(), lambda x: (x @ x.T).relu().sum(1).sqrt(), x)


# ---- corners and ties -------------------------------------------------------------------------------------------


def corners(shape, seed):
    """Halves from -2 to 2: many are equal, many are 0."""
    return np.random.default_rng(seed).integers(-4, 5, shape) / 2


def agree_at_corners(ours, theirs, *arrays):
    mine, others = [Tensor(a) for a in arrays], [torch.tensor(a, requires_grad=True) for a in arrays]
    gradients = ours(*mine).sum().gradient(*mine)
    for gradient, other in zip(gradients, torch.autograd.grad(theirs(*others).sum(), others)):
        np.testing.assert_allclose(evaluate(gradient.uop), other.numpy(), rtol=1e-7, atol=1e-5)


EDGELESS = {"clamp", "hardtanh", "unless_positive", "distance_from_zero"}  # PyTorch decides otherwise at their edges
DEFINED = [case for case in ELEMENTWISE if case.low == -2 and case.method not in EDGELESS and case.has_slope]


@pytest.mark.parametrize("case", DEFINED, ids=identify)
@given(shape=rows, seed=seeds)
@few
def test_functions_at_corners(case, shape, seed):
    agree_at_corners(case.ours, case.theirs, corners(shape, seed))


@pytest.mark.parametrize("name", ["maximum", "minimum", "mul", "where"])
@given(shape=rows, seed=seeds)
@few
def test_pairs_at_ties(name, shape, seed):
    case = next(case for case in PAIRS if case.method == name)
    agree_at_corners(case.ours, case.theirs, corners(shape, seed), corners(shape, seed + 1))


@pytest.mark.parametrize("name", ["prod", "max", "min", "cumprod", "softmax", "logsumexp", "var"])
@given(shape=rows, seed=seeds)
@few
def test_reductions_at_ties(name, shape, seed):
    case = next(case for case in REDUCTIONS if case.method == name)
    agree_at_corners(case.ours, case.theirs, corners(shape, seed))
