"""A C compiler of the system (clang or gcc): C text → an ELF object."""
from __future__ import annotations

import functools
from pathlib import Path

from tensor_engine.device import CompileError, Compiler
from tensor_engine.helpers import CC
from tensor_engine.runtime.elf import disassemble
from tensor_engine.runtime.system import system

CANDIDATES = ("clang", "gcc", "cc")
FLAGS = (
    "-O2", "-std=gnu11", "-fPIC", "-ffreestanding", "-fno-math-errno", "-ffp-contract=fast", "-fno-trapping-math",
    "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fvisibility=hidden", "-fwrapv", "-w",
)  # fmt: skip
# how the names of the macros begin that tell the features of the target
FEATURES = ("__AVX", "__SSE", "__FMA", "__F16C", "__BMI", "__ARM", "__tune", "__x86_64", "__aarch64")


class CompilerMissing(CompileError):
    """There is no C compiler."""


def find_compiler() -> str:
    """The path of the C compiler: what CC names, else the first of the candidates. Raises CompilerMissing."""
    wanted = (CC.value,) if CC.value else CANDIDATES
    found = system.find_program(*wanted)
    if found is None:
        raise CompilerMissing(
            f"no C compiler: looked for {', '.join(wanted)}. Install one or name it in CC, "
            "or use DEV=CPU:LLVM, which needs none"
        )
    return found


@functools.cache
def compiler_version(path: str) -> str:
    """What the compiler says of itself."""
    return system.run([path, "--version"])[1].decode(errors="replace").partition("\n")[0]


class CCompiler(Compiler):
    """Compiles C for this machine. Raises CompilerMissing if there is no compiler."""

    def __init__(self) -> None:
        self.path = find_compiler()
        native = "-mcpu=native" if system.machine in ("aarch64", "arm64") else "-march=native"
        self.command = [self.path, *FLAGS, native]
        self.key = " ".join([compiler_version(self.path), *self.command, self._native_target(native)])

    def _native_target(self, native: str) -> str:
        """What "native" means here: a cache folder may be shared by machines with different CPUs."""
        command = [self.path, native, "-dM", "-E", "-x", "c", "-"]
        macros = system.run(command)[1].decode(errors="replace").splitlines()
        return " ".join(sorted(m.removeprefix("#define ") for m in macros if _names_feature(m)))

    def compile(self, source: str) -> bytes:
        with system.temporary_folder() as folder:
            target = str(Path(folder) / "kernel.o")
            code, _, errors = system.run([*self.command, "-c", "-x", "c", "-", "-o", target], source.encode())
            if code:
                raise CompileError(f"{self.path} does not take this text:\n{errors.decode(errors='replace')}\n{source}")
            return system.read_bytes(target)

    def disassemble(self, binary: bytes) -> str:
        return disassemble(binary)


def _names_feature(macro: str) -> bool:
    return macro.split()[1].startswith(FEATURES)
