"""Gradients: one rule an operation says what the gradient of its value is for each of its operands.

A rule gets the node and, as `ctx`, the gradient of its value; it returns a gradient an operand, None where there is
none. What it builds is a graph like any other: it fuses with the rest, and has a gradient itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tensor_engine.dtype import dtypes, sum_acc_dtype
from tensor_engine.helpers import at_most
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.pad_early import pad_early
from tensor_engine.uop.uop import UOp
from tensor_engine.uop.upat import PatternMatcher, UPat

Gradients = tuple[UOp | None, ...]


FORGETTING = (
    "What is realized forgets what it was made of, and so does a value that was asked for outside of Tensor.train()."
)


class GradientError(ValueError):
    """A gradient was asked for that there isn't: says of what, and why."""


# ---- what takes more than a line --------------------------------------------------------------------------------


def square_root(ctx: UOp, ret: UOp) -> Gradients:
    """g / (2 * root). At 0 the slope is infinite, but no gradient times that is none: a norm may be of zeros."""
    return ((ret.ne(0) | ctx.ne(0)).where(ctx / (ret * 2), 0),)


def quotient(ctx: UOp, ret: UOp, b: UOp) -> Gradients:
    """(g / b, -g * a / b**2), without squaring."""
    first = ctx / b
    return first, -first * ret


def larger(ctx: UOp, ret: UOp, a: UOp, b: UOp) -> Gradients:
    """The larger operand has it all, equal ones share; but of a number and a tensor that are equal it is the number's,
    so that relu's slope at 0 is 0. There the result tells who it was: the tensor itself need not be kept."""
    if is_number(a) or is_number(b):
        return b.lt(ret).where(ctx, 0), a.lt(ret).where(ctx, 0)
    share = a.eq(b).where(ctx * 0.5, 0)
    return b.lt(a).where(ctx, share), a.lt(b).where(ctx, share)


def is_number(node: UOp) -> bool:
    """The same number everywhere, or its opposite, as `minimum` writes it; no Tensor."""
    base = node.base
    factors = base.src if base.op is Ops.MUL else (base,)
    return all(f.base.op is Ops.CONST and not f.base.src for f in factors)


def largest(ctx: UOp, ret: UOp, x: UOp) -> Gradients:
    """All that are as large as the largest share. They are counted in a type that holds the count."""
    wide, axes = sum_acc_dtype(x.dtype), ret.arg[1]
    wins = x.eq(ret.broadcast_to(x.shape))
    share = ctx.cast(wide) / wins.cast(wide).reduce_axis(Ops.ADD, axes)
    return (wins.where(share.cast(x.dtype).broadcast_to(x.shape), 0),)


def product(ctx: UOp, ret: UOp, x: UOp) -> Gradients:
    """The product of all others: of those before times those behind, as dividing by x fails where that is 0."""
    kept = [axis for axis in range(x.ndim) if axis not in ret.arg[1]]
    order = (*kept, *ret.arg[1])
    moved = x.permute(order)
    row = moved.reshape(*moved.shape[: len(kept)], -1)
    others = row.exclusive_scan(Ops.MUL) * row.flip(-1).exclusive_scan(Ops.MUL).flip(-1)
    return (ctx.broadcast_to(x.shape) * others.reshape(moved.shape).unpermute(order),)


def repeated(ctx: UOp, ret: UOp, x: UOp) -> Gradients:
    """Every copy's gradient, summed."""
    axes = tuple(axis for axis, (size, below) in enumerate(zip(ret.shape, x.shape)) if size != below)
    return (ctx.sum(axes, keepdim=True),)


def shrunk(ctx: UOp, ret: UOp, x: UOp) -> Gradients:
    """Zeros where something was left out; if that was less than half, around what the gradient is a product of."""
    pads = tuple((start, size - stop) for (start, stop), size in zip(ret.arg, x.shape))
    return (pad_early(ctx, pads) if at_most(x.size) < 2 * at_most(ctx.size) else ctx.pad_zeros(pads),)


def sheared(ctx: UOp, ret: UOp) -> Gradients:
    """Sheared back, between zeros. Turning the other axis round, before and after, turns the direction round."""
    axis, along, step = ret.arg
    reach = step * (ret.shape[along] - 1)
    padded = pad_early(ctx, tuple((reach, reach) if i == axis else (0, 0) for i in range(ctx.ndim)))
    return (padded.flip(along).shear(axis, along, step).flip(along),)


def overwritten(ctx: UOp, x: UOp, a: UOp) -> Gradients:
    """The value's is that of its places; what was there before has none in these."""
    moves = [node for node in a.toposort(lambda node: node is not x) if node is not x]
    there = ctx
    for move in moves:
        there = there.movement(move.op, move.arg)
    if a.size == x.size:
        return None, None, there
    inside = a.const_like(True, dtypes.bool)
    for move in reversed(moves):
        (inside,) = by_rule(move, inside)  # type: ignore[assignment]
    return inside.where(0, ctx), None, there


# ---- the rules --------------------------------------------------------------------------------------------------

x, a, b = UPat(name="x"), UPat(name="a"), UPat(name="b")
NO_GRADIENT = {Ops.CONST, Ops.TRUNC, Ops.BITCAST, Ops.DETACH, Ops.IDIV, Ops.MOD, Ops.THREEFRY, *GroupOp.COMPARE}


def of(op: Ops, *operands: UPat, arg: Ops | None = None) -> UPat:
    """The pattern of an operation on these operands. `arg`: what a reduction combines by."""
    where = None if arg is None else lambda node: node.arg[0] is arg
    return UPat(op, src=operands, name="ret", where=where)


