"""The operations there are, and the groups that rules speak of."""
from __future__ import annotations

from enum import Enum, auto

from tensor_engine.dtype import ConstType, DType


class Ops(Enum):
    """Every operation of the graph, from what a user writes down to what a renderer prints.

    About 25 of them (ALU, LOAD, STORE, RANGE, END, INDEX, CAST, …) reach a renderer; the others are gone by then.
    """

    # ---- leaves
    CONST = auto()  # arg: the value
    DEVICE = auto()  # arg: a device's name
    UNIQUE = auto()  # arg: a number. Sets a constant apart from others of its value
    BUFFER = auto()  # arg: BufferArg. Memory that a tensor owns; shape (size,)
    ARANGE = auto()  # arg: n. The integers 0 … n-1; shape (n,)
    DEFINE_VAR = auto()  # arg: (name, smallest, largest). An integer given at launch
    BIND = auto()  # src: (DEFINE_VAR, CONST). A variable with its value

    # ---- movement: the same elements in another arrangement
    RESHAPE = auto()  # arg: new shape
    PERMUTE = auto()  # arg: order of the axes
    EXPAND = auto()  # arg: new shape; axes of size 1 repeat
    PAD = auto()  # arg: ((before, after), …); new elements are zero
    SHRINK = auto()  # arg: ((start, stop), …)
    FLIP = auto()  # arg: (bool, …) per axis
    SHEAR = auto()  # arg: (axis, along, step). At k along the other axis, the axis begins k * step elements later

    # ---- tensors
    REDUCE_AXIS = auto()  # arg: (ADD | MUL | MAX, axes); the axes stay with size 1
    CONTIGUOUS = auto()  # store here; arg "copy": even what is in memory already
    DETACH = auto()  # no gradient flows through
    CONTIGUOUS_BACKWARD = auto()  # store the gradient here
    COPY = auto()  # src: (value, DEVICE). To another device
    ASSIGN = auto()  # src: (memory, view of it, value). The memory when value was stored in the view
    CALL = auto()  # src: (buffers …), arg: KernelFunction. A kernel written by hand; value: its first buffer

    # ---- control and memory
    PARAM = auto()  # arg: position among the kernel's buffers; dtype: a pointer
    DEFINE_REG = auto()  # arg: a number. An accumulator; dtype: a pointer in REG
    DEFINE_LOCAL = auto()  # arg: a number. Memory shared by a workgroup; dtype: a pointer in LOCAL
    RANGE = auto()  # src: (size,), arg: (number, AxisType). A loop counter
    INDEX = auto()  # src: (pointer, offset[, gate]). An address
    LOAD = auto()  # src: (INDEX [, value where the gate is false]); or (register,)
    STORE = auto()  # src: (INDEX | register, value)
    REDUCE = auto()  # src: (value, RANGE …), arg: ADD | MUL | MAX
    END = auto()  # src: (what the loops do, RANGE …)
    AFTER = auto()  # src: (value, what must have happened before …)
    GROUP = auto()  # src: things that happen, in no order
    BARRIER = auto()
    SINK = auto()  # the root; arg: KernelInfo

    # ---- vectors
    VECTORIZE = auto()  # src: one scalar a lane, or one scalar for all lanes when there is one src
    GEP = auto()  # arg: the lanes taken

    # ---- arithmetic: one operand
    CAST = auto()
    BITCAST = auto()
    NEG = auto()
    EXP2 = auto()
    LOG2 = auto()
    SIN = auto()
    SQRT = auto()
    RECIPROCAL = auto()
    TRUNC = auto()
    # two operands
    ADD = auto()
    SUB = auto()
    MUL = auto()
    FDIV = auto()
    IDIV = auto()  # rounds down, as Python and numpy do; x // 0 is 0
    MOD = auto()  # has the divisor's sign, as in Python and numpy; x % 0 is 0
    MAX = auto()  # NaN if either operand is NaN
    CMPLT = auto()
    CMPNE = auto()
    CMPEQ = auto()
    AND = auto()
    OR = auto()
    XOR = auto()
    SHL = auto()  # by less than 0, or by as many bits as there are or more, all bits leave: 0
    SHR = auto()  # the same, but the sign comes in for signed integers
    THREEFRY = auto()  # counter-based random bits
    # three operands
    WHERE = auto()
    MULACC = auto()  # a * b + c

    # ---- programs
    KERNEL = auto()  # src: (BUFFER …), arg: the kernel's SINK
    LINEAR = auto()  # src: operations, or KERNELs, in the order in which they run

    # Enum hashes names in Python; members are singletons, and the compiler looks them up all the time
    __hash__ = object.__hash__

    def __lt__(self, other: Ops) -> bool:
        return self.value < other.value

    def __repr__(self) -> str:
        return f"Ops.{self.name}"


class GroupOp:
    """Sets of operations with something in common."""

    UNARY = {Ops.NEG, Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.SQRT, Ops.RECIPROCAL, Ops.TRUNC}
    COMPARE = {Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ}
    BINARY = COMPARE | {
        Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.IDIV, Ops.MOD, Ops.MAX,
        Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR, Ops.THREEFRY,
    }  # fmt: skip
    TERNARY = {Ops.WHERE, Ops.MULACC}
    ALU = UNARY | BINARY | TERNARY
    ELEMENTWISE = ALU | {Ops.CAST, Ops.BITCAST}
    COMMUTATIVE = {Ops.ADD, Ops.MUL, Ops.MAX, Ops.CMPNE, Ops.CMPEQ, Ops.AND, Ops.OR, Ops.XOR}
    ASSOCIATIVE = {Ops.ADD, Ops.MUL, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR}
    MOVEMENT = {Ops.RESHAPE, Ops.PERMUTE, Ops.EXPAND, Ops.PAD, Ops.SHRINK, Ops.FLIP, Ops.SHEAR}
    # those that leave every element in a place of its own
    VIEW = MOVEMENT - {Ops.EXPAND, Ops.SHEAR}
    MEMORY = {Ops.BUFFER, Ops.ASSIGN}  # memory as it is at some time
    # ALUs with a float operand only: pm_float_operands gives it to them in the type of the result
    FLOAT_ONLY = {Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.SQRT, Ops.RECIPROCAL}
    TRANSCENDENTAL = {Ops.EXP2, Ops.LOG2, Ops.SIN}


class AxisType(Enum):
    """What a RANGE becomes."""

    LOOP = "loop"  # a loop in the program
    REDUCE = "reduce"  # a loop whose values are combined
    UPCAST = "upcast"  # written out: one copy of the body a value, results in registers
    UNROLL = "unroll"  # a reduce axis written out
    VECTOR = "vector"  # the lanes of vector instructions
    THREAD = "thread"  # spread over CPU threads
    GLOBAL = "global"  # a GPU's grid
    LOCAL = "local"  # a GPU's workgroup

    __hash__ = object.__hash__

    def __lt__(self, other: AxisType) -> bool:
        return self.value < other.value

    def __repr__(self) -> str:
        return f"AxisType.{self.name}"


def identity_element(op: Ops, dtype: DType) -> ConstType:
    """The value that changes nothing under `op`: 0 for ADD, 1 for MUL, the smallest value for MAX."""
    if op is Ops.MAX:
        return dtype.scalar().min
    return {Ops.ADD: 0, Ops.MUL: 1, Ops.OR: 0, Ops.AND: -1}[op]
