"""What belongs to the process and not to the node: how it ends, and its memory."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading

OK, OUR_FAULT, USER_MISTAKE = 0, 1, 2

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc


def ask_to_end() -> threading.Event:
    """Makes SIGINT and SIGTERM set the returned event and do nothing else."""
    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    return ending


def keep_large_buffers() -> None:
    """Has glibc keep freed image buffers, instead of mapping fresh pages for every frame."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_THRESHOLD, 1 << 25)
        libc.mallopt(M_TRIM_THRESHOLD, 1 << 28)


def end_now(code: int) -> None:
    """Ends although a thread is still compiling or computing; an orderly exit would wait for it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
