"""Linear uops → LLVM IR as text, for any CPU that LLVM has.

Rules of the translation:
- a bool is i1 in registers and one byte in memory; what the target cannot compute (`storage_only`: bfloat16, on some
  half) is its bits as i16, and its casts are integer arithmetic;
- accumulators are allocas, which LLVM's mem2reg turns into registers;
- memory is only known to be aligned to its elements; different parameters never overlap;
- `contract` allows fused multiply-add, and is all of fast-math that there is;
- nothing may become a call into a library: such casts are spelled out, and `no-builtins` keeps loops from
  turning into memset.
"""
from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable

from tensor_engine.dtype import AddrSpace, DType, PtrDType, dtypes, float_to_bfloat16_bits, truncate
from tensor_engine.renderer import Renderer, RenderError, gate_of, kernel_name, pointer_of
from tensor_engine.uop.op import AxisType, GroupOp, Ops
from tensor_engine.uop.uop import UOp

_FLOATS = {"float16": "half", "float32": "float", "float64": "double"}


def llvm_type(dtype: DType) -> str:
    """The type's name. bool is i1."""
    if isinstance(dtype, PtrDType):
        return "ptr"
    scalar = _FLOATS.get(dtype.scalar().name) or f"i{dtype.bits}"
    return scalar if dtype.count == 1 else f"<{dtype.count} x {scalar}>"


def intrinsic_suffix(dtype: DType) -> str:
    """The type as the names of LLVM's intrinsics spell it: v8f32."""
    scalar = ("f" if dtypes.is_float(dtype) else "i") + str(dtype.bits)
    return scalar if dtype.count == 1 else f"v{dtype.count}{scalar}"


def constant(dtype: DType, value: bool | int | float) -> str:
    """A scalar constant. Floats are written by their bits, so that infinities and NaNs work like the others."""
    if dtypes.is_bool(dtype):
        return "true" if value else "false"
    if dtype is dtypes.float16:
        return f"0xH{half_bits(value):04X}"
    if dtypes.is_float(dtype):
        return f"0x{struct.unpack('Q', struct.pack('d', truncate(value, dtype)))[0]:016X}"
    return str(int(value))


def half_bits(value: float) -> int:
    """The bits of a value of type float16."""
    return struct.unpack("H", struct.pack("e", value))[0]


def splat(dtype: DType, scalar: str) -> str:
    """A constant in all lanes."""
    if dtype.count == 1:
        return scalar
    lane = f"{llvm_type(dtype.scalar())} {scalar}"
    return f"<{', '.join([lane] * dtype.count)}>"


# ---- arithmetic: one instruction an operation ---------------------------------------------------------------------


def _pick(of_float: str, of_signed: str, of_unsigned: str = "", of_bool: str = "") -> Callable[[DType], str]:
    kinds = {"f": of_float, "i": of_signed, "u": of_unsigned or of_signed}
    kinds["b"] = of_bool or kinds["u"]
    return lambda dtype: kinds[dtype.kind]


# operation → instruction by the operands' type; a bool adds like OR and multiplies like AND
INSTRUCTIONS: dict[Ops, Callable[[DType], str]] = {
    Ops.ADD: _pick("fadd contract", "add", of_bool="or"),
    Ops.SUB: _pick("fsub contract", "sub"),
    Ops.MUL: _pick("fmul contract", "mul", of_bool="and"),
    Ops.FDIV: _pick("fdiv contract", ""),
    Ops.IDIV: _pick("", "sdiv", "udiv"),
    Ops.MOD: _pick("", "srem", "urem"),
    Ops.AND: _pick("", "and"),
    Ops.OR: _pick("", "or"),
    Ops.XOR: _pick("", "xor"),
    Ops.SHL: _pick("", "shl"),
    Ops.SHR: _pick("", "ashr", "lshr"),
    Ops.CMPLT: _pick("fcmp olt", "icmp slt", "icmp ult"),
    Ops.CMPNE: _pick("fcmp une", "icmp ne"),
    Ops.CMPEQ: _pick("fcmp oeq", "icmp eq"),
}

