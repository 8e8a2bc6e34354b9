"""The strategy that is chosen without trying: which loop becomes vector lanes, and how large the register tile is."""
from __future__ import annotations

from typing import NamedTuple

from tensor_engine.codegen.opt.options import INNERMOST, Option, apply_option, is_multiple
from tensor_engine.codegen.vectorize import MAX_STRIDE, lanes_an_element
from tensor_engine.helpers import prod
from tensor_engine.renderer import Renderer
from tensor_engine.uop.linear_form import linear_form
from tensor_engine.uop.op import AxisType, Ops
from tensor_engine.uop.uop import UOp

# A reduction this short is written out as a whole.
SHORT_REDUCE = 16
# One this long is worth lanes along any of its loops.
LONG_REDUCE = 256
# A loop whose length is a variable runs in lanes if it may become as long as this.
LONG_VARIABLE = 32
# So much code a loop body may become.
MAX_BODY = 96
# As many lanes as vectors usually have.
LANES = 8
# What a vector costs whose lanes are loaded alone, in contiguous vector loads.
SCATTERED = 12.0


class Nest(NamedTuple):
    """A loop nest: its END (or STORE, with no loop around it), the loops around the store, the loops of reductions,
    those inside others last, and the addresses in it.
    """

    end: UOp
    loops: list[UOp]
    reduces: list[UOp]
    loads: list[UOp]
    store: UOp


def nests(sink: UOp) -> list[Nest]:
    """The loop nests of a kernel that hold a single store."""
    return [read_nest(end) for end in sink.src if store_in(end).op is Ops.STORE]


def store_in(end: UOp) -> UOp:
    return end.src[0] if end.op is Ops.END else end


def read_nest(end: UOp) -> Nest:
    nodes = end.toposort()
    loops = end.src[1:] if end.op is Ops.END else ()
    reduces = [r for n in reversed(nodes) if n.op is Ops.REDUCE for r in n.src[1:]]
    loads = [n.src[0] for n in nodes if n.op is Ops.LOAD]
    return Nest(end, list(loops), reduces, loads, store_in(end).src[0])


def stride(address: UOp, loop: UOp) -> int | None:
    """By how much the address moves with the loop; None if it depends on it in another way."""
    form = linear_form(address.src[1])
    if any(loop in term.ranges for term in form.terms if term is not loop):
        return None
    if any(loop in gate.ranges for gate in address.src[2:]):
        return None
    return form.terms.get(loop, 0)


def size_of(loop: UOp) -> int:
    """The iterations that can be split among tiles: 1 of a loop whose length is a variable."""
    return loop.src[0].arg if loop.src[0].op is Ops.CONST else 1


def length(loop: UOp) -> int:
    """The iterations, at most."""
    return int(loop.vmax) + 1


def choose_options(sink: UOp, renderer: Renderer) -> tuple[list[Option], UOp]:
    """A strategy for every loop nest of the kernel, and the kernel with it applied."""
    options: list[Option] = []
    todo = [nest.end for nest in nests(sink)]
    while todo:
        end = todo.pop(0)
        before = set(sink.src)
        chosen, sink = choose_for_nest(sink, read_nest(end), renderer)
        options.extend(chosen)
        if chosen and chosen[0].kind is AxisType.LOOP:  # something was cut in two: look at both parts again
            todo.extend(nest for nest in sink.src if nest not in before)
    return options, sink


def choose_for_nest(sink: UOp, nest: Nest, renderer: Renderer) -> tuple[list[Option], UOp]:
    """Options for one nest, and the kernel with them; a single LOOP option if the nest must be cut first."""
    lanes = choose_lanes(nest, renderer)
    cut = cut_for_lanes(nest, lanes) or cut_for_tile(nest, lanes)
    if cut is not None:
        return [cut], apply_option(sink, cut)
    tile = Tile(sink, nest, renderer)
    if lanes is not None:
        tile.split(AxisType.VECTOR, lanes.loop, lanes.width)
    if nest.reduces:
        tile.choose_register_tile(lanes)
        tile.choose_unroll(lanes)
    return tile.options, tile.sink


# ---- vector lanes -----------------------------------------------------------------------------------------------


class Lanes(NamedTuple):
    """The loop that becomes vector lanes, and how many."""

    loop: UOp
    width: int


