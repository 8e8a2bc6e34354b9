"""Which line of the user's code an operation was written on, for errors that show only when it runs."""
from __future__ import annotations

import os
import sys
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensor_engine.uop.uop import UOp

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def record(node: UOp) -> None:
    """Remember the nearest line outside this package as the one that `node` was written on."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    if frame is not None:
        node.__dict__["provenance"] = (frame.f_code.co_filename, frame.f_lineno)


def where(node: UOp) -> str:
    """`file:line` where `node`, or else the nearest operand that a user wrote, was written; "" if none was."""
    written = (n.__dict__.get("provenance") for n in reversed(node.toposort()))
    found = next((line for line in written if line is not None), None)
    return f"{found[0]}:{found[1]}" if found else ""


def inherit(node: UOp, origin: UOp) -> UOp:
    """`node` was made for `origin`, and was written where that was."""
    found = where(origin)
    if found:
        file, _, line = found.rpartition(":")
        node.__dict__["provenance"] = (file, int(line))
    return node
