"""TinyJit: every call of a captured function gives what the function gives, and what it cannot honour it refuses."""
from __future__ import annotations

import gc
import random
import weakref
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from graphs import compute, run_numpy, write_program
from linear import BACKENDS

from tensor_engine import Context, GlobalCounters, Tensor, TinyJit, dtypes
from tensor_engine.engine import program
from tensor_engine.engine.jit import JitError
from tensor_engine.engine.realize import buffer_of
from tensor_engine.uop.uop import UOp


def vector(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32))


def captured(function: Any, *args: Any, **kwargs: Any) -> TinyJit:
    """The function, captured with these arguments."""
    jit = TinyJit(function)
    jit(*args, **kwargs)
    jit(*args, **kwargs)
    assert jit.captured is not None
    return jit


# ---- values -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", BACKENDS)
def test_every_call_gives_what_the_function_gives(path: str) -> None:
    generator = np.random.default_rng(0)
    with Context(DEV=path):
        jit = TinyJit(lambda x, y: ((x @ y).relu().sum(0), x - 1))
        for _ in range(5):
            x, y = generator.standard_normal((2, 6, 6)).astype(np.float32)
            total, less = jit(Tensor(x), Tensor(y))
            np.testing.assert_allclose(total.numpy(), np.maximum(x @ y, 0).sum(0), rtol=1e-5, atol=1e-5)
            np.testing.assert_array_equal(less.numpy(), x - 1)


def test_captured_calls_run_all_kernels_and_no_others() -> None:
    jit = TinyJit(lambda x: ((x + 1).contiguous() * 2).sum())
    counts = []
    for _ in range(4):
        x = vector(1, 2, 3).realize()
        GlobalCounters.reset()
        jit(x)
        counts.append(GlobalCounters.kernel_count)
    assert counts == [2, 2, 2, 2]


def test_results_of_different_calls_keep_their_values() -> None:
    jit = TinyJit(lambda x: x * 10)
    results = [jit(vector(i, i + 1)) for i in range(6)]
    assert [r.tolist() for r in results] == [[10 * i, 10 * i + 10] for i in range(6)]


HOLDERS = {
    "the tensor": lambda result: result,
    "its node": lambda result: result.uop,
    "what its node is a view of": lambda result: result.uop.base,
    "a view": lambda result: result[1:],
    "a reshaped view": lambda result: result.flatten()[1:],
    "a value yet to be computed": lambda result: result * 2,
    "its bytes": lambda result: result.data(),
    "its buffer": lambda result: buffer_of(result.uop),
    "a part of its buffer": lambda result: buffer_of(result.uop).view(1, result.dtype, 4),
    "the tensor after an assignment": lambda result: result.assign(result + 1).realize(),
    "a detached tensor": lambda result: result.detach(),
}


def value_of(held: Any) -> list[Any]:
    """What whoever holds this sees."""
    if isinstance(held, UOp):
        held = Tensor.from_uop(held)
    if isinstance(held, memoryview):
        return np.frombuffer(held, np.float32).tolist()
    return held.numpy().ravel().tolist()


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
@pytest.mark.parametrize("shape", [(4,), (2, 2)], ids=str)
def test_memory_of_results_is_used_again_only_if_nobody_knows_it(hold: Any, shape: tuple[int, ...]) -> None:
    jit = TinyJit(lambda x: x * 10)
    inputs = [Tensor(np.full(shape, i, np.float32)) for i in range(20)]
    kept, expected = [], []
    for x in inputs:
        kept.append(hold(jit(x)))
        expected.append(value_of(hold((x * 10).realize())))
        jit(x + 100)  # nobody keeps this one
    assert [value_of(held) for held in kept] == expected


def test_a_value_computed_from_a_result_is_not_taken_for_that_of_another_call() -> None:
    jit = TinyJit(lambda x: (x * 10, x - 1))
    for i in range(8):
        ten, less = jit(vector(i, i + 1))
        assert (ten + less).tolist() == [11 * i - 1, 11 * i + 10]
        assert (less * ten).sum().item() == 10 * i * (i - 1) + 10 * (i + 1) * i


def test_dropped_results_leave_their_memory_to_later_calls() -> None:
    jit = captured(lambda x: x + 1, vector(1, 2))
    x = vector(5, 6)
    for call in range(8):
        result = jit(x)
        if call == 2:
            made = {id(memory) for memory in jit.captured.results.kept}
    assert result.tolist() == [6, 7]
    assert {id(memory) for memory in jit.captured.results.kept} == made and len(made) <= 3


