"""Linear uops → C that people read (DEBUG=4), with the vector extensions that gcc and clang share.

Loads are named val0, val1, …, accumulators acc0, …, other values that are used twice alu0, …; loop counters idxN, and
ridxN in reductions. A value used once is written where it is used, with only the parentheses that C needs.
"""
from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import NamedTuple

from tensor_engine.dtype import DType, PtrDType, dtypes, float_to_bfloat16_bits
from tensor_engine.renderer import Renderer, RenderError, gate_of, kernel_name, pointer_of, without_after
from tensor_engine.uop.op import AxisType, GroupOp, Ops
from tensor_engine.uop.uop import UOp

SCALARS = {
    "bool": "bool", "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "uint16": "uint16_t",
    "int32": "int", "uint32": "uint32_t", "int64": "int64_t", "uint64": "uint64_t",
    "float16": "half", "bfloat16": "bfloat", "float32": "float", "float64": "double", "void": "void",
}  # fmt: skip
VECTORS = {
    "bool": "bool", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort",
    "int32": "int", "uint32": "uint", "int64": "long", "uint64": "ulong",
    "float16": "half", "bfloat16": "bfloat", "float32": "float", "float64": "double",
}  # fmt: skip


def c_type(dtype: DType) -> str:
    """The type's name: float, int8_t, and float4 or char4 for vectors."""
    return SCALARS[dtype.name] if dtype.count == 1 else f"{VECTORS[dtype.name]}{dtype.count}"


# ---- helper functions that a kernel brings along when it uses them ------------------------------------------------

HEADERS = ("#include <stdbool.h>", "#include <stdint.h>")
# Half and bfloat16 are their bits, and arithmetic on them happens in float. gcc and clang have _Float16 and __bf16,
# but not in all versions, and call into libgcc for some operations.
STORED = {dtypes.float16: "half", dtypes.bfloat16: "bfloat"}
CONVERSIONS = {
    "bfloat_to_float": """\
static inline float bfloat_to_float(bfloat x) {
  uint32_t bits = (uint32_t)x << 16;
  return *(float*)&bits;
}""",
    "float_to_bfloat": """\
static inline bfloat float_to_bfloat(float x) {  // to nearest even; a NaN stays one
  uint32_t bits = *(uint32_t*)&x;
  return x != x ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}""",
    "half_to_float": """\
static inline float half_to_float(half x) {
  uint32_t sign = (uint32_t)(x & 0x8000) << 16, size = (uint32_t)(x & 0x7fff) << 13;
  float y = *(float*)&size * 0x1p112f;  // the exponent counts from 127, not from 15
  uint32_t bits = sign | (size < 0x0f800000 ? *(uint32_t*)&y : size | 0x7f800000);
  return *(float*)&bits;
}""",
    "float_to_half": """\
static inline half float_to_half(float x) {  // to nearest even
  uint32_t bits = *(uint32_t*)&x, sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  float y = *(float*)&size + 0.5f;  // rounds to 24 binary places, as subnormals have
  if (size > 0x7f800000) return sign | 0x7e00;
  if (size >= 0x477ff000) return sign | 0x7c00;
  if (size < 0x38800000) return sign | (*(uint32_t*)&y - 0x3f000000);
  return sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
}""",
    "round_to_odd": """\
static inline float round_to_odd(double x) {  // so that rounding once more, to half, is right
  uint64_t bits = *(uint64_t*)&x, lost = 0x1fffffff;
  bits = (bits | ((bits & lost) + lost)) & ~lost;
  return (float)*(double*)&bits;
}""",
}


def max_function(name: str) -> str:
    """The larger of two scalars; NaN if either is."""
    return f"static inline {name} max_{name}({name} a, {name} b) {{ return a > b || a != a ? a : b; }}"


# ---- constants ----------------------------------------------------------------------------------------------------


