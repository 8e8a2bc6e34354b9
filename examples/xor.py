"""Two inputs, eight hidden units: a network learns the exclusive or. `python examples/xor.py`."""

from __future__ import annotations

from tensor_engine import Tensor, TinyJit, nn

STEPS = 200


class Network:
    """(batch, 2) → a score for False and one for True."""

    def __init__(self) -> None:
        self.hidden, self.output = nn.Linear(2, 8), nn.Linear(8, 2)

    def __call__(self, x: Tensor) -> Tensor:
        return self.output(self.hidden(x).tanh())


def train(seed: int = 0) -> list[int]:
    """What the network says of (0, 0), (0, 1), (1, 0) and (1, 1) after its training."""
    Tensor.manual_seed(seed)
    x, y = Tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), Tensor([0, 1, 1, 0])
    network = Network()
    optimizer = nn.optim.Adam(nn.state.get_parameters(network), lr=0.05)

    @TinyJit
    @Tensor.train()
    def step() -> Tensor:
        optimizer.zero_grad()
        loss = network(x).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*optimizer.schedule_step())

    for number in range(STEPS):
        loss = step()
        if number % 50 == 0:
            print(f"step {number:3}: loss {loss.item():.4f}")
    return network(x).argmax(axis=1).tolist()


if __name__ == "__main__":
    print("answers:", train())
