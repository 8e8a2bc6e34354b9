"""Decomposition: operations that the target lacks are written in terms of those that it has.

Also where the meaning of an operation is stricter than a machine's: rounding-down division, casts out of range,
shifts by more bits than there are.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensor_engine.codegen.sine import sin
from tensor_engine.codegen.transcendental import exp, exp2, log2
from tensor_engine.dtype import dtypes, float_cast_via, truncate
from tensor_engine.helpers import is_power_of_two
from tensor_engine.renderer import Renderer
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.rewrite import graph_rewrite, walk_rewrite
from tensor_engine.uop.symbolic import INTS, pm_identities
from tensor_engine.uop.uop import UOp
from tensor_engine.uop.upat import PatternMatcher, UPat

x, y = UPat.var("x"), UPat.var("y")


def decompose(sink: UOp, renderer: Renderer) -> UOp:
    """Only operations that `renderer` has are left."""
    sink = walk_rewrite(sink, pm_casts)
    sink = graph_rewrite(sink, pm_storage_only, renderer)
    sink = graph_rewrite(sink, pm_target, renderer)
    sink = walk_rewrite(sink, pm_division + pm_wide_shifts)
    return graph_rewrite(sink, pm_last, renderer)


# ---- casts: the same value for every input on every machine --------------------------------------------------------


def cast_to_bool(node: UOp, x: UOp) -> UOp:
    return x.alu(Ops.CMPNE, UOp.const(x.dtype, 0))


def cast_float_to_int(node: UOp, x: UOp) -> UOp:
    """What does not fit becomes the smallest value, as float_to_int in dtype.py says. NaN fails every comparison."""
    if x.dtype.scalar() is dtypes.float16:
        x = x.cast(dtypes.float32)  # half has no numbers as large as the limits
    via = float_cast_via(node.dtype.scalar()).vec(x.dtype.count)
    low, high = float(via.min), float(via.max) + 1
    if via.kind == "u":
        above = UOp.const(x.dtype, -1.0).alu(Ops.CMPLT, x)
    else:
        above = x.alu(Ops.CMPLT, UOp.const(x.dtype, low)).logical_not()
    fits = x.alu(Ops.CMPLT, UOp.const(x.dtype, high)) & above
    whole = fits.alu(Ops.WHERE, UOp(Ops.CAST, via, (x,)), UOp.const(via, via.min))
    return whole.cast(node.dtype)


pm_casts = PatternMatcher(
    [
        (UPat(Ops.CAST, dtypes.bool, name="node", src=(x,)), cast_to_bool),
        (UPat(Ops.CAST, INTS, name="node", src=(UPat.var("x", dtypes.floats),)), cast_float_to_int),
    ]
)


# ---- types that the target only stores: computed as float32 --------------------------------------------------------


def in_float32(node: UOp, ctx: Renderer) -> UOp | None:
    """Arithmetic on float32 in place of a type that is only stored."""
    if not any(s.dtype.scalar() in ctx.storage_only for s in (node, *node.src)):
        return None
    wide = tuple(s.cast(dtypes.float32) if s.dtype.scalar() in ctx.storage_only else s for s in node.src)
    dtype = dtypes.float32.vec(node.dtype.count) if node.dtype.scalar() in ctx.storage_only else node.dtype
    return UOp(node.op, dtype, wide, node.arg).cast(node.dtype)


def cast_through_float32(node: UOp, x: UOp, ctx: Renderer) -> UOp | None:
    """Casts between such a type and anything but float32 take a step at float32."""
    types = (node.dtype.scalar(), x.dtype.scalar())
    if ctx.storage_only.isdisjoint(types) or dtypes.float32 in types:
        return None
    return x.cast(dtypes.float32).cast(node.dtype)


pm_storage_only = PatternMatcher(
    [
        (UPat(GroupOp.ALU, name="node"), in_float32),
        (UPat(Ops.CAST, name="node", src=(x,)), cast_through_float32),
    ]
)


# ---- operations that a renderer may lack ---------------------------------------------------------------------------


def lane_constant(node: UOp) -> Any:
    """The value of a constant, or of a vector that is the same constant in every lane."""
    if node.op is Ops.VECTORIZE and len(node.src) == 1:
        node = node.src[0]
    return node.arg if node.op is Ops.CONST else None


def missing(op: Ops, ctx: Renderer) -> bool:
    return op not in ctx.code_for_op


def natural_exponential(x: UOp, factor: UOp) -> UOp | None:
    """exp is written as exp2(x · log2(e)); that product, rounded, would cost large results their last digits."""
    if x.dtype.bits < 32:
        return None
    times = lane_constant(factor) / truncate(1 / math.log(2), x.dtype.scalar())
    mantissa, exponent = math.frexp(times)
    return exp(x, times) if abs(mantissa) == 0.5 and abs(exponent) < 64 else None


def without_exp2(node: UOp, x: UOp, ctx: Renderer) -> UOp | None:
    return via_float32(node, x, exp2) if missing(Ops.EXP2, ctx) else None


def without_log2(node: UOp, x: UOp, ctx: Renderer) -> UOp | None:
    return via_float32(node, x, log2) if missing(Ops.LOG2, ctx) else None


def without_sin(node: UOp, x: UOp, ctx: Renderer) -> UOp | None:
    return via_float32(node, x, sin) if missing(Ops.SIN, ctx) else None


def via_float32(node: UOp, x: UOp, function: Callable[[UOp], UOp]) -> UOp:
    """Half is computed in single precision."""
    if x.dtype.bits >= 32:
        return function(x)
    return function(x.cast(dtypes.float32)).cast(node.dtype)


def without_max(x: UOp, y: UOp, ctx: Renderer) -> UOp | None:
    """The larger one, or a NaN."""
    if not missing(Ops.MAX, ctx):
        return None
    larger = y.alu(Ops.CMPLT, x)
    if x.dtype.kind == "f":
        larger = larger | x.alu(Ops.CMPNE, x)
    return larger.alu(Ops.WHERE, x, y)


def without_reciprocal(x: UOp, ctx: Renderer) -> UOp | None:
    return UOp.const(x.dtype, 1.0).alu(Ops.FDIV, x) if missing(Ops.RECIPROCAL, ctx) else None


def without_equal(x: UOp, y: UOp, ctx: Renderer) -> UOp | None:
    return x.alu(Ops.CMPNE, y).logical_not() if missing(Ops.CMPEQ, ctx) else None


def threefry(x: UOp, y: UOp, ctx: Renderer) -> UOp | None:
    """Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).

    x is the counter and y the key, two 32-bit words each.
    """
    if not missing(Ops.THREEFRY, ctx):
        return None
    key = [low_word(y), high_word(y)]
    key.append(key[0] ^ key[1] ^ 0x1BD11BDA)
    a, b = low_word(x) + key[0], high_word(x) + key[1]
    rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
    for group in range(5):
        for amount in rotations[group % 2]:
            a = a + b
            b = rotate_left(b, amount) ^ a
        a, b = a + key[(group + 1) % 3], b + key[(group + 2) % 3] + (group + 1)
    return (b.cast(dtypes.uint64) << 32) | a.cast(dtypes.uint64)


def low_word(node: UOp) -> UOp:
    return node.cast(dtypes.uint32)


def high_word(node: UOp) -> UOp:
    return (node >> 32).cast(dtypes.uint32)


def rotate_left(node: UOp, amount: int) -> UOp:
    return (node << amount) | (node >> (32 - amount))


constants = UPat((Ops.CONST, Ops.VECTORIZE), name="factor", where=lambda node: lane_constant(node) is not None)
pm_exp = PatternMatcher([(UPat(Ops.EXP2, src=(UPat(Ops.MUL, src=[x, constants]),)), natural_exponential)])

pm_missing = PatternMatcher(
    [
        (UPat(Ops.EXP2, name="node", src=(x,)), without_exp2),
        (UPat(Ops.LOG2, name="node", src=(x,)), without_log2),
        (UPat(Ops.SIN, name="node", src=(x,)), without_sin),
        (UPat(Ops.MAX, src=(x, y)), without_max),
        (UPat(Ops.RECIPROCAL, src=(x,)), without_reciprocal),
        (UPat(Ops.CMPEQ, src=(x, y)), without_equal),
        (UPat(Ops.THREEFRY, src=(x, y)), threefry),
    ]
)


# ---- powers of two: shifts and masks -------------------------------------------------------------------------------


def shift_or_mask(node: UOp, x: UOp, y: UOp) -> UOp | None:
    """x // 2ᵏ, x % 2ᵏ, and for indices x · 2ᵏ: right for negative x too, because // rounds down."""
    value = lane_constant(y)
    if value is None or not is_power_of_two(value) or value == 1:
        return None
    if node.op is Ops.MOD:
        return x.alu(Ops.AND, UOp.const(y.dtype, value - 1))
    amount = UOp.const(y.dtype, value.bit_length() - 1)
    if node.op is Ops.IDIV:
        return x.alu(Ops.SHR, amount)
    return x.alu(Ops.SHL, amount) if node.dtype.scalar() is dtypes.index else None


