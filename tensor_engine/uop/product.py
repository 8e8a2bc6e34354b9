"""Index expressions with products of variables: i·n + j, where the size n of an axis is a variable.

Division and comparison of such sums, as `linear_form` does it where divisor and limit are constants.
"""
from __future__ import annotations

from typing import NamedTuple

from tensor_engine.uop.linear_form import (
    LinearForm,
    bounds,
    linear_form,
    order,
    rebuild,
)
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp, as_index


class Product(NamedTuple):
    """factor · factor · … · constant. Factors are no products, and stand in one order."""

    factors: tuple[UOp, ...]
    constant: int


def product_form(node: UOp) -> Product:
    """Take a product apart."""
    factors: list[UOp] = []
    constant = 1
    stack = [node]
    while stack:
        part = stack.pop()
        if part.op is Ops.MUL:
            stack.extend(part.src)
        elif part.op is Ops.CONST:
            constant *= part.arg
        else:
            factors.append(part)
    return Product(tuple(sorted(factors, key=order)), constant)


def product_of(product: Product) -> UOp:
    """The product in its one canonical form, the constant last."""
    result: UOp | None = None
    for factor in product.factors:
        result = factor if result is None else UOp(Ops.MUL, factor.dtype, (result, factor))
    if result is None or product.constant == 1:
        return as_index(product.constant) if result is None else result
    return UOp(Ops.MUL, result.dtype, (result, as_index(product.constant)))


def canonical_product(node: UOp) -> UOp | None:
    """A product of indices that aren't constants: sums multiplied out, factors in order; None if it is so already."""
    x, y = node.src
    if x.op is Ops.ADD or y.op is Ops.ADD:
        (left, right), other = (x.src, y) if x.op is Ops.ADD else (y.src, x)
        return left * other + right * other
    result = product_of(product_form(node))
    return None if result is node else result


def fold_division_by_product(node: UOp) -> UOp | None:
    """(i·n + j) // n is i, and (i·n + j) % n is j, for 0 ≤ j < n."""
    x, divisor = node.src
    if divisor.vmin <= 0:
        return None
    whole, rest = split(linear_form(x), product_form(divisor))
    remainder = rebuild(rest, node.dtype)
    is_remainder = remainder.vmin >= 0 and (remainder < divisor).simplified.vmin
    if not is_remainder and not whole.terms:
        return None
    left = remainder if is_remainder else remainder.alu(node.op, divisor)
    if node.op is Ops.MOD:
        return left
    return rebuild(whole, node.dtype) if is_remainder else rebuild(whole, node.dtype) + left


def split(form: LinearForm, divisor: Product) -> tuple[LinearForm, LinearForm]:
    """The multiples of `divisor`, divided by it, and the rest."""
    whole: list[tuple[UOp, int]] = []
    rest: dict[UOp, int] = {}
    for term, factor in form.terms.items():
        quotient = divide(product_form(term), factor, divisor)
        if quotient is None:
            rest[term] = factor
        else:
            whole.append((product_of(quotient._replace(constant=1)), quotient.constant))
    return linear_form(*whole), LinearForm(rest, form.constant)


def divide(product: Product, factor: int, divisor: Product) -> Product | None:
    """factor · product over the divisor; None if something is left over."""
    remaining = list(product.factors)
    for wanted in divisor.factors:
        if wanted not in remaining:
            return None
        remaining.remove(wanted)
    constant = product.constant * factor
    return None if constant % divisor.constant else Product(tuple(remaining), constant // divisor.constant)


# ---- comparison -------------------------------------------------------------------------------------------------


def fold_comparison(node: UOp) -> UOp | None:
    """x < y of indices, where what x - y is at most, or y - x, decides it."""
    x, y = node.src
    if upper_bound(linear_form((x, 1), (y, -1))) < 0:
        return UOp.const(node.dtype, True)
    if upper_bound(linear_form((y, 1), (x, -1))) <= 0:
        return UOp.const(node.dtype, False)
    return None


def upper_bound(form: LinearForm) -> int:
    """What the sum never exceeds. In place of a term what it is at most may cancel other terms."""
    highest = bounds(form)[1]
    for term, factor in form.terms.items():
        limit = at_most(term, factor)
        if limit is not None:
            return min(highest, upper_bound(replaced(form, term, *limit)))
    for term, factor in form.terms.items():
        if term.op is Ops.MAX:
            either = [upper_bound(replaced(form, term, operand, factor)) for operand in term.src]
            highest = min(highest, max(either) if factor > 0 else min(either))
    return highest


def replaced(form: LinearForm, term: UOp, other: UOp, factor: int) -> LinearForm:
    """The sum with `factor` times `other` in place of a term."""
    rest = {t: f for t, f in form.terms.items() if t is not term}
    return linear_form((rebuild(LinearForm(rest, form.constant), term.dtype), 1), (other, factor))


def at_most(term: UOp, factor: int) -> tuple[UOp, int] | None:
    """Of what multiple of another node a term is no more; None if nothing is known but its bounds."""
    if factor <= 0:
        return None
    if term.op is Ops.IDIV and term.src[1].op is Ops.CONST and term.src[1].arg > 0:
        divisor = term.src[1].arg
        return (term.src[0], factor // divisor) if factor % divisor == 0 else None
    if term.op is Ops.MOD and term.src[1].op is not Ops.CONST and term.src[1].vmin > 0:
        return term.src[1] - 1, factor
    factors = product_form(term).factors
    counters = [f for f in factors if f.op is Ops.RANGE and f.src[0].op is not Ops.CONST]
    if not counters or not all(f.vmin >= 0 and f.op in (Ops.RANGE, Ops.DEFINE_VAR, Ops.BIND) for f in factors):
        return None
    return term.substitute({counter: counter.src[0] - 1 for counter in counters}).simplified, factor