def constant(dtype: DType, value: bool | int | float) -> str:
    """A scalar constant as C writes it."""
    if dtypes.is_bool(dtype):
        return "true" if value else "false"
    if dtype is dtypes.bfloat16:
        return f"0x{float_to_bfloat16_bits(value):04x}"
    if dtype is dtypes.float16:
        return f"0x{struct.unpack('H', struct.pack('e', value))[0]:04x}"
    if dtypes.is_float(dtype):
        return _float_constant(dtype, float(value))
    return _int_constant(dtype, int(value))


def _float_constant(dtype: DType, value: float) -> str:
    double = dtype.name == "float64"
    if math.isnan(value):
        return '__builtin_nan("")' if double else '__builtin_nanf("")'
    if math.isinf(value):
        return ("-" if value < 0 else "") + ("__builtin_inf()" if double else "__builtin_inff()")
    return repr(value) if double else f"{_shortest_float(value)!r}f"


def _shortest_float(value: float) -> float:
    """The number with the fewest digits that is this float32 when rounded."""
    numbers = (float(f"{value:.{precision}g}") for precision in range(1, 10))
    return next(number for number in numbers if struct.pack("f", number) == struct.pack("f", value))


def _int_constant(dtype: DType, value: int) -> str:
    suffix = {"uint32": "u", "int64": "l", "uint64": "ul"}.get(dtype.name, "")
    if dtype.kind == "i" and dtype.bits >= 32 and value == dtype.min:
        return f"(-{-value - 1}{suffix} - 1{suffix})"  # C has no negative literals
    return f"{value}{suffix}"


# ---- expressions --------------------------------------------------------------------------------------------------


class Text(NamedTuple):
    """A piece of C and how tightly its outermost operator binds."""

    text: str
    binds: int = 16

    def within(self, binds: int) -> str:
        """As an operand of something that binds like this."""
        return self.text if self.binds >= binds else f"({self.text})"


UNARY, TERNARY = 14, 3
# operation → (operator, how tightly it binds)
OPERATORS: dict[Ops, tuple[str, int]] = {
    Ops.MUL: ("*", 13), Ops.FDIV: ("/", 13), Ops.IDIV: ("/", 13), Ops.MOD: ("%", 13),
    Ops.ADD: ("+", 12), Ops.SUB: ("-", 12),
    Ops.SHL: ("<<", 11), Ops.SHR: (">>", 11),
    Ops.CMPLT: ("<", 10), Ops.CMPEQ: ("==", 9), Ops.CMPNE: ("!=", 9),
    Ops.AND: ("&", 8), Ops.XOR: ("^", 7), Ops.OR: ("|", 6),
}  # fmt: skip
BOOL_OPERATORS = {Ops.AND: ("&&", 5), Ops.MUL: ("&&", 5), Ops.OR: ("||", 4), Ops.ADD: ("||", 4), Ops.XOR: ("!=", 9)}
# C computes these in int where the type is narrower: the result must be cut
GROWING = {Ops.ADD, Ops.SUB, Ops.MUL, Ops.IDIV, Ops.SHL, Ops.NEG, Ops.MULACC}
# C ranks these in a way that people do not know by heart: operands that bind less than this get parentheses anyway
CAREFUL = {Ops.SHL: 13, Ops.SHR: 13, Ops.AND: 12, Ops.XOR: 12, Ops.OR: 12}
LONGEST = 100  # a value that would be longer than this gets a name
SILENT = {Ops.AFTER, Ops.GROUP, Ops.END, Ops.SINK}  # their sources are not written


class CRenderer(Renderer):
    """C for the CPU."""

    name = "C"
    device = "CPU"
    code_for_op = {
        **dict.fromkeys(OPERATORS, str),
        **dict.fromkeys((Ops.NEG, Ops.RECIPROCAL, Ops.SQRT, Ops.TRUNC, Ops.MAX, Ops.WHERE, Ops.MULACC), str),
    }  # fmt: skip
    vector_ops = frozenset({
        Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.IDIV, Ops.MOD, Ops.NEG, Ops.RECIPROCAL, Ops.MULACC,
        Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR, Ops.BITCAST,
    })  # fmt: skip

    def __init__(self, vector_bytes: int = 16, registers: int = 16):
        self.vector_bytes, self.registers = vector_bytes, registers

    def render(self, uops: list[UOp]) -> str:
        return _Kernel(uops).text()


