"""Which line of the user's code an operation was written on, for errors that show only when it runs."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensor_engine.uop.uop import UOp

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def record(node: UOp) -> None:
    """Remember the nearest line outside this package as the one that `node` was written on, the first time."""
    if "provenance" in node.__dict__:
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    if frame is not None:  # the number of the line is found when it is asked for
        node.__dict__["provenance"] = (frame.f_code, frame.f_lasti)


class RealizeError(RuntimeError):
    """Something went wrong when a value was computed; says on which line the value was written."""


@contextlib.contextmanager
def blame(node: UOp) -> Iterator[None]:
    """Errors inside name the line on which `node` was written. MemoryError stays one, all else is a RealizeError."""
    try:
        yield
    except RealizeError:
        raise
    except Exception as error:
        kind = MemoryError if isinstance(error, MemoryError) else RealizeError
        place = where(node) or "an unknown line"
        raise kind(f"{type(error).__name__} for the value written at {place}: {error}") from error


def where(node: UOp) -> str:
    """`file:line` where `node`, or else the nearest operand that a user wrote, was written; "" if none was."""
    found = _nearest(node)
    return f"{found[0].co_filename}:{line_number(*found)}" if found else ""


def line_number(code: CodeType, instruction: int) -> int | None:
    """The line that an instruction was compiled from."""
    return next((line for start, end, line in code.co_lines() if start <= instruction < end), None)


def _nearest(node: UOp) -> tuple[CodeType, int] | None:
    level, seen = [node], {node}
    while level:
        for candidate in level:
            if "provenance" in candidate.__dict__:
                return candidate.__dict__["provenance"]
        level = [s for s in dict.fromkeys(s for n in level for s in n.src) if s not in seen]
        seen.update(level)
    return None


def inherit(node: UOp, origin: UOp) -> UOp:
    """`node` takes the place of `origin`, and was written where that was."""
    found = origin.__dict__.get("provenance")
    if found is not None and "provenance" not in node.__dict__:
        node.__dict__["provenance"] = found
    return node
