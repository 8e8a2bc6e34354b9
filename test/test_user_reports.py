"""What users of lazy engines report, a test a line: the right value is given, or plain.

Every value is asked for on each CPU path with its inputs in memory, and once more with constants as inputs, which the
engine folds. Expected values are IEEE 754's, numpy's, or plain arithmetic.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from linear import BACKENDS

from tensor_engine import GlobalCounters, Tensor, TinyJit, Variable, dtypes, tensor
from tensor_engine.dtype import DType
from tensor_engine.engine import program
from tensor_engine.engine.constants import MEMBERS
from tensor_engine.engine.jit import JitError
from tensor_engine.helpers import Context
from tensor_engine.uop.uop import UOpMeta

INF, NAN = math.inf, math.nan
Maker = Callable[..., Tensor]
on_cpu = pytest.mark.parametrize("path", ["CPU:LLVM", "CPU:C"])


@pytest.fixture(params=[*BACKENDS, "folded"])
def given(request: pytest.FixtureRequest) -> Iterator[Maker]:
    """Makes the inputs: `given(value or list, dtype)`, in memory of a device or of constants."""
    if request.param == "folded":
        yield constants
        return
    with Context(DEV=request.param):
        yield lambda values, dtype=None: Tensor(values, dtype=dtype).realize()


def constants(values: float | list[float], dtype: DType | None = None) -> Tensor:
    """The values without memory, for the engine to fold."""
    if not isinstance(values, list):
        return Tensor(values, dtype=dtype)
    rows = [Tensor(value, dtype=dtype or dtypes.from_py(*values)).reshape(1) for value in values]
    return rows[0].cat(*rows[1:]) if len(rows) > 1 else rows[0]


# ---- values ---------------------------------------------------------------------------------------------------------


def test_max_of_1_and_nan_is_nan(given: Maker) -> None:
    for numbers in ([1.0, NAN], [NAN, 1.0], [-INF, NAN, INF]):
        assert math.isnan(given(numbers).max().item())
        assert math.isnan(given(numbers).min().item())


def test_argmax_of_nan_and_3_is_0_as_in_numpy(given: Maker) -> None:
    for numbers in ([NAN, 3.0], [3.0, NAN], [NAN, NAN], [-INF, NAN, INF]):
        assert given(numbers).argmax().item() == np.argmax(numbers)
        assert given(numbers).argmin().item() == np.argmin(numbers)


def test_inf_times_0_and_inf_minus_inf_and_0_by_0_are_nan(given: Maker) -> None:
    inf, zero = given(INF), given(0.0)
    for value in (inf * 0, inf * zero, 0 * inf, inf - inf, inf + -inf, zero / zero, zero / 0, inf / inf, NAN * zero):
        assert math.isnan(value.item())
    assert math.isnan((inf * 0 + 1).item()) and math.isnan((given(NAN) - given(NAN)).item())


def test_nan_does_not_compare(given: Maker) -> None:
    nan = given(NAN)
    assert [(nan == nan).item(), (nan < nan).item(), (nan <= nan).item(), (nan >= nan).item()] == [False] * 4
    assert (nan != nan).item()


def test_1_floor_divided_by_0_is_0_and_does_not_end_the_process(given: Maker) -> None:
    for dtype in (dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.int64, dtypes.uint64):
        one, zero = given([1], dtype), given([0], dtype)
        assert [(one // zero).item(), (one % zero).item(), (one // 0).item(), (one % 0).item()] == [0] * 4


def test_the_smallest_integer_by_minus_1_wraps(given: Maker) -> None:
    for dtype in dtypes.sints:
        least, minus_one = given([dtype.min], dtype), given([-1], dtype)
        assert (least // minus_one).item() == (least // -1).item() == dtype.min
        assert (least % minus_one).item() == (least % -1).item() == 0


def test_3_to_the_19_is_1162261467_in_int32(given: Maker) -> None:
    three, nineteen = given([3], dtypes.int32), given([19], dtypes.int32)
    assert (three**19).item() == (three**nineteen).item() == (3**nineteen).item() == 1162261467
    assert (three**19).dtype is dtypes.int32


def test_numbers_out_of_range_become_the_same_uint8_everywhere(given: Maker) -> None:
    """dtype.float_to_int: cut towards zero, then wrapped."""
    assert given([-1.0, -2.5, 256.0, 300.0]).cast(dtypes.uint8).tolist() == [255, 254, 0, 44]
    assert given([-1, -2, 256, 300]).cast(dtypes.uint8).tolist() == [255, 254, 0, 44]


def test_2147483646_as_float_becomes_the_same_int32_everywhere(given: Maker) -> None:
    """As float32 it is 2**31, which no int32 holds; as float64 it is itself."""
    assert given([2147483646.0], dtypes.float32).cast(dtypes.int32).item() == -(2**31)
    assert given([2147483646.0], dtypes.float64).cast(dtypes.int32).item() == 2147483646


def test_nan_becomes_the_same_int_everywhere(given: Maker) -> None:
    """dtype.float_to_int: the minimum of the integer type that the cast goes through."""
    expected = {d: 0 if d.bits < 32 or d.kind == "u" else -(2 ** (d.bits - 1)) for d in dtypes.ints}
    found = {d: [given([x]).cast(d).item() for x in (NAN, INF, -INF)] for d in dtypes.ints}
    assert found == {d: [value] * 3 for d, value in expected.items()}


def test_110_by_55_is_2(given: Maker) -> None:
    for dtype in (dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.int64, *dtypes.floats):
        a, b = given([110], dtype), given([55], dtype)
        assert (a // b).item() == (a // 55).item() == 2


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.int32, dtypes.float32], ids=str)
def test_floor_division_and_modulo_over_all_sign_pairs(given: Maker, dtype: DType) -> None:
    cases = [(a, b) for a in (-7, -6, 0, 7) for b in (-3, 1, 3)]
    x, y = given([a for a, _ in cases], dtype), given([b for _, b in cases], dtype)
    assert (x // y).tolist() == [a // b for a, b in cases]
    assert (x % y).tolist() == [a % b for a, b in cases]
    numbers = given([-7, -6, 0, 7], dtype)
    for divisor in (-4, 3):  # a constant divisor takes another way
        assert (numbers // divisor).tolist() == [a // divisor for a in (-7, -6, 0, 7)]
        assert (numbers % divisor).tolist() == [a % divisor for a in (-7, -6, 0, 7)]


def test_sine_of_39800_in_float64(given: Maker) -> None:
    assert given([39800.0], dtypes.float64).sin().item() == pytest.approx(math.sin(39800), rel=4e-16, abs=0)


@pytest.mark.parametrize("path", BACKENDS)
def test_half_randn_has_no_inf(path: str) -> None:
    count = 2_000_000 if path != "PYTHON" else 2_000
    with Context(DEV=path):
        Tensor.manual_seed(0)
        found = Tensor.randn(count, dtype=dtypes.float16).numpy()
    assert found.dtype == np.float16 and np.isfinite(found).all()
    assert abs(found.astype(np.float64).std() - 1) < 0.05


def test_half_mean_of_60000s_and_half_variance_of_0_and_400(given: Maker) -> None:
    many = given([60000.0], dtypes.float16).expand(1000).contiguous()
    assert many.mean().item() == np.float16(60000)
    wide = given([0.0, 400.0], dtypes.float16).expand(1000, 2).contiguous()
    assert wide.var(correction=0).item() == 40000


@on_cpu
def test_half_variance_of_0_and_400_forty_thousand_times(path: str) -> None:
    with Context(DEV=path):
        wide = Tensor([0.0, 400.0] * 40_000, dtype=dtypes.float16)
        assert wide.var().item() == 40000 and wide.std().item() == 200


def test_uint64_and_int64_meet_in_float32(given: Maker) -> None:
    """The documented dtype (dtype.py): there is no integer type for both, and JAX's lattice says float32."""
    result = given([2], dtypes.uint64) + given([-3], dtypes.int64)
    assert result.dtype is dtypes.float32 and result.tolist() == [-1]


