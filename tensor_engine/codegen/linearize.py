"""Linearisation: the graph of a kernel becomes a list, in which each loop is a stretch from its RANGE to its END."""
from __future__ import annotations

from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp

# these open a function or cost nothing, and stand before everything else
FIRST = {Ops.PARAM: 0, Ops.DEFINE_LOCAL: 1, Ops.DEFINE_VAR: 2, Ops.DEFINE_REG: 3, Ops.CONST: 4}


def linearize(sink: UOp) -> list[UOp]:
    """The operations in order of execution, operands before users; each END closes one loop."""
    sink = nest_ends(sink)
    nodes = sink.toposort()
    head = sorted((n for n in nodes if n.op in FIRST), key=first_key)
    return head + Linearizer().scope([n for n in nodes if n.op not in FIRST])


def first_key(node: UOp) -> tuple[int, object]:
    """PARAMs by position; constants by type and value, so that the order is always the same."""
    if node.op in (Ops.PARAM, Ops.DEFINE_LOCAL, Ops.DEFINE_REG):
        return FIRST[node.op], node.arg
    return FIRST[node.op], (node.dtype.name, repr(node.arg))


def nest_ends(sink: UOp) -> UOp:
    """END of several loops → an END for each, the innermost first."""
    done: dict[UOp, UOp] = {}
    for node in sink.toposort():
        src = tuple(done[s] for s in node.src)
        if node.op is Ops.END:
            body = src[0]
            for loop in reversed(src[1:]):
                body = UOp(Ops.END, node.dtype, (body, loop))
            done[node] = body
        else:
            done[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    return done[sink]


class Linearizer:
    """Lays out one scope after another: what runs outside a loop first, then the loop as a whole."""

    def scope(self, nodes: list[UOp]) -> list[UOp]:
        """The nodes of a scope (in topological order), inner loops laid out in their place."""
        bodies = self.outermost_loops(nodes)
        inside = set().union(*bodies.values()) if bodies else set()
        result: list[UOp] = []
        for node in nodes:
            if node in bodies:
                loop = node.src[1]
                members = bodies[node]
                body = [n for n in nodes if n in members and n is not loop]
                result += [loop, *self.scope(body), node]
            elif node not in inside:
                result.append(node)
        return result

    def outermost_loops(self, nodes: list[UOp]) -> dict[UOp, set[UOp]]:
        """The ENDs in this scope that are in no other loop of it, with what runs inside each."""
        here = set(nodes)
        bodies: dict[UOp, set[UOp]] = {}
        covered: set[UOp] = set()
        for end in reversed(nodes):
            if end.op is Ops.END and end not in covered:
                bodies[end] = self.body(end, here)
                covered |= bodies[end]
        return bodies

    def body(self, end: UOp, here: set[UOp]) -> set[UOp]:
        """What runs inside the loop that `end` closes: all that depends on its counter, or on that of a loop inside."""
        below = [n for n in end.toposort(lambda n: n in here) if n in here and n is not end]
        loops: set[UOp] = set()
        found = {end.src[1]}
        members: set[UOp] = set()
        while not found <= loops:
            loops |= found
            members = {n for n in below if not loops.isdisjoint(n.ranges)}
            found = {n.src[1] for n in members if n.op is Ops.END}
        return members
