"""Picking and writing by place, order, and resizing, against numpy and by definition."""

from __future__ import annotations

import numpy as np
import pytest
from mixin.agree import agree
from mixin.evaluate import evaluate

from tensor_engine import Tensor, dtypes

RANDOM = np.random.default_rng(3)
X = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
T = Tensor(X)
ROWS, COLUMNS = np.array([3, 0, -1]), np.array([[0], [4]])

INDICES = {
    "int": 1,
    "negative int": -1,
    "numpy int": np.int64(2),
    "ints": (1, -2, 0),
    "slice": slice(1, 3),
    "slices": (slice(None), slice(-3, None), slice(0, 100)),
    "steps": (slice(None, None, 2), slice(1, None, 3)),
    "negative steps": (slice(None, None, -1), slice(4, 0, -2), slice(None, 1, -3)),
    "empty slice": (slice(2, 2), slice(3, 1)),
    "ellipsis": (..., 2),
    "ellipsis between": (1, ..., slice(1, 3)),
    "none": (None, 1, None, slice(None), 2),
    "array": ROWS,
    "list": [0, 2],
    "array in the middle": (slice(None), ROWS),
    "two arrays": (ROWS, COLUMNS),
    "arrays apart": (ROWS, slice(None), COLUMNS),
    "arrays apart, first axis whole": (slice(None), ROWS, COLUMNS),
    "array and int": (slice(None), 1, ROWS),
    "array, slice, int": (ROWS, slice(None), 1),
    "int, slice, array": (1, slice(None), ROWS),
    "array and none": (None, ROWS, slice(None), None),
    "array, none, array": (ROWS, None, COLUMNS),
    "three arrays": (ROWS, ROWS, ROWS),
    "array and slices": (slice(1, None), ROWS, slice(None, None, -2)),
    "scalar array": (slice(None), np.array(2)),
}


@pytest.mark.parametrize("name", INDICES)
def test_as_numpy(name):
    agree(T[INDICES[name]], X[INDICES[name]])


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_a_tensor_as_index(dtype):
    agree(T[Tensor(np.array([2, 0], dtype))], X[[2, 0]])
    agree(T[:, Tensor(3)], X[:, 3])


def test_an_index_outside():
    with pytest.raises(IndexError, match="index 4 is out of range for axis 0"):
        T[4]
    with pytest.raises(IndexError, match="4 indices are too many"):
        T[0, 0, 0, 0]
    with pytest.raises(IndexError, match=r"only one \.\.\."):
        T[..., ...]
    with pytest.raises(IndexError, match="integers"):
        T[Tensor([1.0])]
    agree(Tensor([1.0, 2.0])[Tensor([0, 5, -3])], np.float32([1, 0, 0]))


@pytest.mark.parametrize("pick", [1.5, "a", True, {}, (0, 1.5)], ids=repr)
def test_what_is_no_index_is_an_error_that_says_what_is_one(pick):
    with pytest.raises(IndexError, match="an index is an int, a slice"):
        T[pick]


@pytest.mark.parametrize("pick", [[], np.zeros(0, np.int64), (slice(None), []), ([], 0)], ids=str)
def test_no_places_at_all(pick):
    agree(T[pick], X[pick])


def test_picked_values_are_exact():
    x = np.float32([np.inf, -np.inf, np.nan, 1e38, 1])
    agree(Tensor(x)[Tensor([4, 0, 2, 1, 3])], x[[4, 0, 2, 1, 3]])
    agree(Tensor([True, False])[Tensor([1, 0, 0])], np.array([False, True, True]))
    x = np.array([2**63, 1], np.uint64)
    agree(Tensor(x)[Tensor([0, 1])], x)
    agree(Tensor(np.float16([60000, 2]))[Tensor([0, 0])], np.float16([60000, 60000]))


def test_iteration_and_length():
    assert len(T) == 4
    for got, expected in zip(T, X, strict=True):
        agree(got, expected)
    with pytest.raises(TypeError, match="no length"):
        len(Tensor(1))
    with pytest.raises(TypeError, match="truth value"):
        bool(T)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gather(dim):
    index = RANDOM.integers(0, X.shape[dim], (3, 4, 2))
    index[0, 0, 0] = -1
    expected = np.take_along_axis(
        X[tuple(slice(n) if i != dim % 3 else slice(None) for i, n in enumerate((3, 4, 2)))], index, dim
    )
    agree(T.gather(dim, Tensor(index)), expected)
    with pytest.raises(ValueError, match="doesn't fit"):
        T.gather(dim, Tensor(index[0]))


def test_take():
    agree(T.take(Tensor(COLUMNS), 1), np.take(X, COLUMNS, 1))


# ---- writing


def scattered(x, dim, index, values, combine):
    """Each value to its place, one after the other."""
    out = x.copy()
    for place in np.ndindex(index.shape):
        target = list(place)
        target[dim] = index[place]
        out[tuple(target)] = combine(out[tuple(target)], values[place])
    return out


REDUCTIONS = {None: lambda old, new: new, "add": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum}


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("dim", [0, 1])
def test_scatter(dim, reduce):
    x, values = RANDOM.normal(size=(2, 4, 5)).astype(np.float32)
    index = RANDOM.integers(0, 4, (3, 4))
    expected = scattered(x, dim, index, values, REDUCTIONS[reduce])
    agree(Tensor(x).scatter(dim, Tensor(index), Tensor(values), reduce), expected, rtol=1e-5)
    agree(Tensor(x).scatter(dim, Tensor(index), 7.0), scattered(x, dim, index, values * 0 + 7, REDUCTIONS[None]))