# operation → intrinsic by the operands' type; nsz: which zero is the larger one is left open
INTRINSICS: dict[Ops, Callable[[DType], str]] = {
    Ops.SQRT: _pick("sqrt", ""),
    Ops.TRUNC: _pick("trunc", ""),
    Ops.MAX: _pick("maximum", "smax", "umax"),
    Ops.MULACC: _pick("fmuladd", ""),
}


class LLVMRenderer(Renderer):
    """LLVM IR for the CPU.

    `vector_bytes` and `registers` describe the target's vector unit; without `native_half` it cannot convert half.
    """

    name = "LLVM"
    device = "CPU"
    masked_memory = True
    index_dtype = dtypes.int64
    code_for_op = {
        **INSTRUCTIONS, **INTRINSICS,
        **dict.fromkeys((Ops.NEG, Ops.RECIPROCAL, Ops.WHERE), _pick("", "")),
    }  # fmt: skip
    vector_ops = frozenset(code_for_op) | {Ops.CAST, Ops.BITCAST}

    def __init__(self, vector_bytes: int = 16, registers: int = 16, native_half: bool = True):
        self.vector_bytes, self.registers = vector_bytes, registers
        if not native_half:
            self.storage_only = frozenset({dtypes.bfloat16, dtypes.float16})

    def render(self, uops: list[UOp]) -> str:
        return _Function(self, uops).text()


