"""Devectorisation: vector operations that the renderer cannot print are done lane by lane."""
from __future__ import annotations

from tensor_engine.renderer import Renderer
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.rewrite import graph_rewrite
from tensor_engine.uop.symbolic import pm_identities
from tensor_engine.uop.uop import UOp
from tensor_engine.uop.upat import PatternMatcher, UPat


def by_lanes(node: UOp, ctx: Renderer) -> UOp | None:
    """A vector of scalar operations."""
    if node.dtype.count == 1 or node.op in ctx.vector_ops:
        return None
    lanes = (
        UOp(node.op, node.dtype.scalar(), tuple(s.lane(i) for s in node.src), node.arg)
        for i in range(node.dtype.count)
    )
    return UOp(Ops.VECTORIZE, node.dtype, tuple(lanes))


pm_devectorize = PatternMatcher([(UPat(GroupOp.ELEMENTWISE, name="node"), by_lanes)]) + pm_identities


def devectorize(sink: UOp, renderer: Renderer) -> UOp:
    """Vectors are left only where the renderer has instructions for them."""
    return graph_rewrite(sink, pm_devectorize, renderer)
