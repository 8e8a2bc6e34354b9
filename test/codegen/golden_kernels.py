"""Six kernels, and what each pass makes of them. `golden/` has what is agreed on.

A node keeps its number from pass to pass, and each pass lists only the nodes that are new. The last list is whole.
`python test/codegen/golden_kernels.py` writes the files anew: read the difference before committing it.
"""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tensor_engine import Context, Tensor
from tensor_engine.codegen.pipeline import Pass, linear_uops
from tensor_engine.renderer.cstyle import CRenderer
from tensor_engine.schedule.schedule import create_schedule
from tensor_engine.uop.op import Ops
from tensor_engine.uop.render import Listing, render_list
from tensor_engine.uop.uop import UOp

FOLDER = Path(__file__).resolve().parent / "golden"
# A machine that does not exist, so that the files are the same on every one: 256-bit vectors, 16 registers.
TARGET = CRenderer(vector_bytes=32, registers=16)

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


def golden_text(name: str) -> str:
    """What each pass made of the kernel, the list at the end, and C."""
    listing = Listing()
    parts = [f"{name}: {KERNELS[name][0]}"]

    def observe(step: Pass, sink: UOp) -> None:
        new = listing.new(sink.toposort())
        if new:
            parts.append(f"==== {step.name}: {step.about}\n\n{new}")

    with Context(NOOPT=0, BEAM=0):
        uops = linear_uops(kernel(name), TARGET, observe)
    parts.append(f"==== in the order of execution\n\n{render_list(uops)}")
    parts.append(f"==== in C\n\n{TARGET.render(uops).strip()}")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    for name in KERNELS:
        (FOLDER / f"{name}.txt").write_text(golden_text(name), encoding="utf-8")
        print(f"wrote {name}.txt")
