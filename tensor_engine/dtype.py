"""Data types, and what comes out when two of them meet.

Promotion follows the lattice that JAX describes ("Type promotion semantics"), written as data in `PROMOTIONS`:
a type promotes to everything above it, and the result of two types is the lowest type above both.

    bool → uint8 → uint16 → uint32 → uint64 ┐
    bool → int8 → int16 → int32 → int64 ────┴→ float16, bfloat16 → float32 → float64
    uint8 → int16, uint16 → int32, uint32 → int64

An unsigned 64-bit and a signed integer have no common integer type; they meet in float32, as in JAX.
"""
from __future__ import annotations

import builtins
import functools
import math
import struct
from dataclasses import dataclass
from enum import Enum
from typing import Any

ConstType = bool | int | float


class AddrSpace(Enum):
    """Where the memory behind a pointer lives."""

    GLOBAL = "global"
    LOCAL = "local"
    REG = "reg"


@dataclass(frozen=True, eq=False)
class DType:
    """A scalar (count 1) or vector (count > 1) type.

    `kind` is one of b (bool), i (signed), u (unsigned), f (float), x (index: an integer whose width is chosen
    late, from the bounds of its value), v (void). Types are singletons: compare them with `is` or `==`.
    """

    priority: int
    bits: int
    name: str
    kind: str
    count: int = 1

    def __repr__(self) -> str:
        return f"dtypes.{self.scalar().name}" + (f".vec({self.count})" if self.count > 1 else "")

    def __lt__(self, other: DType) -> bool:
        return (self.priority, self.name, self.count) < (other.priority, other.name, other.count)

    def __reduce__(self) -> tuple[Any, ...]:
        return _dtype_from_name, (self.scalar().name, self.count)

    @property
    def itemsize(self) -> int:
        """Bytes of one element, all lanes of a vector included."""
        return (self.bits + 7) // 8 * self.count

    @property
    def base(self) -> DType:
        """The type itself; for a pointer, what it points to."""
        return self

    def scalar(self) -> DType:
        """The type of one lane."""
        return self if self.count == 1 else _SCALARS[self.name]

    def vec(self, count: int) -> DType:
        """The vector of `count` such lanes; count 1 is the scalar itself."""
        return _vector(self.scalar(), count)

    def ptr(self, size: int = -1, space: AddrSpace = AddrSpace.GLOBAL) -> PtrDType:
        """A pointer to `size` elements (-1: unknown) in memory of the given kind."""
        return _pointer(self, size, space)

    @property
    def min(self) -> ConstType:
        """The smallest value."""
        return dtypes.min(self)

    @property
    def max(self) -> ConstType:
        """The largest value."""
        return dtypes.max(self)


@dataclass(frozen=True, eq=False)
class PtrDType(DType):
    """A pointer to elements of type `target`."""

    target: DType = None  # type: ignore[assignment]
    size: int = -1
    space: AddrSpace = AddrSpace.GLOBAL

    def __repr__(self) -> str:
        space = "" if self.space is AddrSpace.GLOBAL else f", {self.space}"
        return f"{self.target!r}.ptr({self.size}{space})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _pointer, (self.target, self.size, self.space)

    @property
    def base(self) -> DType:
        return self.target

    def scalar(self) -> DType:
        return self


@functools.cache
def _vector(scalar: DType, count: int) -> DType:
    if count == 1:
        return scalar
    return DType(scalar.priority, scalar.bits, scalar.name, scalar.kind, count)


@functools.lru_cache(maxsize=4096)
def _pointer(target: DType, size: int, space: AddrSpace) -> PtrDType:
    return PtrDType(target.priority, 64, target.name, target.kind, 1, target, size, space)


def _dtype_from_name(name: str, count: int) -> DType:
    return _SCALARS[name].vec(count)