def test_a_result_and_a_part_of_it() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        y = (x * 2).contiguous()
        return y, y[1:]

    jit = TinyJit(function)
    results = [jit(vector(i, i + 1, i + 2)) for i in range(5)]
    for i, (whole, part) in enumerate(results):
        assert whole.tolist() == [2 * i, 2 * i + 2, 2 * i + 4] and part.tolist() == [2 * i + 2, 2 * i + 4]


def test_a_result_that_is_an_input_or_a_part_of_one() -> None:
    jit = TinyJit(lambda x: (x, x[1:], x + 1))
    for i in range(4):
        same, part, more = jit(vector(i, 5, 6))
        assert same.tolist() == [i, 5, 6] and part.tolist() == [5, 6] and more.tolist() == [i + 1, 6, 7]


def test_an_input_that_is_a_view() -> None:
    jit = TinyJit(lambda x: (x * 2, x, x[:1]))
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    whole = Tensor(data).realize()
    for column in range(4):
        double, same, first = jit(whole[:, column])
        assert double.tolist() == (data[:, column] * 2).tolist()
        assert same.tolist() == data[:, column].tolist() and first.tolist() == [data[0, column]]


def test_an_input_that_is_not_computed_yet() -> None:
    jit = TinyJit(lambda x: x + 1)
    assert [jit(vector(i) * 2 + 1).tolist() for i in range(4)] == [[2 * i + 2] for i in range(4)]


def test_an_input_without_elements() -> None:
    jit = TinyJit(lambda x, y: (x.cat(y), y))
    for i in range(4):
        joined, nothing = jit(vector(i, 2), Tensor(np.zeros(0, np.float32)))
        assert joined.tolist() == [i, 2] and nothing.shape == (0,)


def test_the_same_tensor_twice() -> None:
    jit = TinyJit(lambda a, b: a - 2 * b)
    x = vector(3, 4)
    assert [jit(x, x).tolist() for _ in range(3)] == [[-3, -4]] * 3
    assert jit(vector(10, 20), vector(1, 2)).tolist() == [8, 16]


def test_different_tensors_first_and_the_same_later() -> None:
    jit = TinyJit(lambda a, b: a - 2 * b)
    for _ in range(2):
        jit(vector(1), vector(2))
    x = vector(5)
    assert jit(x, x).tolist() == [-5]


def test_a_result_that_is_fed_back() -> None:
    jit = TinyJit(lambda x: x * 2 + 1)
    x, want = vector(0, 1), np.array([0, 1.0])
    kept = []
    for _ in range(8):
        x, want = jit(x), want * 2 + 1
        kept.append((x, want))
    assert all(t.tolist() == w.tolist() for t, w in kept)


def test_scalar_tensors_do_not_compile_again() -> None:
    jit = TinyJit(lambda x, scale: x * scale)
    for i in range(3):
        jit(vector(1, 2), Tensor(float(i)))
    before = len(program.programs)
    results = [jit(vector(1, 2), Tensor(0.5 * i)) for i in range(10)]
    assert [r.tolist() for r in results] == [[0.5 * i, i] for i in range(10)]
    assert len(program.programs) == before


def test_nested_results_keep_their_form() -> None:
    class Pair(NamedTuple):
        left: Tensor
        right: Tensor

    jit = TinyJit(lambda x: {"pair": Pair(x + 1, x + 2), "list": [x + 3], "none": None})
    for i in range(4):
        result = jit(vector(i))
        assert result["pair"].left.item() == i + 1 and result["pair"].right.item() == i + 2
        assert result["list"][0].item() == i + 3 and result["none"] is None


def test_a_method_is_captured_for_each_object() -> None:
    class Layer:
        def __init__(self, factor: float):
            self.weight = vector(factor)

        @TinyJit
        def __call__(self, x: Tensor) -> Tensor:
            return x * self.weight

    two, three = Layer(2), Layer(3)
    for i in range(4):
        assert two(vector(i)).item() == 2 * i and three(vector(i)).item() == 3 * i


