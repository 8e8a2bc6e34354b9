"""The methods that Tensor and UOp share, a file a family. Each is one function object in both classes."""
from tensor_engine.mixin.reduce import ReduceMixin


class OpMixin(ReduceMixin):
    """All families together."""

    __slots__ = ()


__all__ = ["OpMixin"]
