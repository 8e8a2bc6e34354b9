"""A convolutional network learns to read handwritten digits: `python examples/mnist.py FOLDER`.

FOLDER holds the four IDX files of MNIST, packed (.gz) or not.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from tensor_engine import Tensor, TinyJit, nn
from tensor_engine.nn.datasets import mnist


class Network:
    """Images (batch, 1, 28, 28) → a score for each digit (batch, 10)."""

    def __init__(self) -> None:
        self.layers = [
            nn.Conv2d(1, 32, 5), Tensor.relu,
            nn.Conv2d(32, 32, 5), Tensor.relu,
            nn.BatchNorm(32), Tensor.max_pool2d,
            nn.Conv2d(32, 64, 3), Tensor.relu,
            nn.Conv2d(64, 64, 3), Tensor.relu,
            nn.BatchNorm(64), Tensor.max_pool2d,
            lambda x: x.flatten(1), nn.Linear(576, 10),
        ]  # fmt: skip

    def __call__(self, images: Tensor) -> Tensor:
        return images.float().sequential(self.layers)


def train(network: Network, images: Tensor, labels: Tensor, steps: int, batch: int) -> Iterator[float]:
    """The loss after each step, on `batch` images that are drawn anew every time."""
    optimizer = nn.optim.Adam(nn.state.get_parameters(network))

    @TinyJit
    @Tensor.train()
    def step() -> Tensor:
        drawn = Tensor.randint(batch, high=images.shape[0])
        optimizer.zero_grad()
        loss = network(images[drawn]).sparse_categorical_crossentropy(labels[drawn]).backward()
        return loss.realize(*optimizer.schedule_step())

    for _ in range(steps):
        yield step().item()


def accuracy(network: Network, images: Tensor, labels: Tensor, batch: int = 500) -> float:
    """The share of the images that are read as what they are. The last ones count if they fill a batch."""

    @TinyJit
    def right(some: Tensor, answers: Tensor) -> Tensor:
        return (network(some).argmax(axis=1) == answers).sum().realize()

    starts = range(0, images.shape[0] - batch + 1, batch)
    counts = [
        right(images[i : i + batch].contiguous().realize(), labels[i : i + batch].contiguous().realize()).item()
        for i in starts
    ]
    return sum(counts) / (len(starts) * batch)


def main() -> None:
    """Train, test, and tell how it went."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=70)
    parser.add_argument("--batch", type=int, default=512)
    options = parser.parse_args()
    images, labels, test_images, test_labels = (tensor.realize() for tensor in mnist(options.folder))
    network = Network()
    start = time.perf_counter()
    for number, loss in enumerate(train(network, images, labels, options.steps, options.batch)):
        if number % 10 == 0:
            print(f"step {number:3}: loss {loss:.3f}, {time.perf_counter() - start:.1f} s")
    share = accuracy(network, test_images, test_labels, min(500, test_images.shape[0]))
    print(f"accuracy: {100 * share:.2f} % after {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
