"""LLVM in process, through llvmlite: LLVM IR → an ELF object, for this machine or another one."""
from __future__ import annotations

import functools
import platform
from dataclasses import dataclass
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from tensor_engine.device import CompileError, Compiler
from tensor_engine.renderer.llvmir import LLVMRenderer
from tensor_engine.runtime.elf import disassemble


@dataclass(frozen=True)
class Target:
    """A CPU to compile for: triple ("x86_64-linux-gnu"), name ("znver1") and features ("+avx2,+fma")."""

    triple: str
    cpu: str
    features: str = ""

    @property
    def machine(self) -> str:
        """The first part of the triple."""
        return self.triple.partition("-")[0]

    def has(self, feature: str) -> bool:
        """True if LLVM may use this feature."""
        return f"+{feature}" in self.features.split(",")

    @property
    def vector_bytes(self) -> int:
        """The width of the vector registers."""
        widths = {"avx512f": 64, "avx": 32}
        return next((width for feature, width in widths.items() if self.has(feature)), 16)

    @property
    def native_half(self) -> bool:
        """True if half is converted to and from float by an instruction."""
        return self.machine == "aarch64" or self.has("f16c")

    @property
    def registers(self) -> int:
        """How many vector registers there are."""
        return 32 if self.machine == "aarch64" or self.has("avx512f") else 16


def renderer_for(target: Target) -> LLVMRenderer:
    """The renderer that knows what this target can do."""
    return LLVMRenderer(target.vector_bytes, target.registers, target.native_half)


@functools.cache
def host() -> Target:
    """The CPU of this machine. Objects are ELF on every system: our own loader reads them."""
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    features = llvm.get_host_cpu_features().flatten()
    return Target(f"{machine}-unknown-linux-gnu", llvm.get_host_cpu_name(), features)


@functools.cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


class LLVMCompiler(Compiler):
    """Compiles LLVM IR for a target, the host if none is given; `effort` is 0 to 3, as with -O.

    Threads may share it; llvmlite lets one in at a time.
    """

    def __init__(self, target: Target | None = None, effort: int = 2):
        _initialize()
        self.target, self.effort = target or host(), effort
        self.machine = self._make_machine()
        version = ".".join(str(part) for part in llvm.llvm_version_info)
        self.key = f"llvm {version} llvmlite {llvmlite.__version__} O{effort} {self.target}"

    def _make_machine(self) -> Any:
        target = llvm.Target.from_triple(self.target.triple)
        return target.create_target_machine(
            cpu=self.target.cpu, features=self.target.features, opt=self.effort, reloc="pic", codemodel="small"
        )

    def compile(self, source: str) -> bytes:
        return self.machine.emit_object(self._optimise(source))

    def assembly(self, source: str) -> str:
        """What `compile` makes, as assembly text."""
        return self.machine.emit_assembly(self._optimise(source))

    def disassemble(self, binary: bytes) -> str:
        return disassemble(binary)

    def _optimise(self, source: str) -> Any:
        module = self._parse(source)
        if not self.effort:
            return module
        options = llvm.create_pipeline_tuning_options(self.effort)
        options.loop_vectorization = options.slp_vectorization = True
        # llvmlite frees neither of these: about 70 KB stay behind for each kernel that is compiled
        builder = llvm.create_pass_builder(self.machine, options)
        builder.getModulePassManager().run(module, builder)
        return module

    def _parse(self, source: str) -> Any:
        try:
            module = llvm.parse_assembly(source, context=llvm.create_context())
            module.triple = self.target.triple
            module.data_layout = str(self.machine.target_data)
            module.verify()
        except RuntimeError as error:
            raise CompileError(f"LLVM does not take this text: {error}\n{source}") from None
        return module
