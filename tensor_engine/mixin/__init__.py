"""The methods that Tensor and UOp share, a file a family. Each is one function object in both classes.

hooks → types → broadcast → bits → elementwise → transcendental → movement → creation → join → regroup → padding →
reduce → scan → activation → linear → loss → window → indexing → writing → pool → sorting → decomposition → resize →
gradient: each family uses only those before it. `mode`, `random` (which needs memory for its state) and `inplace`
belong to Tensor alone. `sizes` knows what a size may be, and how sizes that depend on variables compare.
"""

from tensor_engine.mixin.gradient import GradientMixin


class OpMixin(GradientMixin):
    """All families together."""

    __slots__ = ()


__all__ = ["OpMixin"]
