"""The loader of objects: against readelf's view of them, and what it refuses."""
import ctypes
import shutil
import subprocess

import pytest

from tensor_engine.runtime import elf
from tensor_engine.runtime.cc import CCompiler
from tensor_engine.runtime.elf import LoadedObject, LoadError, ObjectFile
from tensor_engine.runtime.llvm import LLVMCompiler, Target

# a constant table and a call between functions: the object has relocations
TABLE = """\
@table = private unnamed_addr constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5], align 32
define double @look(i64 %i) noinline {
  %p = getelementptr double, ptr @table, i64 %i
  %x = load double, ptr %p
  ret double %x
}
define double @sum() {
  %a = call double @look(i64 1)
  %b = call double @look(i64 3)
  %c = fadd double %a, %b
  ret double %c
}
"""
AARCH64 = Target("aarch64-unknown-linux-gnu", "cortex-a72", "+neon")


def test_data_and_calls_within_an_object():
    loaded = LoadedObject(LLVMCompiler().compile(TABLE))
    look = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(loaded["look"])
    assert [look(i) for i in range(4)] == [1.5, 2.5, 3.5, 4.5]
    assert ctypes.CFUNCTYPE(ctypes.c_double)(loaded["sum"])() == 7.0


def test_a_c_object_with_constant_data():
    source = """
    static const float table[3] = {1, 2, 3};
    float next(int i) { return table[i] * 0.25f; }
    """
    loaded = LoadedObject(CCompiler().compile(source))
    following = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int)(loaded["next"])
    assert [following(i) for i in range(3)] == [0.25, 0.5, 0.75]


@pytest.mark.skipif(shutil.which("readelf") is None, reason="binutils are not installed")
def test_sections_and_symbols_are_what_readelf_sees(tmp_path):
    data = LLVMCompiler().compile(TABLE)
    file = tmp_path / "table.o"
    file.write_bytes(data)
    parsed = ObjectFile(data)
    seen = subprocess.run(["readelf", "-W", "-S", "-s", "-r", str(file)], capture_output=True, text=True, check=True)
    for section in parsed.sections[1:]:
        assert f"{section.name} " in seen.stdout
        assert f"{section.offset:06x} {section.size:06x}" in seen.stdout
    for relocation in parsed.relocations:
        assert f"{relocation.offset:016x}" in seen.stdout
    assert {"look", "sum"} <= {s.name for s in parsed.symbols}


def test_a_symbol_that_is_not_there():
    with pytest.raises(LoadError, match="has no 'other'; it has .*look"):
        LoadedObject(LLVMCompiler().compile(TABLE))["other"]


def test_an_object_that_needs_a_library_is_refused():
    source = "declare void @free(ptr)\ndefine void @f(ptr %x) {\n call void @free(ptr %x)\n ret void\n}"
    with pytest.raises(LoadError, match="needs free, which no kernel may use"):
        LoadedObject(LLVMCompiler().compile(source))


def test_an_object_for_another_machine_is_refused():
    other = Target("x86_64-unknown-linux-gnu", "x86-64") if elf.system.machine == "aarch64" else AARCH64
    with pytest.raises(LoadError, match="is for ELF machine"):
        LoadedObject(LLVMCompiler(other).compile(TABLE))


@pytest.mark.parametrize("length", [0, 5, 40, 64, 100, 300])
def test_a_cut_object_is_refused(length):
    data = LLVMCompiler().compile(TABLE)
    with pytest.raises(LoadError, match="damaged"):
        LoadedObject(data[:length])


def test_what_is_no_object_is_refused():
    with pytest.raises(LoadError, match="damaged.*no 64-bit"):
        LoadedObject(b"#!/bin/sh\n" * 100)


def test_aarch64_relocations_are_known():
    parsed = ObjectFile(LLVMCompiler(AARCH64).compile(TABLE))
    assert parsed.machine == elf.EM_AARCH64
    assert parsed.relocations
    assert {r.type for r in parsed.relocations} <= set(elf.RELOCATIONS[elf.EM_AARCH64])


def test_an_aarch64_address_is_patched_as_the_manual_says():
    """ADRP x0, page; ADD x0, x0, #low: Arm Architecture Reference Manual, C6.2."""
    code = bytearray.fromhex("00000090" "00000091")
    place, value = 0x10000, 0x12345678
    elf.RELOCATIONS[elf.EM_AARCH64][275](memoryview(code)[0:], place, value)
    elf.RELOCATIONS[elf.EM_AARCH64][277](memoryview(code)[4:], place + 4, value)
    adrp, add = int.from_bytes(code[:4], "little"), int.from_bytes(code[4:], "little")
    pages = (adrp >> 5 & 0x7FFFF) << 2 | adrp >> 29 & 3
    assert (place & ~0xFFF) + (pages << 12) + (add >> 10 & 0xFFF) == value


def test_code_goes_with_its_object(monkeypatch):
    unmapped = []
    monkeypatch.setattr(elf.system, "unmap_pages", lambda address, nbytes: unmapped.append(address))
    loaded = LoadedObject(LLVMCompiler().compile(TABLE))
    address = loaded.address
    del loaded
    assert unmapped == [address]
