"""Loads, stores, gates, masks, loops and accumulators on every CPU path."""
import ctypes

import numpy as np
import pytest
from linear import BACKENDS, Compiled, Kernel, empty, run

from tensor_engine.device import numpy_dtype
from tensor_engine.dtype import AddrSpace, dtypes
from tensor_engine.renderer import RenderError
from tensor_engine.runtime.system import PAGE, system
from tensor_engine.uop.op import AxisType, Ops
from tensor_engine.uop.uop import UOp

on_every_path = pytest.mark.parametrize("backend", BACKENDS)
on_masking_paths = pytest.mark.parametrize("backend", ["CPU:LLVM", "PYTHON"])
f32, i32 = dtypes.float32, dtypes.int32


@pytest.fixture
def before_guard():
    """float32 arrays that end where memory does: what lies behind ends the process when it is touched."""
    pages = []

    def make(size: int) -> np.ndarray:
        address = system.map_pages(2 * PAGE)
        system.make_inaccessible(address + PAGE, PAGE)
        pages.append(address)
        start = address + PAGE - 4 * size
        array = np.frombuffer((ctypes.c_ubyte * (4 * size)).from_address(start), np.float32)
        array[:] = np.arange(size)
        return array

    yield make
    for address in pages:
        system.unmap_pages(address, 2 * PAGE)


# ---- plain accesses


@on_every_path
@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_vectors_need_no_alignment(backend, dtype, count):
    kernel = Kernel()
    out, data = kernel.param(0, dtype, 16), kernel.param(1, dtype, 16)
    kernel.store(out, 3, kernel.load(data, 1, count))
    source = np.arange(16).astype(numpy_dtype(dtype))
    target = np.zeros_like(source)
    run(kernel, backend, target, source)
    expected = np.zeros_like(source)
    expected[3 : 3 + count] = source[1 : 1 + count]
    np.testing.assert_array_equal(target, expected)


@on_every_path
@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_constants_of_every_type(backend, dtype):
    values = [0, 1] if dtype.kind == "b" else [0, 1, 3, dtype.max, dtype.min]
    if dtype.kind == "f":
        values += [-0.0, 0.1, -1.5e-3, float("nan"), -float("inf"), 1e-30, 65504.0, 3.4028234663852886e38]
    stored = dtypes.uint16 if dtype is dtypes.bfloat16 else dtype
    values = [UOp.const(dtype, v).arg for v in values]
    kernel = Kernel()
    out = kernel.param(0, dtype, len(values))
    for i, value in enumerate(values):
        kernel.store(out, i, kernel.const(dtype, value))
    target = empty(stored, len(values))
    run(kernel, backend, target)
    if dtype is dtypes.bfloat16:
        target = (target.astype(np.uint32) << 16).view(np.float32)
    expected = np.array(values, target.dtype)
    np.testing.assert_array_equal(target, expected)
    if dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(target), np.signbit(expected))


@on_every_path
def test_lanes_are_taken_and_put_together(backend):
    kernel = Kernel()
    out, data = kernel.param(0, f32, 8), kernel.param(1, f32, 4)
    vector = kernel.load(data, 0, 4)
    scalar = kernel.add(Ops.GEP, f32, (vector,), (2,))
    pair = kernel.add(Ops.GEP, f32.vec(2), (vector,), (3, 0))
    kernel.store(out, 0, kernel.add(Ops.VECTORIZE, f32.vec(4), (scalar,)))
    kernel.store(out, 4, pair)
    both = kernel.add(Ops.VECTORIZE, f32.vec(2), (scalar, kernel.add(Ops.GEP, f32, (vector,), (1,))))
    kernel.store(out, 6, both)
    target = empty(f32, 8)
    run(kernel, backend, target, np.array([10, 11, 12, 13], np.float32))
    np.testing.assert_array_equal(target, [12, 12, 12, 12, 13, 10, 12, 11])