class _Function:
    """The text of one function while it grows."""

    def __init__(self, renderer: LLVMRenderer, uops: list[UOp]):
        self.renderer, self.uops = renderer, uops
        self.values: dict[UOp, str] = {}  # uop → its register or constant
        self.body: list[str] = []
        self.allocas: list[str] = []
        self.declarations: dict[str, None] = {}
        self.loops: Counter[str] = Counter()
        self.count = 0

    def text(self) -> str:
        for uop in self.uops:
            self.check(uop)
            EMIT.get(uop.op, _Function.unknown)(self, uop)
        width = self.renderer.vector_bytes * 8
        attributes = f'nounwind "no-builtins" "prefer-vector-width"="{width}" "min-legal-vector-width"="{width}"'
        return "\n".join([
            f"define void @{kernel_name(self.uops)}({', '.join(self.parameters())}) #0 {{",
            "entry:", *self.allocas, *self.body, "  ret void", "}", "",
            *self.declarations, f"attributes #0 = {{ {attributes} }}", "",
        ])  # fmt: skip

    def check(self, uop: UOp) -> None:
        """Raises RenderError for arithmetic on types that the target can only store."""
        types = {s.dtype.scalar() for s in uop.src}
        if uop.op in GroupOp.ALU and uop.op is not Ops.WHERE and types & self.renderer.storage_only:
            raise RenderError(f"{uop.op} on {uop.src[0].dtype}, which this target only stores: cast it to float32")

    def parameters(self) -> list[str]:
        stored = {pointer_of(u.src[0]) for u in self.uops if u.op is Ops.STORE}
        pointers = [u for u in self.uops if u.op is Ops.PARAM]
        variables = sorted((u for u in self.uops if u.op is Ops.DEFINE_VAR), key=lambda u: u.arg[0])
        access = {True: "", False: "readonly "}
        return [
            f"ptr noalias nocapture nonnull {access[p in stored]}align {p.dtype.base.itemsize} {self.values[p]}"
            for p in sorted(pointers, key=lambda p: p.arg)
        ] + [f"i64 {self.values[v]}" for v in variables]

    # ---- writing

    def line(self, text: str) -> None:
        self.body.append(f"  {text}")

    def register(self, hint: str = "v") -> str:
        self.count += 1
        return f"%{hint}{self.count}"

    def assign(self, text: str, hint: str = "v") -> str:
        """A new register with the value of an instruction."""
        register = self.register(hint)
        self.line(f"{register} = {text}")
        return register

    def label(self, name: str) -> None:
        self.body.append(f"{name}:")

    def as_bits(self, dtype: DType) -> DType:
        """uint16 for types that are only stored, else the type itself."""
        stored = dtype.scalar() in self.renderer.storage_only
        return dtypes.uint16.vec(dtype.count) if stored else dtype

    def in_memory(self, dtype: DType) -> DType:
        """uint8 for bool, else the type in a register."""
        return dtypes.uint8.vec(dtype.count) if dtypes.is_bool(dtype) else self.as_bits(dtype)

    def type(self, dtype: DType) -> str:
        """The name of the type of a value in a register."""
        return llvm_type(self.as_bits(dtype))

    def memory_type(self, dtype: DType) -> str:
        """The name of the type of a value in memory."""
        return llvm_type(self.in_memory(dtype))

    def typed(self, uop: UOp) -> str:
        return f"{self.type(uop.dtype)} {self.values[uop]}"

    def call(self, name: str, result: str, *operands: str, flags: str = "") -> str:
        """A call of an intrinsic, declared on first use. Operands are "type value"."""
        types = ", ".join("ptr" if o.startswith("ptr") else o[: _type_end(o)] for o in operands)
        self.declarations[f"declare {result} @llvm.{name}({types})"] = None
        return f"call {flags}{result} @llvm.{name}({', '.join(operands)})"

    def unknown(self, uop: UOp) -> None:
        raise RenderError(f"the LLVM renderer has no text for {uop.op} of {uop.dtype}")

    # ---- leaves

    def param(self, uop: UOp) -> None:
        self.values[uop] = f"%data{uop.arg}"

    def variable(self, uop: UOp) -> None:
        self.values[uop] = f'%"var.{uop.arg[0]}"'

    def const(self, uop: UOp) -> None:
        self.values[uop] = self.constant(uop.dtype, uop.arg)

    def constant(self, dtype: DType, value: bool | int | float) -> str:
        if dtype not in self.renderer.storage_only:
            return constant(dtype, value)
        return str(half_bits(value) if dtype is dtypes.float16 else float_to_bfloat16_bits(value))

    def define(self, uop: UOp) -> None:
        """An accumulator, or an array that is local to the kernel."""
        dtype = uop.dtype
        assert isinstance(dtype, PtrDType)
        name = self.register("acc" if dtype.space is AddrSpace.REG else "local")
        self.allocas.append(f"  {name} = alloca [{max(dtype.size, 1)} x {self.memory_type(dtype.base)}], align 64")
        self.values[uop] = name

    def nothing(self, uop: UOp) -> None:
        """Emits no text; an alias has the value of what it stands for."""
        if uop.op is Ops.AFTER and uop.src[0] in self.values:
            self.values[uop] = self.values[uop.src[0]]

    # ---- loops

    def begin_loop(self, uop: UOp) -> None:
        number, kind = uop.arg
        name = self.loop_name(f"{'r' if kind is AxisType.REDUCE else ''}idx{number}")
        counter, dtype = f"%{name}", self.type(uop.dtype)
        self.values[uop] = counter
        self.line(f"br label %{name}.enter")
        self.label(f"{name}.enter")
        self.line(f"br label %{name}.loop")
        self.label(f"{name}.loop")
        self.line(f"{counter} = phi {dtype} [ 0, %{name}.enter ], [ {counter}.next, %{name}.latch ]")
        self.line(f"{counter}.more = icmp slt {dtype} {counter}, {self.values[uop.src[0]]}")
        self.line(f"br i1 {counter}.more, label %{name}.body, label %{name}.exit")
        self.label(f"{name}.body")

    def loop_name(self, name: str) -> str:
        """The name, with a number behind it if there is such a loop already."""
        self.loops[name] += 1
        return name if self.loops[name] == 1 else f"{name}.{self.loops[name]}"

    def end_loop(self, uop: UOp) -> None:
        for loop in uop.src[1:]:
            counter = self.values[loop]
            name = counter[1:]
            self.line(f"br label %{name}.latch")
            self.label(f"{name}.latch")
            self.line(f"{counter}.next = add nuw nsw {self.type(loop.dtype)} {counter}, 1")
            self.line(f"br label %{name}.loop")
            self.label(f"{name}.exit")

    # ---- memory

    def index(self, uop: UOp) -> None:
        pointer, offset = uop.src[:2]
        element = self.memory_type(pointer.dtype.base)
        # where a gate is closed, the address may be outside
        inbounds = "inbounds " if len(uop.src) == 2 else ""
        address = f"getelementptr {inbounds}{element}, ptr {self.values[pointer]}, {self.typed(offset)}"
        self.values[uop] = self.assign(address, "p")

    def load(self, uop: UOp) -> None:
        gate = gate_of(uop.src[0])
        if gate is None:
            self.values[uop] = self.from_memory(uop.dtype, self.assign(self.plain_load(uop), "val"))
        elif gate.dtype.count > 1:
            self.masked_load(uop, gate)
        else:
            self.gated_load(uop, gate)

    def plain_load(self, uop: UOp) -> str:
        align = uop.dtype.scalar().itemsize
        return f"load {self.memory_type(uop.dtype)}, ptr {self.values[uop.src[0]]}, align {align}"

    def masked_load(self, uop: UOp, gate: UOp) -> None:
        align, dtype = uop.dtype.scalar().itemsize, self.in_memory(uop.dtype)
        otherwise = f"{self.type(dtype)} {self.to_memory(uop.src[1])}"
        pointer = f"ptr {self.values[uop.src[0]]}"
        name = f"masked.load.{intrinsic_suffix(dtype)}.p0"
        call = self.call(name, self.type(dtype), pointer, f"i32 {align}", self.typed(gate), otherwise)
        self.values[uop] = self.from_memory(uop.dtype, self.assign(call, "val"))

    def gated_load(self, uop: UOp, gate: UOp) -> None:
        """A branch around the load."""
        name = self.register("gate")[1:]
        dtype = self.type(uop.dtype)
        self.line(f"br label %{name}.test")
        self.label(f"{name}.test")
        self.line(f"br i1 {self.values[gate]}, label %{name}.open, label %{name}.join")
        self.label(f"{name}.open")
        loaded = self.from_memory(uop.dtype, self.assign(self.plain_load(uop), "val"))
        self.line(f"br label %{name}.join")
        self.label(f"{name}.join")
        otherwise = self.values[uop.src[1]]
        self.values[uop] = self.assign(
            f"phi {dtype} [ {loaded}, %{name}.open ], [ {otherwise}, %{name}.test ]", "val"
        )

    def store(self, uop: UOp) -> None:
        target, value = uop.src[:2]
        gate = gate_of(target)
        if gate is None:
            self.plain_store(target, value)
        elif gate.dtype.count > 1:
            self.masked_store(target, value, gate)
        else:
            self.gated_store(target, value, gate)

    def plain_store(self, target: UOp, value: UOp) -> None:
        align = value.dtype.scalar().itemsize
        stored = f"{self.memory_type(value.dtype)} {self.to_memory(value)}"
        self.line(f"store {stored}, ptr {self.values[target]}, align {align}")

    def masked_store(self, target: UOp, value: UOp, gate: UOp) -> None:
        align, dtype = value.dtype.scalar().itemsize, self.in_memory(value.dtype)
        stored = f"{self.type(dtype)} {self.to_memory(value)}"
        pointer = f"ptr {self.values[target]}"
        name = f"masked.store.{intrinsic_suffix(dtype)}.p0"
        self.line(self.call(name, "void", stored, pointer, f"i32 {align}", self.typed(gate)))

    def gated_store(self, target: UOp, value: UOp, gate: UOp) -> None:
        name = self.register("gate")[1:]
        self.line(f"br i1 {self.values[gate]}, label %{name}.open, label %{name}.join")
        self.label(f"{name}.open")
        self.plain_store(target, value)
        self.line(f"br label %{name}.join")
        self.label(f"{name}.join")

    def to_memory(self, value: UOp) -> str:
        if not dtypes.is_bool(value.dtype):
            return self.values[value]
        return self.assign(f"zext {self.typed(value)} to {self.memory_type(value.dtype)}")

    def from_memory(self, dtype: DType, loaded: str) -> str:
        if not dtypes.is_bool(dtype):
            return loaded
        return self.assign(f"icmp ne {self.memory_type(dtype)} {loaded}, {splat(self.in_memory(dtype), '0')}")

    # ---- vectors

    def vectorize(self, uop: UOp) -> None:
        dtype = self.type(uop.dtype)
        if all(s.op is Ops.CONST for s in uop.src):
            lanes = uop.src * (uop.dtype.count if len(uop.src) == 1 else 1)
            self.values[uop] = f"<{', '.join(self.typed(s) for s in lanes)}>"
            return
        vector = "poison"
        for number, lane in enumerate(uop.src):
            vector = self.assign(f"insertelement {dtype} {vector}, {self.typed(lane)}, i32 {number}")
        if len(uop.src) == 1:
            mask = f"<{uop.dtype.count} x i32> zeroinitializer"
            vector = self.assign(f"shufflevector {dtype} {vector}, {dtype} poison, {mask}")
        self.values[uop] = vector

    def gep(self, uop: UOp) -> None:
        vector, lanes = uop.src[0], uop.arg
        if vector.dtype.count == 1:
            self.values[uop] = self.values[vector]
        elif len(lanes) == 1:
            self.values[uop] = self.assign(f"extractelement {self.typed(vector)}, i32 {lanes[0]}")
        else:
            mask = f"<{', '.join(f'i32 {lane}' for lane in lanes)}>"
            mask = f"<{len(lanes)} x i32> {mask}"
            poison = f"{self.type(vector.dtype)} poison"
            self.values[uop] = self.assign(f"shufflevector {self.typed(vector)}, {poison}, {mask}")

    # ---- arithmetic

    def instruction(self, uop: UOp) -> None:
        left, right = uop.src
        name = INSTRUCTIONS[uop.op](left.dtype)
        second = self.values[right] if right.dtype is left.dtype else self.convert(right, left.dtype)
        self.values[uop] = self.assign(f"{name} {self.typed(left)}, {second}")

    def intrinsic(self, uop: UOp) -> None:
        flags = "nsz " if uop.op is Ops.MAX and dtypes.is_float(uop.dtype) else ""
        name = f"{INTRINSICS[uop.op](uop.dtype)}.{intrinsic_suffix(uop.dtype)}"
        operands = [self.typed(s) for s in uop.src]
        self.values[uop] = self.assign(self.call(name, self.type(uop.dtype), *operands, flags=flags))

    def negate(self, uop: UOp) -> None:
        operand = uop.src[0]
        if dtypes.is_float(uop.dtype):
            self.values[uop] = self.assign(f"fneg {self.typed(operand)}")
        else:
            self.values[uop] = self.number("sub", uop.dtype, 0, self.values[operand])

    def reciprocal(self, uop: UOp) -> None:
        one = splat(uop.dtype, constant(uop.dtype.scalar(), 1.0))
        self.values[uop] = self.assign(f"fdiv contract {self.type(uop.dtype)} {one}, {self.values[uop.src[0]]}")

    def multiply_add(self, uop: UOp) -> None:
        if dtypes.is_float(uop.dtype):
            return self.intrinsic(uop)
        a, b, c = (self.values[s] for s in uop.src)
        product = self.assign(f"mul {self.type(uop.dtype)} {a}, {b}")
        self.values[uop] = self.assign(f"add {self.type(uop.dtype)} {product}, {c}")

    def where(self, uop: UOp) -> None:
        self.values[uop] = self.assign(f"select {', '.join(self.typed(s) for s in uop.src)}")

    # ---- casts

    def cast(self, uop: UOp) -> None:
        self.values[uop] = self.convert(uop.src[0], uop.dtype)

    def convert(self, value: UOp, to: DType) -> str:
        """The register with `value` in the type `to`."""
        of, text = value.dtype, self.values[value]
        if of is to:
            return text
        if dtypes.is_bool(to):
            compare = "fcmp une" if dtypes.is_float(of) else "icmp ne"
            zero = splat(of, constant(of.scalar(), 0))
            return self.assign(f"{compare} {self.type(of)} {text}, {zero}")
        if {of.scalar(), to.scalar()} & self.renderer.storage_only:
            return self.convert_stored(text, of, to)
        if of.scalar() is dtypes.float64 and to.scalar() is dtypes.float16:
            text, of = self.round_to_odd(text, of.count), dtypes.float32.vec(of.count)
        name = _cast_instruction(of, to)
        return self.assign(f"{name} {self.type(of)} {text} to {self.type(to)}") if name else text

    def convert_stored(self, text: str, of: DType, to: DType) -> str:
        """To and from types that the target cannot compute, by integer arithmetic."""
        convert = STORED_CASTS.get((of.scalar(), to.scalar()))
        if convert is None:
            raise RenderError(f"{of} is not cast to {to}: types that are only stored are cast to and from float32")
        return convert(self, text, of.count)

    def number(self, instruction: str, dtype: DType, *operands: str | int) -> str:
        """An instruction on whole numbers; an int among the operands stands for itself in all lanes."""
        texts = [splat(dtype, str(o)) if isinstance(o, int) else o for o in operands]
        return self.assign(f"{instruction} {self.type(dtype)} {', '.join(texts)}")

    def same_bits(self, text: str, of: DType, to: DType) -> str:
        return self.assign(f"bitcast {self.type(of)} {text} to {self.type(to)}")

    def choose(self, mask: str, dtype: DType, yes: str | int, no: str) -> str:
        condition, kind = self.type(dtypes.bool.vec(dtype.count)), self.type(dtype)
        chosen = splat(dtype, str(yes)) if isinstance(yes, int) else yes
        return self.assign(f"select {condition} {mask}, {kind} {chosen}, {kind} {no}")

    def bfloat16_to_float(self, text: str, count: int) -> str:
        """bfloat16 has the upper half of a float's bits."""
        u16, u32, f32 = (d.vec(count) for d in (dtypes.uint16, dtypes.uint32, dtypes.float32))
        wide = self.assign(f"zext {self.type(u16)} {text} to {self.type(u32)}")
        return self.same_bits(self.number("shl", u32, wide, 16), u32, f32)

    def float_to_bfloat16(self, text: str, count: int) -> str:
        """The upper half of the bits, rounded to nearest even; a NaN is made quiet instead."""
        u16, u32, f32 = (d.vec(count) for d in (dtypes.uint16, dtypes.uint32, dtypes.float32))
        bits = self.same_bits(text, f32, u32)
        high = self.number("lshr", u32, bits, 16)
        bias = self.number("add", u32, self.number("and", u32, high, 1), 0x7FFF)
        rounded = self.number("lshr", u32, self.number("add", u32, bits, bias), 16)
        is_nan = self.assign(f"fcmp uno {self.type(f32)} {text}, {text}")
        chosen = self.choose(is_nan, u32, self.number("or", u32, high, 0x40), rounded)
        return self.assign(f"trunc {self.type(u32)} {chosen} to {self.type(u16)}")

    def half_to_float(self, text: str, count: int) -> str:
        """The exponent of a float counts from 127, of a half from 15: a factor of 2**112, subnormals included."""
        u16, u32, f32 = (d.vec(count) for d in (dtypes.uint16, dtypes.uint32, dtypes.float32))
        wide = self.assign(f"zext {self.type(u16)} {text} to {self.type(u32)}")
        sign = self.number("shl", u32, self.number("and", u32, wide, 0x8000), 16)
        size = self.number("shl", u32, self.number("and", u32, wide, 0x7FFF), 13)
        factor = splat(f32, constant(dtypes.float32, 2.0**112))
        scaled = self.assign(f"fmul {self.type(f32)} {self.same_bits(size, u32, f32)}, {factor}")
        is_special = self.number("icmp uge", u32, size, 0x0F800000)
        infinite = self.number("or", u32, size, 0x7F800000)
        chosen = self.choose(is_special, u32, infinite, self.same_bits(scaled, f32, u32))
        return self.same_bits(self.number("or", u32, sign, chosen), u32, f32)

    def float_to_half(self, text: str, count: int) -> str:
        """Rounded to nearest even. An addition of 0.5 rounds to 24 binary places, as subnormals have."""
        u16, u32, f32 = (d.vec(count) for d in (dtypes.uint16, dtypes.uint32, dtypes.float32))
        bits = self.same_bits(text, f32, u32)
        sign = self.number("and", u32, self.number("lshr", u32, bits, 16), 0x8000)
        size = self.number("and", u32, bits, 0x7FFFFFFF)
        half = splat(f32, constant(dtypes.float32, 0.5))
        shifted = self.assign(f"fadd {self.type(f32)} {self.same_bits(size, u32, f32)}, {half}")
        subnormal = self.number("sub", u32, self.same_bits(shifted, f32, u32), 0x3F000000)
        odd = self.number("and", u32, self.number("lshr", u32, size, 13), 1)
        biased = self.number("add", u32, self.number("sub", u32, size, 0x38000000 - 0xFFF), odd)
        value = self.number("lshr", u32, biased, 13)
        value = self.choose(self.number("icmp ult", u32, size, 0x38800000), u32, subnormal, value)
        value = self.choose(self.number("icmp uge", u32, size, 0x477FF000), u32, 0x7C00, value)
        value = self.choose(self.number("icmp ugt", u32, size, 0x7F800000), u32, 0x7E00, value)
        return self.assign(f"trunc {self.type(u32)} {self.number('or', u32, sign, value)} to {self.type(u16)}")

    def round_to_odd(self, text: str, count: int) -> str:
        """double → float so that rounding once more, to half, is right: the last bit says if anything was lost."""
        u64, f64, f32 = (d.vec(count) for d in (dtypes.uint64, dtypes.float64, dtypes.float32))
        lost = (1 << 29) - 1  # a double has 29 bits of mantissa more than a float
        bits = self.same_bits(text, f64, u64)
        carry = self.number("add", u64, self.number("and", u64, bits, lost), lost)
        kept = self.number("and", u64, self.number("or", u64, bits, carry), (1 << 64) - 1 - lost)
        return self.assign(f"fptrunc {self.type(f64)} {self.same_bits(kept, u64, f64)} to {self.type(f32)}")

    def double_to_half(self, text: str, count: int) -> str:
        return self.float_to_half(self.round_to_odd(text, count), count)

    def bitcast(self, uop: UOp) -> None:
        of, to = self.type(uop.src[0].dtype), self.type(uop.dtype)
        if dtypes.is_bool(uop.dtype) or dtypes.is_bool(uop.src[0].dtype):
            self.values[uop] = self.convert(uop.src[0], uop.dtype)
        elif of == to:
            self.values[uop] = self.values[uop.src[0]]
        else:
            self.values[uop] = self.assign(f"bitcast {self.typed(uop.src[0])} to {to}")


