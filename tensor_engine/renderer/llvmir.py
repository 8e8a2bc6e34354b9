"""Linear uops → LLVM IR as text, for any CPU that LLVM has.

Rules of the translation:
- a bool is i1 in registers and one byte in memory; bfloat16 is i16, and its casts are integer arithmetic;
- accumulators are allocas, which LLVM's mem2reg turns into registers;
- memory is only known to be aligned to its elements; different parameters never overlap;
- `contract` allows fused multiply-add, and is all of fast-math that there is;
- nothing may become a call into a library: such casts are spelled out, and `no-builtins` keeps loops from
  turning into memset.
"""
from __future__ import annotations

import math
import struct
from collections.abc import Callable

from tensor_engine.dtype import AddrSpace, DType, PtrDType, dtypes, float_to_bfloat16_bits
from tensor_engine.renderer import Renderer, RenderError, kernel_name, without_after
from tensor_engine.uop.op import AxisType, Ops
from tensor_engine.uop.uop import UOp

_FLOATS = {"float16": "half", "bfloat16": "i16", "float32": "float", "float64": "double"}


def llvm_type(dtype: DType) -> str:
    """The type of a value in a register."""
    if isinstance(dtype, PtrDType):
        return "ptr"
    scalar = _FLOATS.get(dtype.scalar().name) or f"i{dtype.bits}"
    return scalar if dtype.count == 1 else f"<{dtype.count} x {scalar}>"


def memory_type(dtype: DType) -> str:
    """The type of a value in memory."""
    return llvm_type(in_memory(dtype))


def in_memory(dtype: DType) -> DType:
    """uint8 for bool, else the type itself."""
    return dtypes.uint8.vec(dtype.count) if dtypes.is_bool(dtype) else dtype


def intrinsic_suffix(dtype: DType) -> str:
    """The type as the names of LLVM's intrinsics spell it: v8f32."""
    scalar = ("i" if _is_integer(dtype) else "f") + str(dtype.bits)
    return scalar if dtype.count == 1 else f"v{dtype.count}{scalar}"


def _is_integer(dtype: DType) -> bool:
    return dtype.kind != "f" or dtype.name == "bfloat16"


