"""The methods that Tensor and UOp share, a file a family. Each is one function object in both classes.

hooks → elementwise → movement → creation → join → padding → reduce → activation → linear → window → indexing → sorting
→ resize: each family uses only those before it. `random` needs memory for its state and belongs to Tensor alone.
"""

from tensor_engine.mixin.resize import ResizeMixin


class OpMixin(ResizeMixin):
    """All families together."""

    __slots__ = ()


__all__ = ["OpMixin"]