@on_every_path
def test_a_byte_that_is_not_zero_is_true(backend):
    kernel = Kernel()
    out, data = kernel.param(0, i32, 4), kernel.param(1, dtypes.bool, 4)
    for i in range(4):
        value = kernel.load(data, i)
        kernel.store(out, i, kernel.alu(Ops.WHERE, value, kernel.const(i32, 5), kernel.const(i32, 6)))
    target = empty(i32, 4)
    run(kernel, backend, target, np.array([0, 1, 0, 1], bool))
    np.testing.assert_array_equal(target, [6, 5, 6, 5])


# ---- gates


@on_every_path
@pytest.mark.parametrize("count", [1, 4])
def test_a_closed_gate_touches_no_memory(backend, count, before_guard):
    """Of 8 rows, the kernel may read and write the first 2; the others lie behind the end of memory."""
    kernel = Kernel()
    out, data = kernel.param(0, f32, 2 * count), kernel.param(1, f32, 2 * count)
    seen = kernel.param(2, f32, 8 * count)
    loop = kernel.loop(8)
    gate = kernel.alu(Ops.CMPLT, loop, kernel.const(i32, 2))
    offset = kernel.alu(Ops.MUL, loop, kernel.const(i32, count))
    value = kernel.load(data, offset, count, gate, kernel.const(f32.vec(count), -5.0))
    first = kernel.store(out, offset, value, gate)
    kernel.end(kernel.store(kernel.after(seen, first), offset, value), loop)
    target, source, all_seen = before_guard(2 * count), before_guard(2 * count), empty(f32, 8 * count)
    target[:] = 0
    run(kernel, backend, target, source, all_seen)
    np.testing.assert_array_equal(target, np.arange(2 * count))
    np.testing.assert_array_equal(all_seen, [*range(2 * count), *[-5.0] * (6 * count)])


@on_masking_paths
@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_masks_choose_lanes(backend, dtype):
    kernel = Kernel()
    out, data, mask = kernel.param(0, dtype, 8), kernel.param(1, dtype, 8), kernel.param(2, dtypes.bool, 8)
    gate = kernel.load(mask, 0, 8)
    value = kernel.load(data, 0, 8, gate, kernel.const(dtype.vec(8), 1))
    kernel.store(out, 0, value, kernel.alu(Ops.CMPNE, gate, kernel.const(dtypes.bool.vec(8), True)))
    source = np.zeros(8, numpy_dtype(dtype))
    source[:] = [0, 1, 0, 0, 1, 0, 1, 0]
    target, flags = empty(dtype, 8), np.array([1, 0, 1, 1, 0, 0, 1, 1], bool)
    untouched = target.copy()
    run(kernel, backend, target, source, flags)
    one = np.uint16(0x3F80) if dtype is dtypes.bfloat16 else source.dtype.type(1)
    assert target.tobytes() == np.where(flags, untouched, one).tobytes()


@on_masking_paths
def test_masked_lanes_touch_no_memory(backend, before_guard):
    kernel = Kernel()
    out, data, mask = kernel.param(0, f32, 3), kernel.param(1, f32, 3), kernel.param(2, dtypes.bool, 8)
    gate = kernel.load(mask, 0, 8)
    kernel.store(out, 0, kernel.load(data, 0, 8, gate, kernel.const(f32.vec(8), 9.0)), gate)
    target = before_guard(3)
    target[:] = -1
    run(kernel, backend, target, before_guard(3), np.arange(8) < 3)
    np.testing.assert_array_equal(target, [0, 1, 2])


# ---- loops and accumulators