def test_scatter_keeps_what_is_not_a_number():
    agree(Tensor([1.0, 2.0]).scatter(0, Tensor([0]), Tensor([np.nan, 0.0])), np.float32([np.nan, 2]))
    with pytest.raises(ValueError, match="scatter's reduce"):
        Tensor([1.0]).scatter(0, Tensor([0]), 1.0, "mean")


# ---- order


def rows(length, dtype):
    """Rows with many equal values, and for floats the exceptional ones."""
    values = RANDOM.integers(-8 if np.dtype(dtype).kind != "u" else 0, 8, (2, length)).astype(dtype)
    if np.dtype(dtype).kind == "f" and length >= 8:
        values[0, :8] = [np.nan, np.inf, -np.inf, 0.0, -0.0, np.nan, 1e-5, -1e-5]
    return values


def stable_order(x, descending):
    """numpy's stable order, reversed by negating what isn't nan."""
    if descending:
        x = -x if x.dtype.kind == "f" else ~x
    return np.argsort(x, -1, kind="stable").astype(np.int32)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int32, np.uint8, np.bool_])
@pytest.mark.parametrize("length", [1, 2, 33])
def test_sort(length, dtype, descending):
    x = rows(length, dtype)
    order = stable_order(x, descending)
    values, places = Tensor(x).sort(descending=descending)
    agree(places, order)
    agree(values, np.take_along_axis(x, order.astype(np.int64), -1))
    agree(Tensor(x.T).argsort(0, descending), order.T)


@pytest.fixture
def short_chunks(monkeypatch):
    """What long rows are, made short, so that the evaluator need not take long."""
    monkeypatch.setattr("tensor_engine.mixin.sorting.LONGEST_COUNTED", 16)
    monkeypatch.setattr("tensor_engine.mixin.sorting.SMALLEST_CHUNK", 8)


@pytest.mark.parametrize("length", [17, 32, 33, 100])
@pytest.mark.parametrize("descending", [False, True])
def test_long_rows_are_merged(length, descending, short_chunks):
    x = rows(length, np.float32)
    agree(Tensor(x).argsort(descending=descending), stable_order(x, descending))
    agree(Tensor(x).topk(16, largest=descending)[1], stable_order(x, descending)[:, :16])


@pytest.mark.parametrize("length", [17, 33, 100, 200])
@pytest.mark.parametrize("largest", [False, True])
def test_the_best_of_long_rows_are_found_in_rounds(length, largest, short_chunks):
    x = rows(length, np.float32)
    agree(Tensor(x).topk(3, largest=largest)[1], stable_order(x, largest)[:, :3])


@pytest.mark.parametrize(("length", "k"), [(1, 1), (20, 0), (20, 7), (20, 20), (1100, 5)])
@pytest.mark.parametrize("largest", [True, False])
def test_topk(length, k, largest):
    x = rows(length, np.float32)
    order = stable_order(x, largest)[:, :k]
    values, places = Tensor(x).topk(k, largest=largest)
    agree(places, order)
    agree(values, np.take_along_axis(x, order.astype(np.int64), -1))


def test_topk_of_8400_does_little_work():
    from tensor_engine.uop.op import Ops

    nodes = Tensor(np.zeros(8400, np.float32)).topk(100)[1].uop.toposort()
    reduced = [n.src[0].size for n in nodes if n.op is Ops.REDUCE_AXIS]
    assert sum(reduced) < 9e6
    assert sum(n.op is Ops.CONTIGUOUS for n in nodes) <= 18


def test_topk_along_another_axis_and_out_of_range():
    agree(Tensor(X).topk(2, dim=1)[0], np.sort(X, 1)[:, :-3:-1])
    with pytest.raises(ValueError, match=r"topk\(6\) is out of range"):
        Tensor(X).topk(6, dim=1)


# ---- other sizes


def linear(x, size, align_corners):
    """Linear interpolation of the last axis by its definition."""
    old = x.shape[-1]
    at = np.arange(size)
    at = at * (old - 1) / max(size - 1, 1) if align_corners else (at + 0.5) * old / size - 0.5
    at = np.clip(at, 0, old - 1)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, old - 1)
    return x[..., low] * (1 - (at - low)) + x[..., high] * (at - low)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7, 12, 30])
@pytest.mark.parametrize("align_corners", [False, True])
def test_linear_interpolation(size, align_corners):
    agree(T.interpolate((size,), align_corners=align_corners), linear(X, size, align_corners).astype(np.float32), 1e-5)


def test_two_axes():
    expected = linear(linear(X.swapaxes(1, 2), 9, False).swapaxes(1, 2), 13, False)
    agree(T.interpolate((9, 13)), expected.astype(np.float32), 1e-5)


@pytest.mark.parametrize("size", [1, 3, 6, 7, 12, 24, 25])
def test_nearest(size):
    at = np.arange(size)
    agree(T.interpolate((size,), mode="nearest"), X[..., at * 6 // size])
    agree(T.interpolate((size,), mode="nearest-exact"), X[..., np.floor((at + 0.5) * 6 / size).astype(int)])


def test_a_resize_that_cannot_be():
    with pytest.raises(ValueError, match="mode is one of"):
        T.interpolate((3,), mode="area")
    with pytest.raises(ValueError, match="align_corners"):
        T.interpolate((3,), mode="nearest", align_corners=True)
    with pytest.raises(ValueError, match="got sizes"):
        T.interpolate((1, 2, 3, 4))


def test_integers_are_rounded():
    x = np.uint8([0, 200])
    expected = np.round(linear(x[None].astype(float), 5, False))[0].astype(np.uint8)
    agree(Tensor(x).interpolate((5,)), expected)
    assert evaluate(Tensor(x).interpolate((4,), mode="nearest").uop).tolist() == [0, 0, 200, 200]
    assert Tensor(x).interpolate((4,)).dtype is dtypes.uint8
