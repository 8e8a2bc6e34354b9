"""An assignment shows in all views of the memory that it writes, and in nothing else, whatever is realized first."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from tensor_engine import Context, GlobalCounters, Tensor, TinyJit
from tensor_engine.engine.realize import buffer_of, realized


def pair():
    x = Tensor([1.0, 2.0])
    return x, x + 10


# ---- what was made of the old value -----------------------------------------------------------------------------

ORDERS = {
    "both": lambda x, r: r.realize(x),
    "assigned first": lambda x, r: x.realize(),
    "reader first": lambda x, r: r.realize(),
}


@pytest.mark.parametrize("order", ORDERS)
def test_a_reader_keeps_the_old_value(order):
    x, reader = pair()
    x.assign([5.0, 6.0])
    ORDERS[order](x, reader)
    assert (reader.tolist(), x.tolist()) == ([11, 12], [5, 6])


@pytest.mark.parametrize("order", ORDERS)
def test_clones_keep_the_old_value(order):
    x = Tensor([1.0, 2.0])
    others = [x.clone(), x.contiguous(), Tensor(x), x.expand(2, 2), x.pad((1, 0))]
    x.assign([5.0, 6.0])
    ORDERS[order](x, others[0])
    assert [other.tolist() for other in others] == [[1, 2], [1, 2], [1, 2], [[1, 2]] * 2, [0, 1, 2]]
    assert x.tolist() == [5, 6]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("source", ["memory", "computed", "lazy"])
def test_views_are_the_same_memory(source, order):
    x = Tensor([1.0, 2.0, 3.0])
    x = x if source == "memory" else x + 0
    if source == "computed":
        x.realize()
    views = [x[::-1], x.reshape(3, 1), x.detach(), x[::2], x[1]]
    views[0].assign([7.0, 6.0, 5.0])
    ORDERS[order](x, views[-1])
    views[-1].assign(0.0)
    assert [view.tolist() for view in views] == [[7, 0, 5], [[5], [0], [7]], [5, 0, 7], [5, 7], 0]
    assert x.tolist() == [5, 0, 7]


def test_two_tensors_of_one_graph_are_two():
    for dtype in ("float32", "int32"):
        a, b = (Tensor.zeros(3, dtype=dtype).contiguous() for _ in range(2))
        a.realize(b)
        a.assign(a + 1).realize()
        assert (a.tolist(), b.tolist()) == ([1, 1, 1], [0, 0, 0])


def test_old_and_new_value_in_one_kernel():
    x, old = pair()
    x.assign(x * 0 + 5)
    assert (old + x).tolist() == [16, 17]
    assert x.tolist() == [5, 5]


def test_old_sums_and_new_values_meet():
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = Tensor(array)
    total = x.sum(0)
    x.assign(x / total)
    y = x * total + x.T.reshape(3, 4)
    new = array / array.sum(0)
    np.testing.assert_allclose(y.numpy(), new * array.sum(0) + new.T.reshape(3, 4), rtol=1e-6)
    assert total.tolist() == array.sum(0).tolist()


def test_values_change_places():
    for asked in ([0, 1], [0], [1]):
        x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
        old = x + 0
        x.assign(y + 0)
        y.assign(old)
        Tensor.realize(*[(x, y)[i] for i in asked])
        assert (x.tolist(), y.tolist()) == ([3, 4], [1, 2])


def test_three_values_change_places():
    tensors = [Tensor([float(i), i + 0.5]) for i in range(3)]
    new = [tensor * 2 for tensor in tensors]
    for i in range(3):
        tensors[i].assign(new[(i + 1) % 3])
    assert [tensor.tolist() for tensor in tensors] == [[2, 3], [4, 5], [0, 1]]


# ---- one assignment after the other -----------------------------------------------------------------------------


def test_an_assignment_is_carried_out_once():
    x = Tensor([1.0, 2.0])
    x.assign(x + 1)
    double = x * 2
    assert (double.tolist(), x.tolist(), x.tolist()) == ([4, 6], [2, 3], [2, 3])


@pytest.mark.parametrize("first", ["x", "between"])
def test_assigned_twice(first):
    x = Tensor([1.0, 2.0])
    x.assign(x + 1)
    between = x * 2
    x.assign([7.0, 7.0])
    (x if first == "x" else between).realize()
    assert (between.tolist(), x.tolist()) == ([4, 6], [7, 7])


def test_assigned_twice_from_itself_is_one_run():
    x, old = pair()
    x.assign(x + 1)
    x.assign(x + old)
    assert (x.tolist(), old.tolist()) == ([13, 15], [11, 12])


def test_what_was_computed_before_is_not_taken_for_what_is_now():
    x, r = pair()
    later = r * 2  # keeps the graph of r
    r.realize()
    x.assign([0.0, 0.0]).realize()
    assert ((x + 10).tolist(), later.tolist()) == ([10, 10], [22, 24])


def test_memory_stays():
    x = Tensor([1.0, 2.0])
    memory = buffer_of(x.uop)
    for _ in range(3):
        x.assign(x * 2).realize()
    assert x.tolist() == [8, 16]
    assert buffer_of(x.uop) is memory


def test_assigning_is_one_kernel():
    x = Tensor([1.0, 2.0])
    before = GlobalCounters.kernel_count
    x.assign(x * 2).realize()
    assert GlobalCounters.kernel_count == before + 1


def test_legal_graphs():
    with Context(SPEC=1):
        test_old_sums_and_new_values_meet()
        test_values_change_places()


# ---- captured ---------------------------------------------------------------------------------------------------


def test_captured_state_and_what_is_made_of_it():
    state, kept = Tensor([1.0, 2.0]), []

    @TinyJit
    def step(x: Tensor) -> Tensor:
        state.assign(state + x).realize()
        return state.sum()

    for number in range(5):
        double = state * 2
        kept.append((double, double + 1))  # keeps the graph of the first
        double.realize()
        assert step(Tensor([1.0, 1.0])).item() == 5 + 2 * number
        assert (state * 2).tolist() == [4 + 2 * number, 6 + 2 * number]
    assert [later.tolist() for _, later in kept] == [[3 + 2 * n, 5 + 2 * n] for n in range(5)]


def test_others_keep_their_values_through_capture():
    state, readers = Tensor([1.0, 2.0]), []

    @TinyJit
    def step() -> None:
        state.assign(state + 1).realize()

    for number in range(5):
        readers.append((state * 2, state[::-1].clone()))
        if number > 1:  # a replay computes nothing along, and copies nothing
            Tensor.realize(readers[-1][0])
        step()
    assert [double.tolist() for double, _ in readers] == [[2 + 2 * n, 4 + 2 * n] for n in range(5)]
    assert [turned.tolist() for _, turned in readers[:2]] == [[2 + n, 1 + n] for n in range(2)]


def test_captured_assignment_to_an_argument():
    counter = Tensor([0.0])
    count = TinyJit(lambda x: x.assign(x + 1).realize())
    results = [(count(counter) + 0).realize() for _ in range(5)]
    assert counter.item() == 5
    assert [result.item() for result in results] == [1, 2, 3, 4, 5]


def test_captured_swap():
    x, y = Tensor([1.0]), Tensor([2.0])

    @TinyJit
    def swap() -> None:
        old = x + 0
        x.assign(y + 0)
        y.assign(old)
        Tensor.realize(x, y)

    for number in range(5):
        swap()
        assert (x.item(), y.item()) == ((2, 1) if number % 2 == 0 else (1, 2))


def test_a_captured_step_writes_one_row():
    cache, total = Tensor.zeros(2, 4, 3).contiguous().realize(), np.zeros((2, 4, 3), np.float32)
    memory = buffer_of(cache.uop)
    for place in range(4):

        @TinyJit
        def write(row: Tensor, place: int = place) -> None:
            cache[:, place : place + 1] = row
            cache.realize()

        for number in range(4):
            value = np.full((2, 1, 3), 10 * place + number, np.float32)
            row = Tensor(value).realize()
            before = GlobalCounters.kernel_count
            write(row)
            assert GlobalCounters.kernel_count == before + 1
            total[:, place : place + 1] = value
            np.testing.assert_array_equal(cache.numpy(), total)
    assert buffer_of(cache.uop) is memory


def test_equal_tensors_in_the_same_memory_are_two():
    a, b = (Tensor.zeros(3, dtype="int32").contiguous() for _ in range(2))
    a.realize(b)
    a[:1].assign(a[:1] + 1)
    b[1:].assign(b[1:] + 2)
    assert (a.tolist(), b.tolist()) == ([1, 0, 0], [0, 2, 2])


def test_gradients_pass_what_was_not_overwritten():
    w, q = Tensor([1.0, 2.0, 3.0]), Tensor([4.0, 5.0, 6.0])
    z = q * 2
    z[1:2] = w[0:1] * 3
    (z * z).sum().backward()
    assert (z.tolist(), q.grad.tolist(), w.grad.tolist()) == ([8, 3, 12], [32, 0, 48], [18, 0, 0])


def test_a_view_that_repeats_elements_is_a_value_of_its_own():
    x = Tensor([1.0, 2.0])
    y = x.expand(2, 2)
    y[0] = 7
    x[0] = 5
    assert (x.tolist(), y.tolist()) == ([5, 2], [[7, 7], [1, 2]])


# ---- x += y


OPERATORS = {
    "+=": (operator.iadd, 2.0),
    "-=": (operator.isub, 2.0),
    "*=": (operator.imul, 3.0),
    "/=": (operator.itruediv, 4.0),
    "//=": (operator.ifloordiv, 2.0),
    "%=": (operator.imod, 2.0),
    "**=": (operator.ipow, 2.0),
    "&=": (operator.iand, 6),
    "|=": (operator.ior, 6),
    "^=": (operator.ixor, 6),
    "<<=": (operator.ilshift, 1),
    ">>=": (operator.irshift, 1),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_assigning_operators_write_for_every_name_of_a_tensor(name):
    operate, operand = OPERATORS[name]
    array = np.array([1, 5, 7], np.float32 if isinstance(operand, float) else np.int32)
    for tensor in (Tensor(array.copy()).realize(), Tensor(array.copy()) * 1):
        alias, before = tensor, tensor + 0
        tensor = operate(tensor, operand)
        assert tensor is alias
        expected = operate(array.copy(), array.dtype.type(operand))
        assert alias.tolist() == expected.tolist()
        assert before.tolist() == array.tolist()


def test_parameters_of_a_list_are_changed():
    parameters = [Tensor([1.0, 2]).realize(), Tensor([[3.0]]).realize()]
    for p in parameters:
        p -= 0.5
    assert [p.tolist() for p in parameters] == [[0.5, 1.5], [[2.5]]]


def test_assigning_matrix_product():
    x = Tensor([[1.0, 2], [3, 4]])
    x @= Tensor([[0.0, 1], [1, 0]])
    assert x.tolist() == [[2, 1], [4, 3]]


def test_a_sum_that_grows_has_its_gradient():
    x = Tensor([1.0, 2])
    total = x.sum()
    total += (x * x).sum()
    total *= 2
    total.backward()
    assert x.grad.tolist() == [6, 10]


def test_the_type_and_the_shape_stay():
    x = Tensor([1, 2])
    with pytest.raises(ValueError, match="use .cast"):
        x += 0.5
    with pytest.raises(ValueError, match="expand"):
        x += Tensor([[1, 2], [3, 4]])


def test_a_captured_assignment_to_a_part_of_a_tensor_is_refused():
    whole = Tensor([1.0, 2.0, 3.0])
    double = TinyJit(lambda part: part.assign(part * 2).realize())
    double(whole[:2])
    assert whole.tolist() == [2, 4, 3]
    with pytest.raises(ValueError, match="a part of a tensor; pass the whole"):
        double(whole[:2])
    assert whole.tolist() == [2, 4, 3]


def test_a_graph_of_the_first_content_does_not_collect_the_later_ones():
    x = Tensor([1.0, 2.0])
    graph = (x * 2).uop

    def steps() -> int:
        for _ in range(20):
            x.assign(x + 1).realize()
        return len(realized)

    assert steps() == steps()
    assert graph.src[0].base in realized
