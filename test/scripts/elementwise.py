"""One element at a time: arithmetic, comparison, bits, curves, types."""
import numpy as np
from tinygrad import Tensor, dtypes

x = np.linspace(-3, 3, 25, dtype=np.float32)
t = Tensor(x)


def near(tensor, expected, atol=2e-6):
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-5, atol=atol)


# arithmetic with numbers on either side
near(2 - t * 3 + t / 4, 2 - x * 3 + x / 4)
near(1 / (t + 5), 1 / (x + 5))
near(t**2 + 2.0**t, x**2 + 2.0**x)
near(t.add(5).sub(1, reverse=True).mul(3).div(2, reverse=True).neg(), -2 / ((1 - (x + 5)) * 3))
ints = np.array([-7, -1, 0, 5, 9], np.int32)
n = Tensor(ints)
np.testing.assert_array_equal((n // 3).numpy(), ints // 3)
np.testing.assert_array_equal((n % 3).numpy(), ints % 3)
np.testing.assert_array_equal(n.div(2, rounding_mode="trunc").numpy(), [-3, 0, 0, 2, 4])
np.testing.assert_array_equal(n.fmod(4).numpy(), np.fmod(ints, 4))
near(n / 2, ints / 2)

# bits
np.testing.assert_array_equal((n & 6).numpy(), ints & 6)
np.testing.assert_array_equal((n | 8).numpy(), ints | 8)
np.testing.assert_array_equal((n ^ 5).numpy(), ints ^ 5)
np.testing.assert_array_equal((~n).numpy(), ~ints)
np.testing.assert_array_equal((Tensor([1, 2, 3]) << 2).numpy(), [4, 8, 12])
np.testing.assert_array_equal(Tensor([9, 16, 40]).rshift(3).numpy(), [1, 2, 5])

# comparison and choice
for got, expected in ((t < 0, x < 0), (t >= 1, x >= 1), (t == 0, x == 0), (t != 0, x != 0)):
    assert got.dtype == dtypes.bool
    np.testing.assert_array_equal(got.numpy(), expected)
near(t.maximum(0.5).minimum(Tensor(2.0)), np.minimum(np.maximum(x, 0.5), 2))
near(t.clip(-1, 1), x.clip(-1, 1))
near(t.lerp(t + 2, 0.25), x + 0.5)
special = Tensor([1.0, float("nan"), float("inf"), -float("inf")])
assert special.isnan().tolist() == [False, True, False, False]
assert special.isinf().tolist() == [False, False, True, True]
assert special.isfinite().tolist() == [True, False, False, False]
assert t.isclose(t + 1e-9).all().item() and t.allclose(t).item()

# curves, each as numpy has it
for name in ("abs", "sign", "floor", "ceil", "trunc", "round", "square", "exp", "exp2"):
    near(getattr(t, name)(), getattr(np, name)(x), 2e-5)
for name in ("sin", "cos", "tan", "sinh", "cosh"):
    near(getattr(t, name)(), getattr(np, name)(x), 2e-5)
for name, theirs in (("tanh", "tanh"), ("asinh", "arcsinh"), ("atan", "arctan")):
    near(getattr(t, name)(), getattr(np, theirs)(x))
for name, theirs in (("asin", "arcsin"), ("acos", "arccos"), ("atanh", "arctanh")):
    near(getattr(t / 4, name)(), getattr(np, theirs)(x / 4), 1e-5)
p = np.abs(x) + 0.5
for name in ("log", "log2", "log10", "sqrt", "reciprocal"):
    near(getattr(Tensor(p), name)(), getattr(np, name)(p))
near(Tensor(p).rsqrt(), 1 / np.sqrt(p))
near(Tensor(p + 1).acosh(), np.arccosh(p + 1))
s = 1 / (1 + np.exp(-x))
near(t.sigmoid(), s)
near(t.silu(), x * s)
near(t.relu() + t.leaky_relu(0.1) + t.relu6(), np.maximum(x, 0) + np.where(x > 0, x, 0.1 * x) + x.clip(0, 6))
near(t.softplus(), np.log1p(np.exp(x)))
near(t.elu(), np.where(x > 0, x, np.expm1(x)))
near(t.gelu(), 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))
near(t.hardswish() + t.softsign(), x * (x + 3).clip(0, 6) / 6 + x / (1 + np.abs(x)))
near(t.mish() + t.logsigmoid(), x * np.tanh(np.log1p(np.exp(x))) + np.log(s), 1e-5)
near(t.copysign(Tensor(-1.0)), -np.abs(x))
near(t.logaddexp(Tensor(1.0)), np.logaddexp(x, 1))

# types
assert (n + 1.5).is_floating_point() and not (n + 1).is_floating_point()
assert (n.cast(dtypes.int8) + n.long()).dtype == dtypes.int64
np.testing.assert_array_equal(Tensor([1.9, -1.9]).int().numpy(), [1, -1])
np.testing.assert_array_equal(Tensor([300, -1]).cast(dtypes.uint8).numpy(), [44, 255])
np.testing.assert_array_equal(Tensor([1.0, -2.0]).bitcast(dtypes.uint32).numpy(), np.float32([1, -2]).view(np.uint32))
parts = Tensor([1, 256], dtype=dtypes.int32).bitcast(dtypes.uint8)
np.testing.assert_array_equal(parts.numpy(), [1, 0, 0, 0, 0, 1, 0, 0])
assert [v.dtype for v in (t.half(), t.double(), t.bfloat16(), t.short(), t.bool())] == [
    dtypes.half, dtypes.double, dtypes.bfloat16, dtypes.short, dtypes.bool]
print("elementwise", (n // 3).tolist(), (n % 3).tolist(), [round(v, 4) for v in t.gelu()[::6].tolist()])