@on_cpu
def test_cumsum_of_1022_ones_and_its_gradient(path: str) -> None:
    with Context(DEV=path):
        ones = Tensor.ones(1022).contiguous()
        np.testing.assert_array_equal(ones.cumsum().sum().gradient(ones)[0].numpy(), np.arange(1022, 0, -1))
        np.testing.assert_array_equal(ones.cumsum().numpy(), np.arange(1, 1023))


def test_gradient_of_the_product_of_0_2_3_is_6_0_0(given: Maker) -> None:
    x = given([0.0, 2.0, 3.0])
    assert x.prod().gradient(x)[0].tolist() == [6, 0, 0]


def test_gradient_of_a_root_that_was_not_chosen_is_0(given: Maker) -> None:
    x = given([0.0, 4.0, -1.0])
    assert (x > 0).where(x.sqrt(), 0).sum().gradient(x)[0].tolist() == [0, 0.25, 0]


def test_gradient_of_the_largest_of_70000_halves_is_not_0(given: Maker) -> None:
    x = given(1.0, dtypes.float16).expand(70_000 if given is constants else 3_000).contiguous()
    gradient = x.max().gradient(x)[0].numpy()
    np.testing.assert_allclose(gradient, np.full(x.shape, 1 / x.shape[0]), rtol=0.01)