class _Kernel:
    """The text of one kernel while it grows."""

    def __init__(self, uops: list[UOp]):
        self.uops = uops
        self.layout = Layout(uops)
        self.values: dict[UOp, Text] = {}
        self.scalars: dict[str, None] = {}
        self.vectors: dict[DType, None] = {}
        self.helpers: dict[str, None] = {}
        self.body: list[str] = []
        self.depth = 1
        self.counts: dict[str, int] = {}

    def text(self) -> str:
        for uop in self.uops:
            EMIT.get(uop.op, _Kernel.unknown)(self, uop)
        signature = f"void {kernel_name(self.uops)}({', '.join(self.parameters())}) {{"
        types = [self.vector_typedef(dtype) for dtype in self.vectors]
        return "\n".join([*HEADERS, *self.scalars, *types, *self.helpers, signature, *self.body, "}", ""])

    def parameters(self) -> list[str]:
        stored = {pointer_of(u.src[0]) for u in self.uops if u.op is Ops.STORE}
        pointers = sorted((u for u in self.uops if u.op is Ops.PARAM), key=lambda u: u.arg)
        variables = sorted((u for u in self.uops if u.op is Ops.DEFINE_VAR), key=lambda u: u.arg[0])
        return [
            f"{'' if p in stored else 'const '}{self.type(p.dtype.base)}* restrict data{p.arg}" for p in pointers
        ] + [f"{self.type(v.dtype)} {self[v].text}" for v in variables]

    def vector_typedef(self, dtype: DType) -> str:
        lane = "uint8_t" if dtypes.is_bool(dtype) else c_type(dtype.scalar())
        size = f"vector_size({dtype.itemsize}), aligned({dtype.scalar().itemsize})"
        return f"typedef {lane} {c_type(dtype)} __attribute__(({size}));"

    # ---- writing

    def type(self, dtype: DType) -> str:
        """The type's name, declared if C does not know it."""
        if dtype.scalar() in STORED:
            self.scalars[f"typedef uint16_t {STORED[dtype.scalar()]};"] = None
        if dtype.count > 1:
            self.vectors[dtype] = None
        return c_type(dtype)

    def call(self, name: str, definition: str, *operands: Text) -> Text:
        """A call of a helper function, which the kernel brings along from now on."""
        self.helpers[definition] = None
        return Text(f"{name}({', '.join(operand.text for operand in operands)})", 15)

    def line(self, text: str) -> None:
        self.body.append("  " * self.depth + text)

    def name(self, prefix: str) -> str:
        number = self.counts.get(prefix, 0)
        self.counts[prefix] = number + 1
        return f"{prefix}{number}"

    def define(self, uop: UOp, text: Text, prefix: str = "alu") -> None:
        """Write the value where it is used, or give it a name here."""
        if self.layout.is_inlined(uop) and len(text.text) <= LONGEST:
            self.values[uop] = text
            return
        name = self.name(prefix)
        self.line(f"{self.type(uop.dtype)} {name} = {text.text};")
        self.values[uop] = Text(name)

    def __getitem__(self, uop: UOp) -> Text:
        return self.values[uop]

    def unknown(self, uop: UOp) -> None:
        raise RenderError(f"the C renderer has no text for {uop.op} of {uop.dtype}")

    # ---- leaves and loops

    def const(self, uop: UOp) -> None:
        self.type(uop.dtype)
        text = constant(uop.dtype, uop.arg)
        self.values[uop] = Text(text, UNARY if text.startswith("-") else 16)

    def param(self, uop: UOp) -> None:
        self.values[uop] = Text(f"data{uop.arg}")

    def variable(self, uop: UOp) -> None:
        self.values[uop] = Text(f"var_{uop.arg[0]}")

    def register(self, uop: UOp) -> None:
        name = self.name("acc")
        self.values[uop] = Text(name)
        if self.layout.declared_by_store(uop) is None:
            self.line(f"{self.type(uop.dtype.base)} {name};")

    def local(self, uop: UOp) -> None:
        dtype = uop.dtype
        assert isinstance(dtype, PtrDType)
        self.values[uop] = Text(name := self.name("local"))
        self.line(f"{self.type(dtype.target)} {name}[{dtype.size}] __attribute__((aligned(64)));")

    def alias(self, uop: UOp) -> None:
        """AFTER stands for its first source; GROUP and SINK for nothing."""
        if uop.op is Ops.AFTER and uop.src[0] in self.values:
            self.values[uop] = self[uop.src[0]]

    def begin_loop(self, uop: UOp) -> None:
        number, kind = uop.arg
        name = f"{'r' if kind is AxisType.REDUCE else ''}idx{number}"
        self.values[uop] = Text(name)
        size = self[uop.src[0]].within(OPERATORS[Ops.CMPLT][1])
        self.line(f"for ({self.type(uop.dtype)} {name} = 0; {name} < {size}; {name}++) {{")
        self.depth += 1

    def end_loop(self, uop: UOp) -> None:
        for _ in uop.src[1:]:
            self.depth -= 1
            self.line("}")

    # ---- memory

    def index(self, uop: UOp) -> None:
        """Nothing: the address is written where it is used."""

    def place(self, address: UOp, dtype: DType) -> str:
        """The memory at an address, as something to read or assign to."""
        pointer, offset = without_after(address).src[:2]
        base, where = self[pointer].text, self[offset]
        if dtype.count == 1:
            return f"{base}[{where.text}]"
        start = base if where.text == "0" else f"({base} + {where.within(12)})"
        return f"*({self.type(dtype)}*){start}"

    def load(self, uop: UOp) -> None:
        source = without_after(uop.src[0])
        if source.op is Ops.DEFINE_REG:
            self.define(uop, self[source], "val")
            return
        text = self.place(source, uop.dtype)
        gate = gate_of(source)
        if gate is not None:
            text = f"{self[gate].within(TERNARY + 1)} ? {text} : {self[uop.src[1]].within(TERNARY)}"
        self.define(uop, Text(text, TERNARY if gate is not None else 15), "val")

    def store(self, uop: UOp) -> None:
        target, value = without_after(uop.src[0]), uop.src[1]
        text = self[value].text
        if target.op is Ops.DEFINE_REG:
            declaration = f"{self.type(target.dtype.base)} " if self.layout.declared_by_store(target) is uop else ""
            self.line(f"{declaration}{self[target].text} = {text};")
            return
        gate = gate_of(target)
        condition = "" if gate is None else f"if ({self[gate].text}) "
        self.line(f"{condition}{self.place(target, value.dtype)} = {text};")

    # ---- vectors

    def braces(self, dtype: DType, lanes: list[str]) -> Text:
        return Text(f"({self.type(dtype)}){{{', '.join(lanes)}}}", 15)

    def vectorize(self, uop: UOp) -> None:
        if self.layout.is_never_written(uop):
            return
        lanes = [self[lane].text for lane in uop.src]
        if all(_is_zero(lane) for lane in uop.src):
            lanes = ["0"]  # C fills up with zeros
        elif len(lanes) == 1:
            lanes *= uop.dtype.count
        self.define(uop, self.braces(uop.dtype, lanes))

    def gep(self, uop: UOp) -> None:
        vector = self[uop.src[0]].within(15)
        if uop.src[0].dtype.count == 1:
            self.define(uop, self[uop.src[0]])
        elif len(uop.arg) == 1:
            self.define(uop, Text(f"{vector}[{uop.arg[0]}]", 15))
        else:
            self.define(uop, self.braces(uop.dtype, [f"{vector}[{lane}]" for lane in uop.arg]))

    # ---- arithmetic

    def arithmetic(self, uop: UOp) -> None:
        if _lane_by_lane(uop):
            lanes = [self.compute(uop, lane).text for lane in range(uop.dtype.count)]
            self.define(uop, self.braces(uop.dtype, lanes))
        else:
            self.define(uop, self.compute(uop))

    def compute(self, uop: UOp, lane: int | None = None) -> Text:
        """The operation on whole values, or on one lane of them."""
        dtype = uop.dtype if lane is None else uop.dtype.scalar()
        operands, of = self.operands(uop, lane), uop.src[-1].dtype.scalar()
        if of is dtypes.float16 and uop.op is not Ops.WHERE:
            operands = [self.convert(operand, of, dtypes.float32) for operand in operands]
            text = ARITHMETIC[uop.op](self, uop.op, dtypes.float32, operands)
            return text if dtypes.is_bool(dtype) else self.convert(text, dtypes.float32, of)
        text = ARITHMETIC[uop.op](self, uop.op, of, operands)
        if uop.op in GROWING and dtypes.is_int(dtype) and dtype.count == 1 and dtype.bits < 32:
            return Text(f"({self.type(dtype)}){text.within(UNARY)}", UNARY)
        return text

    def operands(self, uop: UOp, lane: int | None) -> list[Text]:
        if lane is not None:
            return [self[s.src[0]] if is_broadcast(s) else Text(f"{self[s].text}[{lane}]", 15) for s in uop.src]
        if not _takes_scalars(uop):
            return [self[s] for s in uop.src]
        return [self[s.src[0]] if is_broadcast(s) else self[s] for s in uop.src]

    def binary(self, op: Ops, dtype: DType, operands: list[Text]) -> Text:
        operator, binds = OPERATORS[op]
        beside = CAREFUL.get(op, binds)
        if dtypes.is_bool(dtype) and op in BOOL_OPERATORS:
            operator, binds = BOOL_OPERATORS[op]
            beside = binds
        left, right = operands
        if op is Ops.ADD and right.binds == UNARY and right.text[0] == "-":  # a + -b is a - b
            operator, right = "-", Text(right.text[1:])
        return Text(f"{left.within(beside)} {operator} {right.within(max(binds + 1, beside))}", binds)

    def negate(self, op: Ops, dtype: DType, operands: list[Text]) -> Text:
        operand = operands[0].within(UNARY)
        return Text(f"-({operand})" if operand.startswith("-") else f"-{operand}", UNARY)

    def reciprocal(self, op: Ops, dtype: DType, operands: list[Text]) -> Text:
        return Text(f"{constant(dtype, 1.0)} / {operands[0].within(UNARY)}", 13)

    def function(self, op: Ops, dtype: DType, operands: list[Text]) -> Text:
        name = {Ops.SQRT: "sqrt", Ops.TRUNC: "trunc"}[op]
        return Text(f"__builtin_{name}{'' if dtype.name == 'float64' else 'f'}({operands[0].text})", 15)

    def maximum(self, op: Ops, dtype: DType, operands: list[Text]) -> Text:
        name = self.type(dtype)
        return self.call(f"max_{name}", max_function(name), *operands)

    def multiply_add(self, op: Ops, dtype: DType, operands: list[Text]) -> Text:
        a, b, c = operands
        return Text(f"{a.within(13)} * {b.within(14)} + {c.within(13)}", 12)

    def where(self, op: Ops, dtype: DType, operands: list[Text]) -> Text:
        condition, yes, no = operands
        return Text(f"{condition.within(TERNARY + 1)} ? {yes.within(TERNARY + 1)} : {no.within(TERNARY)}", TERNARY)

    # ---- casts

    def cast(self, uop: UOp) -> None:
        self.define(uop, self.convert(self[uop.src[0]], uop.src[0].dtype, uop.dtype))

    def convert(self, value: Text, of: DType, to: DType) -> Text:
        if of is to:
            return value
        if of in STORED or to in STORED:
            return self.convert_stored(value, of, to)
        if dtypes.is_bool(to):
            return Text(f"{value.within(10)} != 0", 9)
        return Text(f"({self.type(to)}){value.within(UNARY)}", UNARY)

    def convert_stored(self, value: Text, of: DType, to: DType) -> Text:
        """To and from half and bfloat16, through float."""
        if of in STORED:
            name = f"{STORED[of]}_to_float"
            return self.convert(self.call(name, CONVERSIONS[name], value), dtypes.float32, to)
        self.type(to)
        if of is dtypes.float64:
            value, of = self.call("round_to_odd", CONVERSIONS["round_to_odd"], value), dtypes.float32
        name = f"float_to_{STORED[to]}"
        return self.call(name, CONVERSIONS[name], self.convert(value, of, dtypes.float32))

    def bitcast(self, uop: UOp) -> None:
        value, of, to = self[uop.src[0]], uop.src[0].dtype, uop.dtype
        if of.count > 1 or (dtypes.is_float(of) == dtypes.is_float(to) == False):  # noqa: E712
            self.define(uop, Text(f"({self.type(to)}){value.within(UNARY)}", UNARY))
        else:
            self.define(uop, Text(f"*({self.type(to)}*)&{value.text}", UNARY))


