"""Tensors from nothing: constants, counting, and what is made of them. None of these takes memory by itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tensor_engine.dtype import ConstType, DType, dtypes, to_dtype, wrap_int
from tensor_engine.helpers import ceildiv
from tensor_engine.mixin.movement import MovementMixin
from tensor_engine.mixin.sizes import as_shape, is_symbolic, larger
from tensor_engine.uop.op import Ops

if TYPE_CHECKING:
    from typing_extensions import Self


class CreationMixin(MovementMixin):
    """Constants and counting."""

    __slots__ = ()

    @classmethod
    def counting(cls, count: int, dtype: DType = dtypes.int32) -> Self:
        """0, 1, … count-1, in int32 or int64. Raises ValueError for a negative count."""
        from tensor_engine.uop.uop import UOp

        (size,) = as_shape((count,))
        return cls.from_uop(UOp(Ops.ARANGE, dtype, (), size))

    @classmethod
    def _counting_on(cls, device: str | None, count: int, dtype: DType = dtypes.int32) -> Self:
        """`counting` on a device, where a zero that lives there brings it."""
        numbers = cls.counting(count, dtype)
        return numbers if device is None else numbers + cls.const(dtype, 0, device)

    @classmethod
    def full(
        cls, shape: Any, fill_value: ConstType, dtype: DType | str | None = None, device: str | None = None
    ) -> Self:
        """One value everywhere. The type is that of the value unless another is given."""
        sizes = as_shape((shape,))
        scalar = cls.const(to_dtype(dtype or dtypes.from_py(fill_value)), fill_value, device)
        return scalar.expand(sizes)

    @classmethod
    def zeros(cls, *shape: Any, dtype: DType | str | None = None, device: str | None = None) -> Self:
        """Zeros, floats unless another type is given."""
        return cls.full(as_shape(shape), 0.0, dtype or dtypes.default_float, device)

    @classmethod
    def ones(cls, *shape: Any, dtype: DType | str | None = None, device: str | None = None) -> Self:
        """Ones, floats unless another type is given."""
        return cls.full(as_shape(shape), 1.0, dtype or dtypes.default_float, device)

    @classmethod
    def arange(
        cls,
        start: float,
        stop: float | None = None,
        step: float = 1,
        dtype: DType | str | None = None,
        device: str | None = None,
    ) -> Self:
        """start, start + step, … before stop; with one argument from 0 to it. Ints if all three are, else floats.

        Ints have the default type, or one that holds them all. Raises ValueError for a step of 0.
        """
        if stop is None:
            start, stop = 0, start
        if step == 0:
            raise ValueError("arange needs a step that is not 0")
        if is_symbolic(start) or is_symbolic(stop):
            return cls._symbolic_arange(start, stop, step, dtype, device)
        count = max(math.ceil((stop - start) / step), 0)
        if all(isinstance(n, int) for n in (start, stop, step)):
            return cls._whole_numbers(int(start), int(step), count, dtype, device)
        own = to_dtype(dtype or dtypes.default_float)
        numbers = cls._counting_on(device, count).cast(own if own.kind == "f" else dtypes.default_float)
        return (numbers * step + start).cast(own)

    @classmethod
    def _symbolic_arange(cls, start: Any, stop: Any, step: Any, dtype: Any, device: str | None) -> Self:
        """`arange` where a bound depends on variables."""
        if not isinstance(step, int):
            raise TypeError(f"arange by {step!r} with a bound that is a variable: the step must be an int")
        count = larger(ceildiv(stop - start, step), 0)
        return (cls._counting_on(device, count) * step + start).cast(to_dtype(dtype or dtypes.default_int))

    @classmethod
    def _whole_numbers(
        cls, start: int, step: int, count: int, dtype: DType | str | None, device: str | None
    ) -> Self:
        """`count` numbers from `start`, `step` apart, made in a type that holds them."""
        last = start + step * max(count - 1, 0)
        fitting = dtypes.from_py(start, last, count)
        own = to_dtype(dtype or dtypes.from_py(start, last))
        wide = dtypes.int32 if fitting is dtypes.int32 and own is not dtypes.int64 else dtypes.int64
        # int64 wraps where uint64 wouldn't, and comes back when it is cast
        numbers = cls._counting_on(device, count, wide) * wrap_int(step, wide) + wrap_int(start, wide)
        return numbers.cast(own)

    @classmethod
    def linspace(
        cls, start: float, stop: float, steps: int, dtype: DType | str | None = None, device: str | None = None
    ) -> Self:
        """`steps` values from start to stop, both included, at equal distances."""
        own = to_dtype(dtype or dtypes.default_float)
        if steps == 1:
            return cls.full((1,), start, own, device)
        numbers = cls._counting_on(device, steps)
        line = numbers.cast(own if own.kind == "f" else dtypes.default_float) * ((stop - start) / (steps - 1)) + start
        return numbers.eq(steps - 1).where(float(stop), line).cast(own)

    @classmethod
    def eye(cls, n: int, m: int | None = None, dtype: DType | str | None = None, device: str | None = None) -> Self:
        """Ones where row and column are the same, else zeros."""
        rows, columns = cls._counting_on(device, n).reshape(n, 1), cls.counting(n if m is None else m)
        return rows.eq(columns).cast(to_dtype(dtype or dtypes.default_float))

    # ---- in the shape of another

    def full_like(
        self, fill_value: ConstType, dtype: DType | str | None = None, device: str | None = None
    ) -> Self:
        """One value in this shape, in this type and on this device unless others are given."""
        return self.full(self.shape, fill_value, dtype or self.dtype, device or self.uop.device)

    def zeros_like(self, dtype: DType | str | None = None, device: str | None = None) -> Self:
        """Zeros in this shape and type."""
        return self.full_like(0, dtype, device)

    def ones_like(self, dtype: DType | str | None = None, device: str | None = None) -> Self:
        """Ones in this shape and type."""
        return self.full_like(1, dtype, device)

    # ---- triangles

    def tril(self, diagonal: int = 0) -> Self:
        """Zeros above the diagonal of the last two axes."""
        return self._columns_minus_rows().le(diagonal).where(self, self.const_like(0))

    def triu(self, diagonal: int = 0) -> Self:
        """Zeros below the diagonal of the last two axes."""
        return self._columns_minus_rows().ge(diagonal).where(self, self.const_like(0))

    def _columns_minus_rows(self) -> Self:
        rows, columns = self.shape[-2:]
        return self.counting(columns) - self.counting(rows).reshape(rows, 1)

    def one_hot(self, num_classes: int) -> Self:
        """A last axis more, with 1 at the class that the integer here names and 0 elsewhere."""
        return self.unsqueeze(-1).eq(self.counting(num_classes)).cast(dtypes.default_int)
