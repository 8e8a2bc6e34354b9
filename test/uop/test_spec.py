"""Every law of the specification has a graph that breaks it, and the graphs that the engine makes break none."""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from linear import BACKENDS

from tensor_engine import Context, Tensor
from tensor_engine.codegen import pipeline
from tensor_engine.codegen.pipeline import PASSES, Pass
from tensor_engine.dtype import AddrSpace, dtypes
from tensor_engine.renderer.cstyle import CRenderer
from tensor_engine.uop.op import AxisType, Ops
from tensor_engine.uop.spec import (
    GONE_AFTER,
    KERNEL,
    TENSOR,
    SpecError,
    check_kernel,
    check_linear,
    check_tensor_graph,
)
from tensor_engine.uop.uop import KernelInfo, UOp, as_index

f32, i32, boolean, index = dtypes.float32, dtypes.int32, dtypes.bool, dtypes.index


def const(value: float, dtype: object = f32) -> UOp:
    return UOp(Ops.CONST, dtype, (), value)  # type: ignore[arg-type]


def buffer(size: int = 12, device: str = "CPU") -> UOp:
    return UOp.new_buffer(device, size, f32)


def node(op: Ops, dtype: object, *src: UOp, arg: object = None) -> UOp:
    """A node that no method would make."""
    return UOp(op, dtype, src, arg)  # type: ignore[arg-type]


a, b = buffer(), buffer()
matrix = buffer().reshape((3, 4))
x = const(1.5)
truth = const(True, boolean)

# law → a tensor graph that breaks it
ILLEGAL_TENSORS: dict[str, Callable[[], UOp]] = {
    "holds a Python number that is a value of its type": lambda: const(1),
    "has as many operands as the operation takes": lambda: node(Ops.ADD, f32, x),
    "has operands of the type of its result": lambda: node(Ops.ADD, f32, x, const(1, i32)),
    "has operands of one type": lambda: node(Ops.CMPLT, boolean, x, const(1, i32)),
    "gives bools": lambda: node(Ops.CMPLT, f32, x, x),
    "has a bool condition": lambda: node(Ops.WHERE, f32, x, x, x),
    "has choices of its type": lambda: node(Ops.WHERE, f32, truth, x, const(1, i32)),
    "is for floats": lambda: node(Ops.SQRT, i32, const(4, i32)),
    "is for integers": lambda: node(Ops.IDIV, f32, x, x),
    "is for integers and bools": lambda: node(Ops.XOR, f32, x, x),
    "is for uint64": lambda: node(Ops.THREEFRY, i32, const(4, i32), const(4, i32)),
    "has one operand with as many lanes": lambda: node(Ops.CAST, i32, x, x),
    "keeps the number of bits": lambda: node(Ops.BITCAST, dtypes.float64, x),
    "is a scalar in every element": lambda: UOp.new_buffer("CPU", 4, f32.vec(4)),
    "has operands on one device": lambda: node(Ops.ADD, f32, a, buffer(device="PYTHON")),
    "has operands of one shape": lambda: node(Ops.ADD, f32, a, matrix),
    "keeps the type": lambda: node(Ops.RESHAPE, i32, a, arg=(12,)),
    "has no operands and at least no elements": lambda: buffer(-1),
    "keeps the number of elements": lambda: node(Ops.RESHAPE, f32, a, arg=(3, 5)),
    "has each axis once": lambda: node(Ops.PERMUTE, f32, matrix, arg=(0, 0)),
    "repeats axes of size 1 only": lambda: node(Ops.EXPAND, f32, matrix, arg=(3, 8)),
    "adds no negative number of elements, on every axis": lambda: node(Ops.PAD, f32, matrix, arg=((0, 0), (-1, 0))),
    "stays within its operand, on every axis": lambda: node(Ops.SHRINK, f32, matrix, arg=((0, 3), (2, 5))),
    "moves one axis along another, and stays within its operand": lambda: node(Ops.SHEAR, f32, matrix, arg=(0, 1, 9)),
    "has a bool an axis": lambda: node(Ops.FLIP, f32, matrix, arg=(True,)),
    "combines axes that there are, in order, by ADD, MUL or MAX":
        lambda: node(Ops.REDUCE_AXIS, f32, matrix, arg=(Ops.ADD, (2,))),
    "writes into a view of its memory that repeats no element":
        lambda: node(Ops.ASSIGN, f32, a, node(Ops.ADD, f32, a, a), a),
    "writes a value of the view's shape": lambda: node(Ops.ASSIGN, f32, a, a, matrix),
    "writes values of the memory's type": lambda: node(Ops.ASSIGN, f32, a, a, a.cast(dtypes.int32)),
    "names its device": lambda: node(Ops.COPY, f32, a),
    "gives a variable a value within its bounds":
        lambda: node(Ops.BIND, index, node(Ops.DEFINE_VAR, index, arg=("n", 1, 9)), as_index(10)),
}  # fmt: skip


