"""Random numbers from a counter: Threefry-2x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).

Element i of a call is a function of the seed and of i plus the number of elements drawn before, so that a value doesn't
depend on when or where it is computed. Where a call's numbers begin is kept in memory of two words, (key, first
counter), and not in the kernel: every call of a shape runs the same kernel, and whoever replays captured kernels draws
new numbers by `advance`.
"""

from __future__ import annotations

import math
import random
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from tensor_engine.dtype import DType, dtypes, to_dtype
from tensor_engine.helpers import TRAINING, at_most, prod
from tensor_engine.mixin.mode import ModeMixin
from tensor_engine.mixin.sizes import as_shape

if TYPE_CHECKING:
    from typing_extensions import Self

    from tensor_engine.device import Buffer

MANTISSA_BITS = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24, dtypes.float64: 53}


class Generator:
    """The seed, and how many numbers were drawn since it was set."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.key, self.drawn = random.getrandbits(64), 0

    def seed(self, value: int) -> None:
        """Begin anew: the same seed gives the same numbers."""
        with self.lock:
            self.key, self.drawn = value % 2**64, 0

    def draw(self, count: int) -> np.ndarray:
        """(key, first counter) for `count` numbers that nobody else draws."""
        with self.lock:
            first, self.drawn = self.drawn, self.drawn + count
            return np.array([self.key, first], np.uint64)


generator = Generator()
# the memory that holds (key, first counter) of a call, and how many numbers that call draws
states: weakref.WeakKeyDictionary[Buffer, int] = weakref.WeakKeyDictionary()


def advance(state: Buffer) -> None:
    """Let whoever reads one of `states` next draw new numbers."""
    state.copyin(generator.draw(states[state]).data.cast("B"))


class RandomMixin(ModeMixin):
    """Tensors of random numbers, and what drops out by chance while `training`."""

    __slots__ = ()

    @classmethod
    def _random_state(cls, count: int, device: str | None) -> Self:
        """The hook: memory with (key, first counter) for `count` numbers, entered in `states`."""
        raise NotImplementedError

    @staticmethod
    def manual_seed(seed: int = 0) -> None:
        """Begin the random numbers anew; the same seed gives the same numbers."""
        generator.seed(seed)

    @classmethod
    def _random_bits(cls, shape: tuple[int, ...], device: str | None) -> Any:
        """64 random bits an element."""
        count = prod(shape)
        key, first = cls._random_state(at_most(count), device).split(1)
        counter = cls.counting(count, dtypes.int64).cast(dtypes.uint64) + first
        return counter.threefry(key).reshape(shape)

    @classmethod
    def rand(cls, *shape: Any, dtype: DType | str | None = None, device: str | None = None) -> Self:
        """Numbers that are evenly spread over 0 … 1, 1 not included."""
        own = to_dtype(dtype or dtypes.default_float)
        if own not in MANTISSA_BITS:
            raise TypeError(f"rand makes floats, not {own}; use randint")
        return _unit_interval(cls._random_bits(as_shape(shape), device), own)

    @classmethod
    def randn(cls, *shape: Any, dtype: DType | str | None = None, device: str | None = None) -> Self:
        """Normally distributed numbers with mean 0 and variance 1, finite in every type (Box and Muller, 1958)."""
        own = to_dtype(dtype or dtypes.default_float)
        bits = cls._random_bits(as_shape(shape), device)
        # from 2**-24, never 0, whose logarithm would be infinite
        size = ((bits.rshift(40) + 1).cast(dtypes.float32) * 2**-24).log()
        angle = bits.bitwise_and(0xFFFFFF).cast(dtypes.float32) * (2 * math.pi * 2**-24)
        return ((size * -2).sqrt() * angle.cos()).cast(own)

    @classmethod
    def randint(
        cls, *shape: Any, low: int = 0, high: int = 10, dtype: DType | str | None = None, device: str | None = None
    ) -> Self:
        """Integers from `low` to `high`, `high` not included, in the default type or one that holds them.

        Raises ValueError if there are none, or if `dtype` can't hold them.
        """
        if not low < high:
            raise ValueError(f"randint needs low < high, not {low} and {high}")
        own = to_dtype(dtype or dtypes.from_py(low, high - 1))
        if own.kind in "iu" and not own.min <= low <= high - 1 <= own.max:
            raise ValueError(f"randint can't make {low} to {high - 1} in {own}")
        bits = cls._random_bits(as_shape(shape), device)
        number = bits.mod(high - low).cast(dtypes.int64) + low
        return number.cast(own)

    @classmethod
    def uniform(
        cls, *shape: Any, low: float = 0.0, high: float = 1.0, dtype: DType | str | None = None,
        device: str | None = None,
    ) -> Self:  # fmt: skip
        """Numbers that are evenly spread over low … high."""
        wide = cls.rand(*shape, device=device) * (high - low) + low
        return wide.cast(to_dtype(dtype or dtypes.default_float))

    @classmethod
    def normal(
        cls, *shape: Any, mean: float = 0.0, std: float = 1.0, dtype: DType | str | None = None,
        device: str | None = None,
    ) -> Self:  # fmt: skip
        """Normally distributed numbers."""
        wide = cls.randn(*shape, device=device) * std + mean
        return wide.cast(to_dtype(dtype or dtypes.default_float))

    @classmethod
    def scaled_uniform(cls, *shape: Any, **kind: Any) -> Self:
        """Even over -1 … 1, over the root of the number of elements."""
        return cls.uniform(*shape, low=-1.0, high=1.0, **kind) * prod(as_shape(shape)) ** -0.5

    @classmethod
    def glorot_uniform(cls, *shape: Any, **kind: Any) -> Self:
        """Glorot and Bengio, 2010: even over ± sqrt(6 / (fan in + fan out))."""
        sizes = as_shape(shape)
        bound = math.sqrt(6 / (sizes[0] + prod(sizes[1:])))
        return cls.uniform(*sizes, low=-bound, high=bound, **kind)

    @classmethod
    def kaiming_uniform(cls, *shape: Any, a: float = 0.01, **kind: Any) -> Self:
        """He et al., 2015: even over ± sqrt(6 / ((1 + a**2) * fan in))."""
        sizes = as_shape(shape)
        bound = math.sqrt(6 / ((1 + a**2) * prod(sizes[1:])))
        return cls.uniform(*sizes, low=-bound, high=bound, **kind)

    @classmethod
    def kaiming_normal(cls, *shape: Any, a: float = 0.01, **kind: Any) -> Self:
        """He et al., 2015: normal with variance 2 / ((1 + a**2) * fan in)."""
        sizes = as_shape(shape)
        return cls.normal(*sizes, std=math.sqrt(2 / ((1 + a**2) * prod(sizes[1:]))), **kind)

    @classmethod
    def randperm(cls, n: int, device: str | None = None, dtype: DType | str | None = None) -> Self:
        """0 … n-1 in random order."""
        bits = cls._random_bits((n,), device)
        return bits.argsort().cast(to_dtype(dtype or dtypes.default_int))

    def multinomial(self, num_samples: int = 1, replacement: bool = False) -> Self:
        """Places in the last axis drawn with these weights, as int32: (samples,), or (rows, samples) from rows.

        Without replacement no place comes twice (Efraimidis and Spirakis, "Weighted random sampling", 2006).
        Raises ValueError unless there are one or two axes, and elements enough to draw from.
        """
        if self.ndim not in (1, 2) or num_samples < 1:
            raise ValueError(f"multinomial draws 1 or more from rows of weights, not {num_samples} of {self.shape}")
        weights = self.to_float()
        if not replacement:
            waiting = -weights.rand_like(dtypes.float32).log() / weights
            return waiting.topk(num_samples, largest=False)[1]
        ends = weights.cumsum(-1)
        drawn = self.rand(*self.shape[:-1], num_samples, device=self.device) * ends[..., -1:]
        return drawn.unsqueeze(-1).ge(ends.unsqueeze(-2)).sum(-1).cast(dtypes.int32)

    def dropout(self, p: float = 0.5) -> Self:
        """While training, zero with probability `p` and else the value over 1 - p; the value itself otherwise.

        Raises ValueError unless p is a probability.
        """
        if not 0 <= p <= 1:
            raise ValueError(f"dropout's p is a probability, not {p}")
        if not TRAINING or p == 0:
            return self
        if p == 1:
            return self.zeros_like()
        kept = self.rand(*self.shape, device=self.device).ge(p)
        return kept.where(self, 0) / (1 - p)

    def rand_like(self, dtype: DType | str | None = None, device: str | None = None) -> Self:
        """`rand` in this shape, type and place."""
        return self.rand(*self.shape, dtype=dtype or self.dtype, device=device or self.device)

    def randn_like(self, dtype: DType | str | None = None, device: str | None = None) -> Self:
        """`randn` in this shape, type and place."""
        return self.randn(*self.shape, dtype=dtype or self.dtype, device=device or self.device)


def _unit_interval(bits: Any, dtype: DType) -> Any:
    """The upper bits as a fraction: as many as the type holds exactly."""
    digits = MANTISSA_BITS[dtype]
    wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
    return (bits.rshift(64 - digits).cast(wide) * 2.0**-digits).cast(dtype)
