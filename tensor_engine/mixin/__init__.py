"""The methods that Tensor and UOp share, a file a family. Each is one function object in both classes.

hooks → broadcast → bits → elementwise → transcendental → movement → creation → join → padding → reduce → activation
→ linear → loss → window → indexing → sorting → resize → gradient: each family uses only those before it. `random`
needs memory for its state and belongs to Tensor alone.
"""

from tensor_engine.mixin.gradient import GradientMixin


class OpMixin(GradientMixin):
    """All families together."""

    __slots__ = ()


__all__ = ["OpMixin"]
