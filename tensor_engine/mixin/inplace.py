"""Python's assigning operators: `x += y` writes into x, so that every name of the same tensor sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensor_engine.mixin.random import RandomMixin


def assigning(operate: Callable[..., Any]) -> Any:
    """The operator that assigns what `operate` gives."""

    def operate_in_place(self: Any, x: Any) -> Any:
        return self.assign(operate(self, x))

    return operate_in_place


class InPlaceMixin(RandomMixin):
    """+=, -=, *= and so on. The type and the shape stay: see `assign`."""

    __slots__ = ()

    __iadd__ = assigning(RandomMixin.add)
    __isub__ = assigning(RandomMixin.sub)
    __imul__ = assigning(RandomMixin.mul)
    __itruediv__ = assigning(RandomMixin.div)
    __ifloordiv__ = assigning(RandomMixin.floordiv)
    __imod__ = assigning(RandomMixin.mod)
    __ipow__ = assigning(RandomMixin.pow)
    __imatmul__ = assigning(RandomMixin.dot)
    __iand__ = assigning(RandomMixin.bitwise_and)
    __ior__ = assigning(RandomMixin.bitwise_or)
    __ixor__ = assigning(RandomMixin.bitwise_xor)
    __ilshift__ = assigning(RandomMixin.lshift)
    __irshift__ = assigning(RandomMixin.rshift)
