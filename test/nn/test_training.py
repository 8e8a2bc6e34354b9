"""Networks that learn: captured steps from the first loss to the right answers."""

from __future__ import annotations

import numpy as np

from tensor_engine import Tensor, TinyJit, nn
from tensor_engine.nn.optim import SGD, Adam
from tensor_engine.nn.state import get_parameters


class Xor:
    """Two numbers, eight hidden ones, two classes."""

    def __init__(self):
        self.first, self.second = nn.Linear(2, 8), nn.Linear(8, 2)

    def __call__(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).tanh())


def xor_step(optimize, seed):
    Tensor.manual_seed(seed)
    model = Xor()
    optimizer = optimize(get_parameters(model))
    x, y = Tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]]), Tensor([0, 1, 1, 0])

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = model(x).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*optimizer.schedule_step())

    return step, lambda: model(x).argmax(-1).tolist()


def test_xor():
    step, answers = xor_step(lambda params: Adam(params, lr=0.05), seed=7)
    step = TinyJit(step)
    with Tensor.train():
        losses = [step().item() for _ in range(200)]
    assert losses[-1] < 0.001
    assert answers() == [0, 1, 1, 0]


def test_captured_training_is_the_same_training():
    for optimize in (lambda params: Adam(params, lr=0.05), lambda params: SGD(params, lr=0.1, momentum=0.9)):
        losses = []
        for capture in (TinyJit, lambda function: function):
            step, _ = xor_step(optimize, seed=3)
            step = capture(step)
            with Tensor.train():
                losses.append([step().item() for _ in range(6)])
        assert losses[0] == losses[1]
        assert len(set(losses[0])) == 6


def test_xor_gradients_against_numpy():
    step, _ = xor_step(lambda params: SGD(params, lr=0.0), seed=1)
    model = Xor()
    x, y = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]], np.float32), np.array([0, 1, 1, 0])
    model(Tensor(x)).sparse_categorical_crossentropy(Tensor(y)).backward()
    w1, b1, w2, b2 = (p.numpy().astype(np.float64) for p in get_parameters(model))
    hidden = np.tanh(x @ w1.T + b1)
    powers = np.exp(hidden @ w2.T + b2)
    wrong = (powers / powers.sum(1, keepdims=True) - np.eye(2)[y]) / 4
    below = wrong @ w2 * (1 - hidden**2)
    for p, expected in zip(get_parameters(model), (below.T @ x, below.sum(0), wrong.T @ hidden, wrong.sum(0))):
        np.testing.assert_allclose(p.grad.numpy(), expected, rtol=1e-4, atol=1e-6)


# ---- pictures ---------------------------------------------------------------------------------------------------

STROKES = ["111101101111", "010110010111", "111001110111", "111011001111", "101101111001"]  # 0 1 2 3 4, 3 wide


def digits(count, seed):
    """Pictures (count, 1, 10, 10) of the digits 0 to 4, moved about and noisy, and what they are."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, len(STROKES), count)
    pictures = random.normal(0, 0.2, (count, 1, 10, 10)).astype(np.float32)
    for picture, label in zip(pictures, labels):
        shape = np.array([*STROKES[label]], np.float32).reshape(4, 3).repeat(2, 0).repeat(2, 1)
        top, left = random.integers(0, 3), random.integers(0, 5)
        picture[0, top : top + 8, left : left + 6] += shape
    return pictures, labels.astype(np.int32)


class ConvNet:
    """Two convolutions with pooling and norms, and a linear layer."""

    def __init__(self):
        self.layers = [
            nn.Conv2d(1, 8, 3), nn.BatchNorm(8), Tensor.relu, Tensor.max_pool2d,
            nn.Conv2d(8, 16, 3), Tensor.relu, lambda x: x.flatten(1), nn.Linear(64, 5),
        ]  # fmt: skip

    def __call__(self, x: Tensor) -> Tensor:
        return x.sequential(self.layers)


def test_a_convolutional_network_learns_digits():
    Tensor.manual_seed(1)
    model = ConvNet()
    optimizer = Adam(get_parameters(model), lr=0.01)

    @TinyJit
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(x).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*optimizer.schedule_step())

    pictures, labels = digits(64 * 40, seed=0)
    with Tensor.train():
        losses = [
            step(Tensor(pictures[i : i + 64]), Tensor(labels[i : i + 64])).item() for i in range(0, len(labels), 64)
        ]
    assert losses[-1] < losses[0] / 4
    pictures, labels = digits(200, seed=1)
    assert (model(Tensor(pictures)).argmax(1).numpy() == labels).mean() > 0.95