# ---- which values get a name --------------------------------------------------------------------------------------


class Layout:
    """What can be seen only from the whole list: uses of each value, and which block they are in."""

    def __init__(self, uops: list[UOp]):
        self.uops = uops
        self.position = {uop: i for i, uop in enumerate(uops)}
        self.users: dict[UOp, list[UOp]] = {uop: [] for uop in uops}
        for uop in uops:
            for source in uop.src:
                self.users[source].append(uop)
        self.block, self.block_end = _blocks(uops)
        self.evaluated: dict[UOp, int] = {}  # where the text of an inlined value ends up
        self.inlined: set[UOp] = set()
        for uop in reversed(uops):
            self._decide(uop)

    def is_inlined(self, uop: UOp) -> bool:
        """True if the value is written where it is used."""
        return uop in self.inlined

    def is_never_written(self, uop: UOp) -> bool:
        """True for a scalar in all lanes that is written as the scalar at all uses."""
        return is_broadcast(uop) and all(_takes_scalars(user) or _lane_by_lane(user) for user in self._uses(uop))

    def _decide(self, uop: UOp) -> None:
        self.evaluated[uop] = self.position[uop]
        if uop.op in (GroupOp.ALU | {Ops.CAST, Ops.BITCAST, Ops.GEP, Ops.VECTORIZE, Ops.LOAD}):
            uses = self._uses(uop)
            if uses and self._can_inline(uop, uses):
                self.inlined.add(uop)
                self.evaluated[uop] = max(self.evaluated[user] for user in uses)

    def _uses(self, uop: UOp) -> list[UOp]:
        """The users whose text contains this value; addresses are seen through."""
        users = []
        for user in self.users[uop]:
            if user.op is Ops.INDEX or (user.op is Ops.AFTER and user.src[0] is uop):
                users += self._uses(user)
            elif user.op not in SILENT:
                users.append(user)
        return users

    def _can_inline(self, uop: UOp, uses: list[UOp]) -> bool:
        if any(self.block[user] != self.block[uop] for user in uses):
            return is_constant(uop)
        if uop.op is Ops.LOAD:
            return self._reads_register(uop, uses)
        if uop.op is Ops.GEP:
            return True
        return (len(uses) == 1 or is_constant(uop)) and not _needs_name(uses[0], uop)

    def _reads_register(self, load: UOp, uses: list[UOp]) -> bool:
        """True if an accumulator can be read by its name at all uses: it still has the value then."""
        register = without_after(load.src[0])
        if register.op is not Ops.DEFINE_REG:
            return False
        last = max(self.evaluated[user] for user in uses)
        between = self.uops[self.position[load] : last]
        return not any(u.op is Ops.STORE and without_after(u.src[0]) is register for u in between)

    def declared_by_store(self, register: UOp) -> UOp | None:
        """The first store to an accumulator, if all its uses are in the block of that store or in loops within."""
        uses = sorted(self._uses(register), key=self.position.__getitem__)
        if not uses or uses[0].op is not Ops.STORE:
            return None
        end = self.block_end[self.block[uses[0]]]
        return uses[0] if all(self.position[use] < end for use in uses) else None