def matmul(n: int, lanes: int) -> Kernel:
    kernel = Kernel("matmul")
    c, a, b = (kernel.param(i, f32, n * n) for i in range(3))
    acc = kernel.register(f32.vec(lanes))
    i = kernel.loop(n)
    row = kernel.alu(Ops.MUL, i, kernel.const(i32, n))
    j = kernel.loop(n // lanes)
    column = kernel.alu(Ops.MUL, j, kernel.const(i32, lanes))
    start = kernel.write(acc, kernel.const(f32.vec(lanes), 0.0))
    k = kernel.loop(n, AxisType.REDUCE)
    left = kernel.load(a, kernel.alu(Ops.ADD, row, k))
    left = left if lanes == 1 else kernel.add(Ops.VECTORIZE, f32.vec(lanes), (left,))
    below = kernel.alu(Ops.ADD, kernel.alu(Ops.MUL, k, kernel.const(i32, n)), column)
    product = kernel.alu(Ops.MUL, left, kernel.load(b, below, lanes))
    step = kernel.write(acc, kernel.alu(Ops.ADD, kernel.read(kernel.after(acc, start, k)), product))
    total = kernel.read(kernel.after(acc, kernel.end(step, k)))
    body = kernel.store(c, kernel.alu(Ops.ADD, row, column), total)
    kernel.end(kernel.end(body, j), i)
    return kernel


@on_every_path
@pytest.mark.parametrize("lanes", [1, 4])
def test_a_matmul(backend, lanes):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (2, 8, 8)).astype(np.float32)  # small integers: every order of sums is exact
    c = empty(f32, 64)
    run(matmul(8, lanes), backend, c, a, b)
    np.testing.assert_array_equal(c.reshape(8, 8), a @ b)


@on_every_path
def test_accumulators_that_swap_are_read_before_they_change(backend):
    """Fibonacci: a, b = b, a + b, with the reads of both before the writes."""
    kernel = Kernel()
    out = kernel.param(0, dtypes.uint32, 1)
    a, b = kernel.register(dtypes.uint32), kernel.register(dtypes.uint32)
    start_a = kernel.write(a, kernel.const(dtypes.uint32, 0))
    start_b = kernel.write(b, kernel.const(dtypes.uint32, 1))
    loop = kernel.loop(40, AxisType.REDUCE)
    old_a, old_b = kernel.read(kernel.after(a, start_a, loop)), kernel.read(kernel.after(b, start_b, loop))
    first = kernel.write(kernel.after(a, loop), old_b)
    second = kernel.write(kernel.after(b, first), kernel.alu(Ops.ADD, old_a, old_b))
    end = kernel.end(second, loop)
    kernel.store(out, 0, kernel.read(kernel.after(a, end)))
    target = empty(dtypes.uint32, 1)
    run(kernel, backend, target)
    assert target[0] == 102334155


@on_every_path
def test_an_accumulator_is_copied_before_an_inner_loop_changes_it(backend):
    """Each outer round adds what the accumulator was when the round began, three times: 1, 4, 16."""
    kernel = Kernel()
    out = kernel.param(0, i32, 1)
    acc = kernel.register(i32)
    start = kernel.write(acc, kernel.const(i32, 1))
    outer = kernel.loop(2, AxisType.REDUCE)
    old = kernel.read(kernel.after(acc, start, outer))
    inner = kernel.loop(3, AxisType.REDUCE)
    grown = kernel.alu(Ops.ADD, kernel.read(kernel.after(acc, inner, old)), old)
    end = kernel.end(kernel.end(kernel.write(acc, grown), inner), outer)
    kernel.store(out, 0, kernel.read(kernel.after(acc, end)))
    target = empty(i32, 1)
    run(kernel, backend, target)
    assert target[0] == 16


@on_every_path
@pytest.mark.parametrize("size", [0, 1, 7])
def test_a_loop_as_long_as_a_variable_says(backend, size):
    kernel = Kernel()
    out, counted = kernel.param(0, dtypes.int64, 8), kernel.param(1, dtypes.int64, 1)
    height, width = kernel.variable("height"), kernel.variable("width")
    loop = kernel.loop(width)
    end = kernel.end(kernel.store(out, loop, height), loop)
    kernel.store(kernel.after(counted, end), 0, kernel.alu(Ops.ADD, width, width))
    target, twice = np.zeros(8, np.int64), empty(dtypes.int64, 1)
    run(kernel, backend, target, twice, vals=(1 << 40, size))
    np.testing.assert_array_equal(target, [1 << 40] * size + [0] * (8 - size))
    assert twice[0] == 2 * size


