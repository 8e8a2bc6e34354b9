"""Random programs of views, values, assignments and realisations, against numpy.

A view is an array of places in a flat numpy array: that is what being a view means, however it is reshaped.
"""

from __future__ import annotations

import numpy as np
import pytest

from tensor_engine import Context, Tensor


class Twin:
    """A tensor and what it must be: `memory[places]`."""

    def __init__(self, tensor: Tensor, memory: np.ndarray, places: np.ndarray):
        self.tensor, self.memory, self.places = tensor, memory, places

    @classmethod
    def of_value(cls, tensor: Tensor, value: np.ndarray) -> Twin:
        return cls(tensor, value.flatten(), np.arange(value.size).reshape(value.shape))

    @property
    def value(self) -> np.ndarray:
        return self.memory[self.places]

    def view(self, move) -> Twin:
        return Twin(move(self.tensor), self.memory, move(self.places))

    def check(self) -> None:
        np.testing.assert_array_equal(self.tensor.numpy(), self.value)


class Program:
    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)
        self.twins = [self.fresh() for _ in range(2)]

    def fresh(self) -> Twin:
        shape = [(3, 4), (12,), (2, 3, 2)][self.random.integers(3)]
        value = self.random.integers(0, 50, shape).astype(np.int32)
        tensor = Tensor(value) if self.random.random() < 0.6 else Tensor(value - 1) + 1
        return Twin.of_value(tensor, value)

    def any(self) -> Twin:
        return self.twins[self.random.integers(len(self.twins))]

    def any_index(self, shape: tuple[int, ...]):
        picks = []
        for size in shape:
            start, stop = sorted(self.random.integers(0, size + 1, 2))
            whole = [slice(None), slice(None, None, -1), slice(None, None, 2), int(self.random.integers(size))]
            part = slice(int(start), int(stop)) if start < stop else slice(None)
            picks.append([*whole, part, part][self.random.integers(6)])
        return tuple(picks)

    # ---- steps

    def step(self) -> None:
        steps = [self.look, self.derive, self.compute, self.assign, self.assign, self.assign, self.realize, self.forget]
        steps[self.random.integers(len(steps))]()

    def look(self) -> None:
        self.any().check()

    def derive(self) -> None:
        twin = self.any()
        index = self.any_index(twin.places.shape)
        moves = [lambda x: x[index], lambda x: x.reshape(-1), lambda x: x.T if x.ndim == 2 else x]
        self.twins.append(twin.view(moves[self.random.integers(3)]))

    def compute(self) -> None:
        twin, other = self.any(), self.any()
        total = int(other.value.sum())
        tensor = twin.tensor * 2 + other.tensor.sum().cast("int32")
        self.twins.append(Twin.of_value(tensor, twin.value * 2 + total))
        if self.random.random() < 0.3:
            self.twins.append(Twin.of_value(twin.tensor.clone(), twin.value))

    def assign(self) -> None:
        twin, other = self.any(), self.any()
        index = self.any_index(twin.places.shape)
        places = twin.places[index]
        value, tensor = other.value, other.tensor
        if value.shape != places.shape:
            value, tensor = np.int32(value.sum() % 50), (other.tensor.sum() % 50).cast("int32")
        elif self.random.random() < 0.5:
            value, tensor = value % 50 + 1, tensor % 50 + 1
        twin.tensor[index] = tensor
        twin.memory[places] = value

    def realize(self) -> None:
        chosen = [twin.tensor for twin in self.twins if self.random.random() < 0.4]
        if chosen:
            chosen[0].realize(*chosen[1:])

    def forget(self) -> None:
        if len(self.twins) > 3:
            self.twins.pop(self.random.integers(len(self.twins)))


def run(seed: int, steps: int = 14) -> None:
    program = Program(seed)
    for _ in range(steps):
        program.step()
    for twin in program.twins:
        twin.check()


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    with Context(NOOPT=1):  # what is tested is who reads what and when, so kernels may be quick to compile
        run(seed)


@pytest.mark.slow
def test_many_random_programs():
    with Context(NOOPT=1):
        for seed in range(100, 400):
            run(seed)