def constant(dtype: DType, value: bool | int | float) -> str:
    """A scalar constant. Floats are written by their bits, so that infinities and NaNs work like the others."""
    if dtypes.is_bool(dtype):
        return "true" if value else "false"
    if dtype.name == "bfloat16":
        return str(float_to_bfloat16_bits(value))
    if dtype.name == "float16":
        return f"0xH{struct.unpack('H', struct.pack('e', value))[0]:04X}"
    if dtypes.is_float(dtype):
        number = math.copysign(math.nan, value) if value != value else value
        return f"0x{struct.unpack('Q', struct.pack('d', number))[0]:016X}"
    return str(int(value))


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
    """LLVM IR for the CPU. `vector_bytes` and `registers` describe the target's vector unit."""

    name = "LLVM"
    device = "CPU"
    masked_memory = True
    index_dtype = dtypes.int64
    code_for_op = {
        **INSTRUCTIONS, **INTRINSICS,
        **dict.fromkeys((Ops.NEG, Ops.RECIPROCAL, Ops.WHERE), _pick("", "")),
    }  # fmt: skip
    vector_ops = frozenset(code_for_op) | {Ops.CAST, Ops.BITCAST}

    def __init__(self, vector_bytes: int = 16, registers: int = 16):
        self.vector_bytes, self.registers = vector_bytes, registers

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
        self.count = 0

    def text(self) -> str:
        for uop in self.uops:
            EMIT.get(uop.op, _Function.unknown)(self, uop)
        width = self.renderer.vector_bytes * 8
        attributes = f'nounwind "no-builtins" "prefer-vector-width"="{width}" "min-legal-vector-width"="{width}"'
        return "\n".join([
            f"define void @{kernel_name(self.uops)}({', '.join(self.parameters())}) #0 {{",
            "entry:", *self.allocas, *self.body, "  ret void", "}", "",
            *self.declarations, f"attributes #0 = {{ {attributes} }}", "",
        ])  # fmt: skip

    def parameters(self) -> list[str]:
        stored = {_memory(u.src[0]) for u in self.uops if u.op is Ops.STORE}
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

    def typed(self, uop: UOp) -> str:
        return f"{llvm_type(uop.dtype)} {self.values[uop]}"

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
        self.values[uop] = f"%{uop.arg[0]}"

    def const(self, uop: UOp) -> None:
        self.values[uop] = constant(uop.dtype, uop.arg)

    def define(self, uop: UOp) -> None:
        """An accumulator, or an array that is local to the kernel."""
        dtype = uop.dtype
        assert isinstance(dtype, PtrDType)
        name = self.register("acc" if dtype.space is AddrSpace.REG else "local")
        self.allocas.append(f"  {name} = alloca [{max(dtype.size, 1)} x {memory_type(dtype.base)}], align 64")
        self.values[uop] = name

    def nothing(self, uop: UOp) -> None:
        """Emits no text; an alias has the value of what it stands for."""
        if uop.op is Ops.AFTER and uop.src[0] in self.values:
            self.values[uop] = self.values[uop.src[0]]

    # ---- loops

    def begin_loop(self, uop: UOp) -> None:
        number, kind = uop.arg
        name = f"{'r' if kind is AxisType.REDUCE else ''}idx{number}"
        counter, dtype = f"%{name}", llvm_type(uop.dtype)
        self.values[uop] = counter
        self.line(f"br label %{name}.enter")
        self.label(f"{name}.enter")
        self.line(f"br label %{name}.loop")
        self.label(f"{name}.loop")
        self.line(f"{counter} = phi {dtype} [ 0, %{name}.enter ], [ {counter}.next, %{name}.latch ]")
        self.line(f"{counter}.more = icmp slt {dtype} {counter}, {self.values[uop.src[0]]}")
        self.line(f"br i1 {counter}.more, label %{name}.body, label %{name}.exit")
        self.label(f"{name}.body")

    def end_loop(self, uop: UOp) -> None:
        for loop in uop.src[1:]:
            counter = self.values[loop]
            name = counter[1:]
            self.line(f"br label %{name}.latch")
            self.label(f"{name}.latch")
            self.line(f"{counter}.next = add nuw nsw {llvm_type(loop.dtype)} {counter}, 1")
            self.line(f"br label %{name}.loop")
            self.label(f"{name}.exit")

    # ---- memory

    def index(self, uop: UOp) -> None:
        pointer, offset = uop.src[:2]
        element = memory_type(pointer.dtype.base)
        self.values[uop] = self.assign(
            f"getelementptr inbounds {element}, ptr {self.values[pointer]}, {self.typed(offset)}", "p"
        )

    def load(self, uop: UOp) -> None:
        gate = _gate(uop.src[0])
        if gate is None:
            self.values[uop] = self.from_memory(uop.dtype, self.assign(self.plain_load(uop), "val"))
        elif gate.dtype.count > 1:
            self.masked_load(uop, gate)
        else:
            self.gated_load(uop, gate)

    def plain_load(self, uop: UOp) -> str:
        align = uop.dtype.scalar().itemsize
        return f"load {memory_type(uop.dtype)}, ptr {self.values[uop.src[0]]}, align {align}"

    def masked_load(self, uop: UOp, gate: UOp) -> None:
        align, dtype = uop.dtype.scalar().itemsize, in_memory(uop.dtype)
        otherwise = f"{llvm_type(dtype)} {self.to_memory(uop.src[1])}"
        pointer = f"ptr {self.values[uop.src[0]]}"
        name = f"masked.load.{intrinsic_suffix(dtype)}.p0"
        call = self.call(name, llvm_type(dtype), pointer, f"i32 {align}", self.typed(gate), otherwise)
        self.values[uop] = self.from_memory(uop.dtype, self.assign(call, "val"))

    def gated_load(self, uop: UOp, gate: UOp) -> None:
        """A branch around the load."""
        name = self.register("gate")[1:]
        dtype = llvm_type(uop.dtype)
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
        gate = _gate(target)
        if gate is None:
            self.plain_store(target, value)
        elif gate.dtype.count > 1:
            self.masked_store(target, value, gate)
        else:
            self.gated_store(target, value, gate)

    def plain_store(self, target: UOp, value: UOp) -> None:
        align = value.dtype.scalar().itemsize
        stored = f"{memory_type(value.dtype)} {self.to_memory(value)}"
        self.line(f"store {stored}, ptr {self.values[target]}, align {align}")

    def masked_store(self, target: UOp, value: UOp, gate: UOp) -> None:
        align, dtype = value.dtype.scalar().itemsize, in_memory(value.dtype)
        stored = f"{llvm_type(dtype)} {self.to_memory(value)}"
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
        return self.assign(f"zext {self.typed(value)} to {memory_type(value.dtype)}")

    def from_memory(self, dtype: DType, loaded: str) -> str:
        if not dtypes.is_bool(dtype):
            return loaded
        return self.assign(f"icmp ne {memory_type(dtype)} {loaded}, {splat(in_memory(dtype), '0')}")

    # ---- vectors

    def vectorize(self, uop: UOp) -> None:
        dtype = llvm_type(uop.dtype)
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
            poison = f"{llvm_type(vector.dtype)} poison"
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
        self.values[uop] = self.assign(self.call(name, llvm_type(uop.dtype), *operands, flags=flags))

    def negate(self, uop: UOp) -> None:
        instruction = "fneg " if dtypes.is_float(uop.dtype) else f"sub {llvm_type(uop.dtype)} {splat(uop.dtype, '0')}, "
        operand = self.typed(uop.src[0]) if dtypes.is_float(uop.dtype) else self.values[uop.src[0]]
        self.values[uop] = self.assign(instruction + operand)

    def reciprocal(self, uop: UOp) -> None:
        one = splat(uop.dtype, constant(uop.dtype.scalar(), 1.0))
        self.values[uop] = self.assign(f"fdiv contract {llvm_type(uop.dtype)} {one}, {self.values[uop.src[0]]}")

    def multiply_add(self, uop: UOp) -> None:
        if dtypes.is_float(uop.dtype):
            return self.intrinsic(uop)
        a, b, c = (self.values[s] for s in uop.src)
        product = self.assign(f"mul {llvm_type(uop.dtype)} {a}, {b}")
        self.values[uop] = self.assign(f"add {llvm_type(uop.dtype)} {product}, {c}")

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
            return self.assign(f"{compare} {llvm_type(of)} {text}, {zero}")
        if of.scalar() is dtypes.bfloat16:
            return self.from_bfloat16(text, to)
        if to.scalar() is dtypes.bfloat16:
            return self.to_bfloat16(text, of, to)
        if of.scalar() is dtypes.float64 and to.scalar() is dtypes.float16:
            text, of = self.round_to_odd(text, of), dtypes.float32.vec(of.count)
        name = _cast_instruction(of, to)
        return self.assign(f"{name} {llvm_type(of)} {text} to {llvm_type(to)}") if name else text

    def from_bfloat16(self, text: str, to: DType) -> str:
        """bfloat16 has the upper half of a float's bits."""
        if to.scalar() is not dtypes.float32:
            raise RenderError(f"bfloat16 is cast to float32 only, not to {to}")
        bits = llvm_type(dtypes.uint32.vec(to.count))
        wide = self.assign(f"zext {llvm_type(dtypes.uint16.vec(to.count))} {text} to {bits}")
        shifted = self.assign(f"shl {bits} {wide}, {splat(dtypes.uint32.vec(to.count), '16')}")
        return self.assign(f"bitcast {bits} {shifted} to {llvm_type(to)}")

    def to_bfloat16(self, text: str, of: DType, to: DType) -> str:
        """The upper half of the bits, rounded to nearest even; a NaN is made quiet instead."""
        if of.scalar() is not dtypes.float32:
            raise RenderError(f"bfloat16 is cast from float32 only, not from {of}")
        dtype = dtypes.uint32.vec(to.count)
        kind = llvm_type(dtype)

        def number(value: int) -> str:
            return splat(dtype, str(value))

        bits = self.assign(f"bitcast {llvm_type(of)} {text} to {kind}")
        high = self.assign(f"lshr {kind} {bits}, {number(16)}")
        odd = self.assign(f"and {kind} {high}, {number(1)}")
        bias = self.assign(f"add {kind} {odd}, {number(0x7FFF)}")
        biased = self.assign(f"add {kind} {bits}, {bias}")
        rounded = self.assign(f"lshr {kind} {biased}, {number(16)}")
        quiet = self.assign(f"or {kind} {high}, {number(0x40)}")
        is_nan = self.assign(f"fcmp uno {llvm_type(of)} {text}, {text}")
        mask = llvm_type(dtypes.bool.vec(to.count))
        chosen = self.assign(f"select {mask} {is_nan}, {kind} {quiet}, {kind} {rounded}")
        return self.assign(f"trunc {kind} {chosen} to {llvm_type(to)}")

    def round_to_odd(self, text: str, of: DType) -> str:
        """double → float so that rounding once more, to half, is right: the last bit says if anything was lost."""
        dtype = dtypes.uint64.vec(of.count)
        kind = llvm_type(dtype)
        lost = (1 << 29) - 1  # a double has 29 bits of mantissa more than a float
        bits = self.assign(f"bitcast {llvm_type(of)} {text} to {kind}")
        tail = self.assign(f"and {kind} {bits}, {splat(dtype, str(lost))}")
        carry = self.assign(f"add {kind} {tail}, {splat(dtype, str(lost))}")
        sticky = self.assign(f"or {kind} {bits}, {carry}")
        kept = self.assign(f"and {kind} {sticky}, {splat(dtype, str((1 << 64) - 1 - lost))}")
        double = self.assign(f"bitcast {kind} {kept} to {llvm_type(of)}")
        return self.assign(f"fptrunc {llvm_type(of)} {double} to {llvm_type(dtypes.float32.vec(of.count))}")

    def bitcast(self, uop: UOp) -> None:
        of, to = llvm_type(uop.src[0].dtype), llvm_type(uop.dtype)
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


def _memory(address: UOp) -> UOp:
    """The PARAM or register that an address points into."""
    while address.op in (Ops.AFTER, Ops.INDEX):
        address = address.src[0]
    return address


def _gate(address: UOp) -> UOp | None:
    node = without_after(address)
    return node.src[2] if node.op is Ops.INDEX and len(node.src) > 2 else None


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