def choose_lanes(nest: Nest, renderer: Renderer) -> Lanes | None:
    """The loop along which most memory is contiguous; the store counts most, for it cannot be shared."""
    weights = [iterations(address, nest) for address in nest.loads]
    best: tuple[float, Lanes] | None = None
    for loop in (*nest.loops[::-1], *dict.fromkeys(nest.reduces[::-1])):
        count = lane_count(nest, loop, renderer)
        if count < 2:
            continue
        cost = sum(lane_cost(a, loop) * weight for a, weight in zip(nest.loads, weights)) / count
        if loop in nest.loops:
            cost += 2 * lane_cost(nest.store, loop) / count
        elif not can_reduce_in_lanes(nest, loop):
            continue
        else:
            cost += count  # the lanes are combined at the end
        if best is None or cost < best[0]:
            best = (cost, Lanes(loop, count))
    scalar = float(sum(weights) + 2)
    return best[1] if best is not None and best[0] < scalar else None


def iterations(address: UOp, nest: Nest) -> int:
    """How often a load is done for each element that is stored."""
    return prod(length(loop) for loop in set(nest.reduces) & address.ranges)


def lane_cost(address: UOp, loop: UOp) -> float:
    """What it costs to load (or store) a vector, in vector loads."""
    if address.op is not Ops.INDEX:
        return 0.0
    step = stride(address, loop)
    if step == 0:
        return 0.5
    if step is not None and 1 < step <= MAX_STRIDE:
        return 1.0 + step
    return 1.0 if step == 1 or lanes_an_element(address, loop, LANES) else SCATTERED


