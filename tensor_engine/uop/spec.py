"""The specification of graphs, executable: what a legal graph is at each level, as laws that can be checked.

A graph passes through four levels. Each has the operations that may stand in it, and laws about them:

- the tensor graph that a user writes: shapes, movement, reductions of axes;
- a kernel as the schedule makes it: scalars, loops (RANGE … END), addresses, REDUCE;
- a kernel between the passes: what a pass promises to remove is gone after it;
- the linear form: a list in the order of execution, loops properly nested.

With SPEC=1 everything is checked as it comes up. A law that is broken raises SpecError.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tensor_engine.dtype import AddrSpace, PtrDType, dtypes, truncate
from tensor_engine.helpers import prod
from tensor_engine.uop.op import AxisType, GroupOp, Ops
from tensor_engine.uop.render import describe
from tensor_engine.uop.uop import UOp, as_index
from tensor_engine.uop.upat import UPat


class SpecError(ValueError):
    """A graph that is not legal: names the node, the law that it breaks, and after which pass it was found."""


class Law(NamedTuple):
    """What holds for all nodes that match `where` and sit at this level."""

    where: UPat
    text: str
    holds: Callable[[UOp], bool]


def law(ops: Ops | Iterable[Ops], text: str, holds: Callable[[UOp], bool]) -> Law:
    return Law(UPat(ops), text, holds)


# ---- values: the same at every level ------------------------------------------------------------------------------

FLOAT_ONLY = {Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.SQRT, Ops.RECIPROCAL, Ops.TRUNC, Ops.FDIV}
BITS = {Ops.AND, Ops.OR, Ops.XOR}
WHOLE = {Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR}
# one type for the operands and the result
ONE_TYPE = GroupOp.ALU - GroupOp.COMPARE - {Ops.WHERE} - GroupOp.FLOAT_ONLY


def is_python_value(node: UOp) -> bool:
    """A CONST's arg has the Python type that goes with the dtype, and is a value of it."""
    kind = {"b": bool, "f": float}.get(node.dtype.kind, int)
    if type(node.arg) is not kind or node.dtype.count > 1:
        return False
    return node.arg != node.arg or truncate(node.arg, node.dtype) == node.arg


def operand_types(node: UOp) -> set[object]:
    return {s.dtype for s in node.src}


def has_arity(node: UOp) -> bool:
    count = 1 if node.op in GroupOp.UNARY else 2 if node.op in GroupOp.BINARY else 3
    return len(node.src) == count


VALUES = [
    law(Ops.CONST, "holds a Python number that is a value of its type", is_python_value),
    law(GroupOp.ALU, "has as many operands as the operation takes", has_arity),
    law(ONE_TYPE, "has operands of the type of its result", lambda n: operand_types(n) == {n.dtype}),
    law(GroupOp.COMPARE, "has operands of one type", lambda n: len(operand_types(n)) == 1),
    law(GroupOp.COMPARE, "gives bools", lambda n: n.dtype is dtypes.bool.vec(n.src[0].dtype.count)),
    law(Ops.WHERE, "has a bool condition", lambda n: n.src[0].dtype is dtypes.bool.vec(n.dtype.count)),
    law(Ops.WHERE, "has choices of its type", lambda n: n.src[1].dtype is n.src[2].dtype is n.dtype),
    law(FLOAT_ONLY, "is for floats", lambda n: n.dtype.kind == "f"),
    law(WHOLE, "is for integers", lambda n: dtypes.is_int(n.dtype)),
    law(BITS, "is for integers and bools", lambda n: dtypes.is_int(n.dtype) or n.dtype.kind == "b"),
    law(Ops.THREEFRY, "is for uint64", lambda n: n.dtype.scalar() is dtypes.uint64),
    law(Ops.CAST, "has one operand with as many lanes", lambda n: [s.dtype.count for s in n.src] == [n.dtype.count]),
    law(Ops.BITCAST, "keeps the number of bits", lambda n: [s.dtype.itemsize for s in n.src] == [n.dtype.itemsize]),
]

