"""4-bit weights: every step transcribed to numpy gives the same, bit for bit, and nothing unpacked is ever stored."""

from __future__ import annotations

import numpy as np
import pytest

from tensor_engine import Tensor, TinyJit, dtypes
from tensor_engine.nn.quantize import Int4
from tensor_engine.nn.state import get_state_dict


def random_values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def quantize_numpy(values: np.ndarray, group: int) -> tuple[np.ndarray, np.ndarray]:
    """(packed, scales) by loops over groups and pairs."""
    grouped = values.reshape(-1, group)
    scales = (np.abs(grouped).max(1) / np.float32(7)).astype(np.float16)
    packed = []
    for row, scale in zip(grouped, scales):
        step = np.float32(scale) if scale else np.float32(1)
        numbers = [int(np.clip(np.rint(value / step), -7, 7)) + 8 for value in row]
        packed += [low + 16 * high for low, high in zip(numbers[::2], numbers[1::2])]
    shape = values.shape[:-1]
    return np.array(packed, np.uint8).reshape(*shape, -1), scales.reshape(*shape, -1)


def dequantize_numpy(packed: np.ndarray, scales: np.ndarray, group: int) -> np.ndarray:
    """The float32 values, each on its own."""
    numbers = [half for byte in packed.ravel().tolist() for half in (byte % 16, byte // 16)]
    flat = scales.astype(np.float32).ravel()
    values = [np.float32(number - 8) * flat[place // group] for place, number in enumerate(numbers)]
    return np.array(values, np.float32).reshape(*packed.shape[:-1], -1)


@pytest.mark.parametrize("shape, group", [((4, 8), 8), ((3, 64), 32), ((2, 3, 12), 4), ((16,), 2), ((1, 2), 2)])
def test_it_is_what_numpy_makes_of_it(shape: tuple[int, ...], group: int) -> None:
    values = random_values(*shape)
    made = Int4(Tensor(values), group)
    packed, scales = quantize_numpy(values, group)
    np.testing.assert_array_equal(made.packed.numpy(), packed)
    np.testing.assert_array_equal(made.scales.numpy(), scales)
    back = made.dequantize().numpy()
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, dequantize_numpy(packed, scales, group))
    off = np.abs(back - values).reshape(-1, group)
    assert (off <= scales.astype(np.float32).reshape(-1, 1) * 0.51).all()


def test_zeros_and_very_different_groups() -> None:
    values = np.concatenate([np.zeros(4), [1e-3, -1e-3, 0, 5e-4], [1e4, -3e4, 0, 7]]).astype(np.float32)
    back = Int4(Tensor(values), 4).dequantize().numpy()
    assert (back[values == 0] == 0).all()
    np.testing.assert_allclose(back[[4, 5]], values[[4, 5]], rtol=1e-3)
    np.testing.assert_allclose(back[9], values[9], rtol=1e-3)


def test_two_weights_are_one_byte() -> None:
    made = Int4(Tensor(random_values(64, 128)), 32)
    assert made.packed.dtype is dtypes.uint8 and made.packed.shape == (64, 64)
    assert made.nbytes == 64 * 128 // 2 + 64 * 4 * 2
    assert set(get_state_dict(made)) == {"packed", "scales"}
    assert not made.packed.is_param and not made.scales.is_param


@pytest.mark.parametrize("batch", [1, 5])
def test_a_product_unpacks_inside_its_kernel(batch: int) -> None:
    weight = Int4(Tensor(random_values(32, 64, seed=1)), 16)
    product = TinyJit(lambda x: x @ weight.dequantize())
    x = random_values(batch, 32, seed=2)
    for _ in range(3):
        result = product(Tensor(x))
    exact = x.astype(np.float64) @ weight.dequantize().numpy().astype(np.float64)
    np.testing.assert_allclose(result.numpy(), exact, rtol=1e-5, atol=1e-5)
    assert product.captured is not None
    memory = [(b.dtype, b.size) for launch in product.captured.launches for b in launch.buffers]
    assert len(product.captured.launches) == 1
    assert memory == [
        (dtypes.float32, batch * 64), (dtypes.float32, batch * 32), (dtypes.uint8, 1024), (dtypes.float16, 128)
    ]  # fmt: skip


@pytest.mark.parametrize("shape, group", [((4, 6), 4), ((4, 6), 3), ((4, 6), 0), ((), 2)])
def test_groups_that_do_not_fit(shape: tuple[int, ...], group: int) -> None:
    with pytest.raises(ValueError, match="even size and fill"):
        Int4(Tensor(np.ones(shape, np.float32)), group)


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e7])
def test_values_that_have_no_scale(value: float) -> None:
    with pytest.raises(ValueError, match="float16"):
        Int4(Tensor(np.array([1, value], np.float32)), 2)
