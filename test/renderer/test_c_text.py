"""The C that people read: these texts are documentation; that they are right is tested elsewhere."""
from linear import Kernel
from renderer.test_memory import matmul

from tensor_engine.dtype import dtypes
from tensor_engine.renderer.cstyle import CRenderer, constant
from tensor_engine.uop.op import Ops

f32, i32 = dtypes.float32, dtypes.int32


def body(kernel: Kernel) -> str:
    """The kernel's lines without the types before it."""
    text = CRenderer().render(kernel.linear())
    return text[text.index("void ") :]


def test_a_matmul_reads_like_c():
    assert CRenderer().render(matmul(8, 4).linear()) == """\
#include <stdbool.h>
#include <stdint.h>
typedef float float4 __attribute__((vector_size(16), aligned(4)));
void matmul(float* restrict data0, const float* restrict data1, const float* restrict data2) {
  for (int idx0 = 0; idx0 < 8; idx0++) {
    int alu0 = idx0 * 8;
    for (int idx1 = 0; idx1 < 2; idx1++) {
      int alu1 = idx1 * 4;
      float4 acc0 = (float4){0};
      for (int ridx2 = 0; ridx2 < 8; ridx2++) {
        float val0 = data1[alu0 + ridx2];
        float4 val1 = *(float4*)(data2 + ridx2 * 8 + alu1);
        acc0 = acc0 + val0 * val1;
      }
      *(float4*)(data0 + alu0 + alu1) = acc0;
    }
  }
}
"""


def test_only_the_parentheses_that_c_needs():
    kernel = Kernel()
    out, data = kernel.param(0, i32, 1), kernel.param(1, i32, 4)
    a, b, c, d = (kernel.load(data, i) for i in range(4))
    left = kernel.alu(Ops.SUB, a, kernel.alu(Ops.SUB, b, c))
    right = kernel.alu(Ops.ADD, kernel.alu(Ops.MUL, a, b), kernel.alu(Ops.NEG, kernel.alu(Ops.NEG, d)))
    chosen = kernel.alu(Ops.WHERE, kernel.alu(Ops.CMPLT, left, right), left, kernel.alu(Ops.SHL, right, d))
    kernel.store(out, 0, chosen)
    lines = body(kernel).splitlines()
    assert "  int alu0 = val0 - (val1 - val2);" in lines
    assert "  int alu1 = val0 * val1 - (-val3);" in lines
    assert "  data0[0] = alu0 < alu1 ? alu0 : alu1 << val3;" in lines


def test_narrow_integers_are_cut_where_c_would_compute_in_int():
    kernel = Kernel()
    out, data = kernel.param(0, dtypes.bool, 1), kernel.param(1, dtypes.int8, 2)
    a, b = kernel.load(data, 0), kernel.load(data, 1)
    kernel.store(out, 0, kernel.alu(Ops.CMPLT, kernel.alu(Ops.ADD, a, b), a))
    assert "data0[0] = (int8_t)(val0 + val1) < val0;" in body(kernel)


def test_constants():
    cases = {
        (f32, 0.1): "0.1f", (f32, -150.0): "-150.0f",
        (f32, 1.0): "1.0f", (f32, float("-inf")): "-__builtin_inff()", (f32, 1e-20): "1e-20f",
        (dtypes.float64, 0.1): "0.1", (dtypes.float16, 1.0): "0x3c00", (dtypes.bfloat16, 1.0): "0x3f80",
        (i32, -5): "-5", (i32, -(2**31)): "(-2147483647 - 1)", (dtypes.uint32, 7): "7u", (dtypes.bool, True): "true",
        (dtypes.int64, -(2**63)): "(-9223372036854775807l - 1l)", (dtypes.uint64, 2**64 - 1): "18446744073709551615ul",
    }  # fmt: skip
    for (dtype, value), text in cases.items():
        assert constant(dtype, value) == text