# ---- tensor graphs ------------------------------------------------------------------------------------------------

TENSOR_OPS = (
    GroupOp.ELEMENTWISE
    | GroupOp.MOVEMENT
    | {Ops.CONST, Ops.DEVICE, Ops.UNIQUE, Ops.BUFFER, Ops.ARANGE, Ops.DEFINE_VAR, Ops.BIND}
    | {Ops.REDUCE_AXIS, Ops.CONTIGUOUS, Ops.DETACH, Ops.CONTIGUOUS_BACKWARD}
    | {Ops.COPY, Ops.ASSIGN, Ops.AFTER, Ops.CALL, Ops.SINK}
)
KEEPS_TYPE = GroupOp.MOVEMENT | {Ops.CONTIGUOUS, Ops.DETACH, Ops.CONTIGUOUS_BACKWARD, Ops.REDUCE_AXIS, Ops.COPY}
REDUCTIONS = (Ops.ADD, Ops.MUL, Ops.MAX)


def same_shapes(node: UOp) -> bool:
    return len({s.shape for s in node.src}) == 1


def one_device(node: UOp) -> bool:
    return len({s.device for s in node.src} - {None}) <= 1


def expands_ones(node: UOp) -> bool:
    below = node.src[0].shape
    return len(below) == len(node.arg) and all(a in (1, b) for a, b in zip(below, node.arg))


def pads_outward(node: UOp) -> bool:
    counts = [as_index(count) for pair in node.arg for count in pair]
    return len(node.arg) == node.src[0].ndim and all((count >= 0).vmin for count in counts)


def shrinks_inside(node: UOp) -> bool:
    below = node.src[0].shape
    bounds = [(as_index(start), as_index(stop), size) for (start, stop), size in zip(node.arg, below)]
    return len(node.arg) == len(below) and all(
        (start >= 0).vmin and (start <= stop).vmin and (stop <= size).vmin for start, stop, size in bounds
    )


def shears_inside(node: UOp) -> bool:
    axis, along, step = node.arg
    axes, left = range(node.src[0].ndim), as_index(node.shape[axis])
    return axis in axes and along in axes and axis != along and step >= 0 and bool((left >= 1).vmin)


def reduces_axes(node: UOp) -> bool:
    op, axes = node.arg
    return op in REDUCTIONS and list(axes) == sorted(set(axes)) and all(0 <= a < node.src[0].ndim for a in axes)


def writes_into_its_memory(node: UOp) -> bool:
    memory, view, _ = node.src
    while view.op in GroupOp.VIEW:
        view = view.src[0]
    return view is memory and memory.op in GroupOp.MEMORY


def binds_within(node: UOp) -> bool:
    variable, value = node.src
    return variable.op is Ops.DEFINE_VAR and value.op is Ops.CONST and variable.arg[1] <= value.arg <= variable.arg[2]


TENSOR = VALUES + [
    law(TENSOR_OPS - {Ops.SINK, Ops.DEVICE}, "is a scalar in every element", lambda n: n.dtype.count == 1),
    law(TENSOR_OPS - {Ops.COPY, Ops.SINK}, "has operands on one device", one_device),
    law(GroupOp.ELEMENTWISE, "has operands of one shape", same_shapes),
    law(KEEPS_TYPE, "keeps the type", lambda n: n.dtype is n.src[0].dtype),
    law(Ops.BUFFER, "has no operands and at least no elements", lambda n: not n.src and n.arg.capacity >= 0),
    law(Ops.RESHAPE, "keeps the number of elements", lambda n: prod(n.arg) == prod(n.src[0].shape)),
    law(Ops.PERMUTE, "has each axis once", lambda n: sorted(n.arg) == list(range(n.src[0].ndim))),
    law(Ops.EXPAND, "repeats axes of size 1 only", expands_ones),
    law(Ops.PAD, "adds no negative number of elements, on every axis", pads_outward),
    law(Ops.SHRINK, "stays within its operand, on every axis", shrinks_inside),
    law(Ops.FLIP, "has a bool an axis", lambda n: [type(f) for f in n.arg] == [bool] * n.src[0].ndim),
    law(Ops.SHEAR, "moves one axis along another, and stays within its operand", shears_inside),
    law(Ops.REDUCE_AXIS, "combines axes that there are, in order, by ADD, MUL or MAX", reduces_axes),
    law(Ops.ASSIGN, "writes into a view of its memory that repeats no element", writes_into_its_memory),
    law(Ops.ASSIGN, "writes a value of the view's shape", lambda n: n.src[1].shape == n.src[2].shape),
    law(Ops.ASSIGN, "writes values of the memory's type", lambda n: operand_types(n) == {n.dtype}),
    law(Ops.COPY, "names its device", lambda n: [s.op is Ops.DEVICE for s in n.src] == [False, True]),
    law(Ops.BIND, "gives a variable a value within its bounds", binds_within),
]  # fmt: skip

