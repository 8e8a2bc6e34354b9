"""Does anybody else know an object? Memory that nobody refers to may be used anew, and what nobody derived anything
from may change without being told."""
from __future__ import annotations

import weakref
from collections.abc import Callable
from sys import getrefcount
from typing import Any

from tensor_engine.engine import realize
from tensor_engine.tensor import Tensor


class Census:
    """How many references there are to some objects. Take it while nobody but their owner has any."""

    __slots__ = ("objects", "counts")

    def __init__(self, objects: list[Any]):
        self.objects = objects
        self.counts = list(map(getrefcount, objects))

    def unchanged(self) -> bool:
        """Are there as many now? More: somebody else holds one of them."""
        return list(map(getrefcount, self.objects)) == self.counts


class Overwritten:
    """A tensor whose memory every replay writes over.

    What was computed from the content before must not be taken to be computed from the content now. So the tensor gets
    another node, unless nobody but the tensor knows the one it has.
    """

    def __init__(self, tensor: Tensor):
        self.tensor = weakref.ref(tensor)
        self.known: Census | None = None

    def note_change(self, overwrites: Callable[[Tensor], bool]) -> None:
        """Call this after a replay. `overwrites(tensor)`: does it write over this memory, too?"""
        tensor = self.tensor()
        if tensor is None or (self.known and tensor.uop is self.known.objects[-1] and self.known.unchanged()):
            return
        if overwrites(tensor):
            node = realize.next_version(tensor.uop)  # this reference counts in the tensor's stead
            self.known = Census(node.toposort())
            tensor.uop = node
