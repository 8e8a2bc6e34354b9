"""Many kernels in one native call: what a captured program becomes on the CPU.

A table holds every argument of every call; a second one says, for each call, which function it is and where its
arguments begin. A native loop walks it, without Python between the kernels and without Python's lock.
"""
from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Sequence

from tensor_engine.device import FrameProgram, KernelCall
from tensor_engine.runtime.elf import LoadedObject
from tensor_engine.runtime.llvm import LLVMCompiler

# struct { void (*trampoline)(void *function, int64_t *arguments); void *function; int64_t *arguments; } calls[count];
WALK = """\
define void @walk(ptr %calls, i64 %count) nounwind {
entry:
  %end = getelementptr [3 x ptr], ptr %calls, i64 %count
  br label %test
test:
  %call = phi ptr [ %calls, %entry ], [ %next, %body ]
  %more = icmp ult ptr %call, %end
  br i1 %more, label %body, label %exit
body:
  %trampoline = load ptr, ptr %call
  %function.at = getelementptr ptr, ptr %call, i64 1
  %function = load ptr, ptr %function.at
  %arguments.at = getelementptr ptr, ptr %call, i64 2
  %arguments = load ptr, ptr %arguments.at
  call void %trampoline(ptr %function, ptr %arguments)
  %next = getelementptr [3 x ptr], ptr %call, i64 1
  br label %test
exit:
  ret void
}
"""


def trampoline_text(arity: int) -> str:
    """A function that calls another one with `arity` arguments from memory. Pointers and integers go the same way."""
    loads = [
        f"  %at{i} = getelementptr i64, ptr %arguments, i64 {i}\n  %a{i} = load i64, ptr %at{i}" for i in range(arity)
    ]
    arguments = ", ".join(f"i64 %a{i}" for i in range(arity))
    return "\n".join([
        "define void @trampoline(ptr %function, ptr %arguments) nounwind {",
        *loads, f"  call void %function({arguments})", "  ret void", "}", "",
    ])  # fmt: skip


@functools.cache
def _compiler() -> LLVMCompiler:
    return LLVMCompiler(effort=0)  # these functions are small, and a program waits for them when it starts


@functools.cache
def _load(text: str) -> LoadedObject:
    return LoadedObject(_compiler().compile(text))


def _trampoline(arity: int) -> int:
    return _load(trampoline_text(arity))["trampoline"]


class NativeFrameProgram(FrameProgram):
    """Kernels whose programs have an `address`, run by one native call."""

    def __init__(self, calls: Sequence[KernelCall]):
        super().__init__(calls)
        arguments = [[*call.buffers, *call.vals] for call in calls]
        self.arities = [len(a) for a in arguments]
        self.starts = [0, *itertools.accumulate(self.arities)]
        flat = [value for a in arguments for value in a]
        self.arguments = (ctypes.c_int64 * max(len(flat), 1))(*flat)
        self.table = (ctypes.c_uint64 * max(3 * len(calls), 1))(*self._entries())
        walk = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(_load(WALK)["walk"])
        table, count = ctypes.c_void_p(ctypes.addressof(self.table)), ctypes.c_int64(len(calls))
        self._run = functools.partial(walk, table, count)

    def _entries(self) -> list[int]:
        entries: list[int] = []
        for program, arity, start in zip(self.programs, self.arities, self.starts):
            function = program.address  # type: ignore[attr-defined]
            entries += [_trampoline(arity), function, ctypes.addressof(self.arguments) + 8 * start]
        return entries

    def __call__(self) -> None:
        self._run()

    def set_buffer(self, call: int, position: int, opaque: int) -> None:
        super().set_buffer(call, position, opaque)
        self.arguments[self.starts[call] + position] = opaque

    def set_vals(self, call: int, vals: tuple[int, ...]) -> None:
        super().set_vals(call, vals)
        first = self.starts[call] + len(self.buffers[call])
        self.arguments[first : first + len(vals)] = list(vals)
