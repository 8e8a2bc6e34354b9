"""Index lowering: the abstract index type becomes a machine integer."""
from __future__ import annotations

from tensor_engine.dtype import DType, dtypes
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp


def lower_index(sink: UOp, preferred: DType) -> UOp:
    """All indices as `preferred`, or as int64 where some value does not fit."""
    nodes = sink.toposort()
    indices = [n for n in nodes if n.dtype.scalar() is dtypes.index]
    fits = all(preferred.min <= n.vmin and n.vmax <= preferred.max for n in indices)
    target = preferred if fits else dtypes.int64
    done: dict[UOp, UOp] = {}
    for node in nodes:
        src = tuple(done[s] for s in node.src)
        done[node] = lowered(node, src, target)
    return done[sink]


def lowered(node: UOp, src: tuple[UOp, ...], target: DType) -> UOp:
    """The node with `target` in place of the index type."""
    if node.op is Ops.DEFINE_VAR:
        return UOp(Ops.DEFINE_VAR, dtypes.int64, (), node.arg).cast(target)
    dtype = node.dtype
    if dtype.scalar() is dtypes.index:
        dtype = target.vec(dtype.count)
    if node.op is Ops.CAST and src[0].dtype is dtype:
        return src[0]
    return UOp(node.op, dtype, src, node.arg)
