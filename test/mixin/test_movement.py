"""Movement, creation and joining against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from mixin.agree import agree
from mixin.evaluate import evaluate

from tensor_engine import Tensor, dtypes

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
T = Tensor(X)


# ---- the primitives


def test_reshape():
    agree(T.reshape(6, 4), X.reshape(6, 4))
    agree(T.reshape((4, -1)), X.reshape(4, -1))
    agree(T.reshape(None, 12), X.reshape(2, 12))
    agree(T.view(24), X.ravel())
    assert T.reshape(2, 3, 4) is T


@pytest.mark.parametrize("shape", [(5, 5), (-1, 5), (-1, -1), (0, -1)])
def test_a_reshape_that_does_not_fit(shape):
    with pytest.raises(ValueError, match=r"can't reshape \(2, 3, 4\)"):
        T.reshape(shape)


def test_shear():
    """At k along the other axis, an axis begins k * step elements later."""
    agree(T.shear(2, 0), np.stack([X[0, :, 0:3], X[1, :, 1:4]]))
    agree(T.shear(0, 1, 0), X)
    agree(T.reshape(6, 4).shear(0, 1), np.stack([X.reshape(6, 4)[k : k + 3, k] for k in range(4)], 1))
    agree(T.reshape(8, 3).shear(-2, -1, 2), np.stack([X.reshape(8, 3)[2 * k : 2 * k + 4, k] for k in range(3)], 1))


@pytest.mark.parametrize(("axis", "along", "step"), [(0, 1, 1), (2, 1, 2), (1, 1, 1), (2, 0, -1)])
def test_a_shear_that_does_not_fit(axis, along, step):
    with pytest.raises(ValueError, match="can't shear"):
        T.shear(axis, along, step)


def test_permute_and_its_names():
    agree(T.permute(2, 0, 1), X.transpose(2, 0, 1))
    agree(T.permute((-1, 0, 1)), X.transpose(2, 0, 1))
    agree(T.transpose(0, 2), X.swapaxes(0, 2))
    agree(Tensor(X[0]).T, X[0].T)
    agree(T.movedim(0, -1), np.moveaxis(X, 0, -1))
    agree(T.movedim(2, 0), np.moveaxis(X, 2, 0))
    with pytest.raises(ValueError, match="not an order"):
        T.permute(0, 1)
    with pytest.raises(IndexError, match="axis 3 is out of range"):
        T.permute(0, 1, 3)


def test_expand():
    column = X[:, :, :1]
    agree(Tensor(column).expand(2, 3, 5), np.broadcast_to(column, (2, 3, 5)))
    agree(Tensor(column).expand(7, -1, None, 5), np.broadcast_to(column, (7, 2, 3, 5)))
    with pytest.raises(ValueError, match="only axes of size 1"):
        T.expand(4, 3, 4)
    with pytest.raises(ValueError, match="fewer axes"):
        T.expand(3, 4)


def test_shrink():
    agree(T.shrink(((0, 1), None, (1, 3))), X[0:1, :, 1:3])
    with pytest.raises(ValueError, match="not inside"):
        T.shrink(((0, 3), None, None))


def test_flip():
    agree(T.flip(0, -1), np.flip(X, (0, 2)))
    agree(T.flip((1,)), np.flip(X, 1))
    agree(T.flip(), np.flip(X))
    with pytest.raises(ValueError, match="twice"):
        T.flip(0, 0)


# ---- names for reshapes


def test_flatten_and_unflatten():
    agree(T.flatten(), X.ravel())
    agree(T.flatten(1), X.reshape(2, 12))
    agree(T.flatten(0, 1), X.reshape(6, 4))
    agree(T.unflatten(-1, (2, -1)), X.reshape(2, 3, 2, 2))
    agree(Tensor(5).flatten(), np.int32([5]))


def test_squeeze_and_unsqueeze():
    one = X.reshape(2, 1, 12, 1)
    agree(Tensor(one).squeeze(), one.squeeze())
    agree(Tensor(one).squeeze(1), one.squeeze(1))
    agree(Tensor(one).squeeze(0), one)
    agree(T.unsqueeze(1), X[:, None])
    agree(T.unsqueeze(-1), X[..., None])
    agree(Tensor(3.0).unsqueeze(0), np.float32([3]))


# ---- padding


def test_pad_forms():
    agree(T.pad((1, 2)), np.pad(X, ((0, 0), (0, 0), (1, 2))))
    agree(T.pad((1, 2, 3, 0)), np.pad(X, ((0, 0), (3, 0), (1, 2))))
    agree(T.pad(((1, 0), None, (0, 2))), np.pad(X, ((1, 0), (0, 0), (0, 2))))
    agree(T.pad((1, 1), value=-np.inf), np.pad(X, ((0, 0), (0, 0), (1, 1)), constant_values=-np.inf))
    agree(T.pad((-1, 2)), np.pad(X[:, :, 1:], ((0, 0), (0, 0), (0, 2))))
    agree(Tensor(X > 3).pad((1, 1), value=True), np.pad(X > 3, ((0, 0), (0, 0), (1, 1)), constant_values=True))
    agree(Tensor([1, 2]).pad((1, 0), value=7), np.int32([7, 1, 2]))


def test_padding_keeps_infinity_and_nan():
    x = np.float32([np.inf, np.nan])
    agree(Tensor(x).pad((1, 1), value=2.0), np.pad(x, (1, 1), constant_values=2))


@pytest.mark.parametrize(("mode", "numpys"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
def test_pad_modes(mode, numpys):
    agree(T.pad((2, 1, 0, 2), mode=mode), np.pad(X, ((0, 0), (0, 2), (2, 1)), mode=numpys))


def test_padding_that_cannot_be():
    with pytest.raises(ValueError, match="at most 3"):
        T.pad((4, 0), mode="reflect")
    with pytest.raises(ValueError, match="no padding mode"):
        T.pad((1, 0), mode="mirror")
    with pytest.raises(ValueError, match="pairs of counts"):
        T.pad((1, 2, 3))


# ---- creation


def test_constants():
    agree(Tensor.zeros(2, 3), np.zeros((2, 3), np.float32))
    agree(Tensor.ones((2,), dtype=dtypes.int8), np.ones(2, np.int8))
    agree(Tensor.full((2, 2), 7), np.full((2, 2), 7, np.int32))
    agree(Tensor.full((), True), np.array(True))
    agree(T.zeros_like(), np.zeros_like(X))
    agree(T.ones_like(dtype="int"), np.ones(X.shape, np.int32))
    agree(T.full_like(2.5), np.full_like(X, 2.5))
    agree(Tensor.eye(3), np.eye(3, dtype=np.float32))
    agree(Tensor.eye(2, 3), np.eye(2, 3, dtype=np.float32))


@pytest.mark.parametrize("arguments", [(5,), (2, 7), (7, 2, -2), (0, 10, 3), (5, 2), (0,), (-3, 3)])
def test_arange_of_ints(arguments):
    agree(Tensor.arange(*arguments), np.arange(*arguments, dtype=np.int32))


@pytest.mark.parametrize("arguments", [(5.0,), (0, 1, 0.25), (0.5, 3.1), (3, 0, -0.5)])
def test_arange_of_floats(arguments):
    agree(Tensor.arange(*arguments), np.arange(*arguments, dtype=np.float32))


def test_arange_takes_a_type():
    agree(Tensor.arange(2**31, 2**31 + 3, dtype="int64"), np.arange(2**31, 2**31 + 3))
    agree(Tensor.arange(4, dtype=dtypes.half), np.arange(4, dtype=np.float16))
    with pytest.raises(ValueError, match="step"):
        Tensor.arange(0, 1, 0)


def test_linspace():
    agree(Tensor.linspace(0, 1, 7), np.linspace(0, 1, 7, dtype=np.float32))
    agree(Tensor.linspace(3, -2, 5), np.linspace(3, -2, 5, dtype=np.float32))
    agree(Tensor.linspace(3, 5, 1), np.float32([3]))


@pytest.mark.parametrize("diagonal", [-1, 0, 2])
def test_triangles(diagonal):
    agree(T.tril(diagonal), np.tril(X, diagonal))
    agree(T.triu(diagonal), np.triu(X, diagonal))


def test_one_hot():
    agree(Tensor([1, 0, 3]).one_hot(4), np.eye(4, dtype=np.int32)[[1, 0, 3]])


# ---- joining and splitting


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_cat_and_stack(dim):
    agree(T.cat(T * 2, T + 1, dim=dim), np.concatenate([X, X * 2, X + 1], dim))
    agree(T.stack(T * 2, dim=dim), np.stack([X, X * 2], dim))


def test_cat_of_different_sizes_and_types():
    a, b = np.int32([1, 2]), np.float32([np.inf, np.nan, -0.0])
    joined = Tensor(a).cat(Tensor(b))
    agree(joined, np.float32([1, 2, np.inf, np.nan, -0.0]))
    assert np.signbit(evaluate(joined.uop)[-1])
    agree(Tensor([True]).cat(Tensor([False, True])), np.array([True, False, True]))
    with pytest.raises(ValueError, match="other axes must agree"):
        T.cat(Tensor(X[:, :2]), dim=2)


def test_split_and_chunk():
    for got, expected in zip(T.split([1, 3], 2), np.split(X, [1], 2), strict=True):
        agree(got, expected)
    for got, expected in zip(T.split(2, 1), np.split(X, [2], 1), strict=True):
        agree(got, expected)
    for got, expected in zip(T.chunk(2, 2), np.split(X, 2, 2), strict=True):
        agree(got, expected)
    for got, expected in zip(T.unbind(1), X.swapaxes(0, 1), strict=True):
        agree(got, expected)
    with pytest.raises(ValueError, match="don't add up"):
        T.split([1, 1], 2)


def test_repeat():
    agree(T.repeat(2, 1, 3), np.tile(X, (2, 1, 3)))
    agree(T.repeat((2, 1, 1, 2)), np.tile(X, (2, 1, 1, 2)))
    agree(T.repeat_interleave(3, 1), np.repeat(X, 3, 1))
    agree(T.repeat_interleave(2), np.repeat(X, 2))


@pytest.mark.parametrize(("shifts", "dims"), [(1, 0), (-3, 2), ((1, 5), (0, 2)), (7, None)])
def test_roll(shifts, dims):
    agree(T.roll(shifts, dims), np.roll(X, shifts, dims))


@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_meshgrid(indexing):
    a, b, c = np.arange(2), np.arange(3), np.arange(4)
    grids = Tensor(a).meshgrid(Tensor(b), Tensor(c), indexing=indexing)
    for got, expected in zip(grids, np.meshgrid(a, b, c, indexing=indexing), strict=True):
        agree(got, expected)


def test_diagonal_and_masked_fill():
    square = X.ravel()[:16].reshape(4, 4)
    agree(Tensor(square).diagonal(), np.diag(square))
    agree(T.masked_fill(Tensor(X > 10), -1), np.where(X > 10, np.float32(-1), X))


@pytest.mark.parametrize("offset", [-5, -2, 0, 1, 3, 4])
@pytest.mark.parametrize("dims", [(0, 1), (1, 0), (0, 2), (-2, -1), (2, 1)])
def test_diagonals_of_any_axes(offset, dims):
    agree(T.diagonal(offset, *dims), np.diagonal(X, offset, *dims))


@pytest.mark.parametrize("n", [0, 1, 4])
def test_diag(n):
    line = np.arange(n, dtype=np.float32) + 1
    agree(Tensor(line).diag(), np.diag(line))
    with pytest.raises(ValueError, match="one axis"):
        Tensor(np.zeros((2, 2))).diag()
    with pytest.raises(ValueError, match="two axes"):
        T.diagonal(0, 1, -2)


def test_sizes_to_grow_and_shrink_to():
    agree(T.pad_to(3, None, 6), np.pad(X, [(0, 1), (0, 0), (0, 2)]))
    agree(T.pad_to((2, 3, 5), value=-1), np.pad(X, [(0, 0), (0, 0), (0, 1)], constant_values=-1))
    agree(T.shrink_to(1, None, 0), X[:1, :, :0])


REARRANGED = {
    "a b c -> c a b": X.transpose(2, 0, 1),
    "a b c -> (a c) b": X.transpose(0, 2, 1).reshape(8, 3),
    "a b (c d) -> a d b c": X.reshape(2, 3, 2, 2).transpose(0, 3, 1, 2),
    "... c -> c ...": X.transpose(2, 0, 1),
    "a ... -> (... a)": X.transpose(1, 2, 0).ravel(),
    "a b c -> a 1 b () c": X.reshape(2, 1, 3, 1, 4),
}


@pytest.mark.parametrize("formula", REARRANGED)
def test_rearrange(formula):
    agree(T.rearrange(formula, **({"d": 2} if "d" in formula else {})), REARRANGED[formula])


@pytest.mark.parametrize("formula", ["a b c", "a b -> b a", "a b c -> a b", "a b (c d) -> a b c d", "a b [c] -> a b c"])
def test_formulas_that_do_not_fit(formula):
    with pytest.raises(ValueError, match="rearrange"):
        T.rearrange(formula)


def test_sums_and_products_of_several():
    agree(T.usum(T, T + 1), 3 * X + 1)
    agree(T.uprod(T, T), X**3)
