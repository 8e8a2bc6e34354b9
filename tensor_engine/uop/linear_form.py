"""Index expressions as sums: coefficient × term + … + constant. Most simplification of indices happens here."""
from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from tensor_engine.dtype import DType, dtypes
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp


class LinearForm(NamedTuple):
    """Σ coefficient·term + constant. Terms are nodes that are no sum and no multiple."""

    terms: dict[UOp, int]
    constant: int


def linear_form(*parts: tuple[UOp, int] | UOp) -> LinearForm:
    """Take a sum of nodes, or of (node, factor) pairs, apart into terms; equal terms are collected."""
    terms: dict[UOp, int] = {}
    constant = 0
    stack = [part if isinstance(part, tuple) else (part, 1) for part in parts]
    while stack:
        part, factor = stack.pop()
        if part.op is Ops.ADD:
            stack.extend((s, factor) for s in part.src)
        elif part.op is Ops.MUL and part.src[1].op is Ops.CONST:
            stack.append((part.src[0], factor * part.src[1].arg))
        elif part.op is Ops.CONST:
            constant += factor * part.arg
        else:
            terms[part] = terms.get(part, 0) + factor
    return LinearForm({t: c for t, c in terms.items() if c}, constant)


def weighted_sum(parts: Iterable[tuple[UOp, int]]) -> UOp:
    """Σ factor·node of simplified indices, simplified."""
    return rebuild(_recombine(linear_form(*parts)), dtypes.index)


def order(node: UOp) -> tuple[int, object, object]:
    """Loop counters first, by number; then the rest, by content, so that the order is the same in every process."""
    if node.op is Ops.RANGE:
        return 0, node.arg[0], b""
    return 1, 0, node.key


def rebuild(form: LinearForm, dtype: DType) -> UOp:
    """The sum in its one canonical order."""
    total: UOp | None = None
    for term in sorted(form.terms, key=order):
        part = _multiple(term, form.terms[term])
        total = part if total is None else UOp(Ops.ADD, dtype, (total, part))
    if total is None:
        return UOp.const(dtype, form.constant)
    return total if form.constant == 0 else UOp(Ops.ADD, dtype, (total, UOp.const(dtype, form.constant)))


def _multiple(term: UOp, factor: int) -> UOp:
    return term if factor == 1 else UOp(Ops.MUL, term.dtype, (term, UOp.const(term.dtype, factor)))


def bounds(form: LinearForm) -> tuple[int, int]:
    """Bounds of the sum."""
    low = high = form.constant
    for term, factor in form.terms.items():
        ends = (factor * int(term.vmin), factor * int(term.vmax))
        low, high = low + min(ends), high + max(ends)
    return low, high


def _recombine(form: LinearForm) -> LinearForm:
    """x % c + (x // c) * c is x."""
    for term, factor in form.terms.items():
        if term.op is not Ops.MOD or term.src[1].op is not Ops.CONST:
            continue
        x, divisor = term.src
        quotient = UOp(Ops.IDIV, term.dtype, (x, divisor))
        if form.terms.get(quotient) == factor * divisor.arg:
            rest = {t: c for t, c in form.terms.items() if t is not term and t is not quotient}
            whole = linear_form(x)
            for t, c in whole.terms.items():
                rest[t] = rest.get(t, 0) + c * factor
            constant = form.constant + whole.constant * factor
            return _recombine(LinearForm({t: c for t, c in rest.items() if c}, constant))
    return form


def canonical_sum(node: UOp) -> UOp | None:
    """An index sum with equal terms collected, in canonical order; None if it is so already."""
    result = rebuild(_recombine(linear_form(node)), node.dtype)
    return None if result is node else result


def _split(form: LinearForm, divisor: int) -> tuple[LinearForm, LinearForm]:
    """The multiples of `divisor`, divided by it, and the rest: 163·k is once 162·k, and k."""
    whole = {t: _towards_zero(c, divisor) for t, c in form.terms.items()}
    rest = {t: c - whole[t] * divisor for t, c in form.terms.items()}
    return (
        LinearForm({t: c for t, c in whole.items() if c}, form.constant // divisor),
        LinearForm({t: c for t, c in rest.items() if c}, form.constant % divisor),
    )


def _towards_zero(value: int, divisor: int) -> int:
    return value // divisor if value >= 0 else -(-value // divisor)


def fold_division(node: UOp) -> UOp | None:
    """Simplify x // c or x % c of an index by a positive constant c, rounding down."""
    x, divisor = node.src[0], node.src[1].arg
    is_mod = node.op is Ops.MOD
    form = linear_form(x)
    low, high = bounds(form)
    if low // divisor == high // divisor:  # the quotient is one number
        quotient = low // divisor
        return x + (-quotient * divisor) if is_mod else node.const_like(quotient)
    whole, rest = _split(form, divisor)
    rest_low, rest_high = bounds(rest)
    if rest_low // divisor == rest_high // divisor:  # … or one number beside the multiples
        quotient = rest_low // divisor
        if is_mod:
            return rebuild(LinearForm(rest.terms, rest.constant - quotient * divisor), node.dtype)
        return rebuild(LinearForm(whole.terms, whole.constant + quotient), node.dtype)
    if whole.terms or whole.constant:
        divided = UOp(node.op, node.dtype, (rebuild(rest, node.dtype), node.src[1]))
        return divided if is_mod else rebuild(whole, node.dtype) + divided
    return _cancel_common_factor(node, form, divisor)


def _cancel_common_factor(node: UOp, form: LinearForm, divisor: int) -> UOp | None:
    """(g·x + r) // (g·d) is x // d for 0 ≤ r < g; the same for %, where r stays."""
    common = math.gcd(divisor, *form.terms.values())
    if common == 1:
        return None
    terms = {t: c // common for t, c in form.terms.items()}
    reduced = rebuild(LinearForm(terms, form.constant // common), node.dtype)
    inner = UOp(node.op, node.dtype, (reduced, UOp.const(node.dtype, divisor // common)))
    return inner if node.op is Ops.IDIV else inner * common + form.constant % common


def fold_less_than(node: UOp) -> UOp | None:
    """Simplify x < c of an index: constants move to the right, a common factor cancels."""
    x, limit = node.src[0], int(node.src[1].arg)
    form = linear_form(x)
    if not form.terms:
        return None
    common = math.gcd(*form.terms.values())
    if form.constant == 0 and common == 1:
        return _flip_negative(node, form, limit)
    terms = {t: c // common for t, c in form.terms.items()}
    bound = -(-(limit - form.constant) // common)
    return UOp(Ops.CMPLT, node.dtype, (rebuild(LinearForm(terms, 0), x.dtype), UOp.const(x.dtype, bound)))


def _flip_negative(node: UOp, form: LinearForm, limit: int) -> UOp | None:
    """-x < c is not x < 1 - c: comparisons of counters read better, and equal ones meet."""
    if not all(c < 0 for c in form.terms.values()):
        return None
    positive = rebuild(LinearForm({t: -c for t, c in form.terms.items()}, 0), node.src[0].dtype)
    less = UOp(Ops.CMPLT, node.dtype, (positive, UOp.const(positive.dtype, 1 - limit)))
    return UOp(Ops.CMPNE, node.dtype, (less, UOp.const(node.dtype, True)))
