"""A loader for what compilers emit: one ELF object without external symbols → executable memory.

Layouts and relocations: System V ABI (gABI chapter 4), its x86-64 and AArch64 supplements (`elf.h`).
"""
from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tensor_engine.helpers import round_up
from tensor_engine.runtime.system import PAGE, system

SHT_SYMTAB, SHT_RELA, SHT_NOBITS = 2, 4, 8
SHF_ALLOC = 2
SHN_UNDEF, SHN_ABS = 0, 0xFFF1
EM_X86_64, EM_AARCH64 = 62, 183


class LoadError(RuntimeError):
    """An object that cannot be loaded: damaged, for another machine, or in need of something it does not bring."""


@dataclass
class Section:
    """An entry of the section header table."""

    name: str
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


@dataclass
class Symbol:
    """An entry of the symbol table."""

    name: str
    section: int
    value: int


@dataclass
class Relocation:
    """Place `symbol + addend`, in the way of `type`, at `offset` within section `section`."""

    section: int
    offset: int
    type: int
    symbol: Symbol
    addend: int


class ObjectFile:
    """The parsed object. Raises LoadError if it is none."""

    def __init__(self, data: bytes):
        self.data = data
        try:
            self._parse()
        except (struct.error, IndexError, ValueError) as error:
            raise LoadError(f"a damaged object of {len(data)} bytes: {error}") from error

    def _parse(self) -> None:
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("no 64-bit little-endian ELF file")
        self.machine = struct.unpack_from("<H", self.data, 18)[0]
        table, = struct.unpack_from("<Q", self.data, 40)
        entry_size, count, names = struct.unpack_from("<HHH", self.data, 58)
        raw = [struct.unpack_from("<IIQQQQIIQQ", self.data, table + i * entry_size) for i in range(count)]
        name_offset = raw[names][4]
        self.sections = [
            Section(self._string(name_offset + name), kind, flags, offset, size, link, info, align)
            for name, kind, flags, _, offset, size, link, info, align, _ in raw
        ]
        self.symbols = [symbol for s in self.sections if s.type == SHT_SYMTAB for symbol in self._symbols(s)]
        self.relocations = [r for s in self.sections if s.type == SHT_RELA for r in self._relocations(s)]

    def _string(self, offset: int) -> str:
        return self.data[offset : self.data.index(b"\0", offset)].decode()

    def _symbols(self, section: Section) -> list[Symbol]:
        strings = self.sections[section.link].offset
        entries = struct.iter_unpack("<IBBHQQ", self.content(section))
        return [Symbol(self._string(strings + name), index, value) for name, _, _, index, value, _ in entries]

    def _relocations(self, section: Section) -> list[Relocation]:
        entries = struct.iter_unpack("<QQq", self.content(section))
        return [
            Relocation(section.info, offset, info & 0xFFFFFFFF, self.symbols[info >> 32], addend)
            for offset, info, addend in entries
        ]

    def content(self, section: Section) -> bytes:
        """The section's bytes."""
        if section.type == SHT_NOBITS:
            return bytes(section.size)
        content = self.data[section.offset : section.offset + section.size]
        if len(content) != section.size:
            raise ValueError(f"section {section.name} ends outside of the file")
        return content

    @property
    def undefined(self) -> list[str]:
        """Symbols that the object needs and does not bring."""
        return [s.name for s in self.symbols[1:] if s.section == SHN_UNDEF and s.name]


# ---- relocations: (place, address of the place, value) → nothing; `value` is symbol + addend ----------------------


def _pc32(code: memoryview, place: int, value: int) -> None:
    struct.pack_into("<i", code, 0, value - place)


def _pc64(code: memoryview, place: int, value: int) -> None:
    struct.pack_into("<q", code, 0, value - place)


def _abs64(code: memoryview, place: int, value: int) -> None:
    struct.pack_into("<Q", code, 0, value)


def _patch_instruction(code: memoryview, mask: int, bits: int) -> None:
    instruction, = struct.unpack_from("<I", code)
    struct.pack_into("<I", code, 0, instruction & ~mask | bits & mask)