@pytest.mark.parametrize("text", ILLEGAL_TENSORS)
def test_a_tensor_graph_that_breaks_a_law(text: str) -> None:
    with pytest.raises(SpecError) as error:
        check_tensor_graph(UOp.sink(ILLEGAL_TENSORS[text]()))
    assert f"breaks the law that it {text}:" in str(error.value)


def test_every_law_of_tensors_is_broken_once() -> None:
    assert {entry.text for entry in TENSOR} == set(ILLEGAL_TENSORS)


def test_an_operation_of_another_level() -> None:
    with pytest.raises(SpecError, match="this LOAD breaks the law that it is an operation that may stand here"):
        check_tensor_graph(UOp.sink(UOp(Ops.LOAD, f32, (a,))))


# ---- kernels -------------------------------------------------------------------------------------------------------

data0, data1 = (node(Ops.PARAM, f32.ptr(12), arg=number) for number in range(2))
loop = UOp.range(12, 0)
here, there = data0.index(loop), data1.index(loop)
register = node(Ops.DEFINE_REG, f32.ptr(1, AddrSpace.REG), arg=0)
gated = data1.index(loop, loop < 5)
vector = node(Ops.VECTORIZE, f32.vec(4), x)


def store(value: UOp) -> UOp:
    return here.store(value)


def kernel(body: UOp) -> UOp:
    """A SINK around this; a store gets its loop."""
    return UOp.sink(body if body.op is not Ops.STORE else body.end(loop), arg=KernelInfo())


def load(*src: UOp) -> UOp:
    return node(Ops.LOAD, f32, *src)


ILLEGAL_KERNELS: dict[str, Callable[[], UOp]] = {
    "is a numbered pointer to memory": lambda: node(Ops.PARAM, f32, arg=2).index(loop).store(x),
    "is a pointer into registers, to one element":
        lambda: store(load(node(Ops.DEFINE_REG, f32.ptr(2, AddrSpace.REG), arg=0))),
    "has a name and bounds": lambda: store(node(Ops.DEFINE_VAR, dtypes.int64, arg=("n", 5, 1)).cast(f32)),
    "counts up to an integer of its own type": lambda: store(node(Ops.RANGE, i32, as_index(3), arg=(7, AxisType.LOOP))),
    "has a number and a kind": lambda: store(node(Ops.RANGE, index, as_index(3), arg=(7, "loop")).cast(f32)),
    "is an integer offset into memory, of the type of an element": lambda: data0.index(x).store(x),
    "reads a value of the type that is there": lambda: store(node(Ops.LOAD, i32, there).cast(f32)),
    "has an alternative exactly if it has a gate": lambda: store(load(gated)),
    "writes a value of the type that is there": lambda: here.store(const(1, i32)),
    "has no value": lambda: node(Ops.STORE, f32, here, x).end(loop),
    "has one gate, or one for each lane":
        lambda: store(load(data1.index(loop, node(Ops.VECTORIZE, boolean.vec(4), truth)), x)),
    "names its values and then its loops": lambda: store(node(Ops.REDUCE, f32, UOp.range(3, 8), x, arg=Ops.ADD)),
    "combines values of its type by ADD, MUL or MAX":
        lambda: store(node(Ops.REDUCE, f32, x, UOp.range(3, 8), arg=Ops.SUB)),
    "closes loops around something that happens": lambda: node(Ops.END, dtypes.void, x, loop),
    "holds what happens": lambda: node(Ops.GROUP, dtypes.void, x),
    "is its first operand": lambda: store(node(Ops.AFTER, i32, x)),
    "has a scalar for all lanes, or one for each": lambda: here.store(node(Ops.VECTORIZE, f32.vec(4), x, x)),
    "takes lanes that there are": lambda: store(node(Ops.GEP, f32, vector, arg=(4,))),
}  # fmt: skip


@pytest.mark.parametrize("text", ILLEGAL_KERNELS)
def test_a_kernel_that_breaks_a_law(text: str) -> None:
    with pytest.raises(SpecError) as error:
        check_kernel(kernel(ILLEGAL_KERNELS[text]()), ["schedule"])
    assert "kernel after 'schedule': this " in str(error.value)
    assert f"breaks the law that it {text}:" in str(error.value)


def test_every_law_of_kernels_is_broken_once() -> None:
    shared = {entry.text for entry in TENSOR}
    assert {entry.text for entry in KERNEL} - shared == set(ILLEGAL_KERNELS)


def test_a_legal_kernel() -> None:
    check_kernel(kernel(store(load(there) + 1)), [])
    check_kernel(kernel(store(load(gated, x))), [])


def test_a_loop_that_is_never_closed() -> None:
    with pytest.raises(SpecError, match="this RANGE breaks the law that it is closed"):
        check_kernel(UOp.sink(store(x), arg=KernelInfo()), [])