pm_gradient = PatternMatcher(
    [
        # one operand
        (of(Ops.CAST, x), lambda ctx, x: (ctx.cast(x.dtype),)),
        (of(Ops.NEG, x), lambda ctx: (-ctx,)),
        (of(Ops.EXP2, x), lambda ctx, ret: (ctx * (ret * math.log(2)),)),
        (of(Ops.LOG2, x), lambda ctx, x: (ctx / (x * math.log(2)),)),
        (of(Ops.SIN, x), lambda ctx, x: (ctx * x.cos(),)),
        (of(Ops.SQRT, x), square_root),
        (of(Ops.RECIPROCAL, x), lambda ctx, ret: (-ctx * ret * ret,)),
        # two, and three
        (of(Ops.ADD, a, b), lambda ctx: (ctx, ctx)),
        (of(Ops.SUB, a, b), lambda ctx: (ctx, -ctx)),
        (of(Ops.MUL, a, b), lambda ctx, a, b: (ctx * b, ctx * a)),
        (of(Ops.FDIV, a, b), quotient),
        (of(Ops.MAX, a, b), larger),
        (of(Ops.WHERE, x, a, b), lambda ctx, x: (None, x.where(ctx, 0), x.logical_not().where(ctx, 0))),
        (of(Ops.MULACC, a, b, x), lambda ctx, a, b: (ctx * b, ctx * a, ctx)),
        # reductions
        (of(Ops.REDUCE_AXIS, x, arg=Ops.ADD), lambda ctx, x: (ctx.broadcast_to(x.shape),)),
        (of(Ops.REDUCE_AXIS, x, arg=Ops.MAX), largest),
        (of(Ops.REDUCE_AXIS, x, arg=Ops.MUL), product),
        # movement
        (of(Ops.RESHAPE, x), lambda ctx, x: (ctx.reshape(x.shape),)),
        (of(Ops.PERMUTE, x), lambda ctx, ret: (ctx.unpermute(ret.arg),)),
        (of(Ops.EXPAND, x), repeated),
        (of(Ops.PAD, x), lambda ctx, ret, x: (ctx.shrink([(p, p + n) for (p, _), n in zip(ret.arg, x.shape)]),)),
        (of(Ops.SHRINK, x), shrunk),
        (of(Ops.FLIP, x), lambda ctx, ret: (UOp(Ops.FLIP, ctx.dtype, (ctx,), ret.arg),)),
        (of(Ops.SHEAR, x), sheared),
        # memory
        (of(Ops.CONTIGUOUS, x), lambda ctx: (ctx,)),
        (of(Ops.CONTIGUOUS_BACKWARD, x), lambda ctx: (ctx.contiguous(),)),
        (of(Ops.COPY, x, a), lambda ctx, x: (ctx.copy_to_device(x.device), None)),
        (of(Ops.ASSIGN, x, a, b), overwritten),
        (UPat(NO_GRADIENT, name="ret"), lambda ret: (None,) * len(ret.src)),
    ]
)


# ---- walking the graph ------------------------------------------------------------------------------------------


def compute_gradient(root: UOp, root_gradient: UOp, targets: Iterable[UOp]) -> dict[UOp, UOp]:
    """d root / d node, times `root_gradient`, for every target that root depends on and every node on the way there.

    Raises GradientError where an operation on the way has no gradient.
    """
    gradients = {root: root_gradient}
    path = nodes_on_the_way(root, set(targets))
    on_path = set(path)
    for node in reversed(path):
        if node not in gradients:
            continue
        for operand, gradient in zip(node.src, gradients_below(node, gradients[node])):
            if gradient is None or operand not in on_path:
                continue
            gradients[operand] = added(gradients[operand], gradient) if operand in gradients else gradient
    return gradients


def nodes_on_the_way(root: UOp, targets: set[UOp]) -> list[UOp]:
    """The floats between `root` and the targets, operands before users."""
    found: dict[UOp, None] = {}
    for node in root.toposort(lambda node: node.op is not Ops.DETACH):
        if node.dtype.kind == "f" and (node in targets or any(s in found for s in node.src)):
            found[node] = None
    return list(found)


def gradients_below(node: UOp, gradient: UOp) -> Gradients:
    """The gradient of each operand.

    What was not chosen has no gradient, even where the slope is infinite (0 * inf would be nan): a gradient that is 0
    by a choice goes through the rule as if it weren't, and is chosen afterwards.
    """
    if node.op not in KEEP_CHOICES or not is_choice(gradient):
        return by_rule(node, gradient)
    choice, chosen, _ = gradient.src
    moved = by_rule(node, choice)[0] if node.op in GroupOp.MOVEMENT else choice
    assert moved is not None
    return tuple(None if g is None else moved.where(g, 0) for g in gradients_below(node, chosen))


KEEP_CHOICES = GroupOp.ELEMENTWISE | GroupOp.MOVEMENT - {Ops.EXPAND}


def is_choice(gradient: UOp) -> bool:
    return gradient.op is Ops.WHERE and gradient.src[2].base.op is Ops.CONST and gradient.src[2].base.arg == 0


def added(first: UOp, second: UOp) -> UOp:
    """The sum; what is chosen by one choice is added before."""
    if is_choice(first) and is_choice(second) and first.src[0] is second.src[0]:
        return first.src[0].where(added(first.src[1], second.src[1]), 0)
    return first.alu(Ops.ADD, second)


def by_rule(node: UOp, gradient: UOp) -> Gradients:
    """What the table says. Raises GradientError if it says nothing."""
    if not node.src:
        return ()
    result = pm_gradient.rewrite(node, gradient)
    if result is None:
        raise GradientError(f"{node.op.name} has no gradient; use .detach() on its result, or assign to .grad yourself")
    return result