def lane_count(nest: Nest, loop: UOp, renderer: Renderer) -> int:
    """As many lanes as a register holds of the type of the results, and as the loop has iterations.

    A loop whose length is a variable gets all of them or none: how many iterations it has shows too late.
    """
    results = [store_in(nest.end).src[1], *(n for n in nest.end.toposort() if n.op is Ops.REDUCE)]
    widest = max(n.dtype.itemsize for n in results)
    count = max(renderer.vector_bytes // max(widest, 4), 1)
    if loop.src[0].op is not Ops.CONST:
        return count if length(loop) >= LONG_VARIABLE else 1
    while count > size_of(loop):
        count //= 2
    return count


def can_reduce_in_lanes(nest: Nest, loop: UOp) -> bool:
    """A reduction runs in lanes if no other shares its loop, which is long enough to pay for combining them."""
    count = sum(1 for n in nest.end.toposort() if n.op is Ops.REDUCE and loop in n.src[1:])
    return count == 1 and (length(loop) >= SHORT_REDUCE or prod(map(length, nest.reduces)) >= LONG_REDUCE)


def cut_for_lanes(nest: Nest, lanes: Lanes | None) -> Option | None:
    """A loop that is no multiple of the lanes is cut: the largest multiple, and the rest."""
    if lanes is None or is_multiple(lanes.loop, lanes.width):
        return None
    whole = lanes.width if lanes.loop.src[0].op is not Ops.CONST else size_of(lanes.loop) // lanes.width * lanes.width
    return Option(AxisType.LOOP, lanes.loop.arg[0], whole)


# ---- register tile ----------------------------------------------------------------------------------------------


TILE = 4
# An operand of so many bytes stays in the cache while all rows run over it.
SMALL_OPERAND = 64 << 10
# A nest of fewer iterations keeps its loops, so that it stays easy to read.
SMALL_NEST = 4096


def tile_loop(nest: Nest, lanes: Lanes | None, beside: UOp | None = None) -> UOp | None:
    """The loop around a reduction over which most loading stays the same: a tile over it loads once for all.

    `beside`: a loop that has a tile already.
    """
    best, most = None, 0.0
    for loop in nest.loops:
        if loop is beside or lanes is not None and loop is lanes.loop:
            continue
        shared = [a for a in nest.loads if a.op is Ops.INDEX and stride(a, loop) == 0]
        saved = sum(iterations(a, nest) * (lane_cost(a, lanes.loop) if lanes else 1.0) for a in shared)
        if saved > most:
            best, most = loop, saved
    return best


def cut_for_tile(nest: Nest, lanes: Lanes | None) -> Option | None:
    """58 rows in tiles of 4: 56 rows, and 2."""
    if not nest.reduces or lanes is None or lanes.loop not in nest.loops:
        return None
    loop = tile_loop(nest, lanes)
    if loop is None or size_of(loop) < TILE or best_divisor(size_of(loop)) >= 3 or size_of(loop) % TILE == 0:
        return None
    return Option(AxisType.LOOP, loop.arg[0], size_of(loop) - size_of(loop) % TILE)


def best_divisor(size: int) -> int:
    """The best tile along an axis: the largest of 4, 6, 5, 3, 2 that divides it."""
    return next((d for d in (4, 6, 5, 3, 2) if size % d == 0), 1)


class Tile:
    """Collects the options of a nest, and keeps count of the registers and the code that they take."""

    def __init__(self, sink: UOp, nest: Nest, renderer: Renderer):
        self.sink, self.nest, self.renderer = sink, nest, renderer
        self.options: list[Option] = []
        self.accumulators = 1

    def split(self, kind: AxisType, loop: UOp, amount: int) -> None:
        option = Option(kind, loop.arg[0], amount)
        self.options.append(option)
        self.sink = apply_option(self.sink, option)

    def is_small(self) -> bool:
        """So little work that the loops may stay as they are."""
        return prod(length(loop) for loop in {*self.nest.loops, *self.nest.reduces}) < SMALL_NEST

    def remaining(self, loop: UOp) -> int:
        """The iterations of a loop that earlier options left."""
        size = size_of(loop)
        for option in self.options:
            if option.axis == loop.arg[0] and option.amount != INNERMOST:
                size //= option.amount
        return max(size, 1)

    def choose_register_tile(self, lanes: Lanes | None) -> None:
        """Several rows of results at once, so that what is loaded is used more than once; and two vectors a row."""
        loop = tile_loop(self.nest, lanes)
        amount = 1 if loop is None else best_divisor(size_of(loop))
        if loop is not None and amount > 1 and (amount < size_of(loop) or not self.is_small()):
            self.split(AxisType.UPCAST, loop, amount)
            self.accumulators *= amount
        if lanes is None:
            return
        if not (lanes.loop in self.nest.loops and self.widen(lanes.loop)) and self.accumulators == TILE:
            second = tile_loop(self.nest, lanes, beside=loop)
            if second is not None:
                self.widen(second)
        others = [r for r in self.nest.loops if r is not loop and self.remaining(r) > 1]
        if others and loop is not None and lanes.loop in self.nest.loops and self.fits_cache(loop, lanes.loop):
            self.split(AxisType.LOOP, loop, INNERMOST)

    def widen(self, loop: UOp) -> bool:
        """Three or two times as many results, along one more loop, where there are registers for them."""
        if self.accumulators * 2 > self.renderer.registers // 2 + 4:
            return False
        for amount in (3, 2) if self.accumulators <= 4 else (2,):
            if self.remaining(loop) % amount == 0:
                self.split(AxisType.UPCAST, loop, amount)
                self.accumulators *= amount
                return True
        return False

    def fits_cache(self, loop: UOp, lanes: UOp) -> bool:
        """Does what moves with `loop`, but not with the lanes, fit the cache?

        Then `loop` runs inside: each tile of the other operand is brought in once, for all rows.
        """
        if self.remaining(loop) == 1:
            return False
        small = [a for a in self.nest.loads if a.op is Ops.INDEX and stride(a, lanes) == 0 and stride(a, loop) != 0]
        nbytes = sum(prod(length(r) for r in address.ranges) * address.dtype.itemsize for address in small)
        return 0 < nbytes <= SMALL_OPERAND

    def choose_unroll(self, lanes: Lanes | None) -> None:
        """Short reductions are written out, from the innermost loop on, while the body stays small."""
        body = self.accumulators
        for loop in dict.fromkeys(self.nest.reduces[::-1]):
            size = self.remaining(loop)
            if 1 < size <= SHORT_REDUCE and body * size <= MAX_BODY:
                self.split(AxisType.UNROLL, loop, size)
                body *= size
                continue
            amount = next((d for d in (4, 2) if size % d == 0 and body * d <= MAX_BODY // 2), 1)
            if amount > 1 and body < MAX_BODY // 4:
                self.split(AxisType.UNROLL, loop, amount)
            break


