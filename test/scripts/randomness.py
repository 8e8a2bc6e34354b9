"""Random numbers: their ranges, their moments, and that a seed repeats them."""
import math

import numpy as np
from tinygrad import Tensor, dtypes

N = 4096
Tensor.manual_seed(42)
first = Tensor.rand(3, 4).numpy()
Tensor.manual_seed(42)
np.testing.assert_array_equal(Tensor.rand(3, 4).numpy(), first)
assert not np.array_equal(Tensor.rand(3, 4).numpy(), first)


def moments(tensor, low, high, mean, std):
    x = tensor.numpy().astype(np.float64)
    assert x.shape == (N,) and low <= x.min() and x.max() <= high
    assert abs(x.mean() - mean) < 5 * std / math.sqrt(N), (x.mean(), mean)
    assert abs(x.std() - std) < 0.06 * std, (x.std(), std)


moments(Tensor.rand(N), 0, 1, 0.5, 1 / math.sqrt(12))
moments(Tensor.randn(N), -7, 7, 0, 1)
moments(Tensor.uniform(N, low=-2, high=6), -2, 6, 2, 8 / math.sqrt(12))
moments(Tensor.normal(N, mean=10, std=3), -20, 40, 10, 3)
moments(Tensor.scaled_uniform(N), -1 / 64, 1 / 64, 0, 1 / 64 / math.sqrt(3))
moments(Tensor.glorot_uniform(N // 64, 64).flatten(), -1, 1, 0, math.sqrt(6 / 128 / 3))
moments(Tensor.kaiming_uniform(N // 64, 64, a=0).flatten(), -1, 1, 0, math.sqrt(6 / 64 / 3))
moments(Tensor.kaiming_normal(N // 64, 64, a=0).flatten(), -2, 2, 0, math.sqrt(2 / 64))
moments(Tensor.rand(N, dtype=dtypes.half), 0, 1, 0.5, 1 / math.sqrt(12))
moments(Tensor.empty(N).rand_like(), 0, 1, 0.5, 1 / math.sqrt(12))
moments(Tensor.zeros(N).randn_like(), -7, 7, 0, 1)

dice = Tensor.randint(N, low=1, high=7)
assert dice.dtype == dtypes.int32 and sorted(set(dice.tolist())) == [1, 2, 3, 4, 5, 6]
assert sorted(Tensor.randperm(50).tolist()) == list(range(50))
drawn = Tensor([0.0, 1, 3]).multinomial(N, replacement=True).numpy()
assert set(drawn.tolist()) == {1, 2} and abs((drawn == 2).mean() - 0.75) < 0.04
once = Tensor([[0.0, 0, 5], [1, 0, 0]]).multinomial(1)
assert once.tolist() == [[2], [0]]

x = Tensor.ones(N)
np.testing.assert_array_equal(x.dropout(0.5).numpy(), np.ones(N))
assert Tensor.rand(2, 0).shape == (2, 0)
print("randomness", first.shape, dice.shape, once.tolist())
