"""Which values get memory of their own. Everything between two stores becomes one kernel.

A store costs memory traffic; leaving it out can cost doing the same work many times. So a value is stored when it
must be (asked for, copied, assigned), and when without a store some work would be repeated:

- a reduction inside a reduction or below a PAD (both arms of a choice are computed), or one that is read again and
  again (below an EXPAND),
- costly arithmetic below an EXPAND (unpacking is done again rather than stored, as it was packed for a reason),
- padding below an EXPAND: windows overlap, and their inner loops should not ask whether they are inside,
- a reduction, or costly arithmetic, that several kernels, or several views in one kernel, would each do again.

And a kernel that gets too large is cut in two.
"""
from __future__ import annotations

from dataclasses import dataclass

from tensor_engine.dtype import dtypes
from tensor_engine.helpers import at_most, prod
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.uop import UOp

MUST_STORE = {Ops.CONTIGUOUS, Ops.COPY, Ops.ASSIGN, Ops.CALL}
LEAVES = {Ops.BUFFER, Ops.CONST, Ops.ARANGE, Ops.DEVICE, Ops.UNIQUE, Ops.BIND, Ops.DEFINE_VAR}
ONCE = {Ops.RESHAPE, Ops.PERMUTE, Ops.FLIP, Ops.SHRINK, Ops.SHEAR}  # … that doesn't repeat any
LAYOUT = {Ops.RESHAPE, Ops.PERMUTE, Ops.FLIP}  # movement that neither repeats nor drops elements

# rough costs, in cheap instructions
COST = {
    Ops.EXP2: 16, Ops.LOG2: 16, Ops.SIN: 24, Ops.SQRT: 6, Ops.RECIPROCAL: 6, Ops.FDIV: 6,
    Ops.IDIV: 10, Ops.MOD: 10, Ops.THREEFRY: 60, Ops.PAD: 2, Ops.BUFFER: 1,
    Ops.RESHAPE: 0, Ops.PERMUTE: 0, Ops.EXPAND: 0, Ops.SHRINK: 0, Ops.FLIP: 0, Ops.SHEAR: 0,
    Ops.DETACH: 0,
}  # fmt: skip
# Repeating up to this much arithmetic is cheaper than a trip through memory: for every element of an EXPAND, …
CHEAP = 12
# … and once or twice more, in another kernel or for another view.
CHEAP_TWICE = 24
# A value that takes more than this many times the memory of what it is made of unpacks it.
UNPACKED = 4
# More places than this that read a value through different views are not worth telling apart.
MAX_VIEWS = 8
# A sum over all ways to what is read soon exceeds every number; more than this need not be told apart either.
MANY_BYTES = 1 << 50
# A kernel that does more than this for an element is cut. Compilers take a second for it, and more than ten for ten
# times as much, while one more trip through memory is hardly seen beside so much work.
MAX_WORK = 1000
# What the branch of a PAD is to a compiler, which follows both ways.
BRANCH = 30


@dataclass(eq=False)
class Kernel:
    """What computes a stored node, and how much it does for each element, as far as is known."""

    work: int = 0


@dataclass(eq=False)
class View:
    """How a kernel reads a value: through which movement operations."""

    kernel: Kernel


def nbytes(node: UOp) -> int:
    """Bytes of the value, at most."""
    return at_most(prod(node.shape)) * node.dtype.itemsize


