"""Kernels → loaded programs, through a cache in memory and one on disk."""
from __future__ import annotations

import functools
import hashlib
import json
from collections import OrderedDict, deque
from pathlib import Path
from typing import NamedTuple

from tensor_engine.codegen.pipeline import Observer, Pass, linear_uops
from tensor_engine.device import Device, Program
from tensor_engine.engine.cache import cached
from tensor_engine.engine.constants import with_arguments
from tensor_engine.helpers import BEAM, DEBUG, NOOPT
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.render import Listing
from tensor_engine.uop.uop import UOp

# More distinct kernels than this at a time are not kept; the longest unused ones leave first.
MAX_PROGRAMS = 4096

# The graphs of so many launches stay alive: a kernel that is asked for again is then found in the table of all nodes,
# with all that was derived, and need not be made anew.
RECENT_GRAPHS = 256


class Kernel(NamedTuple):
    """A loaded kernel and what it does each time it runs. Its variables come after the buffers, in order of name."""

    program: Program
    name: str
    options: str
    variables: tuple[str, ...]
    operations: int
    bytes_moved: int


programs: OrderedDict[tuple[object, ...], Kernel] = OrderedDict()
recent: deque[UOp] = deque(maxlen=RECENT_GRAPHS)


@functools.cache
def compiler_version() -> str:
    """A digest of the source that turns kernels into text: a changed compiler finds nothing in the old cache."""
    root = Path(__file__).resolve().parent.parent
    sources = [root / "dtype.py", *sorted(p for d in ("uop", "codegen", "renderer") for p in (root / d).rglob("*.py"))]
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes())
    return digest.hexdigest()


def kernel_for(ast: UOp, device: str) -> tuple[Kernel, dict[str, int]]:
    """A loaded program that does what `ast` says, and the values of the constants that it gets as arguments."""
    if program_key(ast, device) in programs:
        return get_kernel(ast, device), {}
    general, constants = with_arguments(ast)
    return get_kernel(general, device), constants


def program_key(ast: UOp, device: str) -> tuple[object, ...]:
    """What tells programs apart while the process runs."""
    return ast.key, device, Device[device].renderer.name, NOOPT.value, BEAM.value


def get_kernel(ast: UOp, device: str) -> Kernel:
    """The loaded program for a kernel, compiled if neither cache has it."""
    recent.append(ast)
    runtime, key = Device[device], program_key(ast, device)
    found = programs.get(key)
    if found is not None:
        programs.move_to_end(key)
        return found
    if DEBUG >= 3 or runtime.renderer.name == "PYTHON":
        packed = compile_kernel(ast, device)  # what is to be shown must be made
    else:
        text = "|".join([ast.key.hex(), *map(str, key[1:]), runtime.compiler.key, compiler_version()])
        packed = cached("kernel", text, lambda: compile_kernel(ast, device))
    programs[key] = kernel = unpack(packed, device)
    if len(programs) > MAX_PROGRAMS:
        programs.popitem(last=False)
    return kernel


def compile_kernel(ast: UOp, device: str) -> bytes:
    """All passes, the renderer and the compiler; a line of JSON about the kernel and its binary."""
    runtime = Device[device]
    uops = linear_uops(ast, runtime.renderer, show_passes() if DEBUG >= 5 else None)
    info = uops[-1].arg
    if DEBUG >= 3:
        print(ast)
        print(f"{info.name}: {', '.join(map(repr, info.options)) or 'no options'}")
    source = runtime.renderer.render(uops)
    if DEBUG >= 4:
        print(source)
    binary = runtime.compiler.compile(source)
    if DEBUG >= 6:
        print(runtime.compiler.disassemble(binary))
    operations, moved = estimate(ast)
    variables = sorted(n.arg[0] for n in ast.toposort() if n.op is Ops.DEFINE_VAR)
    about = {
        "name": info.name,
        "options": repr(info.options),
        "variables": variables,
        "operations": operations,
        "bytes": moved,
    }
    return json.dumps(about).encode() + b"\n" + binary


def unpack(packed: bytes, device: str) -> Kernel:
    """Load what `compile_kernel` made."""
    about, binary = packed.split(b"\n", 1)
    info = json.loads(about)
    program = Device[device].load(info["name"], binary)
    variables = tuple(info["variables"])
    return Kernel(program, info["name"], info["options"], variables, info["operations"], info["bytes"])


def show_passes() -> Observer:
    """DEBUG=5: what each pass adds to the kernel."""
    listing = Listing()

    def show(step: Pass, sink: UOp) -> None:
        print(f"---- after {step.name}: {step.about}")
        print(listing.new(sink.toposort()))

    return show


def estimate(ast: UOp) -> tuple[int, int]:
    """Arithmetic operations, and bytes of all buffers touched, each time a kernel runs."""
    operations = 0
    for node in ast.toposort():
        if node.op in GroupOp.ALU and node.dtype.kind == "f" or node.op is Ops.REDUCE:
            inside = node.src[0].ranges if node.op is Ops.REDUCE else node.ranges
            operations += functools.reduce(lambda total, r: total * max(int(r.vmax) + 1, 1), inside, 1)
    params = [n for n in ast.toposort() if n.op is Ops.PARAM]
    return operations, sum(p.dtype.size * p.dtype.base.itemsize for p in params)  # type: ignore[attr-defined]
