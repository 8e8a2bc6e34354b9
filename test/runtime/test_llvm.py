"""LLVM for this machine and others."""
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from linear import Compiled, Kernel
from renderer.test_memory import matmul

from tensor_engine.device import CompileError, Device
from tensor_engine.dtype import dtypes
from tensor_engine.helpers import Context
from tensor_engine.renderer.llvmir import LLVMRenderer
from tensor_engine.runtime import elf
from tensor_engine.runtime.elf import ObjectFile
from tensor_engine.runtime.llvm import LLVMCompiler, Target, host, renderer_for
from tensor_engine.uop.op import GroupOp, Ops

TARGETS = {
    "neon": Target("aarch64-unknown-linux-gnu", "cortex-a72", "+neon"),
    "neon with half": Target("aarch64-unknown-linux-gnu", "cortex-a76", "+neon,+fullfp16"),
    "sse4": Target("x86_64-unknown-linux-gnu", "goldmont", "+sse4.1,+sse4.2"),
    "avx2": Target("x86_64-unknown-linux-gnu", "haswell", "+avx,+avx2,+fma,+f16c"),
    "avx512": Target("x86_64-unknown-linux-gnu", "skylake-avx512", "+avx,+avx2,+fma,+f16c,+avx512f"),
}
on_every_target = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())


def everything(renderer: LLVMRenderer, dtype, lanes: int) -> Kernel:
    """A kernel with all operations on a type, its casts, and masked memory."""
    kernel = Kernel("everything")
    ops = [op for op in renderer.code_for_op if op is not Ops.WHERE and allowed(op, dtype)]
    data, out = kernel.param(0, dtype, 64), kernel.param(1, dtype, 64 * len(ops))
    a, b, c = (kernel.load(data, i * lanes, lanes) for i in range(3))
    gate = kernel.alu(Ops.CMPLT, a, b)
    for i, op in enumerate(ops):
        count = 1 if op in GroupOp.UNARY else 3 if op is Ops.MULACC else 2
        value = kernel.alu(op, *(a, b, c)[:count])
        value = kernel.alu(Ops.WHERE, value, a, b) if op in GroupOp.COMPARE else value
        kernel.store(out, i * lanes, value, gate)
    for number, other in enumerate(d for d in dtypes.all if d not in renderer.storage_only):
        kernel.store(kernel.param(2 + number, other, 64), 0, kernel.cast(a, other))
    return kernel


def allowed(op: Ops, dtype) -> bool:
    if dtype.kind == "b":
        return op in (Ops.AND, Ops.OR, Ops.XOR, Ops.MAX, *GroupOp.COMPARE)
    only_float = op in (Ops.SQRT, Ops.TRUNC, Ops.RECIPROCAL, Ops.FDIV)
    only_int = op in (Ops.IDIV, Ops.MOD, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR)
    return not only_int if dtype.kind == "f" else not only_float


@on_every_target
@pytest.mark.parametrize("lanes", [1, 8])
def test_objects_need_nothing_from_a_library(target, lanes):
    renderer, compiler = renderer_for(target), LLVMCompiler(target)
    machine = elf.MACHINES[target.machine]
    for dtype in dtypes.all:
        if dtype in renderer.storage_only:
            continue
        parsed = ObjectFile(compiler.compile(renderer.render(everything(renderer, dtype, lanes).linear())))
        assert parsed.machine == machine
        assert parsed.undefined == [], dtype
        assert {r.type for r in parsed.relocations if parsed.sections[r.section].name != ".eh_frame"} <= set(
            elf.RELOCATIONS[machine]
        )


@on_every_target
@pytest.mark.parametrize("stored", [dtypes.float16, dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("lanes", [1, 8])
def test_casts_of_stored_floats_need_nothing_from_a_library(target, stored, lanes):
    kernel = Kernel()
    data, out = kernel.param(0, stored, 64), kernel.param(1, dtypes.float32, 64)
    kernel.store(out, 0, kernel.cast(kernel.load(data, 0, lanes), dtypes.float32))
    kernel.store(data, 0, kernel.cast(kernel.load(out, 8, lanes), stored))
    assert ObjectFile(LLVMCompiler(target).compile(renderer_for(target).render(kernel.linear()))).undefined == []


@pytest.mark.parametrize(
    "target,instruction", [("neon", "fmla"), ("avx2", "vfmadd"), ("avx512", "vfmadd")], ids=lambda x: x
)
def test_products_are_added_in_one_instruction(target, instruction):
    source = renderer_for(TARGETS[target]).render(matmul(16, 8).linear())
    assert instruction in LLVMCompiler(TARGETS[target]).assembly(source)


def test_what_the_target_says_of_its_vectors():
    widths = {name: (t.vector_bytes, t.registers) for name, t in TARGETS.items()}
    assert widths == {
        "neon": (16, 32), "neon with half": (16, 32), "sse4": (16, 16), "avx2": (32, 16), "avx512": (64, 32),
    }  # fmt: skip


def test_wide_registers_are_used_where_there_are_some():
    source = renderer_for(TARGETS["avx512"]).render(matmul(16, 16).linear())
    assert "zmm" in LLVMCompiler(TARGETS["avx512"]).assembly(source)


def test_text_that_is_no_llvm_ir():
    with pytest.raises(CompileError, match="does not take this text.*\n.*\n.*nonsense"):
        LLVMCompiler().compile("define nonsense")


def test_the_key_tells_targets_apart():
    keys = {LLVMCompiler(target).key for target in TARGETS.values()}
    assert len(keys) == len(TARGETS)
    assert host().cpu in LLVMCompiler().key


def test_threads_compile_at_once():
    compiler, sources = LLVMCompiler(), [LLVMRenderer().render(matmul(n, 4).linear()) for n in (4, 8, 12, 16)]
    alone = [compiler.compile(source) for source in sources]
    with ThreadPoolExecutor(4) as pool:
        together = [*pool.map(compiler.compile, sources * 4)]
    assert together == alone * 4


@pytest.mark.skipif(shutil.which("objdump") is None, reason="binutils are not installed")
@pytest.mark.parametrize("backend", ["CPU:LLVM", "CPU:C"])
def test_machine_code_can_be_read(backend):
    with Context(DEV=backend):
        text = Device["CPU"].compiler.disassemble(Compiled(matmul(8, 4), backend).binary)
    assert "<matmul>:" in text and "ret" in text


def test_no_disassembler_is_no_error(monkeypatch):
    monkeypatch.setattr(elf.system, "find_program", lambda *names: None)
    assert "install binutils" in LLVMCompiler().disassemble(b"")
