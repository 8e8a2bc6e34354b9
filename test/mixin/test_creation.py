"""Tensors from nothing: sizes, types that hold the values, and the device on which they are."""

from __future__ import annotations

import numpy as np
import pytest

from tensor_engine import Tensor, dtypes

BIG = [2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**40, 2**63 - 1, -(2**63), 2**63, 2**64 - 1]


# ---- types


@pytest.mark.parametrize("value", BIG)
def test_a_number_keeps_its_value_wherever_a_type_is_chosen_for_it(value):
    assert Tensor(value).item() == value
    assert Tensor([value]).item() == value
    if value > 0:
        assert Tensor([[1], [value]]).tolist() == [[1], [value]]
    assert Tensor.full((2,), value).tolist() == [value, value]
    assert Tensor([True]).where(value, 0).item() == value
    assert Tensor([False]).where(1, value).item() == value


@pytest.mark.parametrize("bounds", [
    (5,), (0,), (3, 9, 2), (9, 3, -2), (2**31 - 2, 2**31 + 2), (-(2**31) - 2, -(2**31) + 2),
    (2**31 + 2, 2**31 - 2, -1), (-(2**31), 2**31, 2**30), (2**40, 2**40 + 3), (2**63 - 2, 2**63), (0, 2**41, 2**40),
], ids=str)  # fmt: skip
def test_arange_holds_all_its_numbers(bounds):
    assert Tensor.arange(*bounds).tolist() == list(range(*bounds))
    assert Tensor.arange(*bounds, dtype="int64").tolist() == list(range(*bounds))
    assert Tensor.arange(*bounds, dtype="float64").tolist() == [float(n) for n in range(*bounds)]


def test_arange_of_unsigned_numbers():
    first = 2**64 - 3
    assert Tensor.arange(first, 2**64, dtype="uint64").tolist() == list(range(first, 2**64))
    assert Tensor.arange(3, 0, -1, dtype="uint64").tolist() == [3, 2, 1]
    assert Tensor.arange(3).dtype is dtypes.int32


def test_a_long_arange_counts_on():
    assert Tensor.arange(2**33)[-3:].tolist() == [2**33 - 3, 2**33 - 2, 2**33 - 1]


def test_randint_stays_within_its_bounds():
    for low, high in ((0, 2**40), (-(2**40), -(2**39)), (2**33, 2**33 + 1), (-128, 128)):
        drawn = Tensor.randint(1000, low=low, high=high).numpy()
        assert low <= drawn.min() and drawn.max() < high
    assert Tensor.randint(3).dtype is dtypes.int32
    assert set(Tensor.randint(100, low=255, high=256, dtype="uint8").tolist()) == {255}


@pytest.mark.parametrize(("low", "high", "dtype"), [(0, 257, "uint8"), (-1, 5, "uint8"), (0, 2**32, "int32")])
def test_randint_refuses_a_type_that_cannot_hold_its_numbers(low, high, dtype):
    with pytest.raises(ValueError, match="randint can't make"):
        Tensor.randint(3, low=low, high=high, dtype=dtype)


@pytest.mark.parametrize("given", ["float32", "FLOAT", np.float32, np.dtype("float32"), float, dtypes.float32], ids=str)
def test_a_type_may_be_named_in_several_ways(given):
    assert Tensor([1], dtype=given).dtype is dtypes.float32
    assert Tensor([1]).cast(given).dtype is dtypes.float32
    assert Tensor.zeros(3, dtype=given).dtype is dtypes.float32


UNKNOWN = ["flot32", "index", "void", "min", 3, np.complex64, np.dtype("U3"), object]


@pytest.mark.parametrize("given", UNKNOWN, ids=str)
def test_an_unknown_type_is_an_error_that_lists_the_types(given):
    with pytest.raises(TypeError, match="unknown dtype .*float32"):
        Tensor([1], dtype=given)


# ---- devices

MAKERS = {
    "full": lambda device: Tensor.full((2, 2), 3, device=device),
    "zeros": lambda device: Tensor.zeros(2, 2, device=device),
    "arange": lambda device: Tensor.arange(4, device=device),
    "arange of floats": lambda device: Tensor.arange(0, 2, 0.5, device=device),
    "arange of nothing": lambda device: Tensor.arange(0, device=device),
    "linspace": lambda device: Tensor.linspace(0, 1, 5, device=device),
    "one step of linspace": lambda device: Tensor.linspace(0, 1, 1, device=device),
    "eye": lambda device: Tensor.eye(2, device=device),
    "rand": lambda device: Tensor.rand(2, device=device),
    "randperm": lambda device: Tensor.randperm(3, device=device),
    "zeros like": lambda device: Tensor([1, 2], device=device).zeros_like(),
    "ones like a constant": lambda device: Tensor(2, device=device).ones_like(),
    "constant": lambda device: Tensor(2.5, device=device),
    "constant of another type": lambda device: Tensor(2.5, device=device).cast("int32"),
}


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_made_on_a_device_is_there(name):
    made = MAKERS[name]("PYTHON")
    assert made.device == "PYTHON"
    assert made.realize().device == "PYTHON"
    if not name.startswith("rand"):
        assert made.tolist() == MAKERS[name]("CPU").tolist()


# ---- sizes

OF_A_SIZE = {
    "empty": Tensor.empty,
    "zeros": Tensor.zeros,
    "ones": Tensor.ones,
    "full": lambda *shape: Tensor.full(shape, 3),
    "rand": Tensor.rand,
    "randn": Tensor.randn,
    "randint": Tensor.randint,
    "kaiming_uniform": Tensor.kaiming_uniform,
    "eye": Tensor.eye,
    "one_hot": lambda *shape: Tensor.zeros(*shape[:-1], dtype="int32").one_hot(shape[-1]),
    "reshape": lambda *shape: Tensor.zeros(int(np.prod(shape))).reshape(*shape),
    "expand": lambda *shape: Tensor.zeros(*(1 for _ in shape)).expand(*shape),
}


@pytest.mark.parametrize("name", OF_A_SIZE)
def test_sizes_may_be_whole_numbers_of_any_kind(name):
    for sizes in ((2, 3), (np.int64(2), np.uint8(3)), tuple(np.array([2, 3]))):
        made = OF_A_SIZE[name](*sizes)
        assert made.shape == made.numpy().shape == (2, 3)
        assert all(type(size) is int for size in made.shape)


@pytest.mark.parametrize("name", OF_A_SIZE)
@pytest.mark.parametrize("sizes", [(-2,), (2, -3), (-2, -3)], ids=str)
def test_no_size_is_negative(name, sizes):
    with pytest.raises(ValueError, match="negative"):
        OF_A_SIZE[name](*sizes)


@pytest.mark.parametrize("name", OF_A_SIZE)
@pytest.mark.parametrize("size", [2.0, "2", np.float32(2), np.array([1, 2])], ids=repr)
def test_sizes_are_whole_numbers(name, size):
    with pytest.raises(TypeError, match="whole numbers"):
        {**OF_A_SIZE, "reshape": Tensor.zeros(4).reshape}[name](size, 2)


def test_axes_are_whole_numbers():
    x = Tensor.zeros(2, 3)
    assert x.permute(np.int64(1), np.int64(0)).shape == (3, 2)
    with pytest.raises(TypeError, match="whole numbers"):
        x.permute(1.0, 0)
