"""Einstein's summation: a formula names the axes; operands are aligned by name, multiplied, and summed."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from tensor_engine.dtype import DType, to_dtype

if TYPE_CHECKING:
    from tensor_engine.mixin.linear import LinearMixin


def einsum(formula: str, *operands: Any, dtype: DType | str | None = None) -> Any:
    """`einsum("bij,bjk->bik", a, b)`. "..." stands for axes that broadcast; without "->" the output has, in
    alphabetical order, the axes that are named once. `dtype`: what is summed in, and the type of the result.

    Raises ValueError for a formula that doesn't fit the shapes.
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    inputs, output = parse(formula.replace(" ", ""), [operand.ndim for operand in operands])
    aligned = [take_diagonals(operand, axes) for operand, axes in zip(operands, inputs)]
    sizes = axis_sizes(formula, aligned)
    order = output + [axis for axis in sizes if axis not in output]
    factors = [on_axes(operand, axes, order) for operand, axes in aligned]
    summed, own = len(order) - len(output), None if dtype is None else to_dtype(dtype)
    if len(factors) == 2 and summed:
        return factors[0].contract(factors[1], summed, own)
    product = factors[0].broadcast_to(tuple(sizes[axis] for axis in order))
    for factor in factors[1:]:
        product = product * factor
    if summed:
        return product.sum(tuple(range(-summed, 0)), dtype=own)
    return product if own is None else product.cast(own)


def parse(formula: str, ndims: list[int]) -> tuple[list[list[str]], list[str]]:
    """The names of the axes of each operand and of the output. An axis under "..." is named by its number from the
    end."""
    left, arrow, right = formula.partition("->")
    terms = left.split(",")
    if len(terms) != len(ndims):
        raise ValueError(f"einsum({formula!r}) names {len(terms)} operands but got {len(ndims)}")
    inputs = [spell_out(formula, term, ndim) for term, ndim in zip(terms, ndims)]
    names = [axis for axes in inputs for axis in axes]
    hidden = sorted({axis for axis in names if axis not in string.ascii_letters}, key=int)
    if not arrow:
        return inputs, hidden + sorted(axis for axis in set(names) if names.count(axis) == 1 and axis not in hidden)
    before, dots, after = right.partition("...")
    output = [*before, *(hidden if dots else []), *after]
    unknown = [axis for axis in output if axis not in names]
    if unknown or len(set(output)) != len(output):
        raise ValueError(f"einsum({formula!r}): the output names an axis twice or one that no operand has")
    return inputs, output


def spell_out(formula: str, term: str, ndim: int) -> list[str]:
    """One operand's axes by name."""
    before, dots, after = term.partition("...")
    hidden = ndim - len(before) - len(after)
    letters = before + after
    if hidden < 0 or (hidden and not dots) or any(axis not in string.ascii_letters for axis in letters):
        raise ValueError(f"einsum({formula!r}): {term!r} doesn't fit an operand with {ndim} axes")
    return [*before, *[str(i - hidden) for i in range(hidden)], *after]


def take_diagonals(operand: LinearMixin, axes: list[str]) -> tuple[Any, list[str]]:
    """The operand with each axis named once: where a name stands twice, only equal places count."""
    axes = list(axes)
    for axis in dict.fromkeys(axes):
        while axes.count(axis) > 1:
            first = axes.index(axis)
            second = axes.index(axis, first + 1)
            operand = operand.diagonal(0, first, second)
            axes = [a for i, a in enumerate(axes) if i not in (first, second)] + [axis]
    return operand, axes


def axis_sizes(formula: str, operands: list[tuple[Any, list[str]]]) -> dict[str, int]:
    """The size of each named axis; 1 broadcasts."""
    sizes: dict[str, int] = {}
    for operand, axes in operands:
        for axis, size in zip(axes, operand.shape):
            known = sizes.setdefault(axis, size)
            if known != size and 1 not in (known, size):
                raise ValueError(f"einsum({formula!r}): axis {axis!r} is both {known} and {size}")
            sizes[axis] = max(known, size)
    return sizes


def on_axes(operand: Any, axes: list[str], order: list[str]) -> Any:
    """The operand with its axes in `order`; those that it lacks have size 1."""
    present = [axis for axis in order if axis in axes]
    value = operand.permute([axes.index(axis) for axis in present])
    sizes = dict(zip(present, value.shape))
    return value.reshape(tuple(sizes.get(axis, 1) for axis in order))
