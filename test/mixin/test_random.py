"""Random numbers: the published vectors, reproducibility, and the distributions."""

from __future__ import annotations

import numpy as np
import pytest
from mixin.evaluate import threefry

from tensor_engine import GlobalCounters, Tensor, TinyJit, dtypes
from tensor_engine.engine.realize import buffer_of
from tensor_engine.mixin import random
from tensor_engine.uop.op import Ops

# Random123's known answers for Threefry-2x32 with 20 rounds: counter, key, result, low words first
KNOWN = [
    (0, 0, 0x99BA4EFE6B200159),
    (2**64 - 1, 2**64 - 1, 0xBB002BE71CB996FC),
    (0x85A308D3243F6A88, 0x0370734413198A2E, 0x483DF7A0C4923A9C),
]


def state_of(tensor):
    return next(n for n in tensor.uop.toposort() if n.op is Ops.BUFFER and buffer_of(n) in random.states)


def test_known_answers():
    counters, keys, results = (np.array(column, np.uint64) for column in zip(*KNOWN))
    np.testing.assert_array_equal(threefry(counters, keys), results)
    np.testing.assert_array_equal(Tensor(counters).alu(Ops.THREEFRY, Tensor(keys)).numpy(), results)


def test_a_seed_gives_the_same_numbers_in_whatever_order_they_are_computed():
    Tensor.manual_seed(7)
    a, b = Tensor.rand(5), Tensor.rand(5)
    later = b.tolist()
    first = a.tolist()
    assert first != later
    Tensor.manual_seed(7)
    assert [Tensor.rand(5).tolist(), Tensor.rand(5).tolist()] == [first, later]
    Tensor.manual_seed(8)
    assert Tensor.rand(5).tolist() != first


def test_the_engine_draws_what_the_definition_says():
    bits = Tensor._random_bits((3, 4), None)
    key, first = (int(v) for v in buffer_of(state_of(bits)).numpy())
    expected = threefry(np.arange(first, first + 12, dtype=np.uint64), np.uint64(key)).reshape(3, 4)
    np.testing.assert_array_equal(bits.numpy(), expected)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64])
def test_rand_is_even_and_below_one(dtype):
    Tensor.manual_seed(1)
    x = Tensor.rand(200, 300, dtype=dtype)
    assert x.dtype is dtype
    values = x.numpy().astype(np.float64)
    assert values.min() >= 0 and values.max() < 1
    counts = np.histogram(values, 8, (0, 1))[0]
    assert abs(counts - 7500).max() < 400  # five standard deviations


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64])
def test_randn_is_normal_and_finite(dtype):
    Tensor.manual_seed(2)
    values = Tensor.randn(100_000, dtype=dtype).numpy().astype(np.float64)
    assert np.isfinite(values).all()
    assert abs(values.mean()) < 0.02 and abs(values.std() - 1) < 0.02
    assert abs((np.abs(values) < 1).mean() - 0.6827) < 0.01
    assert 3.5 < np.abs(values).max() < 5.8


def test_integers_and_permutations():
    Tensor.manual_seed(3)
    values = Tensor.randint(2000, low=-3, high=4).numpy()
    assert values.dtype == np.int32 and set(values.tolist()) == set(range(-3, 4))
    assert sorted(Tensor.randperm(50).tolist()) == list(range(50))
    with pytest.raises(ValueError, match="low < high"):
        Tensor.randint(3, low=2, high=2)
    with pytest.raises(TypeError, match="use randint"):
        Tensor.rand(3, dtype=dtypes.int32)


def test_bounds_of_the_initialisers():
    Tensor.manual_seed(4)
    assert np.abs(Tensor.glorot_uniform(30, 24).numpy()).max() <= np.sqrt(6 / 54)
    assert np.abs(Tensor.kaiming_uniform(30, 24, a=0).numpy()).max() <= np.sqrt(6 / 24)
    assert abs(Tensor.kaiming_normal(100, 50, a=0).numpy().std() - np.sqrt(2 / 50)) < 0.01
    assert np.abs(Tensor.scaled_uniform(4, 4).numpy()).max() <= 0.25
    values = Tensor.uniform(1000, low=2, high=3).numpy()
    assert values.min() >= 2 and values.max() <= 3


def test_every_call_of_a_shape_runs_the_same_kernel():
    """Where the numbers begin is data, so that drawing again compiles nothing."""
    a, b = Tensor.rand(6), Tensor.rand(6)
    kernels = [[n.replace(arg=None) if n.op is Ops.BUFFER else n for n in x.uop.toposort()] for x in (a, b)]
    assert [(n.op, n.dtype, n.arg) for n in kernels[0]] == [(n.op, n.dtype, n.arg) for n in kernels[1]]
    before = GlobalCounters.kernel_count
    a.realize(b)
    assert GlobalCounters.kernel_count - before == 2


def test_dropout():
    Tensor.manual_seed(6)
    x = Tensor.ones(10_000)
    assert x.dropout(0.3) is x
    with Tensor.train():
        values = x.dropout(0.3).numpy()
        assert set(np.unique(values)) == {np.float32(0), np.float32(1 / 0.7)}
        assert abs((values == 0).mean() - 0.3) < 0.02
        assert x.dropout(1.0).numpy().max() == 0
        with pytest.raises(ValueError, match="probability"):
            x.dropout(1.5)


def test_captured_functions_draw_new_numbers():
    @TinyJit
    def draw(x):
        return x + Tensor.rand(4)

    Tensor.manual_seed(5)
    zero = Tensor.zeros(4).contiguous().realize()
    drawn = [draw(zero).tolist() for _ in range(5)]
    Tensor.manual_seed(5)
    assert drawn == [Tensor.rand(4).tolist() for _ in range(5)]


def test_multinomial():
    Tensor.manual_seed(5)
    weights = Tensor([0.0, 1, 3, 0])
    drawn = weights.multinomial(4000, replacement=True).numpy()
    assert drawn.dtype == np.int32
    counts = np.bincount(drawn, minlength=4)
    assert counts[0] == counts[3] == 0
    assert abs(counts[2] / 4000 - 0.75) < 0.03  # four standard deviations
    rows = Tensor([[1.0, 1, 0, 1], [0, 0, 2, 1]])
    kept = rows.multinomial(2).numpy()
    assert set(kept[0].tolist()) < {0, 1, 3} and set(kept[1].tolist()) == {2, 3}
    first = Tensor([[1.0, 3]] * 2000).multinomial().numpy()
    assert first.shape == (2000, 1) and abs(first.mean() - 0.75) < 0.04
    with pytest.raises(ValueError, match="multinomial"):
        Tensor.ones(2, 2, 2).multinomial()
    with pytest.raises(ValueError, match="out of range"):
        Tensor.ones(2).multinomial(3)


def test_random_numbers_in_the_shape_of_another():
    like = Tensor(np.zeros((2, 3), np.float64)).randn_like(dtype=dtypes.half)
    assert (like.shape, like.dtype) == ((2, 3), dtypes.float16)
    assert (Tensor([1, 2]).rand_like(dtype="float").dtype, Tensor([1.0]).rand_like().shape) == (dtypes.float32, (1,))