def subtract(node: UOp, x: UOp, y: UOp) -> UOp | None:
    """x + y · -1 is x - y."""
    return x.alu(Ops.SUB, y)


minus_ones = UPat((Ops.CONST, Ops.VECTORIZE), where=lambda node: lane_constant(node) == -1)

pm_shifts = PatternMatcher(
    [
        (UPat({Ops.MUL, Ops.IDIV, Ops.MOD}, INTS, name="node", src=(x, y)), shift_or_mask),
        (UPat(Ops.ADD, name="node", src=[x, UPat(Ops.MUL, src=(y, minus_ones))]), subtract),
        (UPat(Ops.MUL, dtypes.floats + dtypes.sints, src=(x, minus_ones)), lambda x: x.alu(Ops.NEG)),
    ]
)


# ---- division: rounds down, gives 0 for a divisor of 0 -------------------------------------------------------------


def safe_division(node: UOp, x: UOp, y: UOp) -> UOp | None:
    """x // y and x % y by the machine's division, which rounds towards zero and stops the program at a divisor of 0."""
    if x.vmin >= 0 and y.vmin > 0:
        return None
    zero, one = UOp.const(y.dtype, 0), UOp.const(y.dtype, 1)
    divisor = y if y.vmin > 0 or y.vmax < 0 else y.alu(Ops.CMPEQ, zero).alu(Ops.WHERE, one, y)
    if y.dtype.kind != "u" and y.vmin <= -1 <= y.vmax:
        divisor = y.alu(Ops.CMPEQ, UOp.const(y.dtype, -1)).alu(Ops.WHERE, one, divisor)
    quotient = UOp(Ops.IDIV, node.dtype, (x, divisor))
    rest = UOp(Ops.MOD, node.dtype, (x, divisor))
    if y.dtype.kind != "u":
        quotient, rest = rounded_down(quotient, rest, divisor)
    result = quotient if node.op is Ops.IDIV else rest
    return special_divisors(node, result, x, y)


