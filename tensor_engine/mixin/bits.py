"""Operations on the bits of integers, and of bools, which are one bit. `reverse` exchanges the operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensor_engine.dtype import ConstType, dtypes
from tensor_engine.mixin.broadcast import BroadcastMixin
from tensor_engine.uop.op import Ops

if TYPE_CHECKING:
    from typing_extensions import Self

class BitsMixin(BroadcastMixin):
    """and, or, xor, not, shifts."""

    __slots__ = ()

    def bitwise_and(self, x: Self | ConstType, reverse: bool = False) -> Self:
        """self & x, bit by bit."""
        return self._bits(Ops.AND, x, reverse)

    def bitwise_or(self, x: Self | ConstType, reverse: bool = False) -> Self:
        """self | x, bit by bit."""
        return self._bits(Ops.OR, x, reverse)

    def bitwise_xor(self, x: Self | ConstType, reverse: bool = False) -> Self:
        """self ^ x, bit by bit."""
        return self._bits(Ops.XOR, x, reverse)

    def _bits(self, op: Ops, x: Self | ConstType, reverse: bool) -> Self:
        a, b = self.meet(x, reverse)
        a._need("biux", op.name)
        return a.alu(op, b)

    def logical_not(self) -> Self:
        """True where the value is zero."""
        value = self.cast(dtypes.bool)
        return value.alu(Ops.CMPNE, value.const_like(True))

    def bitwise_not(self) -> Self:
        """~self: every bit turned; for bools their opposite."""
        self._need("biux", "~")
        if self.dtype.kind == "b":
            return self.logical_not()
        return self.alu(Ops.XOR, self.const_like(-1))

    def lshift(self, x: Self | ConstType, reverse: bool = False) -> Self:
        """self << x. By less than 0, or by as many bits as the type has or more, it gives 0."""
        a, b = self.meet(x, reverse)
        a._need("iux", "<<")
        return a.alu(Ops.SHL, b)

    def rshift(self, x: Self | ConstType, reverse: bool = False) -> Self:
        """self >> x; the sign stays. By less than 0, or by as many bits as there are, it gives 0 or -1."""
        a, b = self.meet(x, reverse)
        a._need("iux", ">>")
        return a.alu(Ops.SHR, b)

    def threefry(self, seed: Self) -> Self:
        """Threefry-2x32 of 64-bit counters and keys: random bits (Salmon et al., SC 2011)."""
        a, b = self.meet(seed)
        return a.cast(dtypes.uint64).alu(Ops.THREEFRY, b.cast(dtypes.uint64))

    # ---- Python's operators

    __and__ = __rand__ = bitwise_and
    __or__ = __ror__ = bitwise_or
    __xor__ = __rxor__ = bitwise_xor
    __invert__, __lshift__, __rshift__ = bitwise_not, lshift, rshift

    def __rlshift__(self, x: Self | ConstType) -> Self:
        return self.lshift(x, reverse=True)

    def __rrshift__(self, x: Self | ConstType) -> Self:
        return self.rshift(x, reverse=True)