def _cast_instruction(of: DType, to: DType) -> str:
    """LLVM's name of the cast; empty if the bits stay as they are."""
    of_float, to_float = dtypes.is_float(of), dtypes.is_float(to)
    signed = of.kind == "i"
    if of_float and to_float:
        return "fpext" if to.bits > of.bits else "fptrunc"
    if of_float:
        return "fptosi" if to.kind == "i" else "fptoui"
    if to_float:
        return "sitofp" if signed else "uitofp"
    if to.bits == of.bits:
        return ""
    if to.bits < of.bits:
        return "trunc"
    return "sext" if signed else "zext"


def _type_end(operand: str) -> int:
    """Where the type of "type value" ends."""
    return operand.index(">") + 1 if operand.startswith("<") else operand.index(" ")


# casts of types that are only stored
STORED_CASTS: dict[tuple[DType, DType], Callable[[_Function, str, int], str]] = {
    (dtypes.bfloat16, dtypes.float32): _Function.bfloat16_to_float,
    (dtypes.float32, dtypes.bfloat16): _Function.float_to_bfloat16,
    (dtypes.float16, dtypes.float32): _Function.half_to_float,
    (dtypes.float32, dtypes.float16): _Function.float_to_half,
    (dtypes.float64, dtypes.float16): _Function.double_to_half,
}

EMIT: dict[Ops, Callable[[_Function, UOp], None]] = {
    **dict.fromkeys(INSTRUCTIONS, _Function.instruction),
    **dict.fromkeys(INTRINSICS, _Function.intrinsic),
    **dict.fromkeys((Ops.AFTER, Ops.GROUP, Ops.SINK), _Function.nothing),
    **dict.fromkeys((Ops.DEFINE_REG, Ops.DEFINE_LOCAL), _Function.define),
    Ops.PARAM: _Function.param,
    Ops.DEFINE_VAR: _Function.variable,
    Ops.CONST: _Function.const,
    Ops.RANGE: _Function.begin_loop,
    Ops.END: _Function.end_loop,
    Ops.INDEX: _Function.index,
    Ops.LOAD: _Function.load,
    Ops.STORE: _Function.store,
    Ops.VECTORIZE: _Function.vectorize,
    Ops.GEP: _Function.gep,
    Ops.NEG: _Function.negate,
    Ops.RECIPROCAL: _Function.reciprocal,
    Ops.MULACC: _Function.multiply_add,
    Ops.WHERE: _Function.where,
    Ops.CAST: _Function.cast,
    Ops.BITCAST: _Function.bitcast,
}
