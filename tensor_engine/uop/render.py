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
    """All nodes below `root`, operands first; a size that depends on variables as a formula."""
    if root.op in INLINE:
        return describe(root, {})
    if is_formula(root):
        return formula(root)
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


# ---- sizes ------------------------------------------------------------------------------------------------------

OPERATORS = {Ops.ADD: "+", Ops.MUL: "*", Ops.IDIV: "//", Ops.MOD: "%", Ops.CMPLT: "<", Ops.CMPNE: "!="}
FORMULA = {*OPERATORS, Ops.MAX, Ops.CONST, Ops.DEFINE_VAR, Ops.BIND}


def is_formula(root: UOp) -> bool:
    """True for arithmetic on variables and numbers."""
    nodes = root.toposort()
    return all(node.op in FORMULA for node in nodes) and any(node.op is Ops.DEFINE_VAR for node in nodes)


def formula(node: UOp, outermost: bool = True) -> str:
    """A size as one would write it; a bound variable with its value: `n=4`."""
    if node.op is Ops.CONST:
        return str(node.arg)
    if node.op is Ops.DEFINE_VAR:
        return f"Variable{node.arg}" if outermost else node.arg[0]
    if node.op is Ops.BIND:
        text = f"{node.src[0].arg[0]}={node.src[1].arg}"
        return text if outermost else f"({text})"
    if node.op is Ops.MAX:
        return f"max({', '.join([formula(s, outermost=False) for s in node.src])})"
    left, right = [formula(s, outermost=False) for s in node.src]
    text = f"{left} {OPERATORS[node.op]} {right}"
    if node.op is Ops.ADD and right.startswith("-"):
        text = f"{left} - {right[1:]}"
    elif node.op is Ops.MUL and right == "-1":
        text = f"-{left}"
    return text if outermost else f"({text})"