def _adrp(code: memoryview, place: int, value: int) -> None:
    pages = (value >> 12) - (place >> 12)
    if not -(1 << 20) <= pages < 1 << 20:
        raise LoadError("the data lies too far from the code")
    _patch_instruction(code, 0x60FFFFE0, (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5)


def _low12(shift: int) -> Callable[[memoryview, int, int], None]:
    def patch(code: memoryview, place: int, value: int) -> None:
        _patch_instruction(code, 0x3FFC00, (value & 0xFFF) >> shift << 10)

    return patch


def _branch26(code: memoryview, place: int, value: int) -> None:
    _patch_instruction(code, 0x3FFFFFF, value - place >> 2)


RELOCATIONS: dict[int, dict[int, Callable[[memoryview, int, int], None]]] = {
    EM_X86_64: {
        1: _abs64,  # R_X86_64_64
        2: _pc32,  # R_X86_64_PC32
        4: _pc32,  # R_X86_64_PLT32
        24: _pc64,  # R_X86_64_PC64
    },
    EM_AARCH64: {
        257: _abs64,  # R_AARCH64_ABS64
        260: _pc64,  # R_AARCH64_PREL64
        261: _pc32,  # R_AARCH64_PREL32
        275: _adrp,  # R_AARCH64_ADR_PREL_PG_HI21
        277: _low12(0),  # R_AARCH64_ADD_ABS_LO12_NC
        278: _low12(0),  # R_AARCH64_LDST8_ABS_LO12_NC
        282: _branch26,  # R_AARCH64_JUMP26
        283: _branch26,  # R_AARCH64_CALL26
        284: _low12(1),  # R_AARCH64_LDST16_ABS_LO12_NC
        285: _low12(2),  # R_AARCH64_LDST32_ABS_LO12_NC
        286: _low12(3),  # R_AARCH64_LDST64_ABS_LO12_NC
        299: _low12(4),  # R_AARCH64_LDST128_ABS_LO12_NC
    },
}
MACHINES = {"x86_64": EM_X86_64, "AMD64": EM_X86_64, "aarch64": EM_AARCH64, "arm64": EM_AARCH64}


class LoadedObject:
    """An object in executable memory, which goes with this Python object. Raises LoadError."""

    def __init__(self, data: bytes):
        file = ObjectFile(data)
        _check(file)
        placed = _place(file)
        size = max(round_up(max((start + file.sections[i].size for i, start in placed.items()), default=0), PAGE), PAGE)
        self.address = system.map_pages(size)
        weakref.finalize(self, system.unmap_pages, self.address, size)
        memory = memoryview((ctypes.c_ubyte * size).from_address(self.address)).cast("B")
        for number, start in placed.items():
            section = file.sections[number]
            memory[start : start + section.size] = file.content(section)
        for relocation in file.relocations:
            if relocation.section in placed:
                self._relocate(file, memory, placed, relocation)
        system.make_executable(self.address, size)
        self.symbols = {
            s.name: self.address + placed[s.section] + s.value for s in file.symbols if s.section in placed and s.name
        }

    def _relocate(self, file: ObjectFile, memory: memoryview, placed: dict[int, int], r: Relocation) -> None:
        patch = RELOCATIONS[file.machine].get(r.type)
        if patch is None:
            raise LoadError(f"relocation type {r.type} of machine {file.machine} is not known")
        if r.symbol.section not in placed:
            raise LoadError(f"relocation against {r.symbol.name!r}, which is in no loaded section")
        start = placed[r.section] + r.offset
        value = self.address + placed[r.symbol.section] + r.symbol.value + r.addend
        patch(memory[start : start + 8], self.address + start, value)

    def __getitem__(self, name: str) -> int:
        """The address of a symbol. Raises LoadError."""
        if name not in self.symbols:
            raise LoadError(f"the object has no {name!r}; it has {', '.join(self.symbols)}")
        return self.symbols[name]


def _check(file: ObjectFile) -> None:
    if file.machine != MACHINES.get(system.machine):
        raise LoadError(f"the object is for ELF machine {file.machine}, and this is {system.machine}")
    if file.undefined:
        raise LoadError(f"the object needs {', '.join(file.undefined)}, which no kernel may use")


def _place(file: ObjectFile) -> dict[int, int]:
    """Where each section that is loaded begins: one after the other, each as it wants to be aligned."""
    placed, end = {}, 0
    for number, section in enumerate(file.sections):
        if section.flags & SHF_ALLOC and section.name != ".eh_frame":
            placed[number] = round_up(end, max(section.align, 1))
            end = placed[number] + section.size
    return placed


def disassemble(binary: bytes) -> str:
    """The object's instructions as objdump shows them, or a line that says that there is no objdump."""
    objdump = system.find_program("objdump", "llvm-objdump")
    if objdump is None:
        return "no disassembler: install binutils, which has objdump"
    with system.temporary_folder() as folder:
        file = Path(folder) / "kernel.o"
        system.write_bytes(file, binary)
        code, text, errors = system.run([objdump, "--disassemble", "--reloc", "--no-show-raw-insn", str(file)])
    return (text if code == 0 else errors).decode(errors="replace")
