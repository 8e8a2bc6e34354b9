"""Gradients of all operations: against the slopes of the functions themselves, and at the places where others fail."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from mixin.derivative import check_gradient
from mixin.evaluate import evaluate

from tensor_engine import Tensor, dtypes
from tensor_engine.uop.gradient import GradientError

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=4, derandomize=True, phases=[Phase.generate])


def values(shape, seed, low=-2.0, high=2.0):
    return np.random.default_rng(seed).uniform(low, high, shape)


# ---- one element at a time --------------------------------------------------------------------------------------

ANYWHERE = [
    "exp", "exp2", "sin", "cos", "tan", "sigmoid", "logsigmoid", "silu", "quick_gelu", "tanh", "elu", "celu", "selu",
    "softplus", "mish", "gelu", "erf", "sinh", "cosh", "asinh", "relu", "relu6", "leaky_relu", "hardtanh",
    "hardsigmoid", "hardswish", "softsign", "abs", "square", "neg",
]  # fmt: skip
POSITIVE = ["log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal"]


@pytest.mark.parametrize("name", ANYWHERE)
@given(shape=shapes, seed=seeds)
@few
def test_functions(name, shape, seed):
    check_gradient(lambda x: getattr(x, name)(), values(shape, seed), seed=seed)


@pytest.mark.parametrize("name", POSITIVE)
@given(shape=shapes, seed=seeds)
@few
def test_functions_of_positive_numbers(name, shape, seed):
    check_gradient(lambda x: getattr(x, name)(), values(shape, seed, 0.2, 3), seed=seed)


@pytest.mark.parametrize("name, low, high", [("atanh", -0.8, 0.8), ("acosh", 1.2, 3.0)])
def test_functions_of_some_numbers(name, low, high):
    check_gradient(lambda x: getattr(x, name)(), values((3, 4), 1, low, high))


@pytest.mark.parametrize("exponent", [1, 2, 3, -1, -2, 0.5, 2.5, -0.5])
def test_constant_powers(exponent):
    check_gradient(lambda x: x**exponent, values((3, 4), 2, 0.3, 2))


PAIRS = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "maximum": lambda x, y: x.maximum(y),
    "minimum": lambda x, y: x.minimum(y),
    "pow": lambda x, y: x**y,
    "mod": lambda x, y: x % y,
    "where": lambda x, y: (x > y).where(x, y * 2),
    "lerp": lambda x, y: x.lerp(y, 0.3),
    "copysign": lambda x, y: x.copysign(y - 1) * y,
    "logaddexp": lambda x, y: x.logaddexp(y),
}


@pytest.mark.parametrize("name", PAIRS)
@given(shape=shapes, seed=seeds, axis=st.integers(0, 2))
@few
def test_pairs_broadcast(name, shape, seed, axis):
    narrow = tuple(1 if i == axis else size for i, size in enumerate(shape))
    check_gradient(PAIRS[name], values(shape, seed, 0.3, 2), values(narrow, seed + 1, 0.3, 2), seed=seed)


# ---- many elements at a time ------------------------------------------------------------------------------------

REDUCTIONS = {
    "sum": lambda x, axis: x.sum(axis),
    "mean": lambda x, axis: x.mean(axis),
    "max": lambda x, axis: x.max(axis),
    "min": lambda x, axis: x.min(axis),
    "prod": lambda x, axis: x.prod(axis),
    "var": lambda x, axis: x.var(axis, correction=0),
    "std": lambda x, axis: x.std(axis, correction=-1),
    "logsumexp": lambda x, axis: x.logsumexp(axis),
    "softmax": lambda x, axis: x.softmax(axis),
    "log_softmax": lambda x, axis: x.log_softmax(axis),
    "cumsum": lambda x, axis: x.cumsum(axis),
    "cumprod": lambda x, axis: x.cumprod(axis),
    "cummax": lambda x, axis: x.cummax(axis),
    "cummin": lambda x, axis: x.cummin(axis),
    "sort": lambda x, axis: x.sort(axis)[0],
    "topk": lambda x, axis: x.topk(1, axis)[0],
    "layernorm": lambda x, axis: x.layernorm(axis),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@given(shape=st.lists(st.integers(2, 4), min_size=1, max_size=3).map(tuple), seed=seeds, axis=st.integers(-1, 0))
@few
def test_reductions(name, shape, seed, axis):
    check_gradient(lambda x: REDUCTIONS[name](x, axis), values(shape, seed, 0.2, 2), seed=seed)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "var", "logsumexp"])
def test_reductions_of_several_axes(name):
    for axes in [(0, 2), (1, 2), None]:
        check_gradient(lambda x, axes=axes: getattr(x, name)(axes), values((2, 3, 2), 3, 0.3, 2))


def test_long_scans():
    for scan in (Tensor.cumsum, Tensor.cummax):
        check_gradient(scan, values((300,), 4, 0.9, 1.1))


# ---- other arrangements -----------------------------------------------------------------------------------------

MOVEMENTS = {
    "reshape": lambda x: x.reshape(4, 3, 2),
    "permute": lambda x: x.permute(2, 0, 1),
    "expand": lambda x: x.unsqueeze(1).expand(2, 5, 3, 4),
    "shrink": lambda x: x.shrink([(1, 2), None, (1, 4)]),
    "flip": lambda x: x.flip(0, 2),
    "pad": lambda x: x.pad([(1, 2), (0, 0), (2, 1)], value=3),
    "pad reflect": lambda x: x.pad([(1, 0), (1, 2), (3, 1)], "reflect"),
    "pad replicate": lambda x: x.pad([(1, 0), (1, 2), (3, 1)], "replicate"),
    "pad circular": lambda x: x.pad([(1, 0), (1, 2), (3, 1)], "circular"),
    "pad and cut": lambda x: x.pad([(-1, 1), (0, -1), (2, 0)]),
    "roll": lambda x: x.roll((1, 2), (0, 2)),
    "repeat": lambda x: x.repeat(2, 1, 3),
    "repeat_interleave": lambda x: x.repeat_interleave(3, 1),
    "slices": lambda x: x[:, ::-2, 1:4:2],
    "places": lambda x: x[1, None, ..., 2],
    "picked": lambda x: x[:, [0, 2, 2, -1]],
    "picked twice": lambda x: x[[[0, 1]], :, Tensor([1, 1])],
    "split": lambda x: x.split([1, 2], 1)[1],
    "stack": lambda x: x.stack(x * 2, x, dim=1),
    "tril": lambda x: x.tril(),
    "triu": lambda x: x.triu(1),
    "unfold": lambda x: x.unfold(2, 3, 1),
    "diagonal": lambda x: x[0, :, :3].diagonal(),
    "masked_fill": lambda x: x.masked_fill(x > 0.5, 0.0),
    "cast": lambda x: x.cast(dtypes.float64) * x.int().cast(dtypes.float64),
    "contiguous": lambda x: x.contiguous() * x.clone(),
    "detach": lambda x: x + 0 * x.detach(),
}


@pytest.mark.parametrize("name", MOVEMENTS)
def test_movement(name):
    check_gradient(MOVEMENTS[name], values((2, 3, 4), 5))


def test_joined():
    check_gradient(lambda x, y, z: x.cat(y, z, dim=1).square(), *(values((2, n, 3), n) for n in (1, 2, 3)))


def test_gather_and_scatter():
    index = Tensor([[0, 2, 2], [1, 1, 0]])
    check_gradient(lambda x: x.gather(1, index), values((2, 4), 6))
    for reduce in (None, "add", "multiply", "max", "min"):
        check_gradient(
            lambda x, y, reduce=reduce: x.scatter(1, index, y, reduce), values((2, 4), 7, 0.5, 2), values((2, 3), 8)
        )


def test_writing_to_places():
    check_gradient(lambda x, y: x.written((slice(None), slice(1, 3)), y), values((2, 4), 9), values((2, 2), 10))


# ---- products and windows ---------------------------------------------------------------------------------------


@given(m=st.integers(1, 4), k=st.integers(1, 4), n=st.integers(1, 4), batch=st.lists(st.integers(1, 2), max_size=2))
@few
def test_matmul(m, k, n, batch):
    check_gradient(lambda x, y: x @ y, values((*batch, m, k), m), values((k, n), n))


def test_einsum():
    check_gradient(lambda x, y: Tensor.einsum("bij,bkj->ik", x, y), values((2, 3, 4), 1), values((2, 2, 4), 2))


def test_attention():
    arrays = [values((1, 2, 3, 4), n) for n in range(3)]
    check_gradient(lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True), *arrays)


@pytest.mark.parametrize(
    "how", [{}, {"padding": 1}, {"stride": 2, "padding": (1, 0)}, {"dilation": 2}, {"groups": 2, "padding": 1}], ids=str
)
def test_convolution(how):
    weight = values((4, 2 // how.get("groups", 1), 2, 3), 12)
    check_gradient(lambda x, w, b: x.conv2d(w, b, **how), values((2, 2, 5, 6), 11), weight, values((4,), 13))


@pytest.mark.parametrize("how", [{}, {"stride": 2, "output_padding": 1}, {"groups": 2, "padding": 1}], ids=str)
def test_transposed_convolution(how):
    weight = values((2, 3, 2, 3), 12)
    check_gradient(lambda x, w: x.conv_transpose2d(w, **how), values((1, 2, 3, 4), 11), weight)


@pytest.mark.parametrize("how", [{}, {"stride": 1}, {"padding": 1, "stride": 2}, {"ceil_mode": True}], ids=str)
def test_pooling(how):
    for pool in (Tensor.max_pool2d, Tensor.avg_pool2d):
        check_gradient(lambda x, pool=pool: pool(x, (2, 3), **how), values((1, 2, 5, 6), 14))


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear"])
def test_interpolate(mode):
    check_gradient(lambda x: x.interpolate((5, 3), mode=mode), values((1, 1, 3, 4), 15))


def test_batchnorm():
    arrays = [values((3, 2, 4), 1), values((2,), 2), values((2,), 3), values((2,), 4), values((2,), 5, 0.5, 2)]
    check_gradient(lambda x, *given: x.batchnorm(*given), *arrays)


def test_losses():
    target = Tensor([1, 0, 2])
    check_gradient(lambda x: x.sparse_categorical_crossentropy(target), values((3, 4), 1))
    check_gradient(lambda x, y: x.sigmoid().binary_crossentropy(y.sigmoid()), values((3,), 2), values((3,), 3))
    check_gradient(lambda x, y: x.binary_crossentropy_logits(y.sigmoid()), values((3,), 2), values((3,), 3))


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