# ---- kernels ------------------------------------------------------------------------------------------------------

KERNEL_OPS = GroupOp.ELEMENTWISE | {
    Ops.CONST, Ops.PARAM, Ops.DEFINE_VAR, Ops.DEFINE_REG, Ops.DEFINE_LOCAL, Ops.RANGE, Ops.INDEX, Ops.LOAD,
    Ops.STORE, Ops.REDUCE, Ops.END, Ops.AFTER, Ops.GROUP, Ops.BARRIER, Ops.SINK, Ops.VECTORIZE,
    Ops.GEP,
}  # fmt: skip
MEMORY = (Ops.PARAM, Ops.DEFINE_LOCAL)
EVENTS = (Ops.STORE, Ops.END, Ops.GROUP, Ops.BARRIER, Ops.AFTER)


def is_integer(node: UOp) -> bool:
    return dtypes.is_int(node.dtype) and node.dtype.count == 1


def without_after(node: UOp) -> UOp:
    while node.op is Ops.AFTER:
        node = node.src[0]
    return node


def addresses_memory(node: UOp) -> bool:
    pointer, offset = node.src[:2]
    return without_after(pointer).op in MEMORY and is_integer(offset) and node.dtype is pointer.dtype.base


def element(node: UOp) -> object:
    """The scalar type behind an address or a register."""
    return node.dtype.base.scalar()


def reads_place(node: UOp) -> bool:
    place = without_after(node.src[0])
    if place.op is Ops.DEFINE_REG:
        return len(node.src) == 1 and node.dtype is place.dtype.base
    return place.op is Ops.INDEX and node.dtype.scalar() is element(place)


def has_alternative(node: UOp) -> bool:
    """A gated load says what it gives where the gate is closed; no other load does."""
    place = without_after(node.src[0])
    alternative = [s.dtype for s in node.src[1:]]
    return alternative == ([node.dtype] if place.op is Ops.INDEX and len(place.src) == 3 else [])


def writes_place(node: UOp) -> bool:
    place, value = without_after(node.src[0]), node.src[1]
    if place.op is Ops.DEFINE_REG:
        return value.dtype is place.dtype.base
    return place.op is Ops.INDEX and value.dtype.scalar() is element(place)


def gate_fits(node: UOp) -> bool:
    """The gate of an access is one bool, or one for each lane."""
    place = without_after(node.src[0])
    if place.op is not Ops.INDEX or len(place.src) < 3:
        return True
    lanes = (node.dtype if node.op is Ops.LOAD else node.src[1].dtype).count
    gate = place.src[2].dtype
    return gate.scalar() is dtypes.bool and gate.count in (1, lanes)


def fills_lanes(node: UOp) -> bool:
    scalars = all(s.dtype is node.dtype.scalar() for s in node.src)
    return scalars and node.dtype.count > 1 and len(node.src) in (1, node.dtype.count)


