"""Weights in 4 bits, really stored packed: two in a byte, unpacked inside the kernels that read them."""

from __future__ import annotations

from tensor_engine.dtype import dtypes
from tensor_engine.tensor import Tensor

LARGEST = 7  # of -8 … 7: the same on both sides, so that 0 stays 0
OFFSET = 8  # is stored with it, as 0 … 15


class Int4:
    """A float tensor [..., n] as 4-bit integers: `group` neighbours along the last axis share a scale.

    `packed`: uint8 [..., n / 2], the even element in the lower half of a byte. `scales`: float16 [..., n / group],
    the largest absolute value of a group over 7. Each element is off by half its scale at most (more where float16
    is too coarse for the scale).

    Raises ValueError unless `group` is even and divides n, and for values whose scale float16 does not hold.
    """

    def __init__(self, values: Tensor, group: int = 32):
        if not values.shape or group <= 0 or group % 2 or values.shape[-1] % group:
            raise ValueError(f"groups of {group} must have an even size and fill the last axis of {values.shape}")
        self.shape, self.group = values.shape, group
        grouped = values.cast(dtypes.float32).reshape(*values.shape[:-1], -1, group)
        largest = grouped.abs().max(-1, keepdim=True)
        scales = (largest / LARGEST).cast(dtypes.float16).realize()
        if not scales.isfinite().all().item():
            raise ValueError("values that are infinite, nan or beyond what float16 holds cannot have 4 bits")
        steps = scales.eq(0).where(1, scales.cast(dtypes.float32))
        whole = (grouped / steps).round().clip(-LARGEST, LARGEST) + OFFSET
        pairs = whole.cast(dtypes.uint8).reshape(*values.shape[:-1], -1, 2)
        self.packed = pairs[..., 0].bitwise_or(pairs[..., 1].lshift(4)).realize()
        self.scales = scales.squeeze(-1)
        self.packed.is_param = self.scales.is_param = False

    @property
    def nbytes(self) -> int:
        """Bytes of the stored tensors."""
        return self.packed.nbytes() + self.scales.nbytes()

    def dequantize(self) -> Tensor:
        """float32 [..., n], lazily: a kernel that reads it unpacks what it needs."""
        halves = self.packed.unsqueeze(-1).rshift(Tensor.arange(2, dtype=dtypes.uint8) * 4)
        whole = halves.bitwise_and(15).reshape(*self.scales.shape, self.group).cast(dtypes.float32) - OFFSET
        return (whole * self.scales.unsqueeze(-1).cast(dtypes.float32)).reshape(self.shape)
