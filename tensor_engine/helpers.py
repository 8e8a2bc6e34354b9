"""Settings, counters and small functions that every layer uses. The one place where the environment is read."""
from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")


# ---- settings ---------------------------------------------------------------------------------------------------


class Setting(Generic[T]):
    """A named setting: its environment variable gives the first value, `Context` changes it for a while.

    True when it is not zero or empty, comparable like its value.
    """

    all: dict[str, Setting[Any]] = {}

    def __init__(self, name: str, default: T, doc: str):
        self.name, self.doc = name, doc
        text = os.environ.get(name)
        self.value: T = default if text is None else self._parse(text, default)
        Setting.all[name] = self

    def _parse(self, text: str, default: T) -> T:
        try:
            return type(default)(text)  # type: ignore[call-arg]
        except ValueError:
            kind = type(default).__name__
            raise ValueError(f"the environment variable {self.name}={text!r} must be of type {kind}") from None

    def __bool__(self) -> bool:
        return bool(self.value)

    def __ge__(self, other: T) -> bool:
        return self.value >= other  # type: ignore[operator]

    def __gt__(self, other: T) -> bool:
        return self.value > other  # type: ignore[operator]

    def __lt__(self, other: T) -> bool:
        return self.value < other  # type: ignore[operator]

    def __repr__(self) -> str:
        return f"{self.name}={self.value!r}"


DEBUG = Setting("DEBUG", 0, "1 kernels, 2 times, 3 AST and options, 4 source, 5 the passes, 6 the machine code")
BEAM = Setting("BEAM", 0, "width of the search over kernel options; 0 uses the heuristics")
NOOPT = Setting("NOOPT", 0, "1 compiles every kernel as written, with no tiles or vectors")
JIT = Setting("JIT", 1, "0 makes TinyJit call the function every time")
DEV = Setting("DEV", "CPU", "the default device, and after a colon its renderer: CPU, CPU:LLVM, CPU:C, PYTHON")
CACHE = Setting("CACHE", 1, "0 neither reads nor writes the compile cache on disk")
CACHEDIR = Setting("CACHEDIR", "", "folder of the compile cache; empty: the user's cache folder")
TRAINING = Setting("TRAINING", 0, "1 while training: dropout drops out, optimisers step")
SPEC = Setting("SPEC", 0, "1 checks the graph against uop/spec.py after every pass")
CC = Setting("CC", "", "the C compiler for CPU:C; empty: the first of clang, gcc, cc that is there")


class Context(contextlib.ContextDecorator):
    """`with Context(DEBUG=2, NOOPT=1): …` changes settings and puts them back at the end.

    Raises KeyError for a setting that does not exist.
    """

    def __init__(self, **values: Any):
        unknown = [name for name in values if name not in Setting.all]
        if unknown:
            raise KeyError(f"no setting named {', '.join(unknown)}; there are {', '.join(Setting.all)}")
        self.values = values
        self.saved: list[dict[str, Any]] = []

    def __enter__(self) -> Context:
        self.saved.append({name: Setting.all[name].value for name in self.values})
        self._apply(self.values)
        return self

    def __exit__(self, *_: Any) -> None:
        self._apply(self.saved.pop())

    @staticmethod
    def _apply(values: dict[str, Any]) -> None:
        for name, value in values.items():
            Setting.all[name].value = value


def cache_dir() -> Path:
    """The folder of the compile cache (not made here)."""
    if CACHEDIR.value:
        return Path(CACHEDIR.value)
    default = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or default) / "tensor_engine"


# ---- counters ---------------------------------------------------------------------------------------------------


class Counters:
    """What has run since `reset()`: kernels, arithmetic operations, bytes moved, seconds; and memory in use."""

    def __init__(self) -> None:
        self.mem_used = 0
        self.reset()

    def reset(self) -> None:
        """Set all but the memory in use to zero."""
        self.kernel_count = self.global_ops = self.global_mem = 0
        self.time_sum_s = 0.0


GlobalCounters = Counters()


# ---- small functions --------------------------------------------------------------------------------------------


def prod(values: Iterable[Any]) -> Any:
    """The product; 1 for no values. Works for ints and for symbolic sizes."""
    result: Any = 1
    for value in values:
        result = result * value
    return result


def dedup(values: Iterable[T]) -> list[T]:
    """The values without repetitions, in order of first appearance."""
    return list(dict.fromkeys(values))


def inverse_permutation(order: Iterable[int]) -> tuple[int, ...]:
    """The permutation that undoes `order`."""
    order = tuple(order)
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def ceildiv(numerator: int, divisor: int) -> int:
    """Division rounded up."""
    return -(-numerator // divisor)


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple of `multiple` that is not below `value`."""
    return ceildiv(value, multiple) * multiple


def strides_for_shape(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """Row-major strides, in elements."""
    strides: list[Any] = [1]
    for size in shape[:0:-1]:
        strides.append(strides[-1] * size)
    return tuple(strides[::-1]) if shape else ()


def at_most(size: Any) -> int:
    """A size, or the largest value of one that is a variable."""
    return size if isinstance(size, int) else size.vmax


def matching_axes(shape: tuple[Any, ...], below: tuple[Any, ...]) -> Iterator[tuple[list[int], list[int]]]:
    """The smallest runs of axes on both sides with the same number of elements: (6, 5), (2, 3, 5) → 6|2,3 and 5|5.

    Of sizes that are variables the largest values are compared: that tells on which side axes are missing.
    """
    i = j = 0
    while i < len(shape) or j < len(below):
        own, theirs = list(range(i, min(i + 1, len(shape)))), list(range(j, min(j + 1, len(below))))
        i, j = i + len(own), j + len(theirs)
        while (a := prod(shape[k] for k in own)) != (b := prod(below[k] for k in theirs)):
            if (at_most(a) < at_most(b) and i < len(shape)) or j >= len(below):
                own.append(i)
                i += 1
            else:
                theirs.append(j)
                j += 1
        yield own, theirs


def make_tuple(value: Any, count: int) -> tuple[int, ...]:
    """An int repeated `count` times, or the sequence itself as a tuple."""
    return (value,) * count if isinstance(value, int) else tuple(value)


def flatten(nested: Iterable[Iterable[T]]) -> list[T]:
    """One list from a list of lists."""
    return [item for items in nested for item in items]


def is_power_of_two(value: int) -> bool:
    """True for 1, 2, 4, 8, …"""
    return value > 0 and value & (value - 1) == 0


def human_size(value: float, unit: str) -> str:
    """1234567 → "1.23 M" + unit."""
    if value <= 0 or not math.isfinite(value):
        return f"{value:.2f} {unit}"
    step = min(max(int(math.log(value, 1000)), 0), 4)
    return f"{value / 1000**step:.2f} {' KMGT'[step].strip()}{unit}"
