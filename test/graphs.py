"""Random programs of tensor operations, for the engine and for numpy.

A program is data: inputs and steps, each with its operands' numbers. Hypothesis draws it while numpy computes along,
and only steps are kept whose result numpy finds exactly representable, so that every path must give the same bits.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from tensor_engine import Tensor
from tensor_engine.dtype import dtypes

DTYPES = ["float32", "int32", "int64", "bool", "uint8", "float16", "float64"]
SIZES = [1, 2, 3, 4, 5, 7, 8, 16, 17, 33]
MOST_ELEMENTS = 700
SPECIAL = [math.inf, -math.inf, math.nan, -0.0]


class Step(NamedTuple):
    """One operation on earlier values."""

    name: str
    operands: tuple[int, ...]
    arg: Any = None


class Program(NamedTuple):
    """`inputs` are values 0, 1, …; each step adds one; `outputs` are the numbers of those asked for."""

    inputs: list[np.ndarray]
    steps: list[Step]
    outputs: list[int]

    def __repr__(self) -> str:
        lines = [f"v{i} = Tensor(np.array({a.tolist()}, '{a.dtype}').reshape({a.shape}))"
                 for i, a in enumerate(self.inputs)]
        for number, (name, operands, arg) in enumerate(self.steps, len(self.inputs)):
            lines.append(f"v{number} = {name}({', '.join(f'v{o}' for o in operands)}, {arg})")
        return "\n".join(["", *lines, f"realize {self.outputs}"])


class Operation(NamedTuple):
    """The same operation twice; `kinds`: the dtype kinds it is defined for."""

    engine: Callable[..., Tensor]
    numpy: Callable[..., np.ndarray]
    kinds: str = "fiub"


def to(dtype: str) -> Any:
    return getattr(dtypes, dtype)


UNARY = {
    "neg": Operation(lambda x, _: -x, lambda x, _: -x, "fi"),
    "abs": Operation(lambda x, _: x.abs(), lambda x, _: np.abs(x), "fi"),
    "not": Operation(lambda x, _: x.logical_not(), lambda x, _: np.logical_not(x)),
    "square": Operation(lambda x, _: x * x, lambda x, _: x * x, "fiu"),
    "floor": Operation(lambda x, _: x.floor(), lambda x, _: np.floor(x), "f"),
    "relu": Operation(lambda x, _: x.relu(), lambda x, _: np.maximum(x, 0), "fi"),
    "contiguous": Operation(lambda x, _: x.contiguous(), lambda x, _: x),
}
BINARY = {
    "add": Operation(lambda x, y, _: x + y, lambda x, y, _: x + y),
    "sub": Operation(lambda x, y, _: x - y, lambda x, y, _: x - y, "fiu"),
    "mul": Operation(lambda x, y, _: x * y, lambda x, y, _: x * y),
    "maximum": Operation(lambda x, y, _: x.maximum(y), lambda x, y, _: np.maximum(x, y)),
    "minimum": Operation(lambda x, y, _: x.minimum(y), lambda x, y, _: np.minimum(x, y)),
    "less": Operation(lambda x, y, _: x < y, lambda x, y, _: x < y),
    "equal": Operation(lambda x, y, _: x == y, lambda x, y, _: x == y),
    "at most": Operation(lambda x, y, _: x <= y, lambda x, y, _: x <= y),
    "floor divide": Operation(lambda x, y, _: x // y, lambda x, y, _: divide(x, y), "iu"),
    "modulo": Operation(lambda x, y, _: x % y, lambda x, y, _: modulo(x, y), "iu"),
    "xor": Operation(lambda x, y, _: x ^ y, lambda x, y, _: x ^ y, "iub"),
    "and": Operation(lambda x, y, _: x & y, lambda x, y, _: x & y, "iub"),
}
MOVEMENT = {
    "reshape": Operation(lambda x, shape: x.reshape(shape), lambda x, shape: x.reshape(shape)),
    "permute": Operation(lambda x, order: x.permute(order), lambda x, order: x.transpose(order)),
    "flip": Operation(lambda x, axis: x.flip(axis), lambda x, axis: np.flip(x, axis)),
    "pad": Operation(lambda x, pads: x.pad(pads), lambda x, pads: np.pad(x, pads)),
    "shrink": Operation(
        lambda x, bounds: x.shrink(bounds), lambda x, bounds: x[tuple(slice(a, b) for a, b in bounds)]
    ),
    "expand": Operation(lambda x, shape: x.expand(shape), lambda x, shape: np.broadcast_to(x, shape)),
    "step": Operation(
        lambda x, steps: x[tuple(slice(None, None, s) for s in steps)],
        lambda x, steps: x[tuple(slice(None, None, s) for s in steps)],
    ),
}
REDUCE = {
    "sum": Operation(lambda x, a: x.sum(a[0], keepdim=a[1]), lambda x, a: total(np.sum, x, a)),
    "max": Operation(lambda x, a: x.max(a[0], keepdim=a[1]), lambda x, a: np.max(x, axis=a[0], keepdims=a[1])),
    "min": Operation(lambda x, a: x.min(a[0], keepdim=a[1]), lambda x, a: np.min(x, axis=a[0], keepdims=a[1])),
    "prod": Operation(lambda x, a: x.prod(a[0], keepdim=a[1]), lambda x, a: total(np.prod, x, a)),
}
CASTS = {"cast": Operation(lambda x, d: x.cast(to(d)), lambda x, d: x.astype(d))}
CHOICE = {"where": Operation(lambda c, x, y, _: c.where(x, y), lambda c, x, y, _: np.where(c, x, y))}
GATHER = {"take": Operation(lambda x, i, axis: take(x, i, axis), lambda x, i, axis: np.take(x, i, axis))}
SMOOTH = {  # well-conditioned functions, whose rounding errors stay small
    "sigmoid": Operation(lambda x, _: x.sigmoid(), lambda x, _: 1 / (1 + np.exp(-x))),
    "silu": Operation(lambda x, _: x.silu(), lambda x, _: x / (1 + np.exp(-x))),
    "decay": Operation(lambda x, _: (-x.abs()).exp(), lambda x, _: np.exp(-np.abs(x))),
    "root": Operation(lambda x, _: (x.abs() + 1).sqrt(), lambda x, _: np.sqrt(np.abs(x) + 1)),
    "log": Operation(lambda x, _: (x.abs() + 1).log(), lambda x, _: np.log(np.abs(x) + 1)),
    "sin": Operation(lambda x, _: x.sin(), lambda x, _: np.sin(x)),
    "softmax": Operation(lambda x, axis: x.softmax(axis), lambda x, axis: softmax(x, axis)),
    "matmul": Operation(lambda x, y, _: x @ y, lambda x, y, _: x @ y),
    "mean": Operation(lambda x, a: x.mean(a[0], keepdim=a[1]), lambda x, a: np.mean(x, axis=a[0], keepdims=a[1])),
}
ALL = {**SMOOTH, **UNARY, **BINARY, **MOVEMENT, **REDUCE, **CASTS, **CHOICE, **GATHER}


def divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Integer division as the engine defines it: down, and 0 for a divisor of 0."""
    return np.where(y == 0, 0, x // np.where(y == 0, 1, y)).astype(x.dtype)


def modulo(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What that leaves over: 0 for a divisor of 0."""
    return np.where(y == 0, 0, x - divide(x, y) * y).astype(x.dtype)


def total(combine: Any, x: np.ndarray, arg: Any) -> np.ndarray:
    """In the type that the engine accumulates and returns."""
    wide = {"b": np.int32, "i": np.promote_types(x.dtype, np.int32), "u": np.uint32, "f": x.dtype}[x.dtype.kind]
    return combine(x.astype(wide), axis=arg[0], keepdims=arg[1], dtype=wide)


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def take(x: Tensor, index: Tensor, axis: int) -> Tensor:
    return x[(slice(None),) * axis + (index,)]


def run_numpy(program: Program) -> list[np.ndarray]:
    """The outputs by numpy."""
    values = list(program.inputs)
    with np.errstate(all="ignore"):
        for name, operands, arg in program.steps:
            values.append(np.asarray(ALL[name].numpy(*(values[o] for o in operands), arg)))
    return [values[o] for o in program.outputs]


def compute(program: Program, inputs: list[Tensor], store_all: bool = False) -> list[Tensor]:
    """The program's outputs, not computed yet; `store_all`: with a kernel for every step."""
    values = list(inputs)
    for name, operands, arg in program.steps:
        value = ALL[name].engine(*(values[o] for o in operands), arg)
        values.append(value.contiguous() if store_all else value)
    return [values[o] for o in program.outputs]


def run_engine(program: Program, device: str, store_all: bool = False) -> list[np.ndarray]:
    """The outputs by the engine, all in one schedule."""
    outputs = compute(program, [Tensor(array, device=device) for array in program.inputs], store_all)
    outputs[0].realize(*outputs[1:])
    return [output.numpy() for output in outputs]


# ---- drawing ----------------------------------------------------------------------------------------------------


class Writer:
    """Writes a program down while numpy computes along."""

    def __init__(self, number: Callable[[int, int], int], specials: bool):
        self.number, self.specials = number, specials
        self.inputs: list[np.ndarray] = []
        self.steps: list[Step] = []
        self.values: list[np.ndarray] = []

    def choose(self, options: Any) -> Any:
        options = list(options)
        return options[self.number(0, len(options) - 1)]

    def shuffled(self, items: Any) -> tuple[int, ...]:
        items = list(items)
        return tuple(items.pop(self.number(0, len(items) - 1)) for _ in range(len(items)))

    def pick(self, kinds: str = "fiub") -> int | None:
        """An earlier value, the newest ones most often."""
        fitting = [i for i, v in enumerate(self.values) if v.dtype.kind in kinds]
        return fitting[-1 - min(self.number(0, 3), len(fitting) - 1)] if fitting else None

    # ---- inputs

    def shape(self) -> tuple[int, ...]:
        shape: list[int] = []
        for _ in range(self.number(0, 4)):
            size = self.choose(SIZES)
            if math.prod(shape) * size <= MOST_ELEMENTS:
                shape.append(size)
        if shape and self.number(0, 19) == 0:
            shape[self.number(0, len(shape) - 1)] = 0
        return tuple(shape)

    def add_input(self, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> int:
        shape = self.shape() if shape is None else shape
        dtype = dtype or self.choose(DTYPES)
        random = np.random.default_rng(self.number(0, 999))
        if dtype == "bool":
            array = random.integers(0, 2, shape).astype(bool)
        elif dtype.startswith("float"):
            array = (random.integers(-8, 9, shape) / 4).astype(dtype)
            if self.specials and array.size and shape:
                array.flat[random.integers(0, array.size, 2)] = random.choice(SPECIAL, 2)
        else:
            array = random.integers(0 if dtype == "uint8" else -9, 10, shape).astype(dtype)
        self.inputs.append(np.asarray(array))
        self.values.append(np.asarray(array))
        return len(self.values) - 1

    # ---- steps

    def add(self, name: str, *operands: int, arg: Any = None) -> None:
        """Keep the step if its result is exact."""
        given = [self.values[o] for o in operands]
        with np.errstate(all="ignore"):
            result = np.asarray(ALL[name].numpy(*given, arg))
        if result.size <= MOST_ELEMENTS and self.is_exact(name, given, arg, result):
            self.steps.append(Step(name, operands, arg))
            self.values.append(result)

    def is_exact(self, name: str, given: list[np.ndarray], arg: Any, result: np.ndarray) -> bool:
        if name == "cast":
            return given[0].dtype.kind != "f" or result.dtype.kind == "f" or self.fits(given[0], result.dtype)
        if result.dtype.kind != "f" or name in MOVEMENT:
            return True
        finite = result[np.isfinite(result)]
        if finite.size and np.abs(finite).max() > 2000:
            return False
        with np.errstate(all="ignore"):
            wide = [g.astype(np.float64) if g.dtype.kind == "f" else g for g in given]
            exact = np.asarray(ALL[name].numpy(*wide, arg))
        if name in ("sum", "prod") and not np.isfinite(given[0]).all():
            return False  # inf - inf depends on the order
        return np.array_equal(exact.astype(np.float64), result.astype(np.float64), equal_nan=True)

    def fits(self, value: np.ndarray, dtype: Any) -> bool:
        info = np.iinfo(dtype) if dtype.kind in "iu" else None
        if not np.isfinite(value).all():
            return False
        if info is None or value.size == 0:
            return True
        return info.min <= float(value.min()) and float(value.max()) <= info.max

    def step(self) -> None:
        family = self.choose(["unary", "binary", "binary", "movement", "movement", "movement", "reduce", "cast",
                              "where", "take"])
        getattr(self, family)()

    def unary(self) -> None:
        name = self.choose(UNARY)
        operand = self.pick(UNARY[name].kinds)
        if operand is not None:
            self.add(name, operand)

    def binary(self) -> None:
        name = self.choose(BINARY)
        first = self.pick(BINARY[name].kinds)
        if first is not None:
            self.add(name, first, self.companion(first))

    def companion(self, first: int) -> int:
        """A value that goes together with another one: of the same type, of a shape that broadcasts."""
        value = self.values[first]
        fitting = [i for i, v in enumerate(self.values) if v.dtype == value.dtype and broadcasts(v, value)]
        return self.choose(fitting)

    def movement(self) -> None:
        operand = self.pick()
        shape = self.values[operand].shape
        name = self.choose(MOVEMENT)
        if name == "reshape":
            arg: Any = self.shuffled(factors(shape, self.number(0, 2))) if shape else (1,)
        elif not shape:
            return
        elif name == "permute":
            arg = self.shuffled(range(len(shape)))
        elif name == "flip":
            arg = self.number(0, len(shape) - 1)
        elif name == "pad":
            arg = tuple((self.number(0, 2), self.number(0, 2)) for _ in shape)
        elif name == "shrink":
            arg = tuple(self.part(size) for size in shape)
        elif name == "step":
            arg = tuple(self.choose([1, 1, 2, 3, -1, -2]) for _ in shape)
        else:
            arg = tuple(self.choose(SIZES) if size == 1 else size for size in shape)
        if name in ("expand", "pad") and math.prod(arg if name == "expand" else (
                a + s + b for s, (a, b) in zip(shape, arg))) > MOST_ELEMENTS:
            return
        self.add(name, operand, arg=arg)

    def part(self, size: int) -> tuple[int, int]:
        start = self.number(0, max(size - 1, 0))
        return start, self.number(min(start + 1, size), size)

    def reduce(self) -> None:
        operand = self.pick()
        value = self.values[operand]
        axes = tuple(a for a in range(value.ndim) if self.number(0, 1))
        name = self.choose(REDUCE)
        if name in ("max", "min") and any(value.shape[a] == 0 for a in axes):
            return
        if name in ("max", "min") and not axes:
            return
        self.add(name, operand, arg=(axes or None, bool(self.number(0, 1))))

    def cast(self) -> None:
        self.add("cast", self.pick(), arg=self.choose(DTYPES))

    def where(self) -> None:
        condition, first = self.pick("b"), self.pick()
        if condition is None or not broadcasts(self.values[condition], self.values[first]):
            return
        second = self.companion(first)
        if broadcasts(self.values[condition], self.values[first], self.values[second]):
            self.add("where", condition, first, second)

    def take(self) -> None:
        operand, index = self.pick(), self.pick("i")
        if index is None or not self.values[operand].ndim or self.values[index].ndim > 2:
            return
        axis = self.number(0, self.values[operand].ndim - 1)
        size, where = self.values[operand].shape[axis], self.values[index]
        if size == 0 or where.size == 0 or where.size * self.values[operand].size > MOST_ELEMENTS:
            return
        if -size <= where.min() and where.max() < size:
            self.add("take", operand, index, arg=axis)


class SmoothWriter(Writer):
    """Writes programs of float32 with functions that round; numpy computes along in float64."""

    LARGEST = 50.0

    def add_input(self, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> int:
        number = super().add_input(shape, "float32")
        self.values[number] = self.values[number].astype(np.float64)
        return number

    def is_exact(self, name: str, given: list[np.ndarray], arg: Any, result: np.ndarray) -> bool:
        return result.dtype.kind == "f" and (not result.size or float(np.abs(result).max()) <= self.LARGEST)

    def step(self) -> None:
        families = [self.smooth, self.smooth, self.matmul, self.arithmetic, self.movement, self.movement, self.reduce]
        self.choose(families)()

    def smooth(self) -> None:
        name, operand = self.choose(["sigmoid", "silu", "decay", "root", "log", "sin", "softmax"]), self.pick()
        value = self.values[operand]
        if name == "softmax" and value.size and value.ndim:
            self.add(name, operand, arg=self.number(0, value.ndim - 1))
        elif name != "softmax":
            self.add(name, operand)

    def arithmetic(self) -> None:
        first = self.pick()
        self.add(self.choose(["add", "sub", "mul", "maximum", "minimum"]), first, self.companion(first))

    def matmul(self) -> None:
        first = self.pick()
        rows = self.values[first]
        fitting = [i for i, v in enumerate(self.values) if v.ndim == rows.ndim == 2 and rows.shape[1] == v.shape[0] > 0]
        if fitting:
            self.add("matmul", first, self.choose(fitting))

    def reduce(self) -> None:
        operand = self.pick()
        value = self.values[operand]
        axes = tuple(a for a in range(value.ndim) if self.number(0, 1))
        if axes and value.size:
            self.add(self.choose(["sum", "max", "min", "mean"]), operand, arg=(axes, bool(self.number(0, 1))))


def broadcasts(*values: np.ndarray) -> bool:
    try:
        return math.prod(np.broadcast_shapes(*(v.shape for v in values))) <= MOST_ELEMENTS
    except ValueError:
        return False


def factors(shape: tuple[int, ...], cuts: int) -> list[int]:
    """The same number of elements in other axes: neighbours joined, or one cut in two."""
    sizes = list(shape)
    if cuts == 0 and len(sizes) > 1:
        return [sizes[0] * sizes[1], *sizes[2:]]
    for i, size in enumerate(sizes):
        for divisor in (2, 3, 5, 7, 11):
            if cuts == 1 and size and size % divisor == 0 and size > divisor:
                return [*sizes[:i], divisor, size // divisor, *sizes[i + 1 :]]
    return [1, *sizes]


def write_program(number: Callable[[int, int], int], most_steps: int = 12, specials: bool = False) -> Program:
    """A program of what `number(low, high)` chooses; `specials`: with inf, nan and -0.0 among the inputs."""
    return write(Writer(number, specials), most_steps)


def write_smooth_program(number: Callable[[int, int], int], most_steps: int = 12) -> Program:
    """A program of float functions that round; see `run_smooth_numpy`."""
    return write(SmoothWriter(number, False), most_steps)


def run_smooth_numpy(program: Program) -> list[np.ndarray]:
    """The outputs of a smooth program, in float64."""
    return run_numpy(program._replace(inputs=[a.astype(np.float64) for a in program.inputs]))


def write(writer: Writer, most_steps: int) -> Program:
    number = writer.number
    first = writer.add_input()
    value = writer.values[first]
    for _ in range(number(1, 3)):  # companions of the first input, so that binary operations find operands
        shape = tuple(1 if number(0, 3) == 0 else size for size in value.shape)
        writer.add_input(shape[number(0, len(shape)) if number(0, 1) else 0 :], value.dtype.name)
    if number(0, 1):
        writer.add_input()
    for _ in range(number(1, most_steps)):
        writer.step()
    last = len(writer.values) - 1
    outputs = [last]
    if number(0, 2) == 0:
        outputs.append(number(0, last))
    return Program(writer.inputs, writer.steps, outputs)


@st.composite
def programs(draw: Any, most_steps: int = 12, specials: bool = False) -> Program:
    """Random programs for hypothesis."""
    return write_program(lambda low, high: draw(st.integers(low, high)), most_steps, specials)


@st.composite
def smooth_programs(draw: Any, most_steps: int = 12) -> Program:
    """Random programs of functions that round."""
    return write_smooth_program(lambda low, high: draw(st.integers(low, high)), most_steps)
