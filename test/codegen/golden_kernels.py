"""Six kernels, and what each pass makes of them. `golden/` has what is agreed on.

A node keeps its number from pass to pass, and each pass lists only the nodes that are new. The last list is whole.
`python test/codegen/golden_kernels.py` writes the files anew: read the difference before committing it.
"""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tensor_engine import Context, Tensor
from tensor_engine.codegen.pipeline import linear_uops
from tensor_engine.renderer.cstyle import CRenderer
from tensor_engine.schedule.schedule import create_schedule
from tensor_engine.uop.op import Ops
from tensor_engine.uop.render import INLINE, describe, render_list
from tensor_engine.uop.uop import UOp

FOLDER = Path(__file__).resolve().parent / "golden"
# A machine that does not exist, so that the files are the same on every one: 256-bit vectors, 16 registers.
TARGET = CRenderer(vector_bytes=32, registers=16)

ABOUT = {
    "schedule": "The kernel as the schedule made it: loops around one store, movement turned into index arithmetic.",
    "simplify": "Ranges, gates and sums that need no loop; symbolic rules.",
    "merge loops": "Neighbouring loops that run through memory in one go become one.",
    "choose options": "The strategy is noted in the SINK, and the loops are split as it says.",
    "expand": "Loops of kind UPCAST and UNROLL are written out: one copy of the body an iteration.",
    "vectorize": "The VECTOR loop becomes the lanes of vectors.",
    "accumulate": "REDUCE becomes registers that the loop updates.",
    "coalesce": "Neighbouring scalar accesses become vector accesses.",
    "decompose": "Operations that the target lacks, written with those that it has.",
    "devectorize": "Vector operations that the target lacks, lane by lane.",
    "lower index": "The abstract index becomes a machine integer.",
    "simplify again": "What the passes before left to simplify.",
}


def numbers(*shape: int) -> Tensor:
    return Tensor(np.zeros(shape, np.float32))


def letterbox() -> Tensor:
    """Bilinear along the columns: two neighbours by index, weighted."""
    left = Tensor(np.array([0, 1, 3, 4, 6, 8, 9, 11], np.int32))
    image, weight = Tensor(np.zeros((4, 13), np.uint8)), numbers(8)
    return image[:, left].cast("float32") * (1 - weight) + image[:, left + 1].cast("float32") * weight


# name → (what it is, the graph, which of its kernels is shown)
KERNELS: dict[str, tuple[str, Callable[[], Tensor], int]] = {
    "matmul": ("(8, 4) @ (4, 8).", lambda: numbers(8, 4) @ numbers(4, 8), 0),
    "softmax": ("The sum of exponentials in a softmax over (2, 2).", lambda: numbers(2, 2).softmax(), 1),
    "conv_silu": (
        "A 1×1 convolution of two channels, with SiLU, as in every detector.",
        lambda: numbers(1, 2, 2, 1).conv2d(numbers(2, 2, 1, 1), numbers(2)).silu(),
        0,
    ),
    "letterbox": ("A row of an image stretched from 13 to 8 columns: neighbours by index, weighted.", letterbox, 0),
    "gather": (
        "Rows of a table by index: the sum over an arange becomes one load.",
        lambda: numbers(100, 4)[Tensor(np.zeros(6, np.int32))],
        0,
    ),
    "padded_pool": (
        "A 3×1 maximum over a padded image: what lies outside is not read.",
        lambda: numbers(1, 1, 6, 8).max_pool2d((3, 1), stride=1, padding=(1, 0)),
        0,
    ),
}


def kernel(name: str) -> UOp:
    """The kernel's graph, as the schedule makes it."""
    _, graph, number = KERNELS[name]
    steps = create_schedule([graph().uop], {}, "CPU").linear.src
    return [step.arg for step in steps if step.op is Ops.KERNEL][number]


class Listing:
    """Numbers nodes once and for all, and describes those that it has not seen."""

    def __init__(self) -> None:
        self.numbers: dict[UOp, int] = {}

    def new(self, sink: UOp) -> str:
        """A line for each new node."""
        lines = []
        for node in sink.toposort():
            if node not in self.numbers and node.op not in INLINE:
                self.numbers[node] = len(self.numbers)
                lines.append(f"{self.numbers[node]:4} {describe(node, self.numbers)}")
        return "\n".join(lines)


def golden_text(name: str) -> str:
    """What each pass made of the kernel, the list at the end, and C."""
    listing = Listing()
    parts = [f"{name}: {KERNELS[name][0]}"]

    def observe(step: str, sink: UOp) -> None:
        new = listing.new(sink)
        if new:
            parts.append(f"==== {step}: {ABOUT[step]}\n\n{new}")

    with Context(NOOPT=0, BEAM=0):
        uops = linear_uops(kernel(name), TARGET, observe)
    parts.append(f"==== in the order of execution\n\n{render_list(uops)}")
    parts.append(f"==== in C\n\n{TARGET.render(uops).strip()}")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    for name in KERNELS:
        (FOLDER / f"{name}.txt").write_text(golden_text(name), encoding="utf-8")
        print(f"wrote {name}.txt")
