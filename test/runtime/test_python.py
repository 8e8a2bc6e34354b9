"""What the interpreter refuses: it is there to find mistakes of code generation."""
import json

import numpy as np
import pytest
from linear import Compiled, Kernel, empty, run

from tensor_engine.dtype import AddrSpace, dtypes
from tensor_engine.renderer import RenderError
from tensor_engine.renderer.python import PythonRenderer, parse
from tensor_engine.uop.op import AxisType, Ops
from tensor_engine.uop.uop import UOp

f32, i32 = dtypes.float32, dtypes.int32


@pytest.mark.parametrize("offset", [-1, 4, 1 << 30])
@pytest.mark.parametrize("what", ["load", "store"])
def test_an_access_outside_names_kernel_buffer_and_offset(offset, what):
    kernel = Kernel("reads_far")
    out, data = kernel.param(0, f32, 4), kernel.param(1, f32, 4)
    kernel.store(out, offset if what == "store" else 0, kernel.load(data, offset if what == "load" else 0))
    name = "data0" if what == "store" else "data1"
    with pytest.raises(IndexError, match=rf"kernel reads_far, .*{name}\[{offset}\] is outside of its 4 elements"):
        run(kernel, "PYTHON", empty(f32, 4), empty(f32, 4))


def test_a_vector_that_reaches_outside():
    kernel = Kernel()
    kernel.store(kernel.param(0, f32, 8), 0, kernel.load(kernel.param(1, f32, 6), 3, 4))
    with pytest.raises(IndexError, match=r"data1\[6\]"):
        run(kernel, "PYTHON", empty(f32, 8), empty(f32, 6))


def test_a_buffer_smaller_than_the_kernel_says():
    kernel = Kernel()
    kernel.store(kernel.param(0, f32, 8), 0, kernel.const(f32, 1.0))
    with pytest.raises(IndexError, match="data0 has 4 elements, and the kernel wants 8"):
        run(kernel, "PYTHON", empty(f32, 4))


def test_a_division_by_zero():
    kernel = Kernel()
    out, data = kernel.param(0, i32, 1), kernel.param(1, i32, 2)
    kernel.store(out, 0, kernel.alu(Ops.IDIV, kernel.load(data, 0), kernel.load(data, 1)))
    with pytest.raises(ZeroDivisionError, match="ends a process"):
        run(kernel, "PYTHON", empty(i32, 1), np.array([1, 0], np.int32))


def test_an_accumulator_without_a_value():
    kernel = Kernel()
    out = kernel.param(0, f32, 1)
    kernel.store(out, 0, kernel.read(kernel.register(f32)))
    with pytest.raises(ValueError, match="read before"):
        run(kernel, "PYTHON", empty(f32, 1))


def test_a_gate_without_an_alternative():
    kernel = Kernel()
    out, gate = kernel.param(0, f32, 1), kernel.const(dtypes.bool, False)
    kernel.store(out, 0, kernel.load(out, 0, 1, gate))
    with pytest.raises(ValueError, match="no value for where it is closed"):
        run(kernel, "PYTHON", empty(f32, 1))


@pytest.mark.parametrize("backend,error", [("PYTHON", TypeError), ("CPU:LLVM", RenderError)])
def test_arithmetic_on_bfloat16(backend, error):
    kernel = Kernel()
    out = kernel.param(0, dtypes.bfloat16, 1)
    value = kernel.load(out, 0)
    kernel.store(out, 0, kernel.alu(Ops.ADD, value, value))
    with pytest.raises(error, match="ADD on .*bfloat16.*cast it to float32"):
        run(kernel, backend, empty(dtypes.bfloat16, 1))


def test_the_text_is_data_and_comes_back_as_it_was():
    kernel = Kernel("text")
    out, size = kernel.param(0, f32, 4), kernel.variable("size")
    register = kernel.add(Ops.DEFINE_REG, f32.vec(4).ptr(1, AddrSpace.REG), (), 0)
    kernel.write(register, kernel.const(f32.vec(4), float("-inf")))
    loop = kernel.loop(size, AxisType.REDUCE)
    kernel.end(kernel.store(out, kernel.const(i32, 0), kernel.add(Ops.GEP, f32, (kernel.read(register),), (3,))), loop)
    uops = kernel.linear()
    text = PythonRenderer().render(uops)
    assert [json.loads(line)[0] for line in text.splitlines()] == [*range(len(uops))]
    for uop, instruction in zip(uops, parse(text)):
        assert (instruction.op, instruction.dtype) == (uop.op, uop.dtype)
        assert [uops[i] for i in instruction.src] == [*uop.src]
        assert instruction.arg == ("text" if uop.op is Ops.SINK else uop.arg)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.0, 0.1, 1e-45])
def test_constants_survive_the_text(value):
    constant = UOp.const(f32, value)
    kernel = Kernel()
    kernel.store(kernel.param(0, f32, 1), 0, kernel.add(*(constant.op, constant.dtype, constant.src, constant.arg)))
    target = empty(f32, 1)
    Compiled(kernel, "PYTHON")(target)
    assert target.tobytes() == np.float32(value).tobytes()
