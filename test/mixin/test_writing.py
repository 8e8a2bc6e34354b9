"""Elements written to places, against numpy; scatter_reduce against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from mixin.agree import agree
from mixin.derivative import check_gradient
from mixin.evaluate import evaluate

from tensor_engine import Tensor, dtypes
from tensor_engine.uop.uop import UOp

RANDOM = np.random.default_rng(8)
X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
ROWS, COLUMNS = np.array([2, 0, -1]), np.array([[0], [3]])
MASK = X[:, :, 0] % 3 == 0

WRITTEN = {
    "an int": 1,
    "slices": (slice(None, None, -2), slice(1, 3)),
    "array": ROWS,
    "list": [0, 2],
    "scalar array": np.array(-2),
    "array with equal places": np.array([1, 1, 0]),
    "array in the middle": (slice(None), ROWS),
    "array and slice": (slice(0, 2), np.array([1, 3]), slice(None, None, 2)),
    "two arrays": (ROWS, COLUMNS),
    "arrays apart": (ROWS, slice(None), COLUMNS),
    "array and int": (slice(None), 1, ROWS),
    "array, slice, int": (ROWS, slice(1, None), 1),
    "int, slice, array": (1, slice(None), ROWS),
    "array and none": (None, ROWS, slice(None), None),
    "three arrays": (ROWS, ROWS, ROWS),
    "no places": np.zeros(0, np.int64),
    "mask": X % 2 == 0,
    "mask of the first axes": MASK,
    "mask of one axis": (slice(None), np.array([True, False, True, True])),
    "mask and int": (MASK, 1),
    "list of bools": [True, False, True],
    "mask of nothing": np.zeros((3, 4), bool),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_written(name):
    index = WRITTEN[name]
    for value in (np.float32(-1), RANDOM.normal(size=X[index].shape).astype(np.float32)):
        expected = X.copy()
        # of equal places numpy keeps the last value, too
        expected[index] = value
        tensor = Tensor(X)
        tensor[index] = Tensor(value)
        agree(tensor, expected)


@pytest.mark.parametrize("name", WRITTEN)
def test_read(name):
    agree(Tensor(X)[WRITTEN[name]], X[WRITTEN[name]])


def test_values_that_broadcast():
    expected, tensor = X.copy(), Tensor(X)
    expected[ROWS, :, 1:3] = np.float32([[7], [8], [9], [10]])
    tensor[Tensor(ROWS), :, 1:3] = Tensor([[7.0], [8], [9], [10]])
    agree(tensor, expected)
    expected[MASK] = np.arange(5)
    tensor[Tensor(MASK)] = Tensor(np.arange(5))
    agree(tensor, expected)


def test_places_outside_are_left_out():
    tensor = Tensor(X[0])
    tensor[Tensor([0, 4, -5]), Tensor([0, 1, 1])] = Tensor([1.0, 2, 3])
    expected = X[0].copy()
    expected[0, 0] = 1
    agree(tensor, expected)


def test_one_element_and_none():
    one = Tensor([5.0])
    one[Tensor([0])] = 2
    agree(one, np.float32([2]))
    empty = Tensor(np.zeros((0, 3), np.float32))
    empty[:, Tensor([1])] = 2
    agree(empty, np.zeros((0, 3), np.float32))


def test_written_in_kernels():
    tensor = Tensor(X).realize()
    tensor[Tensor([2, 0]), 1:3] += 100
    expected = X.copy()
    expected[[2, 0], 1:3] += 100
    assert np.array_equal(tensor.numpy(), expected)


def test_gradients_of_written_places():
    index = Tensor([2, 0, 2])

    def written(x, value):
        return x.written((index, slice(0, 2)), value).square()

    check_gradient(written, RANDOM.normal(size=(3, 4)), RANDOM.normal(size=(3, 2)))


def test_masks_that_do_not_fit():
    with pytest.raises(IndexError, match="doesn't fit"):
        Tensor(X)[Tensor([True, False])]
    with pytest.raises(IndexError, match="doesn't fit"):
        Tensor(X)[Tensor(True)]
    with pytest.raises(TypeError, match="no values before it runs"):
        UOp.const(dtypes.bool, True).reshape(1).nonzero()


# ---- where something is true


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 0), (4, 5), (2, 3, 4)])
def test_nonzero(shape):
    x = RANDOM.integers(0, 2, shape).astype(np.int32)
    expected = np.argwhere(x).astype(np.int32)
    agree(Tensor(x).nonzero(), expected)
    if x.ndim:
        filled = np.full((30, x.ndim), -1, np.int32)
        filled[: len(expected)] = expected
        agree(Tensor(x).nonzero(size=30, fill_value=-1), filled)
        agree(Tensor(x).nonzero(size=1), filled[:1] if len(expected) else np.zeros((1, x.ndim), np.int32))


def test_nonzero_of_a_long_row():
    x = RANDOM.random(1000) > 0.9
    assert np.array_equal(Tensor(x).nonzero().numpy(), np.argwhere(x))


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 4)])
def test_masked_select(shape):
    x = RANDOM.normal(size=shape).astype(np.float32)
    mask = x > 0
    agree(Tensor(x).masked_select(Tensor(mask)), x[mask])
    filled = np.append(x[mask], [9, 9])[:2].astype(np.float32)
    agree(Tensor(x).masked_select(Tensor(mask), size=2, fill_value=9), filled)
    agree(Tensor(x).masked_select(Tensor(True)), x.ravel())


def test_gradient_of_selected_elements():
    mask = Tensor([[True, False, True], [False, True, True]])
    check_gradient(lambda x: x.masked_select(mask).square(), RANDOM.normal(size=(2, 3)))
    check_gradient(lambda x: x[mask].square(), RANDOM.normal(size=(2, 3)))


# ---- scatter


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.int32])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_scatter_reduce(reduce, include_self, dtype, dim):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")
    into, src = RANDOM.integers(1, 9, (3, 4, 2)).astype(dtype), RANDOM.integers(1, 9, (2, 3, 2)).astype(dtype)
    index = RANDOM.integers(0, into.shape[dim], (2, 3, 2))
    expected = torch.tensor(into).scatter_reduce(
        dim, torch.tensor(index), torch.tensor(src), reduce, include_self=include_self
    )
    agree(Tensor(into).scatter_reduce(dim, Tensor(index), Tensor(src), reduce, include_self), expected.numpy())


def test_scatter_reduce_by_definition():
    into, src, index = np.array([10.0, 20, 30]), np.array([1.0, 3, 5]), Tensor([0, 0, 2])
    x = Tensor(into)
    agree(x.scatter_reduce(0, index, Tensor(src), "sum"), np.array([14.0, 20, 35]))
    agree(x.scatter_reduce(0, index, Tensor(src), "mean"), np.array([14 / 3, 20, 17.5]))
    agree(x.scatter_reduce(0, index, Tensor(src), "mean", include_self=False), np.array([2.0, 20, 5]))
    agree(x.scatter_reduce(0, index, Tensor(src), "amax", include_self=False), np.array([3.0, 20, 5]))
    agree(x.scatter_reduce(0, index, Tensor(src), "prod"), np.array([30.0, 20, 150]))
    with pytest.raises(ValueError, match="scatter_reduce's reduce"):
        x.scatter_reduce(0, index, Tensor(src), "max")


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_gradients_of_scatter_reduce(reduce):
    index = Tensor([[0, 0, 2], [1, 0, 2]])

    def scattered(x, src):
        return x.scatter_reduce(1, index, src, reduce)

    check_gradient(scattered, RANDOM.uniform(0.5, 2, (2, 3)), RANDOM.uniform(0.5, 2, (2, 3)))


def test_scatter_of_nothing():
    nothing = Tensor(np.zeros(0, np.int32))
    for reduced in (
        Tensor([1.0]).scatter(0, nothing, Tensor(np.zeros(0, np.float32))),
        Tensor([1.0]).scatter_reduce(0, nothing, Tensor(np.zeros(0, np.float32)), "mean"),
    ):
        assert evaluate(reduced.uop).tolist() == [1.0]
