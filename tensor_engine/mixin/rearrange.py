"""Axes named, taken apart and put together by a formula, as in the library einops."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from tensor_engine.helpers import prod

if TYPE_CHECKING:
    from tensor_engine.mixin.movement import MovementMixin

    V = TypeVar("V", bound=MovementMixin)

# an axis made of several, the axes that need no name, a name
TOKEN = re.compile(r"\(([^()]*)\)|(\.\.\.)|(\w+)")


def rearrange(value: V, formula: str, sizes: dict[str, int]) -> V:
    """The axes named left of "->" in the order named right of it."""
    left, arrow, right = formula.partition("->")
    if not arrow:
        raise ValueError(f"rearrange({formula!r}) has no '->'")
    groups, wanted = read_side(formula, left), read_side(formula, right)
    unnamed = value.ndim - sum(group != ["..."] for group in groups)
    if unnamed < 0 or (unnamed and ["..."] not in groups):
        raise ValueError(f"rearrange({formula!r}) names {len(groups)} axes, but the shape is {value.shape}")
    groups, wanted = name_hidden(groups, unnamed, True), name_hidden(wanted, unnamed, False)
    names = [name for group in groups for name in group]
    order = [name for group in wanted for name in group]
    if sorted(names) != sorted(order) or len(set(names)) != len(names):
        raise ValueError(f"rearrange({formula!r}) needs the same axes on both sides, each once")
    found = axis_sizes(formula, groups, value.shape, sizes)
    apart = value.reshape(tuple(found[name] for name in names))
    moved = apart.permute([names.index(name) for name in order])
    return moved.reshape(tuple(prod(found[name] for name in group) for group in wanted))


def read_side(formula: str, side: str) -> list[list[str]]:
    """One side as a list of axes, each the list of the names that make it; an axis of size 1 has none."""
    if TOKEN.sub("", side).strip():
        raise ValueError(f"rearrange({formula!r}): can't read {side.strip()!r}")
    groups = []
    for inside, dots, name in TOKEN.findall(side):
        words = [dots or name] if dots or name else inside.split()
        groups.append([word for word in words if word != "1"])
    return groups


def name_hidden(groups: list[list[str]], count: int, is_input: bool) -> list[list[str]]:
    """With "..." replaced by names of `count` axes: axes of their own, or parts of the axis where it stands."""
    hidden = [f"...{i}" for i in range(count)]
    named: list[list[str]] = []
    for group in groups:
        if group == ["..."]:
            named += [[name] for name in hidden]
        else:
            named.append([name for word in group for name in (hidden if word == "..." and not is_input else [word])])
    return named


def axis_sizes(
    formula: str, groups: list[list[str]], shape: tuple[int, ...], given: dict[str, int]
) -> dict[str, int]:
    """The size of each name: given, or what is left over of its axis."""
    sizes: dict[str, int] = {}
    for group, size in zip(groups, shape):
        unknown = [name for name in group if name not in given]
        known = prod(given[name] for name in group if name in given)
        if len(unknown) > 1 or (size % known if known and unknown else size != known):
            axis = " ".join(group)
            raise ValueError(f"rearrange({formula!r}): an axis of size {size} can't be ({axis}) with {given}")
        sizes |= {name: given[name] for name in group if name in given}
        sizes |= dict.fromkeys(unknown, size // known)
    return sizes