def _blocks(uops: list[UOp]) -> tuple[dict[UOp, int], dict[int, int]]:
    """uop → its block (the straight line of uops between two braces), and block → where its scope ends."""
    block: dict[UOp, int] = {}
    ends: dict[int, int] = {}
    number, scopes = 0, [[0]]
    for position, uop in enumerate(uops):
        block[uop] = number
        if uop.op is Ops.RANGE:
            number += 1
            scopes.append([number])
        elif uop.op is Ops.END:
            for _ in uop.src[1:]:
                ends.update(dict.fromkeys(scopes.pop(), position))
            number += 1
            scopes[-1].append(number)
    ends.update(dict.fromkeys(scopes[0], len(uops)))
    return block, ends


def is_broadcast(uop: UOp) -> bool:
    """True for a vector with one scalar in all lanes."""
    return uop.op is Ops.VECTORIZE and len(set(uop.src)) == 1


def is_constant(uop: UOp) -> bool:
    """True for a vector of constants, all the same."""
    return is_broadcast(uop) and uop.src[0].op is Ops.CONST


def _is_zero(uop: UOp) -> bool:
    return uop.op is Ops.CONST and uop.arg == 0 and math.copysign(1, uop.arg) > 0


def _takes_scalars(uop: UOp) -> bool:
    """True if a scalar may stand for a vector with this scalar in all lanes: C does so beside another vector."""
    return (
        uop.op in OPERATORS
        and uop.dtype.count > 1
        and not _lane_by_lane(uop)
        and uop.dtype.bits >= 32
        and not all(is_broadcast(s) for s in uop.src)
    )


