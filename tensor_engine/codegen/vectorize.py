"""Vectorisation: a loop of kind VECTOR becomes the lanes of vector instructions.

Everything that depends on the loop becomes a vector; what does not is a scalar, given to all lanes where it meets one.
A load or store whose address moves by one element a lane becomes one vector access. A load that moves by a few
elements picks its lanes from several vectors; one that moves after every few lanes, from a shorter one. Any other
access is done lane by lane.
"""
from __future__ import annotations

from tensor_engine.codegen.simplify import pm_written_out
from tensor_engine.uop.linear_form import LinearForm, linear_form, rebuild, weighted_sum
from tensor_engine.uop.op import AxisType, GroupOp, Ops
from tensor_engine.uop.rewrite import graph_rewrite
from tensor_engine.uop.symbolic import simplify
from tensor_engine.uop.uop import UOp, as_index

# Of elements further apart than this, lanes are loaded one by one.
MAX_STRIDE = 3


def vectorize(sink: UOp, masked_memory: bool) -> UOp:
    """No VECTOR loop is left. `masked_memory`: vector loads and stores may have a gate a lane."""
    loops = [n for n in sink.toposort() if n.op is Ops.RANGE and n.arg[1] is AxisType.VECTOR]
    for loop in loops:
        sink = Vectorizer(loop, masked_memory).vectorize(sink)
    return graph_rewrite(sink, pm_written_out) if loops else sink


def lanes_an_element(address: UOp, loop: UOp, count: int) -> int:
    """How many lanes in a row read the same element, if the next ones read the next; 0 where it is otherwise."""
    moving = [(term, factor) for term, factor in linear_form(address.src[1]).terms.items() if loop in term.ranges]
    if len(address.src) > 2 or len(moving) != 1 or moving[0][1] != 1 or moving[0][0].op is not Ops.IDIV:
        return 0
    counter, times = moving[0][0].src
    return times.arg if counter is loop and times.op is Ops.CONST and count % times.arg == 0 else 0