def test_two_loops_with_one_number() -> None:
    body = data0.index(loop + UOp.range(5, 0)).store(x).end(loop, UOp.range(5, 0))
    with pytest.raises(SpecError, match="has a number of its own"):
        check_kernel(kernel(body), [])


# pass → a kernel in which it left something
LEFT_OVER: dict[str, Callable[[], UOp]] = {
    "simplify": lambda: store(node(Ops.SIN, f32, const(1, i32))),
    "expand": lambda: data0.index(UOp.range(3, 1, AxisType.UPCAST)).store(x).end(UOp.range(3, 1, AxisType.UPCAST)),
    "vectorize": lambda: data0.index(UOp.range(4, 1, AxisType.VECTOR)).store(x).end(UOp.range(4, 1, AxisType.VECTOR)),
    "accumulate": lambda: store(x.reduce(Ops.ADD, UOp.range(3, 1))),
    "decompose": lambda: store(load(there).cast(boolean).cast(f32)),
    "lower index": lambda: store(x),
}


@pytest.mark.parametrize("name", GONE_AFTER)
def test_a_pass_that_breaks_its_promise(name: str) -> None:
    names = [step.name for step in PASSES]
    sink = kernel(LEFT_OVER[name]())
    check_kernel(sink, names[: names.index(name)])
    for later in names[names.index(name) :]:
        with pytest.raises(SpecError, match=f"kernel after '{later}'.*an earlier pass removes"):
            check_kernel(sink, names[: names.index(later) + 1])


# ---- the linear form -----------------------------------------------------------------------------------------------


def copy_kernel() -> list[UOp]:
    """A transposed copy: two loops, one inside the other."""
    i, j = UOp.range(2, 0), UOp.range(4, 1)
    stored = data0.index(i * 4 + j).store(load(data1.index(j * 2 + i)))
    with Context(NOOPT=1):
        return pipeline.linear_uops(UOp.sink(stored.end(i, j), arg=KernelInfo()), CRenderer(32, 16))


def position(uops: list[UOp], op: Ops, number: int = 0) -> int:
    return [i for i, u in enumerate(uops) if u.op is op][number]


def swap(first: tuple[Ops, int], second: tuple[Ops, int]) -> list[UOp]:
    uops = copy_kernel()
    i, j = position(uops, *first), position(uops, *second)
    uops[i], uops[j] = uops[j], uops[i]
    return uops


def inner_loop_first() -> list[UOp]:
    uops = copy_kernel()
    inner = uops.pop(position(uops, Ops.RANGE, 1))
    uops.insert(position(uops, Ops.RANGE), inner)
    return uops


def test_a_legal_list() -> None:
    check_linear(copy_kernel())


@pytest.mark.parametrize(
    "uops, text",
    [
        (lambda: swap((Ops.LOAD, 0), (Ops.STORE, 0)), "this STORE breaks the law that it stands after its operands"),
        (lambda: copy_kernel()[:3] + copy_kernel()[2:], "stands once"),
        (lambda: inner_loop_first(), "closes the innermost open loop"),
        (lambda: copy_kernel()[:-1], "the last operation must be a SINK"),
        (list, "the last operation must be a SINK"),
        (lambda: [u for u in copy_kernel() if u.op is not Ops.END or u.src[0].op is Ops.STORE], "operands"),
    ],
)
def test_an_illegal_list(uops: Callable[[], list[UOp]], text: str) -> None:
    with pytest.raises(SpecError, match=text):
        check_linear(uops())


# ---- the switch ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", BACKENDS)
def test_what_the_engine_makes_is_legal(path: str) -> None:
    random = np.random.default_rng(1)
    data = random.standard_normal((1, 4, 9, 10)).astype(np.float32)
    with Context(SPEC=1, DEV=path, CACHE=0):
        image = Tensor(data)
        y = image.conv2d(Tensor(random.standard_normal((8, 4, 3, 3)).astype(np.float32)), padding=1).silu()
        assert math.isfinite(y.max_pool2d(2).softmax(1).log().mean().item())
        assert image.flatten()[Tensor([3, 5])].tolist() == data.ravel()[[3, 5]].tolist()


def test_with_spec_a_broken_pass_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(sink: UOp, _: object) -> UOp:
        stored = next(n for n in sink.toposort() if n.op is Ops.STORE)
        return sink.substitute({stored: stored.src[0].store(const(True, boolean))})

    monkeypatch.setattr(pipeline, "PASSES", [PASSES[0], Pass("sabotage", "", breaks), *PASSES[1:]])
    sink = kernel(store(load(there) + 1))
    with Context(SPEC=1), pytest.raises(SpecError, match="kernel after 'sabotage': this STORE breaks the law"):
        pipeline.linear_uops(sink, CRenderer(32, 16))
