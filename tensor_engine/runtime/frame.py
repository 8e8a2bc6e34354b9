"""Many kernels in one native call: what a captured program becomes on the CPU.

A table holds, for every argument of every call, the address of the word with its value: a word of its own, or that of a
parameter, which other calls may share. A second table says, for each call, which function it is and where its arguments
begin. A native loop walks it, without Python between the kernels and without Python's lock.
"""
from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

from tensor_engine.device import FrameProgram, KernelCall, Parameter
from tensor_engine.runtime.elf import LoadedObject
from tensor_engine.runtime.llvm import LLVMCompiler

# struct { void (*trampoline)(void *function, int64_t **arguments); void *function; int64_t **arguments; } calls[count];
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
    """A function that calls another one with `arity` arguments, given where they are. Pointers and integers go the same
    way."""
    loads = [
        f"  %at{i} = getelementptr ptr, ptr %arguments, i64 {i}\n  %w{i} = load ptr, ptr %at{i}\n"
        f"  %a{i} = load i64, ptr %w{i}"
        for i in range(arity)
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


Words = Any  # an array of 64-bit words that native code reads


def _words(values: Sequence[int]) -> Words:
    return (ctypes.c_int64 * max(len(values), 1))(*values)


class NativeFrameProgram(FrameProgram):
    """Kernels whose programs have an `address`, run by one native call."""

    def __init__(self, calls: Sequence[KernelCall], parameters: Sequence[int] = ()):
        super().__init__(calls, parameters)
        self.words = _words(parameters)
        arguments = [argument for call in calls for argument in (*call.buffers, *call.vals)]
        self.constants = _words([0 if isinstance(argument, Parameter) else argument for argument in arguments])
        self.arguments = _words([self._address(*numbered) for numbered in enumerate(arguments)])
        self.table = _words(self._entries())
        walk = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(_load(WALK)["walk"])
        table, count = ctypes.c_void_p(ctypes.addressof(self.table)), ctypes.c_int64(len(calls))
        self._run = functools.partial(walk, table, count)

    def _address(self, number: int, argument: int | Parameter) -> int:
        if isinstance(argument, Parameter):
            return ctypes.addressof(self.words) + 8 * argument.number
        return ctypes.addressof(self.constants) + 8 * number

    def _entries(self) -> list[int]:
        entries: list[int] = []
        start = ctypes.addressof(self.arguments)
        for program, buffers, vals in self.calls:
            arity = len(buffers) + len(vals)
            entries += [_trampoline(arity), program.address, start]  # type: ignore[attr-defined]
            start += 8 * arity
        return entries

    def __call__(self) -> None:
        self._run()

    def set(self, parameter: int, value: int) -> None:
        self.words[parameter] = value
