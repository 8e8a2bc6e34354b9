"""Gradients of all operations: against the slopes of the functions themselves, and at the places where others fail."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from mixin.derivative import check_gradient
from mixin.differentiable import ARRANGED, CASES, ELEMENTWISE, NO_GRADIENT, PAIRS, REDUCTIONS, words
from mixin.evaluate import evaluate

from tensor_engine import Tensor, dtypes
from tensor_engine.uop.gradient import GradientError

shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=4, derandomize=True, phases=[Phase.generate])


def values(shape, seed, low=-2.0, high=2.0):
    return np.random.default_rng(seed).uniform(low, high, shape)


# ---- every method ------------------------------------------------------------------------------------------------


def identify(case):
    return case.method


def narrowed(shape, axis):
    """The shape with one axis that broadcasts."""
    return tuple(1 if i == axis else size for i, size in enumerate(shape))


@pytest.mark.parametrize("case", [case for case in ELEMENTWISE if case.has_slope], ids=identify)
@given(shape=shapes, seed=seeds)
@few
def test_functions(case, shape, seed):
    check_gradient(case.ours, *case.arguments((shape,), seed), seed=seed)


@pytest.mark.parametrize("case", PAIRS, ids=identify)
@given(shape=shapes, seed=seeds, axis=st.integers(0, 2))
@few
def test_pairs_broadcast(case, shape, seed, axis):
    check_gradient(case.ours, *case.arguments((shape, narrowed(shape, axis)), seed), seed=seed)


@pytest.mark.parametrize("case", REDUCTIONS, ids=identify)
@given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple), seed=seeds)
@few
def test_reductions(case, shape, seed):
    check_gradient(case.ours, *case.arguments((shape,), seed), seed=seed)


@pytest.mark.parametrize("case", ARRANGED, ids=identify)
def test_other_methods(case):
    check_gradient(case.ours, *case.arguments(case.shapes, 5))


def test_no_method_is_without_a_case_or_a_reason():
    public = {name for name in dir(Tensor) if not name.startswith("_")}
    aliases = {name for name in public for first in public if name > first and is_alias(name, first)}
    tested = {case.method for case in CASES}
    excused = set().union(*map(words, NO_GRADIENT.values()))
    assert public - aliases - tested - excused == set(), "add cases to differentiable.py"
    assert (tested | excused) - public - {"__getitem__"} == set(), "these are gone"
    assert tested & excused == set()


def is_alias(name, first):
    """Is it another name of the same function?"""
    function = getattr(Tensor, name)
    return callable(function) and function == getattr(Tensor, first)


@pytest.mark.parametrize("name", sorted(words(NO_GRADIENT["constant in steps"])))
def test_functions_that_are_constant_in_steps_give_zero(name):
    x = Tensor([-1.5, 0.25, 2.5])
    result = x.floordiv(2.0) if name == "floordiv" else getattr(x, name)()
    assert result.sum().gradient(x, materialize_grads=True)[0].tolist() == [0, 0, 0]


# ---- more than one argument tells -------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [1, 2, 3, -1, -2, 0.5, 2.5, -0.5])
def test_constant_powers(exponent):
    check_gradient(lambda x: x**exponent, values((3, 4), 2, 0.3, 2))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "var", "logsumexp"])
def test_reductions_of_several_axes(name):
    for axes in [(0, 2), (1, 2), None]:
        check_gradient(lambda x, axes=axes: getattr(x, name)(axes), values((2, 3, 2), 3, 0.3, 2))


def test_long_scans():
    for scan in (Tensor.cumsum, lambda x: x.cummax()[0], Tensor.logcumsumexp):
        check_gradient(scan, values((300,), 4, 0.9, 1.1))


MOVEMENTS = {
    "pad": lambda x: x.pad([(1, 2), (0, 0), (2, 1)], value=3),
    "pad and cut": lambda x: x.pad([(-1, 1), (0, -1), (2, 0)]),
    "slices": lambda x: x[:, ::-2, 1:4:2],
    "picked twice": lambda x: x[[[0, 1]], :, Tensor([1, 1])],
    "cast": lambda x: x.cast(dtypes.float64) * x.int().cast(dtypes.float64),
}


@pytest.mark.parametrize("name", MOVEMENTS)
def test_movement(name):
    check_gradient(MOVEMENTS[name], values((2, 3, 4), 5))


@given(m=st.integers(0, 4), k=st.integers(0, 4), n=st.integers(1, 4), batch=st.lists(st.integers(1, 2), max_size=2))
@few
def test_matmul(m, k, n, batch):
    check_gradient(lambda x, y: x @ y, values((*batch, m, k), m), values((k, n), n))


# ---- second derivatives -----------------------------------------------------------------------------------------

TWICE = {
    "tanh": lambda x: x.tanh(),
    "div": lambda x: 1 / (x * x + 1),
    "log": lambda x: (x * x + 0.1).log() ** 2,
    "prod": lambda x: x.prod(1),
    "softmax": lambda x: x.softmax(1),
    "sqrt": lambda x: (x * x + 1).sqrt(),
    "max": lambda x: x.square().max(1),
    "cumprod": lambda x: x.cumprod(1),
    "conv": lambda x: x.reshape(1, 1, 3, 4).conv2d(x[:2, :2].reshape(1, 1, 2, 2), padding=1),
}


@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives(name):
    def first(x: Tensor) -> Tensor:
        return TWICE[name](x).square().sum().gradient(x)[0]

    check_gradient(first, values((3, 4), 16), rtol=1e-4)


def test_third_derivative():
    x = Tensor([1.0, 2.0, 3.0])
    result = x**4
    for _ in range(3):
        result = result.sum().gradient(x)[0]
    np.testing.assert_allclose(result.numpy(), [24, 48, 72], rtol=1e-6)


def test_second_derivative_where_the_first_is_zero():
    x = Tensor([1.0])
    first = x.log().square().sum().gradient(x)[0]
    second = first.sum().gradient(x)[0]
    assert (first.item(), second.item()) == (0, 2)


# ---- where others fail ------------------------------------------------------------------------------------------


def gradient_at(function, *numbers, dtype=None):
    x = Tensor(list(numbers), dtype=dtype)
    return function(x).sum().gradient(x)[0].tolist()


def test_products_with_zeros():
    assert gradient_at(Tensor.prod, 0.0, 2, 3) == [6, 0, 0]
    assert gradient_at(Tensor.prod, 0.0, 0, 3) == [0, 0, 0]
    assert gradient_at(lambda x: x.cumprod(0), 0.0, 2, 3) == [1 + 2 + 6, 0, 0]


def test_equal_extremes_share():
    assert gradient_at(Tensor.max, 1.0, 3, 3) == [0, 0.5, 0.5]
    assert gradient_at(Tensor.min, 1.0, 1, 3) == [0.5, 0.5, 0]
    assert gradient_at(lambda x: x.maximum(Tensor([1.0, 2.0])), 1.0, 1.0) == [0.5, 0]


def test_corners_belong_to_the_number():
    assert gradient_at(Tensor.relu, -1.0, 0, 1) == [0, 0, 1]
    assert gradient_at(Tensor.relu6, -1.0, 0, 1, 6, 7) == [0, 0, 1, 0, 0]
    assert gradient_at(Tensor.hardtanh, -1.0, 0, 1) == [0, 1, 0]


def test_smooth_functions_are_smooth_at_zero():
    for smooth, slope in [
        (Tensor.tanh, 1), (Tensor.erf, 2 / math.sqrt(math.pi)), (Tensor.asinh, 1), (Tensor.elu, 1), (Tensor.celu, 1),
        (Tensor.softplus, 0.5), (Tensor.logsigmoid, 0.5), (Tensor.sigmoid, 0.25), (Tensor.softsign, 1),
    ]:  # fmt: skip
        np.testing.assert_allclose(gradient_at(smooth, 0.0, -0.0), [slope, slope], rtol=1e-6)
    assert gradient_at(Tensor.abs, -1.0, 0.0, 1.0) == [-1, 0, 1]


def test_what_was_not_chosen_has_no_gradient():
    assert gradient_at(lambda x: (x > 0).where(x.sqrt(), 0), 0.0, 4, -1) == [0, 0.25, 0]
    assert gradient_at(lambda x: (x > 0).where(1 / x, 0), 0.0, 2) == [0, -0.25]
    assert gradient_at(lambda x: (x > 0).where(x * x.log(), 0), 0.0, 1) == [0, 1]
    assert gradient_at(lambda x: (x < 10).where(x.exp(), 0), 1000.0, 0) == [0, 1]
    assert gradient_at(lambda x: (x > 0).where(x.reshape(2, 1).log().reshape(2), x), 0.0, 2) == [1, 0.5]


def test_choices_within_choices():
    def function(x: Tensor) -> Tensor:
        inner = (x > 1).where((x - 1).log() * (x - 1).sqrt(), x)
        return (x > 0).where(inner / x, 0)

    assert gradient_at(function, 0.0, 0.5, 1.0) == [0, 0, 0]
    check_gradient(function, np.array([-1.0, 0.5, 1.5, 3.0]))


def test_norms_of_zeros():
    x = Tensor([[0.0, 0.0], [3.0, 4.0]])
    norm = x.square().sum(1, keepdim=True).sqrt()
    (found,) = (norm > 0).where(x / norm, 0).sum().gradient(x)
    np.testing.assert_allclose(found.numpy(), [[0, 0], [0.032, -0.024]], rtol=1e-5)


def test_slopes_at_infinity_and_nan():
    assert gradient_at(Tensor.sigmoid, -math.inf, -1000.0, 1000.0, math.inf) == [0, 0, 0, 0]
    assert gradient_at(Tensor.tanh, -math.inf, -1000.0, 0.0, 1000.0) == [0, 0, 1, 0]
    assert gradient_at(Tensor.softplus, -1000.0, 1000.0) == [0, 1]
    assert math.isnan(gradient_at(Tensor.exp, math.nan)[0])


def test_half_adds_up_in_more_than_half():
    x = Tensor([1.0], dtype=dtypes.float16)
    assert x.expand(5000).sum().gradient(x)[0].item() == 5000
    ones = Tensor.ones(70000, dtype=dtypes.float16).contiguous()
    found = ones.max().gradient(ones)[0].numpy()
    np.testing.assert_allclose(found, np.full(70000, 1 / 70000), rtol=0.01)


def test_cumsum_of_many():
    x = Tensor(np.ones(1022, np.float32))
    np.testing.assert_array_equal(x.cumsum().sum().gradient(x)[0].numpy(), np.arange(1022, 0, -1))


def test_a_batch_of_none_teaches_nothing():
    weight = Tensor(np.ones((3, 2), np.float32))
    loss = (Tensor.zeros(0, 3) @ weight).square().sum() + weight.sum() * 0
    assert loss.gradient(weight)[0].tolist() == [[0, 0]] * 3
    nothing = Tensor(np.zeros((0, 3), np.float32))
    assert (nothing @ weight).sum().gradient(weight)[0].tolist() == [[0, 0]] * 3
    assert nothing.prod(0).tolist() == [1, 1, 1] and nothing.sum().item() == 0


# ---- what has none ----------------------------------------------------------------------------------------------


def test_detached_and_whole_numbers_stop_it():
    x = Tensor([1.5, 2.5])
    steps = [x.sign(), x.trunc(), (x > 2).float(), x.int().float(), x.bitcast(dtypes.int32).float()]
    for stopped in [x.detach() * 2, *steps]:
        with pytest.raises(GradientError, match="doesn't depend"):
            stopped.sum().gradient(x)
        assert stopped.sum().gradient(x, materialize_grads=True)[0].tolist() == [0, 0]
    np.testing.assert_array_equal(evaluate((x * x.detach()).sum().gradient(x)[0].uop), [1.5, 2.5])


def test_errors():
    x, number = Tensor([1.0, 2.0]), Tensor([1, 2])
    with pytest.raises(ValueError, match="one element"):
        x.gradient(x)
    with pytest.raises(ValueError, match=r"\(2,\) can't have shape \(3,\)"):
        x.gradient(x, gradient=Tensor.ones(3))
    with pytest.raises(TypeError, match="only floats"):
        number.sum().gradient(x)
    with pytest.raises(GradientError, match="only floats"):
        x.sum().gradient(number)