def rounded_down(quotient: UOp, rest: UOp, divisor: UOp) -> tuple[UOp, UOp]:
    """From division towards zero: one less, and the divisor more, where the signs of rest and divisor differ."""
    zero, one = UOp.const(rest.dtype, 0), UOp.const(rest.dtype, 1)
    signs_differ = (rest ^ divisor).alu(Ops.CMPLT, zero) & rest.alu(Ops.CMPNE, zero)
    return signs_differ.alu(Ops.WHERE, quotient - one, quotient), signs_differ.alu(Ops.WHERE, rest + divisor, rest)


def special_divisors(node: UOp, result: UOp, x: UOp, y: UOp) -> UOp:
    """The results for a divisor of 0, which is 0, and of -1, where the machine's quotient may overflow."""
    zero = UOp.const(y.dtype, 0)
    if y.dtype.kind != "u" and y.vmin <= -1 <= y.vmax:
        by_minus_one = zero.alu(Ops.SUB, x) if node.op is Ops.IDIV else zero
        result = y.alu(Ops.CMPEQ, UOp.const(y.dtype, -1)).alu(Ops.WHERE, by_minus_one, result)
    if y.vmin <= 0 <= y.vmax:
        result = y.alu(Ops.CMPEQ, zero).alu(Ops.WHERE, zero, result)
    return result


pm_division = PatternMatcher([(UPat({Ops.IDIV, Ops.MOD}, name="node", src=(x, y)), safe_division)])


# ---- shifts: by an amount that is none of 0 … bits - 1 all bits leave; a machine may take it modulo something -------


def safe_shift(node: UOp, x: UOp, y: UOp) -> UOp | None:
    """x << y and x >> y by an amount that the machine knows."""
    bits = node.dtype.bits
    if y.vmin >= 0 and y.vmax < bits:
        return None
    inside = y.alu(Ops.CMPLT, UOp.const(y.dtype, bits))
    if y.vmin < 0:
        inside = inside & y.alu(Ops.CMPLT, UOp.const(y.dtype, 0)).logical_not()
    if node.op is Ops.SHR and node.dtype.kind != "u":
        return x.alu(Ops.SHR, inside.alu(Ops.WHERE, y, UOp.const(y.dtype, bits - 1)))
    zero = UOp.const(y.dtype, 0)
    return inside.alu(Ops.WHERE, x.alu(node.op, inside.alu(Ops.WHERE, y, zero)), zero)


pm_wide_shifts = PatternMatcher([(UPat({Ops.SHL, Ops.SHR}, name="node", src=(x, y)), safe_shift)])

pm_target = pm_exp + pm_missing + pm_shifts
pm_last = pm_missing + pm_identities
