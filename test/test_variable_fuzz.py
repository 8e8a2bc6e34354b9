"""Random programs on an axis whose size is a variable: one captured function gives numpy's values for every size."""
from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from tensor_engine import Context, Tensor, TinyJit, Variable
from tensor_engine.engine import program as kernels
from tensor_engine.helpers import at_most
from tensor_engine.mixin.sizes import certain

LARGEST = 6  # the variable goes from 1 to this, or in every third program to MANY, where its loops run in lanes
MANY = 35
MOST_ELEMENTS = 3000


class Step(NamedTuple):
    """One operation on an earlier value (and another one); both functions get them, and the size n."""

    name: str
    operands: tuple[int, ...]
    engine: Callable[..., Any]
    numpy: Callable[..., Any]


def both(name: str, operands: tuple[int, ...], function: Callable[..., Any]) -> Step:
    """A step that is written in the same way for Tensors and arrays."""
    return Step(name, operands, function, function)


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


class Writer:
    """Writes a program, looking at the shapes of Tensors that are never computed."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.largest = MANY if seed % 3 == 2 else LARGEST
        self.n = Variable("n", 1, self.largest).bind(2)
        shape = tuple(self.random.choice([1, 2, 3, 4, 8]) for _ in range(self.random.randint(0, 2)))
        self.axis = self.random.randint(0, len(shape))
        self.shape = (*shape[: self.axis], self.largest, *shape[self.axis :])
        self.steps: list[Step] = []
        self.values = [self.first(Tensor.zeros(*self.shape), self.n)]

    def first(self, x: Any, n: Any) -> Any:
        """The input's part of variable size."""
        return x[(slice(None),) * self.axis + (slice(None, n),)]

    def write(self, most_steps: int) -> None:
        for _ in range(self.random.randint(2, most_steps)):
            number = max(len(self.values) - 1 - self.random.randint(0, 1), 0)
            family = self.random.choice([self.elementwise, self.movement, self.movement, self.reduce, self.pair])
            step = family(number, self.values[number])
            if step is None:
                continue
            value = step.engine(*[self.values[o] for o in step.operands], self.n)
            if at_most(value.numel()) <= MOST_ELEMENTS and value.ndim <= 4:
                self.steps.append(step)
                self.values.append(value)

    # ---- families of steps

    def elementwise(self, number: int, x: Tensor) -> Step:
        name = self.random.choice(["relu", "sin", "times n", "at places", "stored"])
        engine, numpy = {
            "relu": (lambda x, n: x.relu(), lambda x, n: np.maximum(x, 0)),
            "sin": (lambda x, n: x.sin(), lambda x, n: np.sin(x)),
            "times n": (lambda x, n: x * n, lambda x, n: x * np.float32(n)),
            "at places": (lambda x, n: (x > 0).where(x, n - 1), lambda x, n: np.where(x > 0, x, n - 1)),
            "stored": (lambda x, n: x.contiguous(), lambda x, n: x),
        }[name]
        return Step(name, (number,), engine, numpy)

    def movement(self, number: int, x: Tensor) -> Step | None:
        if not x.ndim:
            return both("new axis", (number,), lambda x, n: x.reshape(1))
        axis, one = self.random.randrange(x.ndim), (number,)
        front = (slice(None),) * axis
        name = self.random.choice(["permute", "flip", "slice", "pad", "repeat", "flat", "cat", "last", "pad to"])
        if name == "permute":
            order = tuple(self.random.sample(range(x.ndim), x.ndim))
            return Step(name, one, lambda x, n: x.permute(order), lambda x, n: x.transpose(order))
        if name == "flip":
            return Step(name, one, lambda x, n: x.flip(axis), lambda x, n: np.flip(x, axis))
        if name == "slice":
            part = slice(*self.random.choice([(1, None), (None, 3), (-2, None), (None, -1), (None, None, 2), (1, 4)]))
            kept = x[(*front, part)].shape[axis]
            return both(name, one, lambda x, n: x[(*front, part)]) if certain(kept >= 1) else None
        if name == "pad":
            pads = [(self.random.randint(0, 2), self.random.randint(0, 2)) for _ in x.shape]
            return Step(name, one, lambda x, n: x.pad(pads), lambda x, n: np.pad(x, pads))
        if name == "repeat":
            return Step(name, one, lambda x, n: x.unsqueeze(axis).expand(*x.shape[:axis], n, *x.shape[axis:]),
                        lambda x, n: np.repeat(np.expand_dims(x, axis), n, axis))  # fmt: skip
        if name == "flat":
            return both(name, one, lambda x, n: x.reshape(*x.shape[:axis], -1))
        if name == "cat":
            return Step(name, one, lambda x, n: x.cat(x[(*front, slice(1))], x, dim=axis),
                        lambda x, n: np.concatenate([x, x[(*front, slice(1))], x], axis))  # fmt: skip
        if name == "last" and certain(x.shape[axis] >= self.n):
            return both(name, one, lambda x, n: x[(*front, n - 1)])
        if name == "pad to" and certain(x.shape[axis] <= 8):
            rest = [(0, 0)] * axis
            more = [(0, 0)] * (x.ndim - axis - 1)
            return Step(name, one, lambda x, n: x.pad([*rest, (0, 8 - x.shape[axis]), *more]),
                        lambda x, n: np.pad(x, [*rest, (0, 8 - x.shape[axis]), *more]))  # fmt: skip
        return None

    def reduce(self, number: int, x: Tensor) -> Step | None:
        if not x.ndim:
            return None
        axis = self.random.randrange(x.ndim)
        name = self.random.choice(["sum", "mean", "max", "softmax", "cumsum", "argmax"])
        if name == "softmax":
            return Step(name, (number,), lambda x, n: x.softmax(axis), lambda x, n: softmax(x, axis))
        if name == "cumsum":
            return both(name, (number,), lambda x, n: x.cumsum(axis))
        if name == "argmax":
            return both(name, (number,), lambda x, n: x.sin().argmax(axis) if isinstance(x, Tensor)
                        else np.sin(x).argmax(axis))  # fmt: skip
        return both(name, (number,), lambda x, n: getattr(x, name)(axis))

    def pair(self, number: int, x: Tensor) -> Step | None:
        other = self.random.randrange(len(self.values))
        shape = self.values[other].shape
        if x.ndim == 2 and self.random.randint(0, 1):
            return both("product", (number,), lambda x, n: (x @ x.T) * 0.125)
        if shape != x.shape:
            return None
        return both("add", (number, other), lambda x, y, n: x + y * 0.5)


