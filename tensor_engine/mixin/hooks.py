"""What Tensor and UOp each provide, so that every operation above is written once for both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensor_engine.dtype import ConstType, DType
from tensor_engine.helpers import prod
from tensor_engine.uop.op import Ops

if TYPE_CHECKING:
    from typing_extensions import Self

    from tensor_engine.uop.uop import UOp


class Hooks:
    """The primitives. A method of a mixin calls these and other mixin methods, nothing else."""

    __slots__ = ("__weakref__",)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of the axes: ints, or nodes where a size is a variable."""
        raise NotImplementedError

    @property
    def dtype(self) -> DType:
        """The type of an element."""
        raise NotImplementedError

    @property
    def device(self) -> Any:
        """Where the value lives."""
        raise NotImplementedError

    def alu(self, op: Ops, *operands: Self) -> Self:
        """`op` of this and the operands, which have the same shape and fitting types already."""
        raise NotImplementedError

    def cast(self, dtype: DType) -> Self:
        """The values in another type."""
        raise NotImplementedError

    def bitcast(self, dtype: DType) -> Self:
        """The same bits read as another type of the same width."""
        raise NotImplementedError

    def const_like(self, value: ConstType, dtype: DType | None = None) -> Self:
        """A constant with this shape, and this type unless another is given."""
        raise NotImplementedError

    def movement(self, op: Ops, arg: Any) -> Self:
        """A movement operation whose argument is complete and legal."""
        raise NotImplementedError

    def reduce_axis(self, op: Ops, axes: tuple[int, ...]) -> Self:
        """Combine along the axes, which stay with size 1."""
        raise NotImplementedError

    def contiguous(self) -> Self:
        """The values in memory of their own, in row order."""
        raise NotImplementedError

    def contiguous_backward(self) -> Self:
        """The value itself; its gradient gets memory of its own."""
        return self.alu(Ops.CONTIGUOUS_BACKWARD)

    def detach(self) -> Self:
        """The values without their gradient."""
        raise NotImplementedError

    def dropout(self, p: float = 0.5) -> Self:
        """Zero by chance, while training. Random numbers are Tensor's: a node has none."""
        raise TypeError(f"a {type(self).__name__} draws no random numbers: drop out elements of a Tensor")

    def realize(self) -> Self:
        """The values, computed now, for shapes that depend on them. A node has none."""
        raise TypeError(f"a {type(self).__name__} has no values before it runs: give a size")

    def item(self) -> Any:
        """The only element, computed now."""
        raise TypeError(f"a {type(self).__name__} has no values before it runs: give a size")

    @classmethod
    def const(cls, dtype: DType, value: ConstType, device: str | None = None) -> Self:
        """A scalar constant; without a device it goes with operands on any."""
        raise NotImplementedError

    @classmethod
    def from_uop(cls, uop: UOp) -> Self:
        """The value of this node as an object of this class; a UOp is its own value."""
        return uop  # type: ignore[return-value]

    @property
    def uop(self) -> UOp:
        """The node whose value this is."""
        return self  # type: ignore[return-value]

    @classmethod
    def as_operand(cls, value: Any) -> Self:
        """Something that isn't of this class, nor a Python number, as an operand; TypeError if it can't be one."""
        raise TypeError(f"a {cls.__name__} and a {type(value).__name__} don't go together: {value!r:.80}")

    # ---- what follows from the shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def numel(self) -> Any:
        """The number of elements."""
        return prod(self.shape)

    def resolve_axis(self, axis: int, extra: int = 0) -> int:
        """The axis counted from the front. `extra` axes more are allowed, as for an axis that is yet to come.

        Raises IndexError when there is no such axis.
        """
        count = max(self.ndim + extra, 1)
        if not -count <= axis < count:
            raise IndexError(f"axis {axis} is out of range for shape {self.shape}: use {-count} to {count - 1}")
        return axis % count
