"""Many kernels in one native call."""
import threading
import time

import numpy as np
import pytest
from linear import Compiled, Kernel

from tensor_engine.device import Buffer, Device, KernelCall, Parameter
from tensor_engine.dtype import dtypes
from tensor_engine.runtime.frame import NativeFrameProgram
from tensor_engine.uop.op import Ops

i64 = dtypes.int64
on_every_device = pytest.mark.parametrize("backend", ["CPU", "PYTHON"])


def weighted_sum(buffers: int, vals: int) -> Kernel:
    """data0[0] = data0[0] * 3 + Σ i · data_i[0] + Σ 100 · i · val_i: every argument counts by its position."""
    kernel = Kernel(f"sum_{buffers}_{vals}")
    params = [kernel.param(i, i64, 1) for i in range(buffers)]
    variables = [kernel.variable(f"v{i:02}") for i in range(vals)]
    total = kernel.alu(Ops.MUL, kernel.load(params[0], 0), kernel.const(i64, 3))
    for i, value in enumerate([kernel.load(p, 0) for p in params[1:]], 1):
        total = kernel.alu(Ops.ADD, total, kernel.alu(Ops.MUL, value, kernel.const(i64, i)))
    for i, value in enumerate(variables, 1):
        total = kernel.alu(Ops.ADD, total, kernel.alu(Ops.MUL, value, kernel.const(i64, 100 * i)))
    kernel.store(params[0], 0, total)
    return kernel


def expected(numbers: list[int], vals: tuple[int, ...]) -> int:
    others = sum(i * n for i, n in enumerate(numbers[1:], 1))
    return numbers[0] * 3 + others + sum(100 * i * v for i, v in enumerate(vals, 1))


def buffers_of(backend: str, numbers: list[int]) -> list[Buffer]:
    return [Buffer(backend, 1, i64).copyin(np.array([n], np.int64).data) for n in numbers]


def handles(buffers: list[Buffer]) -> tuple:
    return tuple(b.opaque for b in buffers)


@on_every_device
@pytest.mark.parametrize("buffers,vals", [(1, 0), (2, 0), (6, 0), (7, 0), (8, 3), (1, 9), (20, 5)])
def test_every_argument_arrives(backend, buffers, vals):
    program = Compiled(weighted_sum(buffers, vals), backend).program
    numbers, values = [*range(5, 5 + buffers)], tuple(range(1 << 33, (1 << 33) + vals))
    memory = buffers_of(backend, numbers)
    frame = Device[backend].link([KernelCall(program, handles(memory), values)])
    frame()
    assert memory[0].numpy()[0] == expected(numbers, values)


@pytest.mark.parametrize("buffers,vals", [(1024, 0), (1025, 0), (1020, 6)])
def test_a_kernel_may_have_very_many_arguments(buffers, vals):
    program = Compiled(weighted_sum(buffers, vals), "CPU").program
    numbers, values = [*range(buffers)], tuple(range(vals))
    memory = buffers_of("CPU", numbers)
    program(*handles(memory), vals=values)
    assert memory[0].numpy()[0] == expected(numbers, values)


@on_every_device
def test_kernels_run_in_order(backend):
    add, grow = Compiled(weighted_sum(2, 0), backend).program, Compiled(weighted_sum(1, 1), backend).program
    memory = buffers_of(backend, [1, 10])
    a, b = handles(memory)
    frame = Device[backend].link([KernelCall(add, (a, b)), KernelCall(grow, (a,), (2,)), KernelCall(add, (b, a))])
    frame()
    assert [m.numpy()[0] for m in memory] == [239, 269]  # 1·3+10, 13·3+200; 10·3+239


@on_every_device
def test_parameters_can_be_set_between_runs(backend):
    program = Compiled(weighted_sum(2, 2), backend).program
    first, second, other = memory = buffers_of(backend, [1, 10, 1000])
    calls = [
        KernelCall(program, handles(memory[:2]), (1, 2)),
        KernelCall(program, (Parameter(0), other.opaque), (Parameter(1), 0)),
        KernelCall(program, (other.opaque, Parameter(0)), (Parameter(1), Parameter(1))),
    ]
    frame = Device[backend].link(calls, [first.opaque, 7])
    frame()
    after = expected([expected([1, 10], (1, 2)), 1000], (7, 0))
    assert [m.numpy()[0] for m in memory] == [after, 10, expected([1000, after], (7, 7))]
    frame.set(0, second.opaque)
    frame.set(1, -5)
    before = [m.numpy()[0] for m in memory]
    frame()
    first_after = expected([before[0], before[1]], (1, 2))
    second_after = expected([before[1], before[2]], (-5, 0))
    assert [m.numpy()[0] for m in memory[:2]] == [first_after, second_after]
    assert other.numpy()[0] == expected([before[2], second_after], (-5, -5))


@on_every_device
def test_no_kernels_at_all(backend):
    Device[backend].link([])()


@on_every_device
def test_a_parameter_that_is_not_there(backend):
    program = Compiled(weighted_sum(1, 1), backend).program
    frame = Device[backend].link([KernelCall(program, (Parameter(0),), (1,))], handles(buffers_of(backend, [1])))
    with pytest.raises(IndexError):
        frame.set(1, 5)
    with pytest.raises(IndexError, match="parameter 1 of 1"):
        Device[backend].link([KernelCall(program, (Parameter(1),), (1,))], [0])


def test_the_cpu_has_a_native_one_that_keeps_its_programs():
    memory = buffers_of("CPU", [1])
    frame = Device["CPU"].link([KernelCall(Compiled(weighted_sum(1, 0), "CPU").program, handles(memory))])
    assert isinstance(frame, NativeFrameProgram)
    frame()
    assert memory[0].numpy()[0] == 3


def test_other_threads_run_meanwhile():
    """A kernel that counts for a while; a thread must get somewhere during one native call."""
    kernel = Kernel("count")
    out, steps = kernel.param(0, dtypes.float32, 1), kernel.variable("steps")
    loop = kernel.loop(steps)
    kernel.end(kernel.store(out, 0, kernel.alu(Ops.ADD, kernel.load(out, 0), kernel.const(dtypes.float32, 0.1))), loop)
    program = Compiled(kernel, "CPU").program
    memory = Buffer("CPU", 1, dtypes.float32).copyin(np.zeros(1, np.float32).data)
    frame = Device["CPU"].link([KernelCall(program, (memory.opaque,), (20_000_000,))] * 3)
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    frame()
    end = time.perf_counter()
    done.set()
    thread.join()
    assert sum(start < t < end for t in ticks) >= 2