def compute(writer: Writer, x: Any, n: Any, which: str) -> Any:
    values = [writer.first(x, n)]
    for step in writer.steps:
        values.append(getattr(step, which)(*[values[o] for o in step.operands], n))
    return values[-1]


def check(seed: int, path: str, noopt: int, most_steps: int) -> None:
    writer = Writer(seed)
    writer.write(most_steps)
    array = np.random.default_rng(seed).uniform(-1, 1, writer.shape).astype(np.float32)
    n = Variable("n", 1, writer.largest)
    with Context(DEV=path, NOOPT=noopt, SPEC=1):
        x = Tensor(array).realize()
        function = TinyJit(lambda x, n: compute(writer, x, n, "engine"))
        function(x, n.bind(2))
        function(x, n.bind(writer.largest)).numpy()
        compiled = len(kernels.programs)
        for size in range(1, 7) if writer.largest == LARGEST else (1, 7, 8, 9, 30, 32, 35):
            found = function(x, n.bind(size)).numpy()
            wanted = np.asarray(compute(writer, array.astype(np.float64), size, "numpy"))
            steps = ", ".join(step.name for step in writer.steps)
            assert found.shape == wanted.shape, f"n={size}: {steps}"
            scale = max(float(np.abs(wanted).max()), 1.0) if wanted.size else 1.0
            np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * scale, err_msg=f"n={size}: {steps}")
        assert len(kernels.programs) == compiled, "another size compiled again"


@pytest.mark.parametrize("seed", range(14))
def test_programs(seed: int) -> None:
    check(seed, "CPU:LLVM", 0, most_steps=6)


@pytest.mark.parametrize("path, noopt", [("CPU:C", 0), ("CPU:LLVM", 1), ("PYTHON", 0)])
def test_programs_on_other_paths(path: str, noopt: int) -> None:
    for seed in range(20, 23):
        check(seed, path, noopt, most_steps=5)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(100, 400))
def test_many_programs(seed: int) -> None:
    check(seed, ["CPU:LLVM", "CPU:LLVM", "CPU:C", "PYTHON"][seed % 4], seed % 2, most_steps=9)
