"""Graphs as text: what DEBUG prints, what repr gives, and what the golden files hold."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp

# nodes that are printed inside the line of their users
INLINE = {Ops.CONST, Ops.DEVICE}


class Listing:
    """Numbers nodes once and for all, and describes those that it has not seen: what each pass adds to a graph."""

    def __init__(self) -> None:
        self.numbers: dict[UOp, int] = {}

    def new(self, nodes: Iterable[UOp]) -> str:
        """One numbered line for each new node, operands by number: `  12 ADD index (%3, %11)`."""
        lines: list[str] = []
        for node in nodes:
            if node.op not in INLINE and node not in self.numbers:
                self.numbers[node] = len(self.numbers)
                lines.append(f"{self.numbers[node]:4} {describe(node, self.numbers)}")
        return "\n".join(lines)


def render_list(nodes: Iterable[UOp]) -> str:
    """All nodes, a line each."""
    return Listing().new(nodes)


def render_graph(root: UOp) -> str:
    """All nodes below `root`, operands first."""
    if root.op in INLINE:
        return describe(root, {})
    return render_list(root.toposort())


def describe(node: UOp, numbers: dict[UOp, int]) -> str:
    """Operation, type, operands and argument of a node."""
    operands = ", ".join(operand(s, numbers) for s in node.src)
    parts = [node.op.name, type_name(node)]
    if operands:
        parts.append(f"({operands})")
    if node.arg is not None:
        parts.append(argument(node.arg))
    return " ".join(part for part in parts if part)


def operand(node: UOp, numbers: dict[UOp, int]) -> str:
    """A constant's value, a device's name, or a node's number."""
    if node.op is Ops.CONST:
        return str(node.arg)
    if node.op is Ops.DEVICE:
        return node.arg
    return f"%{numbers[node]}" if node in numbers else "%?"


def type_name(node: UOp) -> str:
    """The type as it is printed; nothing for void."""
    return "" if node.dtype.name == "void" else repr(node.dtype).removeprefix("dtypes.")


def argument(arg: Any) -> str:
    """What else defines a node, as it is printed; of a kernel only how large it is."""
    if isinstance(arg, UOp):
        return f"<{len(arg.toposort())} nodes>"
    return arg.name if isinstance(arg, Ops) else str(arg)