def test_an_object_with_a_captured_method_is_freed() -> None:
    class Layer:
        @TinyJit
        def run(self, x: Tensor) -> Tensor:
            return x + 1

    layer = Layer()
    for _ in range(3):
        layer.run(vector(1))
    gone = weakref.ref(layer)
    del layer
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("seed", range(25))
def test_random_programs(seed: int) -> None:
    """Captured, and replayed with other inputs; all results are looked at in the end."""
    written = write_program(random.Random(seed).randint)

    def function(*inputs: Tensor) -> list[Tensor]:
        return compute(written, list(inputs))

    jit = TinyJit(function)
    kept = []
    for turn in range(4):
        inputs = [np.roll(array.ravel(), turn).reshape(array.shape) for array in written.inputs]
        kept.append((run_numpy(written._replace(inputs=inputs)), jit(*map(Tensor, inputs))))
    for wanted, found in kept:
        for want, have in zip(wanted, found):
            assert have.shape == want.shape
            np.testing.assert_allclose(have.numpy().astype(float), want.astype(float), rtol=1e-2, atol=1e-2)


# ---- assignment inside --------------------------------------------------------------------------------------------


def test_an_input_that_is_assigned_to() -> None:
    jit = TinyJit(lambda x, y: x.assign(x + y).realize())
    x = vector(0, 10).realize()
    for i in range(1, 6):
        jit(x, vector(1, 2))
        assert x.tolist() == [i, 10 + 2 * i]


def test_state_outside_is_updated() -> None:
    state = vector(0).realize()
    jit = TinyJit(lambda x: state.assign(state + x).realize() * 1)
    results = [jit(vector(i)) for i in range(6)]
    assert [r.item() for r in results] == np.cumsum(range(6)).tolist()
    assert state.item() == 15


def test_what_was_computed_from_state_is_not_taken_for_its_next_value() -> None:
    state = vector(1, 2).realize()
    jit = TinyJit(lambda x: state.assign(state + x).realize())
    doubles = []
    for i in range(1, 8):
        jit(vector(1, 1))
        doubled = state * 2  # one node for all calls, were the state's node the same
        doubles.append(doubled.realize())
        if i % 3 == 0:
            doubles.clear()
        assert doubled.tolist() == [2 * (1 + i), 2 * (2 + i)]


def test_an_input_that_is_no_memory_is_assigned_to() -> None:
    jit = TinyJit(lambda x: x.assign(x + 1).realize())
    for i in range(5):
        number, computed = Tensor(float(i)), vector(i, i) * 2
        assert jit(number).item() == i + 1 and number.item() == i + 1
        if i == 0:
            both = TinyJit(lambda x: x.assign(x + 1).realize())
        both(computed)
        assert computed.tolist() == [2 * i + 1] * 2


def test_what_was_computed_from_an_input_is_not_taken_for_its_next_value() -> None:
    jit = TinyJit(lambda x: x.assign(x + 1).realize())
    x = vector(0, 10).realize()
    for i in range(6):
        doubled = (x * 2).realize()
        assert doubled.tolist() == [2 * i, 20 + 2 * i]
        jit(x)


def test_state_that_is_only_written_is_updated_even_if_it_is_returned() -> None:
    last = vector(0).realize()
    jit = TinyJit(lambda x: last.assign(x * 2).realize())
    for i in range(5):
        assert jit(vector(i)).item() == 2 * i
        assert last.item() == 2 * i


def test_one_tensor_as_two_inputs_cannot_be_assigned_to() -> None:
    jit = captured(lambda a, b: a.assign(b.flip(0)).realize(), vector(1, 2), vector(3, 4))
    x = vector(5, 6).realize()
    with pytest.raises(JitError, match="same memory"):
        jit(x, x)


# ---- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        lambda: Tensor(np.zeros(3, np.float32)),
        lambda: Tensor(np.zeros((2, 1), np.float32)),
        lambda: Tensor(np.zeros(2, np.float64)),
        lambda: Tensor(np.zeros(2, np.float32), device="PYTHON"),
        lambda: 3.0,
    ],
    ids=["size", "shape", "dtype", "device", "no tensor"],
)
def test_another_input(other: Any) -> None:
    jit = captured(lambda x: x + 1, vector(1, 2))
    with pytest.raises(JitError, match="argument 0 was captured as"):
        jit(other())
    assert jit(vector(3, 4)).tolist() == [4, 5], "the capture is still good"


