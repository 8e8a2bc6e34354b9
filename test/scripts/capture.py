"""TinyJit: a captured function with new inputs, with state of its own, and as a training step."""
import numpy as np
from tinygrad import Context, GlobalCounters, Tensor, TinyJit, nn

rng = np.random.default_rng(5)


@TinyJit
def affine(x, w):
    return (x @ w + 1).relu().realize()


w = Tensor(rng.normal(size=(4, 3)).astype(np.float32)).realize()
for _ in range(5):
    x = rng.normal(size=(2, 4)).astype(np.float32)
    np.testing.assert_allclose(affine(Tensor(x).realize(), w).numpy(), np.maximum(x @ w.numpy() + 1, 0), atol=1e-5)
assert affine.captured is not None

# a replay runs as many kernels as the capture did
GlobalCounters.reset()
affine(Tensor(x).realize(), w)
assert GlobalCounters.kernel_count > 0

# state that a captured function changes in place
total = Tensor.zeros(3).contiguous().realize()


@TinyJit
def add_to_total(x):
    return total.assign(total + x).realize()


for i in range(4):
    add_to_total(Tensor([1.0, i, 0]).realize())
assert total.tolist() == [4, 6, 0]

# a training step
Tensor.manual_seed(1)
layer = nn.Linear(3, 1)
opt = nn.optim.SGD(nn.state.get_parameters(layer), lr=0.1)
data = rng.normal(size=(64, 3)).astype(np.float32)
target = data @ np.float32([[1], [-2], [0.5]]) + 3


@TinyJit
def train(x, y):
    opt.zero_grad()
    loss = (layer(x) - y).square().mean()
    loss.backward()
    opt.step()
    return loss.realize()


with Context(TRAINING=1):
    losses = [train(Tensor(data).realize(), Tensor(target).realize()).item() for _ in range(40)]
assert losses[-1] < 1e-2 * losses[0], losses
np.testing.assert_allclose(layer.weight.numpy(), [[1, -2, 0.5]], atol=0.1)
print("capture", total.tolist(), losses[-1] < losses[0])
