"""The only door to the operating system: memory, executable pages, other programs, the clock.

Runtimes talk to `system`, one object that a test can replace. For Linux.
"""
from __future__ import annotations

import ctypes
import mmap
import os
import platform
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

PAGE = os.sysconf("SC_PAGE_SIZE")
_PROT_READ, _PROT_WRITE, _PROT_EXEC = 1, 2, 4
_MAP_PRIVATE, _MAP_ANONYMOUS = 0x02, 0x20
_MAP_FAILED = ctypes.c_void_p(-1).value


class System:
    """What runtimes need of the operating system."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        self._mmap = _function(libc.mmap, pointer, pointer, size, number, number, number, ctypes.c_longlong)
        self._munmap = _function(libc.munmap, number, pointer, size)
        self._mprotect = _function(libc.mprotect, number, pointer, size, number)
        self._memalign = _function(libc.posix_memalign, number, ctypes.POINTER(pointer), size, size)
        self._free = _function(libc.free, None, pointer)

    machine = platform.machine()

    # ---- memory

    def allocate(self, nbytes: int, align: int) -> int:
        """The address of new memory, its content undefined. Raises MemoryError."""
        address = ctypes.c_void_p()
        if self._memalign(ctypes.byref(address), align, nbytes) or address.value is None:
            raise MemoryError(f"the system has no {nbytes} bytes left")
        return address.value

    def free(self, address: int) -> None:
        """Give back what `allocate` gave."""
        self._free(address)

    def map_pages(self, nbytes: int) -> int:
        """The address of new zeroed pages, readable and writable. Raises MemoryError."""
        address = self._mmap(None, nbytes, _PROT_READ | _PROT_WRITE, _MAP_PRIVATE | _MAP_ANONYMOUS, -1, 0)
        if address == _MAP_FAILED:
            raise MemoryError(f"the system has no {nbytes} bytes left")
        return address

    def unmap_pages(self, address: int, nbytes: int) -> None:
        """Give back what `map_pages` gave."""
        self._munmap(address, nbytes)

    def make_executable(self, address: int, nbytes: int) -> None:
        """Turn pages from writable to executable. Raises OSError where the system forbids it.

        The pages must be fresh: on aarch64 the kernel then makes the instruction cache see them.
        """
        if self._mprotect(address, nbytes, _PROT_READ | _PROT_EXEC):
            code = ctypes.get_errno()
            raise OSError(code, f"cannot make memory executable: {os.strerror(code)}")

    def make_inaccessible(self, address: int, nbytes: int) -> None:
        """Any access to these pages ends the process from now on (a guard)."""
        self._mprotect(address, nbytes, 0)

    # ---- programs

    def find_program(self, *names: str) -> str | None:
        """The path of the first of these programs that is there."""
        return next((path for name in names if (path := shutil.which(name))), None)

    def run(self, command: list[str], stdin: bytes = b"", timeout_s: float = 120) -> tuple[int, bytes, bytes]:
        """Run a program: its exit code, output and error output. Raises FileNotFoundError, TimeoutExpired."""
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout_s, check=False)
        return done.returncode, done.stdout, done.stderr

    def temporary_folder(self) -> tempfile.TemporaryDirectory[str]:
        """A folder that only this user can read; it goes at the end of `with`."""
        return tempfile.TemporaryDirectory(prefix="tensor_engine-")

    def read_bytes(self, path: str | Path) -> bytes:
        """A file's content."""
        return Path(path).read_bytes()

    def write_bytes(self, path: str | Path, content: bytes) -> None:
        """Make a file with this content."""
        Path(path).write_bytes(content)

    def file_size(self, path: str | Path) -> int:
        """A file's bytes. Raises FileNotFoundError."""
        return Path(path).stat().st_size

    def map_file(self, path: str | Path) -> memoryview:
        """A file as memory, which is read as it is looked at; read-only if the file may not be written.

        The file must not become shorter while it is mapped. Raises FileNotFoundError, ValueError for an empty file.
        """
        writable = os.access(path, os.W_OK)
        with open(path, "r+b" if writable else "rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ))

    def grow_file(self, path: str | Path, nbytes: int) -> None:
        """Make a file, or make it longer, so that it has so many bytes; new ones are 0."""
        with open(path, "ab") as file:
            if file.tell() < nbytes:
                file.truncate(nbytes)

    # ---- time

    def seconds(self) -> float:
        """A clock that never goes back."""
        return time.perf_counter()


def _function(symbol: Any, result: Any, *arguments: Any) -> Any:
    symbol.restype, symbol.argtypes = result, arguments
    return symbol


system = System()
