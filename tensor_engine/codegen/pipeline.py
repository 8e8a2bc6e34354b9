"""The passes, in order: from a kernel as the schedule made it to linear uops as a renderer prints them."""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tensor_engine.codegen.accumulate import accumulate
from tensor_engine.codegen.coalesce import coalesce
from tensor_engine.codegen.decompose import decompose
from tensor_engine.codegen.devectorize import devectorize
from tensor_engine.codegen.expand import expand
from tensor_engine.codegen.linearize import linearize
from tensor_engine.codegen.lower_index import lower_index
from tensor_engine.codegen.opt.heuristics import choose_options
from tensor_engine.codegen.opt.options import apply_option
from tensor_engine.codegen.partial_sums import partial_sums
from tensor_engine.codegen.simplify import merge_loops, pm_simplify, pm_simplify_scheduled
from tensor_engine.codegen.vectorize import vectorize
from tensor_engine.helpers import NOOPT, SPEC
from tensor_engine.renderer import Renderer
from tensor_engine.uop.op import Ops
from tensor_engine.uop.rewrite import graph_rewrite
from tensor_engine.uop.spec import check_kernel, check_linear
from tensor_engine.uop.symbolic import pm_symbolic
from tensor_engine.uop.uop import KernelInfo, UOp


class Pass(NamedTuple):
    """A named step of code generation, and what it does in a sentence. Why is told at the head of its file."""

    name: str
    about: str
    run: Callable[[UOp, Renderer], UOp]


# told after each pass what it made of the kernel
Observer = Callable[[Pass, UOp], None]


def choose(sink: UOp, renderer: Renderer) -> UOp:
    """Apply the kernel's strategy; if it has none yet, choose one and note it in the SINK."""
    name, options = kernel_name(sink), sink.arg.options
    if options is None and not NOOPT:
        options, sink = choose_options(sink, renderer)
    else:
        for option in options or ():
            sink = apply_option(sink, option)
    return graph_rewrite(sink.replace(arg=KernelInfo(name, tuple(options or ()))), pm_simplify)


SCHEDULE = Pass(
    "schedule",
    "The kernel as the schedule made it: loops around one store, movement turned into index arithmetic.",
    lambda sink, _: sink,
)
PASSES = [
    Pass(
        "simplify",
        "Ranges, gates and sums that need no loop; symbolic rules.",
        lambda sink, _: graph_rewrite(sink, pm_simplify_scheduled),
    ),
    Pass(
        "merge loops",
        "Neighbouring loops that run through memory in one go become one.",
        lambda sink, _: merge_loops(sink),
    ),
    Pass(
        "partial sums",
        "A long sum of floats becomes a sum of sums, which loses less.",
        lambda sink, _: partial_sums(sink),
    ),
    Pass(
        "choose options",
        "The strategy is noted in the SINK, and the loops are split as it says.",
        choose,
    ),
    Pass(
        "expand",
        "Loops of kind UPCAST and UNROLL are written out: one copy of the body an iteration.",
        lambda sink, _: expand(sink),
    ),
    Pass(
        "vectorize",
        "The VECTOR loop becomes the lanes of vectors.",
        lambda sink, renderer: vectorize(sink, renderer.masked_memory),
    ),
    Pass(
        "accumulate",
        "REDUCE becomes registers that the loop updates.",
        lambda sink, _: accumulate(sink),
    ),
    Pass("coalesce", "Neighbouring scalar accesses become vector accesses.", coalesce),
    Pass("decompose", "Operations that the target lacks, written with those that it has.", decompose),
    Pass("devectorize", "Vector operations that the target lacks, lane by lane.", devectorize),
    Pass(
        "lower index",
        "The abstract index becomes a machine integer.",
        lambda sink, renderer: lower_index(sink, renderer.index_dtype),
    ),
    Pass(
        "simplify again",
        "What the passes before left to simplify.",
        lambda sink, _: graph_rewrite(sink, pm_symbolic),
    ),
]


def linear_uops(ast: UOp, renderer: Renderer, observe: Observer | None = None) -> list[UOp]:
    """The kernel as a list of operations for `renderer`. `observe` sees each pass and what it made."""
    sink = ast
    done: list[str] = []
    for step in (SCHEDULE, *PASSES):
        sink = step.run(sink, renderer)
        done.append(step.name)
        if SPEC:
            check_kernel(sink, done)
        if observe:
            observe(step, sink)
    uops = with_all_params(linearize(sink), ast)
    if SPEC:
        check_linear(uops)
    return uops


def with_all_params(uops: list[UOp], ast: UOp) -> list[UOp]:
    """All buffers of the kernel are its parameters, in order, also those that no pass left a use of."""
    rest = [u for u in uops if u.op is not Ops.PARAM]
    params = {node.arg: node for node in [*ast.toposort(), *uops] if node.op is Ops.PARAM}
    return [*(params[number] for number in sorted(params)), *rest]


def kernel_name(sink: UOp) -> str:
    """r_… for a kernel with a reduction, E_… for an elementwise one, and the sizes of its loops."""
    loops = {n for n in sink.toposort() if n.op is Ops.RANGE}
    letter = "r" if any(n.op is Ops.REDUCE for n in sink.toposort()) else "E"
    sizes = [str(r.src[0].arg) if r.src[0].op is Ops.CONST else "n" for r in sorted(loops, key=lambda r: r.arg[0])]
    return "_".join([letter, *sizes])