class Vectorizer:
    """Replaces one loop by lanes."""

    def __init__(self, loop: UOp, masked_memory: bool):
        self.loop, self.count, self.masked = loop, loop.src[0].arg, masked_memory
        self.done: dict[UOp, UOp] = {}

    def vectorize(self, sink: UOp) -> UOp:
        """The graph without the loop."""
        for node in sink.toposort():
            self.done[node] = self.convert(node)
        return self.done[sink]

    def depends(self, node: UOp) -> bool:
        return self.loop in node.ranges

    def convert(self, node: UOp) -> UOp:
        """The node with the loop's lanes side by side."""
        if node is self.loop:
            lanes = tuple(as_index(i) for i in range(self.count))
            return UOp(Ops.VECTORIZE, node.dtype.vec(self.count), lanes)
        if self.loop in node.src[1:] and node.op in (Ops.END, Ops.REDUCE):
            return self.close(node)
        if not self.depends(node):
            return self.rebuild(node)
        if node.op is Ops.LOAD:
            return self.load(node)
        if node.op is Ops.STORE:
            return self.store(node)
        if node.op in GroupOp.ELEMENTWISE or node.op is Ops.REDUCE:
            return self.alu(node)
        return self.rebuild(node)

    def rebuild(self, node: UOp) -> UOp:
        src = tuple(self.done[s] for s in node.src)
        return node if src == node.src else UOp(node.op, node.dtype, src, node.arg)

    def lanes(self, node: UOp) -> UOp:
        """The operand as a vector."""
        converted = self.done[node]
        return converted if converted.dtype.count == self.count else converted.broadcast(self.count)

    def alu(self, node: UOp) -> UOp:
        is_range = [s.op is Ops.RANGE and node.op is Ops.REDUCE for s in node.src]
        src = tuple(self.done[s] if plain else self.lanes(s) for s, plain in zip(node.src, is_range))
        return UOp(node.op, node.dtype.vec(self.count), src, node.arg)

    def close(self, node: UOp) -> UOp:
        """Where the loop ended. A reduction over it has a vector operand and a scalar result."""
        kept = [self.done[r] for r in node.src if r.op is Ops.RANGE and r is not self.loop]
        if node.op is Ops.END:
            return self.done[node.src[0]].end(*kept)
        values = [self.lanes(s) for s in node.src if s.op is not Ops.RANGE]
        return UOp(Ops.REDUCE, node.dtype, (*values, *kept), node.arg)

    # ---- memory

    def lane(self, node: UOp, number: int) -> UOp:
        """The scalar node in one iteration of the loop."""
        return simplify(node.substitute({self.loop: as_index(number)}))

    def first_lane(self, offset: UOp) -> UOp:
        """An offset in the first iteration, where the loop is one term of a sum."""
        terms, constant = linear_form(offset)
        return rebuild(LinearForm({t: c for t, c in terms.items() if t is not self.loop}, constant), offset.dtype)

    def stride(self, address: UOp) -> int:
        """By how many elements the address moves a lane; 0 if it moves otherwise, or its gate differs by lane."""
        form = linear_form(address.src[1])
        if any(self.depends(term) for term in form.terms if term is not self.loop):
            return 0
        step = form.terms.get(self.loop, 0)
        gated = any(self.depends(gate) for gate in address.src[2:])
        return step if not gated or step == 1 and self.masked else 0

    def wide_address(self, address: UOp) -> UOp:
        """The address of lane 0, with a gate a lane if the gate depends on the lane."""
        pointer, offset, *gate = address.src
        return UOp(Ops.INDEX, address.dtype, (pointer, self.first_lane(offset), *(self.done[g] for g in gate)))

    def load(self, node: UOp) -> UOp:
        address, dtype = node.src[0], node.dtype.vec(self.count)
        step = self.stride(address)
        if step == 1:
            return UOp(Ops.LOAD, dtype, (self.wide_address(address), *(self.lanes(s) for s in node.src[1:])))
        if 1 < step <= MAX_STRIDE and len(address.src) == 2:
            return self.strided_load(node, step)
        times = lanes_an_element(address, self.loop, self.count)
        if times:
            return self.repeated_load(node, times)
        return UOp(Ops.VECTORIZE, dtype, tuple(self.lane(node, i) for i in range(self.count)))

    def repeated_load(self, node: UOp, times: int) -> UOp:
        """Each element for several lanes in a row."""
        address, count = self.lane(node.src[0], 0), self.count // times
        short = UOp(Ops.LOAD, node.dtype.vec(count) if count > 1 else node.dtype, (address,))
        lanes = tuple(short.lane(number // times) for number in range(self.count))
        return UOp(Ops.VECTORIZE, node.dtype.vec(self.count), lanes)

    def strided_load(self, node: UOp, step: int) -> UOp:
        """Every second (third, …) element: picked from vectors that together cover them all and nothing beyond."""
        pointer, offset = node.src[0].src
        first, dtype = self.first_lane(offset), node.dtype.vec(self.count)
        last = (self.count - 1) * step
        starts = [min(start, last + 1 - self.count) for start in range(0, last + 1, self.count)]
        offsets = [weighted_sum([(first, 1), (as_index(start), 1)]) for start in starts]
        vectors = [UOp(Ops.LOAD, dtype, (pointer.index(offset),)) for offset in offsets]
        lanes: list[UOp] = []
        for wanted in range(0, last + 1, step):
            number = min(wanted // self.count, len(starts) - 1)
            lanes.append(UOp(Ops.GEP, node.dtype, (vectors[number],), (wanted - starts[number],)))
        return UOp(Ops.VECTORIZE, dtype, tuple(lanes))

    def store(self, node: UOp) -> UOp:
        address, value = node.src
        vector = self.lanes(value)
        if self.stride(address) == 1:
            return UOp(Ops.STORE, node.dtype, (self.wide_address(address), vector))
        return UOp.group(*(self.lane(address, i).store(vector.lane(i)) for i in range(self.count)))