@on_every_path
@pytest.mark.parametrize("name", ["v1", "p2", "int", "data0", "idx0", "acc0", "größe"])
def test_a_variable_may_have_any_name(backend, name):
    kernel = Kernel()
    out, variable = kernel.param(0, dtypes.int64, 4), kernel.variable(name)
    loop = kernel.loop(4)
    kernel.end(kernel.store(out, loop, kernel.alu(Ops.ADD, kernel.alu(Ops.MUL, variable, variable), variable)), loop)
    target = empty(dtypes.int64, 4)
    run(kernel, backend, target, vals=(6,))
    np.testing.assert_array_equal(target, [42] * 4)


@on_every_path
def test_loops_one_after_the_other(backend):
    kernel = Kernel()
    out = kernel.param(0, i32, 4)
    first = kernel.loop(4)
    end = kernel.end(kernel.store(out, first, kernel.alu(Ops.MUL, first, first)), first)
    second = kernel.loop(4)
    place = kernel.after(out, end)
    kernel.end(kernel.store(place, second, kernel.alu(Ops.ADD, kernel.load(place, second), second)), second)
    target = empty(i32, 4)
    run(kernel, backend, target)
    np.testing.assert_array_equal(target, [0, 2, 6, 12])


@on_every_path
def test_loops_of_the_same_number_one_after_the_other(backend):
    kernel = Kernel()
    out = kernel.param(0, i32, 9)
    for size in (2, 3, 4):
        loop = kernel.add(Ops.RANGE, i32, (kernel.const(i32, size),), (0, AxisType.LOOP))
        place = kernel.alu(Ops.ADD, loop, kernel.const(i32, 2 * size - 4 + size // 4))
        kernel.end(kernel.store(out, place, kernel.const(i32, size)), loop)
    target = empty(i32, 9)
    run(kernel, backend, target)
    np.testing.assert_array_equal(target, [2, 2, 3, 3, 3, 4, 4, 4, 4])


@on_every_path
def test_memory_that_is_local_to_a_kernel(backend):
    kernel = Kernel()
    out = kernel.param(0, f32, 4)
    local = kernel.add(Ops.DEFINE_LOCAL, f32.ptr(4, AddrSpace.LOCAL), (), 0)
    first = kernel.loop(4)
    end = kernel.end(kernel.store(local, first, kernel.cast(first, f32)), first)
    second = kernel.loop(4)
    backwards = kernel.alu(Ops.SUB, kernel.const(i32, 3), second)
    kernel.end(kernel.store(out, second, kernel.load(kernel.after(local, end), backwards)), second)
    target = empty(f32, 4)
    run(kernel, backend, target)
    np.testing.assert_array_equal(target, [3, 2, 1, 0])


# ---- what must not be


@on_every_path
def test_an_unknown_operation_is_an_error(backend):
    kernel = Kernel()
    out = kernel.param(0, f32, 1)
    kernel.add(Ops.BARRIER, dtypes.void)
    kernel.store(out, 0, kernel.const(f32, 1.0))
    with pytest.raises(RenderError, match="BARRIER"):
        Compiled(kernel, backend)


@pytest.mark.parametrize("backend", ["CPU:LLVM", "CPU:C"])
@pytest.mark.parametrize("fill", [True, False], ids=["memset", "memcpy"])
def test_loops_do_not_become_calls_of_the_c_library(backend, fill):
    """Compilers know a loop that fills or copies when they see one; kernels have no library to call."""
    kernel = Kernel()
    out, data = kernel.param(0, f32, 4096), kernel.param(1, f32, 4096)
    loop = kernel.loop(4096)
    kernel.end(kernel.store(out, loop, kernel.const(f32, 0.0) if fill else kernel.load(data, loop)), loop)
    source = np.arange(4096, dtype=np.float32)
    target = empty(f32, 4096)
    run(kernel, backend, target, source)  # loading fails if there is a symbol that the object does not bring
    np.testing.assert_array_equal(target, 0 * source if fill else source)
