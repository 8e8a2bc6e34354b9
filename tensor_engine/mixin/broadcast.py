"""How two operands meet: in one type and one shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensor_engine.dtype import ConstType, DType, dtypes, least_upper_dtype, narrowest_int
from tensor_engine.mixin.types import TypesMixin
from tensor_engine.uop.op import Ops

if TYPE_CHECKING:
    from typing_extensions import Self

NUMBER = (bool, int, float)


def dtype_with_scalar(dtype: DType, value: ConstType) -> DType:
    """The type in which a tensor of type `dtype` meets a Python number.

    A Python number is weak: it takes the tensor's type. An integer tensor that meets a float goes to the default
    float, a bool tensor that meets an int to the default int, and an integer type that is too narrow for the number
    gives way to the next that isn't.
    """
    if dtype.kind in "fx" or isinstance(value, bool):
        return dtype
    if isinstance(value, float):
        return dtypes.default_float.vec(dtype.count)
    scalar = dtypes.default_int if dtype.kind == "b" else dtype.scalar()
    if not scalar.min <= value <= scalar.max:
        scalar = least_upper_dtype(scalar, narrowest_int(value))
        if dtypes.is_float(scalar):
            raise OverflowError(f"{value} fits no integer type together with {dtype}")
    return scalar.vec(dtype.count)


def broadcast_shape(*shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shape that all `shapes` expand to, as in numpy. Raises ValueError when there is none."""
    ndim = max(map(len, shapes))
    aligned = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*aligned):
        common = 1
        for size in sizes:
            if common == 1:
                common = size
            elif size not in (1, common):
                raise ValueError(f"shapes {' and '.join(map(str, shapes))} don't broadcast")
        result.append(common)
    return tuple(result)


class BroadcastMixin(TypesMixin):
    """Types and shapes that agree."""

    __slots__ = ()

    def meet(self, x: Self | ConstType, reverse: bool = False) -> tuple[Self, Self]:
        """This and `x` (or `x` and this) in one type and one shape."""
        if isinstance(x, NUMBER):
            dtype = dtype_with_scalar(self.dtype, x)
            a, b = self.cast(dtype), self.const_like(x, dtype)
            return (b, a) if reverse else (a, b)
        if not isinstance(x, BroadcastMixin):
            x = self.as_operand(x)
        a, b = (x, self) if reverse else (self, x)
        if a.dtype is b.dtype and a.shape == b.shape:
            return a, b
        if b.dtype.kind == "x":
            return a._meet_size(b)
        if a.dtype.kind == "x":
            return b._meet_size(a)[::-1]
        dtype = least_upper_dtype(a.dtype.scalar(), b.dtype.scalar())
        shape = broadcast_shape(a.shape, b.shape)
        return a.cast(dtype).broadcast_to(shape), b.cast(dtype).broadcast_to(shape)

    def _meet_size(self, size: Any) -> tuple[Self, Self]:
        """This and a size that depends on variables, which is weak as a Python number is."""
        smallest, largest = size.uop.min_max
        dtype = dtype_with_scalar(dtype_with_scalar(self.dtype, smallest), largest)
        return self.cast(dtype), self.from_uop(size.uop.cast(dtype)).broadcast_to(self.shape)

    def broadcast_to(self, shape: tuple[Any, ...]) -> Self:
        """These values repeated along new axes in front and along axes of size 1, to fill `shape`."""
        if self.shape == shape:
            return self
        aligned = (1,) * (len(shape) - len(self.shape)) + self.shape
        value = self if aligned == self.shape else self.movement(Ops.RESHAPE, aligned)
        return value if aligned == shape else value.movement(Ops.EXPAND, shape)

    def to_float(self) -> Self:
        """The values as floats: unchanged if they are, else in the default float type."""
        return self if self.dtype.kind == "f" else self.cast(dtypes.default_float)

    def _need(self, kinds: str, what: str) -> None:
        """Raise TypeError unless the type is of one of the kinds."""
        if self.dtype.kind not in kinds:
            raise TypeError(f"{what} needs {'bools or ' * ('b' in kinds)}integers, not {self.dtype}")
