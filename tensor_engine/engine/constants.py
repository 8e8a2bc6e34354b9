"""Kernels that are equal but for their constants become one kernel, which gets the constants as arguments.

`x * 0.1`, `x * 0.2`, … would each be a kernel of its own, and a learning rate that is computed for each step would make
the compiler run in each step. So of such a family the first few are compiled as they are, which makes the best code,
and then one in which the constants that differed so far are variables. Variables are 64-bit integers: of a float its
bits are passed.

A constant is passed only where the result has the same bits as if it were known to the compiler. It isn't where the
engine would compute with it before anything runs (operands that are all constant), nor where its value stands for
something: 0, 1, infinities, NaN, and powers of two, by which multiplication is exact.
"""

from __future__ import annotations

import math
import struct
from collections import OrderedDict
from dataclasses import dataclass, field

from tensor_engine.dtype import ConstType, DType, dtypes, wrap_int
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.uop import UOp

# So many kernels of a family are compiled with their constants inside.
MEMBERS = 4
# The families that were not met for the longest time leave first.
MAX_FAMILIES = 4096
TAKE_ARGUMENTS = (GroupOp.BINARY | {Ops.WHERE}) - {Ops.SHL, Ops.SHR, Ops.THREEFRY}

Values = tuple[ConstType, ...]


@dataclass
class Family:
    """Kernels that are equal but for the values of their constants: the first members, and where any have differed."""

    members: list[Values] = field(default_factory=list)
    differing: set[int] = field(default_factory=set)

    def add(self, values: Values) -> bool:
        """Note a member; True if it is one of the first."""
        if values in self.members:
            return True
        known = self.members[:1]
        self.differing.update(place for first in known for place, value in enumerate(first) if value != values[place])
        if len(self.members) < MEMBERS:
            self.members.append(values)
            return True
        return False


families: OrderedDict[bytes, Family] = OrderedDict()


def with_arguments(ast: UOp) -> tuple[UOp, dict[str, int]]:
    """The kernel to compile for `ast`, and the values of those of its variables that stand for constants."""
    constants = passable_constants(ast)
    if not constants:
        return ast, {}
    variables = [variable(place) for place in range(len(constants))]
    arguments = [as_argument(v, c.dtype) for v, c in zip(variables, constants)]
    family = family_of(ast.substitute(dict(zip(constants, arguments))))
    if family.add(tuple(constant.arg for constant in constants)):
        return ast, {}
    passed = sorted(family.differing)
    general = ast.substitute({constants[place]: arguments[place] for place in passed})
    return general, {variables[place].arg[0]: passed_value(constants[place]) for place in passed}


def family_of(general: UOp) -> Family:
    """The family of the kernels that become `general` when all their constants are passed."""
    family = families.setdefault(general.key, Family())
    families.move_to_end(general.key)
    if len(families) > MAX_FAMILIES:
        families.popitem(last=False)
    return family


# ---- which constants --------------------------------------------------------------------------------------------


def passable_constants(ast: UOp) -> list[UOp]:
    """The constants of a kernel that may as well be arguments, in a fixed order."""
    nodes = ast.toposort()
    loaded: set[UOp] = set()
    refused: set[UOp] = set()
    for node in nodes:
        if node.op is Ops.LOAD or not loaded.isdisjoint(node.src):
            loaded.add(node)
        refused.update(s for s in node.src if s.op is Ops.CONST and not takes_argument(node, s, loaded))
    return [node for node in nodes if node.op is Ops.CONST and is_plain(node) and node not in refused]


def takes_argument(user: UOp, constant: UOp, loaded: set[UOp]) -> bool:
    """Does `user` compute the same from an argument as from the constant?

    Integers that meet no memory may be part of an index, whose bounds are better known.
    """
    if user.op is Ops.STORE:
        return user.src[1] is constant
    if user.op not in TAKE_ARGUMENTS:
        return False
    others = [s for s in user.src if s is not constant]
    return any(s in loaded or constant.dtype.kind == "f" and s.ranges for s in others)


def is_plain(constant: UOp) -> bool:
    """A number that stands for nothing but itself."""
    value, kind = constant.arg, constant.dtype.kind
    if kind == "f":
        return math.isfinite(value) and math.frexp(abs(value))[0] not in (0.0, 0.5)
    return kind in "iu" and abs(value) > 1


# ---- how they are passed ----------------------------------------------------------------------------------------


def variable(place: int) -> UOp:
    """The variable for the constant at a place."""
    return UOp.variable(f"constant{place}_", -(2**63), 2**63 - 1)


def as_argument(variable: UOp, dtype: DType) -> UOp:
    """The constant that comes as a variable's value. Types of less than 32 bits come as float32."""
    if dtype.kind != "f":
        return variable.cast(dtype)
    if dtype is dtypes.float64:
        return variable.cast(dtypes.int64).bitcast(dtype)
    return variable.cast(dtypes.int32).bitcast(dtypes.float32).cast(dtype)


def passed_value(constant: UOp) -> int:
    """The value that makes the variable the constant."""
    if constant.dtype.kind != "f":
        return wrap_int(constant.arg, dtypes.int64)
    if constant.dtype is dtypes.float64:
        return struct.unpack("q", struct.pack("d", constant.arg))[0]
    return struct.unpack("i", struct.pack("f", constant.arg))[0]