class dtypes:
    """The types there are, by name, and questions about them."""

    void = DType(-1, 0, "void", "v")
    bool = DType(0, 1, "bool", "b")
    int8 = DType(1, 8, "int8", "i")
    uint8 = DType(2, 8, "uint8", "u")
    int16 = DType(3, 16, "int16", "i")
    uint16 = DType(4, 16, "uint16", "u")
    int32 = DType(5, 32, "int32", "i")
    uint32 = DType(6, 32, "uint32", "u")
    int64 = DType(7, 64, "int64", "i")
    uint64 = DType(8, 64, "uint64", "u")
    index = DType(9, 64, "index", "x")
    float16 = DType(10, 16, "float16", "f")
    bfloat16 = DType(11, 16, "bfloat16", "f")
    float32 = DType(12, 32, "float32", "f")
    float64 = DType(13, 64, "float64", "f")

    half, float, double = float16, float32, float64
    char, uchar, short, ushort, int, uint, long, ulong = int8, uint8, int16, uint16, int32, uint32, int64, uint64
    default_float = float32
    default_int = int32

    floats = (float16, bfloat16, float32, float64)
    uints = (uint8, uint16, uint32, uint64)
    sints = (int8, int16, int32, int64)
    ints = uints + sints
    all = (bool,) + ints + floats

    @staticmethod
    def is_float(dtype: DType) -> builtins.bool:
        """True for half, bfloat16, float and double, vectors included."""
        return dtype.kind == "f"

    @staticmethod
    def is_int(dtype: DType) -> builtins.bool:
        """True for signed, unsigned and index integers, vectors included; not for bool."""
        return dtype.kind in "iux"

    @staticmethod
    def is_unsigned(dtype: DType) -> builtins.bool:
        """True for uint8 … uint64, vectors included."""
        return dtype.kind == "u"

    @staticmethod
    def is_bool(dtype: DType) -> builtins.bool:
        """True for bool, vectors included."""
        return dtype.kind == "b"

    @staticmethod
    def min(dtype: DType) -> ConstType:
        """The smallest value: -inf for floats, False for bool."""
        if dtype.kind == "f":
            return -math.inf
        if dtype.kind == "b":
            return False
        return 0 if dtype.kind == "u" else -(2 ** (dtype.bits - 1))

    @staticmethod
    def max(dtype: DType) -> ConstType:
        """The largest value: inf for floats, True for bool."""
        if dtype.kind == "f":
            return math.inf
        if dtype.kind == "b":
            return True
        return 2 ** (dtype.bits if dtype.kind == "u" else dtype.bits - 1) - 1

    @staticmethod
    def from_py(*values: Any) -> DType:
        """The type that Python numbers get, all together: the default float if one is a float, bool if all are bools,
        else the default int, or the narrowest int type that holds them if that doesn't.

        Raises TypeError for what is no number, and OverflowError if no type holds the ints.
        """
        for value in values:
            if not isinstance(value, (int, float)):
                raise TypeError(f"no dtype for a Python {type(value).__name__}: {value!r:.80}; give a number")
        if any(isinstance(value, float) for value in values):
            return dtypes.default_float
        if all(isinstance(value, bool) for value in values):
            return dtypes.bool
        whole = [int(value) for value in values]
        fits = dtypes.default_int.min <= min(whole) and max(whole) <= dtypes.default_int.max
        return dtypes.default_int if fits else narrowest_int(min(whole), max(whole))


_SCALARS: dict[str, DType] = {d.name: d for d in dtypes.all + (dtypes.void, dtypes.index)}
DTYPES: dict[str, DType] = {d.name: d for d in dtypes.all}


def to_dtype(dtype: Any) -> DType:
    """A dtype from itself, its name ("float32", "half", "int"), or a type of that name (np.float32, float)."""
    if isinstance(dtype, DType):
        return dtype
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", getattr(dtype, "name", ""))
    found = getattr(dtypes, name.lower(), None)
    if found not in dtypes.all:
        raise TypeError(f"unknown dtype {dtype!r}; known are {', '.join(DTYPES)}")
    return found


# each type's direct successors in the promotion lattice
PROMOTIONS: dict[DType, tuple[DType, ...]] = {
    dtypes.bool: (dtypes.int8, dtypes.uint8),
    dtypes.int8: (dtypes.int16,),
    dtypes.uint8: (dtypes.int16, dtypes.uint16),
    dtypes.int16: (dtypes.int32,),
    dtypes.uint16: (dtypes.int32, dtypes.uint32),
    dtypes.int32: (dtypes.int64,),
    dtypes.uint32: (dtypes.int64, dtypes.uint64),
    dtypes.int64: (dtypes.index,),
    dtypes.uint64: (dtypes.float16, dtypes.bfloat16),
    dtypes.index: (dtypes.float16, dtypes.bfloat16),
    dtypes.float16: (dtypes.float32,),
    dtypes.bfloat16: (dtypes.float32,),
    dtypes.float32: (dtypes.float64,),
    dtypes.float64: (),
}


