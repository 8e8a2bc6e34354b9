"""Many elements made one, and each with those before it."""
import numpy as np
from tinygrad import Tensor, dtypes

rng = np.random.default_rng(0)
x = rng.normal(size=(3, 4, 5)).astype(np.float32)
t = Tensor(x)


def near(tensor, expected, tolerance=1e-5):
    assert tensor.shape == np.shape(expected), (tensor.shape, np.shape(expected))
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=tolerance, atol=tolerance)


for axis, keepdim in ((None, False), (-1, True), ((0, 2), False)):
    how = {"axis": axis, "keepdims": keepdim}
    near(t.sum(axis=axis, keepdim=keepdim), x.sum(**how))
    near(t.mean(axis=axis, keepdim=keepdim), x.mean(**how))
    near(t.max(axis=axis, keepdim=keepdim), x.max(**how))
    near(t.min(axis=axis, keepdim=keepdim), x.min(**how))
    near(t.std(axis=axis, keepdim=keepdim), x.std(ddof=1, **how))
    near(t.var(axis=axis, keepdim=keepdim, correction=0), x.var(**how))
near(t.prod(axis=1), x.prod(1))
near((t > 0).any(axis=2), (x > 0).any(2))
near((t > -9).all(), True)
near(t.argmax(axis=1), x.argmax(1))
near(t.argmin(), x.argmin())
for got, expected in zip(t.std_mean(axis=0), (x.std(0, ddof=1), x.mean(0))):
    near(got, expected)
for got, expected in zip(t.var_mean(axis=(1, 2), correction=0), (x.var((1, 2)), x.mean((1, 2)))):
    near(got, expected)
powers = np.exp(x - x.max(-1, keepdims=True))
near(t.softmax(), powers / powers.sum(-1, keepdims=True))
near(t.log_softmax(axis=-1), np.log(powers / powers.sum(-1, keepdims=True)))
near(t.logsumexp(axis=1), np.logaddexp.reduce(x, 1))
near(t.normalize(dim=1), x / np.linalg.norm(x, axis=1, keepdims=True))
near(t.layernorm(), (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5), 1e-4)

# scans
near(t.cumsum(axis=1), x.cumsum(1))
near(t.cumprod(axis=-1), x.cumprod(-1))
near(t.logcumsumexp(axis=1), np.logaddexp.accumulate(x, 1))
values, places = t.cummax(axis=2)
near(values, np.maximum.accumulate(x, 2))
near(Tensor(x).gather(2, places), values.numpy())
near(t.cummin(axis=0)[0], np.minimum.accumulate(x, 0))
long = rng.integers(0, 5, 700).astype(np.int32)
near(Tensor(long).cumsum(), long.cumsum())

# types of sums
assert Tensor([100, 100], dtype=dtypes.int8).sum().item() == 200
assert Tensor([True, True, False]).sum().dtype == dtypes.int32
assert Tensor([1.5, 2], dtype=dtypes.half).sum().dtype == dtypes.half
assert Tensor([1, 2]).mean().item() == 1.5
assert Tensor.ones(3, 3, dtype=dtypes.half).sum(dtype=dtypes.float).dtype == dtypes.float

# the value of an empty sum
near(Tensor(np.zeros((2, 0), np.float32)).sum(axis=1), np.zeros(2))
print("reductions", round(t.sum().item(), 3), t.argmax(axis=1).tolist()[0], Tensor(long).cumsum()[-1].item())
