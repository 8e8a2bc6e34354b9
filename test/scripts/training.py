"""Gradients, losses, layers and optimisers: a small network learns."""
import numpy as np
from tinygrad import Context, Tensor, nn

# gradients
x = Tensor([[1.0, 2], [3, 4]])
y = Tensor([[2.0, 0.5]])
z = (y.matmul(x) * x).sum()
dx, dy = z.gradient(x, y)
np.testing.assert_allclose(dy.numpy(), [x.numpy() @ x.numpy().sum(0)])
step = 1e-3
for i, j in np.ndindex(2, 2):
    moved = x.numpy().copy()
    moved[i, j] += step
    slope = ((y.numpy() @ moved * moved).sum() - z.item()) / step
    assert abs(slope - dx[i, j].item()) < 0.05
w = Tensor([1.0, -2, 3])
(w.square().sum() + w.relu().sum()).backward()
np.testing.assert_allclose(w.grad.numpy(), [3, -4, 7])

# losses
rng = np.random.default_rng(2)
logits, classes = rng.normal(size=(6, 4)).astype(np.float32), np.array([0, 3, 1, 1, 2, 0])
logp = logits - np.log(np.exp(logits).sum(1, keepdims=True))
picked = -logp[np.arange(6), classes]
near = np.testing.assert_allclose
near(Tensor(logits).sparse_categorical_crossentropy(Tensor(classes)).item(), picked.mean(), rtol=1e-5)
smoothed = Tensor(logits).cross_entropy(Tensor(classes), label_smoothing=0.2)
near(smoothed.item(), 0.8 * picked.mean() - 0.2 * logp.mean(), rtol=1e-5)
near(Tensor(logp).nll_loss(Tensor(classes), reduction="none").numpy(), picked, rtol=1e-5)
p, target = 1 / (1 + np.exp(-logits)), (logits > 0.3).astype(np.float32)
bce = -(target * np.log(p) + (1 - target) * np.log(1 - p))
near(Tensor(p).binary_crossentropy(Tensor(target)).item(), bce.mean(), rtol=1e-4)
near(Tensor(logits).binary_crossentropy_logits(Y=Tensor(target), reduction="sum").item(), bce.sum(), rtol=1e-4)


# a network learns which points lie in a ring
class Net:
    def __init__(self):
        self.l1, self.l2 = nn.Linear(2, 32), nn.Linear(32, 1)
        self.norm = nn.LayerNorm(32)

    def __call__(self, x):
        return self.l2(self.norm(self.l1(x).tanh())).squeeze(-1)


Tensor.manual_seed(3)
points = rng.normal(size=(128, 2)).astype(np.float32)
inside = ((points**2).sum(1) < 1.2).astype(np.float32)
data, labels = Tensor(points), Tensor(inside)
for make in (nn.optim.AdamW, lambda p, lr: nn.optim.SGD(p, lr=lr * 5, momentum=0.9)):
    net = Net()
    opt = make(nn.state.get_parameters(net), lr=0.05)
    losses = []
    with Context(TRAINING=1):
        for _ in range(10):
            opt.zero_grad()
            loss = net(data).binary_crossentropy_logits(labels)
            loss.backward()
            opt.step()
            losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0], losses

# layers have the shapes and values that they should have
image = Tensor.rand(2, 4, 8, 8)
assert nn.Conv2d(4, 6, 3, padding=1, stride=2)(image).shape == (2, 6, 4, 4)
assert nn.ConvTranspose2d(4, 3, 2, stride=2)(image).shape == (2, 3, 16, 16)
for layer in (nn.GroupNorm(2, 4), nn.InstanceNorm(4)):
    out = layer(image).numpy()
    near(out.mean((1, 2, 3)), np.zeros(2), atol=1e-4)
near(nn.RMSNorm(8)(image).square().mean(-1).numpy(), np.ones((2, 4, 8)), atol=1e-3)
table = nn.Embedding(10, 3)
near(table(Tensor([[1, 9]])).numpy(), table.weight.numpy()[[[1, 9]]])
assert nn.BatchNorm(4)(image).shape == image.shape
h, c = nn.LSTMCell(3, 5)(Tensor.rand(2, 3))
assert h.shape == c.shape == (2, 5)
print("training", w.grad.tolist(), losses[-1] < losses[0])
