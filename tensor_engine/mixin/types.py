"""Types by name, and how much memory elements take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensor_engine.dtype import dtypes
from tensor_engine.mixin.hooks import Hooks

if TYPE_CHECKING:
    from typing_extensions import Self


class TypesMixin(Hooks):
    """float, half, int and their kin; element_size, nbytes."""

    __slots__ = ()

    def element_size(self) -> Any:
        """Bytes of one element."""
        return self.dtype.itemsize

    def nbytes(self) -> Any:
        """Bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    def is_floating_point(self) -> Any:
        """True for half, bfloat16, float and double."""
        return self.dtype.kind == "f"

    def float(self) -> Self:
        """As float32."""
        return self.cast(dtypes.float32)

    def half(self) -> Self:
        """As float16."""
        return self.cast(dtypes.float16)

    def bfloat16(self) -> Self:
        """As bfloat16."""
        return self.cast(dtypes.bfloat16)

    def double(self) -> Self:
        """As float64."""
        return self.cast(dtypes.float64)

    def short(self) -> Self:
        """As int16."""
        return self.cast(dtypes.int16)

    def int(self) -> Self:
        """As int32."""
        return self.cast(dtypes.int32)

    def long(self) -> Self:
        """As int64."""
        return self.cast(dtypes.int64)

    def bool(self) -> Self:
        """True where not zero."""
        return self.cast(dtypes.bool)