def _lane_by_lane(uop: UOp) -> bool:
    """True for arithmetic on vectors that C does not have."""
    missing = uop.dtype.name == "float16" or dtypes.is_bool(uop.dtype) or uop.op not in CRenderer.vector_ops
    return uop.dtype.count > 1 and uop.op in GroupOp.ALU and missing


def _needs_name(user: UOp, value: UOp) -> bool:
    """True if C needs a variable here: something with an address or lanes to take, or to use more than once."""
    if user.op is Ops.GEP or (user.op is Ops.BITCAST and value.dtype.count == 1):
        return True
    if user.op is Ops.VECTORIZE:
        return is_broadcast(user)
    return _lane_by_lane(user)


ARITHMETIC: dict[Ops, Callable[[_Kernel, Ops, DType, list[Text]], Text]] = {
    **dict.fromkeys(OPERATORS, _Kernel.binary),
    **dict.fromkeys((Ops.SQRT, Ops.TRUNC), _Kernel.function),
    Ops.NEG: _Kernel.negate,
    Ops.RECIPROCAL: _Kernel.reciprocal,
    Ops.MAX: _Kernel.maximum,
    Ops.MULACC: _Kernel.multiply_add,
    Ops.WHERE: _Kernel.where,
}

EMIT: dict[Ops, Callable[[_Kernel, UOp], None]] = {
    **dict.fromkeys(ARITHMETIC, _Kernel.arithmetic),
    **dict.fromkeys((Ops.AFTER, Ops.GROUP, Ops.SINK), _Kernel.alias),
    Ops.CONST: _Kernel.const,
    Ops.PARAM: _Kernel.param,
    Ops.DEFINE_VAR: _Kernel.variable,
    Ops.DEFINE_REG: _Kernel.register,
    Ops.DEFINE_LOCAL: _Kernel.local,
    Ops.RANGE: _Kernel.begin_loop,
    Ops.END: _Kernel.end_loop,
    Ops.INDEX: _Kernel.index,
    Ops.LOAD: _Kernel.load,
    Ops.STORE: _Kernel.store,
    Ops.VECTORIZE: _Kernel.vectorize,
    Ops.GEP: _Kernel.gep,
    Ops.CAST: _Kernel.cast,
    Ops.BITCAST: _Kernel.bitcast,
}