def takes_lanes(node: UOp) -> bool:
    inside = all(0 <= lane < node.src[0].dtype.count for lane in node.arg)
    return inside and node.dtype is node.src[0].dtype.scalar().vec(len(node.arg))


def values_then_ranges(node: UOp) -> bool:
    """What is combined comes first, the loops come last."""
    is_range = [s.op is Ops.RANGE for s in node.src]
    return not is_range[0] and is_range == sorted(is_range)


def closes_loops(node: UOp) -> bool:
    """None, where all loops were written out."""
    return node.src[0].op in EVENTS and all(s.op is Ops.RANGE for s in node.src[1:])


def combines_own_type(node: UOp) -> bool:
    """A reduction across lanes has vectors for operands and a scalar, or a narrower vector, for its result."""
    values = [s.dtype for s in node.src if s.op is not Ops.RANGE]
    return len(set(values)) == 1 and values[0].scalar() is node.dtype.scalar() and values[0].count >= node.dtype.count


KERNEL = VALUES + [
    law(Ops.PARAM, "is a numbered pointer to memory", lambda n: isinstance(n.dtype, PtrDType) and type(n.arg) is int),
    law(Ops.DEFINE_REG, "is a pointer into registers, to one element",
        lambda n: isinstance(n.dtype, PtrDType) and n.dtype.space is AddrSpace.REG and n.dtype.size == 1),
    law(Ops.DEFINE_VAR, "has a name and bounds", lambda n: len(n.arg) == 3 and n.arg[1] <= n.arg[2]),
    law(Ops.RANGE, "counts up to an integer of its own type", lambda n: is_integer(n) and n.src[0].dtype is n.dtype),
    law(Ops.RANGE, "has a number and a kind", lambda n: type(n.arg[0]) is int and isinstance(n.arg[1], AxisType)),
    law(Ops.INDEX, "is an integer offset into memory, of the type of an element", addresses_memory),
    law(Ops.LOAD, "reads a value of the type that is there", reads_place),
    law(Ops.LOAD, "has an alternative exactly if it has a gate", has_alternative),
    law(Ops.STORE, "writes a value of the type that is there", writes_place),
    law(Ops.STORE, "has no value", lambda n: n.dtype is dtypes.void),
    law({Ops.LOAD, Ops.STORE}, "has one gate, or one for each lane", gate_fits),
    law(Ops.REDUCE, "names its values and then its loops", values_then_ranges),
    law(Ops.REDUCE, "combines values of its type by ADD, MUL or MAX",
        lambda n: n.arg in REDUCTIONS and combines_own_type(n)),
    law(Ops.END, "closes loops around something that happens", closes_loops),
    law(Ops.GROUP, "holds what happens", lambda n: all(s.op in EVENTS for s in n.src)),
    law(Ops.SINK, "holds what happens", lambda n: all(s.op in EVENTS for s in n.src)),
    law(Ops.AFTER, "is its first operand", lambda n: n.dtype is n.src[0].dtype),
    law(Ops.VECTORIZE, "has a scalar for all lanes, or one for each", fills_lanes),
    law(Ops.GEP, "takes lanes that there are", takes_lanes),
]  # fmt: skip

# ---- what each pass promises, from there on -----------------------------------------------------------------------


def is_loop(*kinds: AxisType) -> Callable[[UOp], bool]:
    return lambda n: n.op is Ops.RANGE and n.arg[1] in kinds


# pass → (what is gone after it, which nodes those are)
GONE_AFTER: dict[str, tuple[str, Callable[[UOp], bool]]] = {
    "simplify": ("a float operation on another type",
                 lambda n: n.op in GroupOp.FLOAT_ONLY and n.src[0].dtype is not n.dtype),
    "expand": ("a loop that is to be written out", is_loop(AxisType.UPCAST, AxisType.UNROLL)),
    "vectorize": ("a loop that is to become lanes", is_loop(AxisType.VECTOR)),
    "accumulate": ("a REDUCE", lambda n: n.op is Ops.REDUCE),
    "decompose": ("a cast to bool, or random bits", lambda n: n.op is Ops.THREEFRY
                  or n.op is Ops.CAST and n.dtype.kind == "b" and n.src[0].dtype.kind != "b"),
    "lower index": ("an abstract index", lambda n: n.dtype.scalar() is dtypes.index),
}  # fmt: skip