@functools.cache
def _reachable(dtype: DType) -> frozenset[DType]:
    above = (_reachable(d) for d in PROMOTIONS[dtype])
    return frozenset({dtype}).union(*above)


@functools.cache
def least_upper_dtype(*dts: DType) -> DType:
    """The lowest type that all of `dts` promote to (scalars only)."""
    if len(set(dts)) == 1:
        return dts[0]
    common = frozenset.intersection(*(_reachable(d) for d in dts))
    result = min(common, key=lambda d: d.priority)
    # float16 and bfloat16 lie beside each other: integers without a common integer type go to float32
    if result in (dtypes.float16, dtypes.bfloat16) and not any(dtypes.is_float(d) for d in dts):
        return dtypes.float32
    return result


@functools.lru_cache(maxsize=1024)
def narrowest_int(*values: int) -> DType:
    """The narrowest integer type that holds all values, signed if possible. Raises OverflowError if none does."""
    for dtype in dtypes.sints + dtypes.uints:
        if dtype.min <= min(values) and max(values) <= dtype.max:
            return dtype
    raise OverflowError(f"{values[0] if len(values) == 1 else values} fits no integer type")


def sum_acc_dtype(dtype: DType) -> DType:
    """The type in which a sum is accumulated: at least 32 bits wide."""
    if dtypes.is_unsigned(dtype):
        return least_upper_dtype(dtype, dtypes.uint32)
    if dtypes.is_int(dtype) or dtypes.is_bool(dtype):
        return least_upper_dtype(dtype, dtypes.int32)
    return least_upper_dtype(dtype, dtypes.float32)


# ---- values of a type, in Python ----------------------------------------------------------------------------------


def _round_trip(fmt: str, value: float) -> float:
    try:
        return struct.unpack(fmt, struct.pack(fmt, value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def float_to_bfloat16_bits(value: float) -> int:
    """The 16 bits of `value` as bfloat16, rounded to nearest even; NaN stays NaN."""
    bits = struct.unpack("I", struct.pack("f", _round_trip("f", value)))[0]
    if value != value:
        return bits >> 16 | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def bfloat16_bits_to_float(bits: int) -> float:
    """The value of 16 bfloat16 bits."""
    return struct.unpack("f", struct.pack("I", bits << 16))[0]


def _truncate_float(value: float, dtype: DType) -> float:
    if dtype.name == "bfloat16":
        return bfloat16_bits_to_float(float_to_bfloat16_bits(value))
    fmt = {"float16": "e", "float32": "f", "float64": "d"}[dtype.name]
    return _round_trip(fmt, value)


def float_to_int(value: float, dtype: DType) -> int:
    """A float cast to an integer type, as every backend does it.

    The value is cut towards zero. Types narrower than 32 bits and uint32 go through a wider signed integer and wrap.
    NaN and what does not fit the wider integer give that integer's minimum (0 for uint64).
    """
    via = float_cast_via(dtype)
    if value != value or not (via.min <= math.trunc(value) <= via.max if math.isfinite(value) else False):
        return wrap_int(0 if dtype.name == "uint64" else int(via.min), dtype)
    return wrap_int(math.trunc(value), dtype)


def float_cast_via(dtype: DType) -> DType:
    """The integer type through which a float is cast to `dtype`."""
    if dtype.name == "index":
        return dtypes.int64
    if dtype.bits < 32:
        return dtypes.int32
    return dtypes.int64 if dtype.name == "uint32" else dtype.scalar()


def wrap_int(value: int, dtype: DType) -> int:
    """`value` modulo 2**bits, in the range of `dtype` (two's complement)."""
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.kind in "ix" and value >> (dtype.bits - 1) else value


def truncate(value: Any, dtype: DType) -> ConstType:
    """`value` as a Python number that is representable in `dtype` (what a store and a load would give back)."""
    if dtype.kind == "b":
        return bool(value)
    if dtype.kind == "f":
        return _truncate_float(float(value), dtype)
    if isinstance(value, float):
        return float_to_int(value, dtype)
    return wrap_int(int(value), dtype)
