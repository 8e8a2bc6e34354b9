"""graph_rewrite: apply a table of rules to a whole graph until nothing changes any more."""
from __future__ import annotations

from typing import Any

from tensor_engine.uop.provenance import inherit
from tensor_engine.uop.uop import UOp
from tensor_engine.uop.upat import PatternMatcher

# A fixed point of a kernel takes a few rewrites a node. Rules that undo each other would go on for ever.
REWRITES_PER_NODE = 200


class RewriteLoop(RuntimeError):
    """Two rules undo each other: the rewrite would never end."""


def graph_rewrite(root: UOp, rules: PatternMatcher, ctx: Any = None) -> UOp:
    """The graph with `rules` applied everywhere, operands before users, to a fixed point.

    What a rule returns is rewritten in turn. `ctx` is handed to rules that have a parameter of that name.
    Raises RewriteLoop if rules undo each other.
    """
    done: dict[UOp, UOp] = {}
    pending: dict[UOp, tuple[UOp, UOp]] = {}  # node → itself on rewritten operands, and what a rule made of that
    active: set[UOp] = set()  # what waits for a result: to come back to one of these is to go round in circles
    stack = [root]
    budget = 100_000
    rewrite = rules.rewrite
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        if node in pending:
            current, became = pending.pop(node)
            done[node] = done[current] = inherit(done[became], node)
            active.discard(current)
            stack.pop()
            continue
        missing = [s for s in node.src if s not in done]
        if missing:
            budget += REWRITES_PER_NODE * len(missing)
            stack.extend(reversed(missing))
            continue
        src = tuple([done[s] for s in node.src])
        current = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        if current is not node and current in done:
            done[node] = done[current]
            stack.pop()
            continue
        result = rewrite(current, ctx)
        if result is None:
            done[current] = done[node] = inherit(current, node)
            stack.pop()
            continue
        budget -= 1
        if budget < 0 or result in active:
            raise RewriteLoop(f"rules undo each other at {current.op}: {current!r}")
        pending[node] = current, result
        active.add(current)
        stack.append(result)
    return done[root]


def walk_rewrite(root: UOp, rules: PatternMatcher, ctx: Any = None) -> UOp:
    """One pass, operands before users: every node is offered to the rules once, results are not looked at again."""
    done: dict[UOp, UOp] = {}
    for node in root.toposort():
        src = tuple([done[s] for s in node.src])
        current = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        result = rules.rewrite(current, ctx)
        done[node] = current if result is None else result
    return done[root]