@on_cpu
def test_gradient_of_the_largest_of_70000_halves_in_memory_is_not_0(path: str) -> None:
    with Context(DEV=path):
        x = Tensor(np.ones(70_000, np.float16)).realize()
        x.max().backward()
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), np.full(70_000, 1 / 70_000), rtol=0.01)


def test_a_kernel_index_beyond_two_to_the_31(given: Maker) -> None:
    """Of 2**34 values that are repeated, not stored, some far behind; and numbers counted up to there."""
    rows = given(list(range(7)), dtypes.int32)
    far = rows.expand(2**34 // 7, 7).flatten()[2**33 + 1 : 2**33 + 9]
    assert far.tolist() == [n % 7 for n in range(2**33 + 1, 2**33 + 9)]
    counted = Tensor.arange(2**34, dtype=dtypes.int64)[2**33 :: 2**32]
    assert (counted + given(1, dtypes.int64)).tolist() == [2**33 + 1, 2**33 + 2**32 + 1]


@pytest.mark.slow
@on_cpu
def test_memory_beyond_two_to_the_31(path: str) -> None:
    with Context(DEV=path):
        x = Tensor.full((2**31 + 64,), 3, dtype=dtypes.uint8).contiguous().realize()
        x[2**31 + 5 : 2**31 + 7] = 9
        assert x[-64:].tolist() == [3] * 5 + [9] * 2 + [3] * 57
        assert x.max().item() == 9


def test_division_by_zero_does_not_loop_the_rewriter(given: Maker) -> None:
    x, zero = given([5, -5], dtypes.int32), given([0, 0], dtypes.int32)
    assert ((x // zero) // zero).tolist() == [0, 0]
    assert (((x * 0) // 0) % 0 + x // (x - x)).tolist() == [0, 0]
    assert ((x // 0) * 0 + (x % 0) // 0).tolist() == [0, 0]
    counted = Tensor.arange(2, dtype=dtypes.int32)  # an index, which the simplifier knows the bounds of
    assert ((counted // 0) + (counted % 0) + (counted + x * 0) // 0).tolist() == [0, 0]
    y = given([5.0, -5.0, 0.0])
    np.testing.assert_array_equal((y / 0).numpy(), [INF, -INF, NAN])
    np.testing.assert_array_equal((y / (y - y)).numpy(), [INF, -INF, NAN])
    np.testing.assert_array_equal((1 / (y * 0)).numpy(), [INF, -INF, INF])


# ---- state ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["both", "reader first", "assigned first"])
def test_a_sum_keeps_the_old_value_when_a_slice_is_assigned(given: Maker, order: str) -> None:
    x = given([1.0, 2.0, 3.0])
    r = x + 10
    x[:1].assign(9.0)
    {"both": lambda: r.realize(x), "reader first": r.realize, "assigned first": x.realize}[order]()
    assert (r.tolist(), x.tolist()) == ([11, 12, 13], [9, 2, 3])


def test_a_slice_multiplied_in_place() -> None:
    t = Tensor([1.0, 2.0, 3.0, 4.0])
    memory, kernels = t.data(), GlobalCounters.kernel_count
    t[:3] *= 10
    assert t.tolist() == [10, 20, 30, 4]
    assert GlobalCounters.kernel_count == kernels + 1
    assert memory.tolist() == t.tolist()


def test_a_slice_assigned_from_an_overlapping_view(given: Maker) -> None:
    values = [1.0, 2.0, 3.0, 4.0]
    for view in (lambda t: t[:-1], lambda t: t[1:], lambda t: t[-2::-1]):
        t, expected = given(values), np.array(values)
        t[1:] = view(t)
        expected[1:] = view(expected).copy()
        assert t.tolist() == expected.tolist()


# ---- capture --------------------------------------------------------------------------------------------------------


def captured(function: Callable[..., Any], *arguments: Any) -> TinyJit[Any]:
    """The function, captured with these arguments."""
    jit = TinyJit(function)
    for _ in range(2):
        jit(*arguments)
    assert jit.captured is not None
    return jit


def test_results_of_two_inputs_that_are_kept_together_differ() -> None:
    f = captured(lambda a: a * 2 + 1, Tensor([0.0, 0.0]))
    one, two = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()
    first, second = f(one), f(two)
    assert first.tolist() == [3, 5] and second.tolist() == [7, 9]


def test_three_captured_results_in_a_list_keep_their_values() -> None:
    f = TinyJit(lambda a: a + 1)
    results = [f(Tensor([float(i)])) for i in range(7)]
    for other in range(20):
        f(Tensor([100.0 + other]))
    assert [result.item() for result in results] == [i + 1 for i in range(7)]


def test_a_python_int_that_changes_is_not_frozen() -> None:
    f = captured(lambda a, times: a * times, Tensor([1.0]), 2)
    with pytest.raises(JitError, match="captured as 2 and is 3 now.*Pass it as a Tensor"):
        f(Tensor([1.0]), 3)
    g = captured(lambda a, times: a * times, Tensor([1.0]), Tensor(2))
    assert [g(Tensor([1.0]), Tensor(times)).item() for times in range(5)] == [0, 1, 2, 3, 4]


def test_a_symbolic_slice_of_growing_length_gives_growing_outputs() -> None:
    f = TinyJit(lambda a, count: a[:count] * 2)
    a, count = Tensor([1.0, 2.0, 3.0, 4.0, 5.0]).realize(), Variable("count", 1, 5)
    kept = [f(a, count.bind(value)) for value in range(1, 6)]
    assert [result.tolist() for result in kept] == [[2 * i for i in range(1, value + 1)] for value in range(1, 6)]


def test_a_captured_function_that_is_fed_its_output() -> None:
    f = TinyJit(lambda a: a * 3 - 1)
    value, expected = Tensor([2.0]), 2
    for _ in range(8):
        value, expected = f(value), expected * 3 - 1
        assert value.item() == expected


def test_a_result_and_a_slice_of_it_returned_together() -> None:
    def function(a: Tensor) -> tuple[Tensor, Tensor]:
        doubled = (a * 2).contiguous()
        return doubled, doubled[1:]

    f = TinyJit(function)
    kept = [f(Tensor([i, i + 1.0, i + 2.0])) for i in range(5)]
    for i, (whole, part) in enumerate(kept):
        assert whole.tolist() == [2 * i, 2 * i + 2, 2 * i + 4] and part.tolist() == whole.tolist()[1:]


def test_rebinding_the_input_in_a_loop() -> None:
    f = TinyJit(lambda a, b: (b, a + b))
    a, b = Tensor([0]), Tensor([1])
    seen = []
    for _ in range(12):
        seen.append(a.item())
        a, b = f(a, b)
    assert seen == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]


def test_two_backward_passes_in_one_capture() -> None:
    weight = Tensor([2.0, 3.0]).realize()

    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        weight.grad = None
        (x * weight * weight).sum().backward()
        first = weight.grad.realize()
        weight.grad = None
        (x + weight).pow(3).sum().backward()
        return first, weight.grad.realize()

    f = TinyJit(function)
    kept = [(i, *f(Tensor([i, i + 1.0]))) for i in range(5)]
    for i, first, second in kept:
        assert first.tolist() == [2 * 2 * i, 2 * 3 * (i + 1)]
        np.testing.assert_allclose(second.numpy(), [3 * (i + 2) ** 2, 3 * (i + 4) ** 2], rtol=1e-6)


def test_a_shape_that_changed_is_a_clear_error() -> None:
    f = captured(lambda a: a.sum(), Tensor([1.0, 2.0]))
    with pytest.raises(JitError, match=r"argument 0 was captured as \(\(2,\).*and is \(\(3,\).*call reset"):
        f(Tensor([1.0, 2.0, 3.0]))
    f.reset()
    assert [f(Tensor([1.0, 2.0, 3.0])).item() for _ in range(3)] == [6, 6, 6]


# ---- growth ---------------------------------------------------------------------------------------------------------


def test_ten_thousand_captured_calls_do_not_grow() -> None:
    f = captured(lambda a: (a * 2).contiguous() + 1, Tensor([1.0, 2.0]))
    x = Tensor([3.0, 4.0]).realize()
    for _ in range(10):
        result = f(x)
    gc.collect()
    before = GlobalCounters.mem_used, len(UOpMeta.alive), len(tensor.alive)
    for _ in range(10_000):
        result = f(x)
    gc.collect()
    assert (GlobalCounters.mem_used, len(UOpMeta.alive), len(tensor.alive)) == before
    assert result.tolist() == [7, 9]


@pytest.mark.parametrize("scale", [1.0, 1], ids=["floats", "ints"])
def test_three_hundred_distinct_constants_are_a_few_kernels(scale: float) -> None:
    x = Tensor([1.0, 2.0] if isinstance(scale, float) else [1, 2]).realize()
    known = set(program.programs)
    for i in range(3, 303):
        number = i * scale * (0.7 if isinstance(scale, float) else 1)
        expected = x.numpy() * np.asarray(number, x.numpy().dtype)
        np.testing.assert_array_equal((x * number).numpy(), expected, strict=True)
    assert len(set(program.programs) - known) <= MEMBERS + 1


def test_a_computed_learning_rate_is_one_kernel_in_every_step() -> None:
    w = Tensor([1.0, 2.0]).realize()
    expected = w.numpy()
    for step in range(2 * MEMBERS):
        rate = 0.1 / (step + 3)
        known = len(program.programs)
        w.assign(w - w * rate).realize()
        expected = expected - expected * np.float32(rate)
        np.testing.assert_allclose(w.numpy(), expected, rtol=1e-6)
    assert len(program.programs) == known


# ---- ONNX -----------------------------------------------------------------------------------------------------------


def test_qlinearconv_clamps() -> None:
    """Products far above what uint8 holds stop at 255, far below at 0; as onnxruntime finds, too."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; pip install onnxruntime")
    from nn.onnx.oracle import make_model, run_onnxruntime, run_ours
    from onnx import TensorProto, helper

    one, zero = np.float32(1), np.uint8(100)
    weights = {"w": np.array([[[[3]]], [[[0]]]], np.uint8), "s": one, "z": np.uint8(1), "a": np.uint8(0), "out": zero}
    model = make_model([helper.make_node("QLinearConv", ["x", "s", "a", "w", "s", "z", "s", "out"], ["y"])],
                       {"x": [1, 1, 1, 3]}, ["y"], weights)  # fmt: skip
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.UINT8
    feeds = {"x": np.array([[[[0, 50, 200]]]], np.uint8)}
    expected = np.array([[[[100, 200, 255]], [[100, 50, 0]]]], np.uint8)
    for found in (run_ours(model, feeds)["y"], run_onnxruntime(model, feeds)["y"]):
        np.testing.assert_array_equal(found, expected)


OFTEN_MISSING = [
    "nonmaxsuppression", "gridsample", "roialign", "loop", "scan", "if_", "lstm", "gru", "rnn", "deformconv", "resize",
    "unique", "sequenceinsert", "sequence_map", "splittosequence", "qlinearconv", "qlinearmatmul", "topk",
]  # fmt: skip


@pytest.mark.parametrize("module", OFTEN_MISSING)
def test_an_operator_that_small_engines_lack(module: str) -> None:
    """The first of the onnx package's own cases; test_conformance.py has them all."""
    pytest.importorskip("onnx", reason="onnx is not installed; pip install onnx")
    from nn.onnx.test_conformance import cases_of, failure_of

    assert failure_of(cases_of(module)[0]) is None