class StoreChooser:
    """Decides for the graph below `roots`; the result is `stored`, in order, operands first."""

    def __init__(self, roots: list[UOp]):
        self.nodes = UOp.sink(*roots).toposort()[:-1]
        self.stored: set[UOp] = {r for r in roots if r.op not in LEAVES and r.base.op not in GroupOp.MEMORY}
        self.cost: dict[UOp, int] = {}
        self.bytes_read: dict[UOp, int] = {}
        self.has_reduce: dict[UOp, bool] = {}
        self.has_pad: dict[UOp, bool] = {}

    def choose(self) -> list[UOp]:
        """All nodes to store, operands before users."""
        for node in self.nodes:
            self.visit(node)
        self.leave_out_cheap(self.store_shared())
        return [node for node in self.nodes if node in self.stored and 0 not in node.shape]

    # ---- from the operands to the users: what would be repeated below this node?

    def visit(self, node: UOp) -> None:
        if node.op in MUST_STORE:
            self.stored.add(node)
        if node.op is Ops.COPY:
            self.store(node.src[0])
        if node.op is Ops.CALL:
            for operand in node.src:
                self.store(operand)
        if node.op in (Ops.REDUCE_AXIS, Ops.PAD) and self.has_reduce[node.src[0]] and not sums_overlaps(node):
            self.store(node.src[0])
        if node.op is Ops.EXPAND and self.repeats_work(node):
            self.store(node.src[0])
        self.measure(node)

    def measure(self, node: UOp) -> None:
        """The work of computing one element of `node` in a kernel that reads what is stored."""
        if node in self.stored or node.op in LEAVES:
            self.bytes_read[node] = nbytes(node) if node in self.stored or node.op is Ops.BUFFER else 0
            self.cost[node], self.has_reduce[node], self.has_pad[node] = 1, False, False
            return
        self.cost[node] = min(COST.get(node.op, 1) + sum(self.cost[s] for s in node.src), 1000)
        self.bytes_read[node] = min(sum(self.bytes_read[s] for s in node.src), MANY_BYTES)
        self.has_reduce[node] = node.op is Ops.REDUCE_AXIS or any(self.has_reduce[s] for s in node.src)
        self.has_pad[node] = node.op is Ops.PAD or any(self.has_pad[s] for s in node.src)

    def repeats_work(self, node: UOp) -> bool:
        """Would the repetition by this EXPAND repeat what is better done once?"""
        below = node.src[0]
        if prod(node.shape) == prod(below.shape) or prod(below.shape) == 1 and not self.has_reduce[below]:
            return False
        reads_memory = self.reads_memory(below)
        cheap = CHEAP_TWICE if self.unpacks(below) else CHEAP
        return self.has_reduce[below] or reads_memory and (self.has_pad[below] or self.cost[below] > cheap)

    def unpacks(self, node: UOp) -> bool:
        """Is this so much larger than the memory that it is made of?"""
        return nbytes(node) > UNPACKED * self.bytes_read[node]

    def reads_memory(self, node: UOp) -> bool:
        """False for what is made of constants and counters alone."""
        return node.device is not None and node.op is not Ops.CONST

    def store(self, node: UOp) -> None:
        """Store this value, or, if it is only another view of one, what it is a view of."""
        path: list[UOp] = []
        while node.op in LAYOUT or node.op is Ops.DETACH:
            path.append(node)
            node = node.src[0]
        if node.op in LEAVES or (node.op in GroupOp.MOVEMENT and node.base.op in LEAVES and node.op is not Ops.PAD):
            return
        self.stored.add(node)
        for changed in (node, *reversed(path)):
            self.measure(changed)

    # ---- from the users to the operands: who would do the same work again?

    def store_shared(self) -> set[UOp]:
        """Store what would be computed in several kernels, or at several indices in one, and what cuts a large kernel.

        Tells what that was.
        """
        shared: set[UOp] = set()
        found: dict[object, View] = {}
        views: dict[UOp, set[View]] = {node: set() for node in self.nodes}
        for node in reversed(self.nodes):
            if node not in self.stored and self.can_be_stored(node) and self.is_worth_storing(node, views[node]):
                self.stored.add(node)
                shared.add(node)
            if node in self.stored:
                views[node] = {View(Kernel())}
            seen = views[node]
            for view in seen:
                view.kernel.work += BRANCH if node.op is Ops.PAD else COST.get(node.op, 1)
            if self.changes_index(node):
                seen = {found.setdefault((view, node), View(view.kernel)) for view in seen}
            for s in node.src:
                if len(views[s]) <= MAX_VIEWS:
                    views[s] |= seen
        return shared

    def leave_out_cheap(self, shared: set[UOp]) -> None:
        """Of what is shared, what is cheap now isn't stored: a reduction that it is made of is stored itself."""
        for node in self.nodes:
            if node in shared and self.has_reduce[node]:
                self.stored.discard(node)
                self.measure(node)
                if self.has_reduce[node] or self.cost[node] > CHEAP_TWICE:
                    self.stored.add(node)
            self.measure(node)

    def changes_index(self, node: UOp) -> bool:
        return node.op in GroupOp.MOVEMENT or node.op is Ops.REDUCE_AXIS

    def can_be_stored(self, node: UOp) -> bool:
        movement = node.op in GroupOp.MOVEMENT or node.op is Ops.DETACH
        return not movement and node.op not in LEAVES and node.dtype is not dtypes.index

    def is_worth_storing(self, node: UOp, views: set[View]) -> bool:
        """Would several read it, who would each do much for it, or does a kernel do enough without it?"""
        count, much = len(views), self.cost[node] > CHEAP_TWICE
        if much and any(view.kernel.work > MAX_WORK for view in views):
            return True
        if count < 2 or self.has_reduce[node]:
            return count > 1
        return self.reads_memory(node) and (count > MAX_VIEWS or much)


def sums_overlaps(node: UOp) -> bool:
    """Is this a sum of sums that a SHEAR lines up? It is one sum then: there are many of these, to be stored."""
    below = node.src[0]
    found = False
    while below.op in ONCE:
        found |= below.op is Ops.SHEAR
        below = below.src[0]
    return found and node.op is below.op is Ops.REDUCE_AXIS and node.arg[0] is below.arg[0]