@pytest.mark.parametrize("first, second", [(2, 3), (2, 2.0), (True, 1), ("a", "b"), (None, 0), (2, vector(2))])
def test_another_constant(first: Any, second: Any) -> None:
    jit = captured(lambda x, y: x + (1 if isinstance(y, str) or y is None else y), vector(1, 2), first)
    assert jit(vector(1, 2), first).shape == (2,)
    with pytest.raises(JitError):
        jit(vector(1, 2), second)


def test_the_same_values_under_other_names() -> None:
    jit = captured(lambda x, scale=1, bias=0: x * scale + bias, vector(1), scale=2)
    with pytest.raises(JitError):
        jit(vector(1), bias=2)


def test_names_may_come_in_another_order() -> None:
    jit = captured(lambda a, b: a - b, a=vector(5), b=vector(1))
    assert jit(b=vector(3), a=vector(10)).tolist() == [7]
    inputs = captured(lambda d: d["a"] - d["b"], {"a": vector(5), "b": vector(1)})
    assert inputs({"b": vector(3), "a": vector(10)}).tolist() == [7]


def test_another_arrangement() -> None:
    jit = captured(lambda pairs: pairs[0][0] - pairs[-1][-1], [[vector(1), vector(2)], [vector(3)]])
    with pytest.raises(JitError):
        jit([[vector(1)], [vector(2), vector(3)]])


def test_another_number_of_arguments() -> None:
    jit = captured(lambda *x: x[0] + 1, vector(1))
    with pytest.raises(JitError):
        jit(vector(1), vector(2))


def test_an_array_would_be_frozen() -> None:
    jit = TinyJit(lambda x, array: x + Tensor(array))
    array = np.ones(2, np.float32)
    jit(vector(1, 2), array)
    with pytest.raises(JitError, match="Tensor"):
        jit(vector(1, 2), array)


def test_a_result_that_is_no_tensor() -> None:
    jit = TinyJit(lambda x: x.sum().item())
    jit(vector(1))
    with pytest.raises(JitError, match="return Tensors"):
        jit(vector(1))


def test_reset_captures_anew() -> None:
    jit = captured(lambda x, factor: x * factor, vector(1), 2)
    jit.reset()
    assert [jit(vector(1, 1), 3).tolist() for _ in range(3)] == [[3, 3]] * 3


def test_an_error_inside_leaves_nothing_behind() -> None:
    def function(x: Tensor, fail: bool) -> Tensor:
        if fail:
            raise KeyError("inside")
        return x + 1

    jit = TinyJit(function)
    jit(vector(1), False)
    with pytest.raises(KeyError):
        jit(vector(1), True)
    assert [jit(vector(i), False).item() for i in range(4)] == [1, 2, 3, 4]


def test_with_jit_0_the_function_itself_runs() -> None:
    calls = []
    jit = TinyJit(lambda x: (calls.append(1), x + 1)[1])
    with Context(JIT=0):
        for i in range(4):
            assert jit(vector(i)).item() == i + 1
    assert len(calls) == 4


# ---- growth -------------------------------------------------------------------------------------------------------


def resident_kib() -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_ten_thousand_calls_do_not_grow() -> None:
    jit = TinyJit(lambda x: (x * 2 + 1).sum())
    x = Tensor(np.ones(1000, np.float32)).realize()
    for _ in range(1000):
        y = jit(x)
    gc.collect()
    used, resident = GlobalCounters.mem_used, resident_kib()
    for _ in range(10_000):
        y = jit(x)
    assert y.item() == 3000
    del y
    gc.collect()
    assert GlobalCounters.mem_used <= used
    assert resident_kib() - resident < 2048


def test_many_float_constants_do_not_grow_without_bound() -> None:
    x = Tensor(np.ones(4, np.float32)).realize()
    before = len(program.programs)
    with Context(CACHE=0):
        for i in range(60):
            assert (x * (1 + i / 7)).numpy()[0] == np.float32(1) * np.float32(1 + i / 7)
    assert len(program.programs) - before <= 60 and program.MAX_PROGRAMS < 10_000


def test_a_dtype_that_numpy_lacks() -> None:
    jit = TinyJit(lambda x: x * 2)
    for i in range(4):
        assert jit(Tensor([1.0 + i], dtype=dtypes.bfloat16)).tolist() == [2.0 + 2 * i]