# ---- checks -------------------------------------------------------------------------------------------------------


def check_tensor_graph(root: UOp) -> None:
    """Raise SpecError unless `root` is a legal tensor graph."""
    for node in root.toposort():
        check_node(node, TENSOR_OPS, TENSOR, "tensor graph")


def check_kernel(sink: UOp, passes: Sequence[str]) -> None:
    """Raise SpecError unless `sink` is a legal kernel and all `passes` that it has been through kept their promises."""
    place = f"kernel after {passes[-1]!r}" if passes else "kernel as scheduled"
    if sink.op is not Ops.SINK or not hasattr(sink.arg, "name"):
        fail(sink, "is a SINK with a KernelInfo", place)
    gone = [GONE_AFTER[name] for name in passes if name in GONE_AFTER]
    numbers: dict[object, UOp] = {}
    for node in sink.toposort():
        check_node(node, KERNEL_OPS, KERNEL, place)
        for text, is_there in gone:
            if is_there(node):
                fail(node, f"is {text}, which an earlier pass removes", place)
        if node.op in (Ops.RANGE, Ops.PARAM) and numbers.setdefault((node.op, number_of(node)), node) is not node:
            fail(node, "has a number of its own", place)
    if sink.ranges:
        fail(next(iter(sink.ranges)), "is closed by an END or a REDUCE", place)


def number_of(node: UOp) -> object:
    return node.arg[0] if node.op is Ops.RANGE else node.arg


def check_linear(uops: Sequence[UOp]) -> None:
    """Raise SpecError unless the list is in the order of execution, with every loop opened and closed once."""
    place = "linear form"
    if not uops or uops[-1].op is not Ops.SINK:
        raise SpecError(f"{place}: the last operation must be a SINK")
    check_kernel(uops[-1], list(GONE_AFTER))
    seen: set[UOp] = set()
    closed: set[UOp] = set()
    loops: list[UOp] = []
    for node in uops:
        if not seen.issuperset(node.src):
            fail(node, "stands after its operands", place)
        if node in seen:
            fail(node, "stands once", place)
        seen.add(node)
        if node.op is Ops.RANGE:
            loops.append(node)
        elif node.op is Ops.END:
            if len(node.src) != 2 or not loops or node.src[1] is not loops.pop():
                fail(node, "closes the innermost open loop, and no other", place)
            closed.add(node.src[1])
        elif any(loop in closed for loop in node.src):
            fail(node, "uses a counter inside its loop only", place)
    if loops:
        fail(loops[-1], "is closed by an END", place)


def check_node(node: UOp, allowed: set[Ops], laws: list[Law], place: str) -> None:
    if node.op not in allowed:
        fail(node, "is an operation that may stand here", place)
    for entry in laws_for(node.op, laws):
        if not entry.holds(node):
            fail(node, entry.text, place)


def laws_for(op: Ops, laws: list[Law]) -> list[Law]:
    """The laws about an operation (looked up once for each)."""
    key = (op, id(laws))
    if key not in _LAWS:
        _LAWS[key] = [entry for entry in laws if entry.where.ops is None or op in entry.where.ops]
    return _LAWS[key]


_LAWS: dict[tuple[Ops, int], list[Law]] = {}


def fail(node: UOp, text: str, place: str) -> None:
    """Raise the error, with the node and what is around it."""
    numbers = {s: i for i, s in enumerate(node.src)}
    operands = "".join(f"\n    %{i} = {describe(s, {})}" for s, i in numbers.items())
    found = describe(node, numbers) + operands
    raise SpecError(f"{place}: this {node.op.name} breaks the law that it {text}:\n  {found}")
