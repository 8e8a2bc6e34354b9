"""The order of kernels: what is read was written before, and what an assignment overwrites was read before."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear import BACKENDS

from tensor_engine import Context, Tensor
from tensor_engine.device import Device
from tensor_engine.schedule.schedule import create_schedule
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp


def vector(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32)).realize()


def steps(*tensors: Tensor) -> tuple[UOp, ...]:
    return create_schedule([t.uop for t in tensors], {}, Device.DEFAULT).linear.src


# ---- operands first ------------------------------------------------------------------------------------------------


def test_every_buffer_is_written_before_it_is_read() -> None:
    x = vector(1, 2, 3)
    a = (x + 1).contiguous()
    b = (a * 2).contiguous()
    total = (a + b).sum() + b.max()
    written = {x.uop.base}
    for step in steps(total, b):
        assert set(step.src[1:]) <= written
        written.add(step.src[0])


def test_the_order_is_the_same_every_time() -> None:
    x = vector(1, 2, 3)
    values = [(x + i).contiguous() for i in range(10)]
    orders = {tuple(step.arg.key for step in steps(*values, sum(values[1:], values[0]))) for _ in range(5)}
    assert len(orders) == 1


def test_each_kernel_appears_once() -> None:
    x = vector(1, 2, 3)
    shared = (x + 1).contiguous()
    assert len(steps(shared * 2, shared * 3, shared)) == 3
    assert all(step.op is Ops.KERNEL for step in steps(shared * 2))


# ---- assignment ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", BACKENDS)
class TestAssignment:
    def test_a_value_made_before_keeps_the_old_content(self, path: str) -> None:
        with Context(DEV=path):
            x = vector(1, 2, 3)
            before = x + 10
            x.assign(x * 0)
            x.realize(before)
            assert before.tolist() == [11, 12, 13] and x.tolist() == [0, 0, 0]

    def test_a_value_made_afterwards_sees_the_new_content(self, path: str) -> None:
        with Context(DEV=path):
            x = vector(1, 2, 3)
            before = x + 10
            x.assign(x * 2)
            after = x + 10
            after.realize(before)
            assert before.tolist() == [11, 12, 13] and after.tolist() == [12, 14, 16] and x.tolist() == [2, 4, 6]

    def test_what_is_written_anew_is_not_taken_for_what_was_computed(self, path: str) -> None:
        with Context(DEV=path):
            x = vector(1, 2)
            first = x + 10
            user = first * 2
            first.realize()
            x.assign(vector(5, 6)).realize()
            assert (x + 10).tolist() == [15, 16]
            assert user.tolist() == [22, 24] and first.tolist() == [11, 12]

    def test_two_in_a_row(self, path: str) -> None:
        with Context(DEV=path):
            x = vector(1, 2)
            x.assign(x + 1)
            x.assign(x * 10)
            assert x.tolist() == [20, 30]

    def test_of_its_own_elements_elsewhere(self, path: str) -> None:
        with Context(DEV=path):
            x = vector(1, 2, 3, 4)
            x.assign(x.flip(0))
            assert x.tolist() == [4, 3, 2, 1]
            square = Tensor(np.arange(9, dtype=np.float32).reshape(3, 3)).realize()
            square.assign(square.T + square)
            want = np.arange(9).reshape(3, 3)
            assert square.tolist() == (want.T + want).tolist()

    def test_two_that_exchange_their_content(self, path: str) -> None:
        """Each needs what the other overwrites: the right values, or an error that says so."""
        with Context(DEV=path):
            x, y = vector(1, 2), vector(3, 4)
            old = x.clone()
            x.assign(y)
            y.assign(old)
            try:
                x.realize(y)
            except ValueError as error:
                assert "realize one of them first" in str(error)
            else:
                assert x.tolist() == [3, 4] and y.tolist() == [1, 2]

    def test_into_a_slice(self, path: str) -> None:
        with Context(DEV=path):
            x = vector(1, 2, 3, 4)
            before = x + 10
            x[:2] = x[2:] * 10
            assert x.tolist() == [30, 40, 3, 4] and before.tolist() == [11, 12, 13, 14]
            x[1:] = x[:-1]
            assert x.tolist() == [30, 30, 40, 3]

    def test_a_clone_is_apart(self, path: str) -> None:
        with Context(DEV=path):
            x = vector(1, 2)
            copy = x.clone()
            x.assign(x + 5).realize()
            assert copy.tolist() == [1, 2]
            realized = x.clone().realize()
            x.assign(x + 5).realize()
            assert realized.tolist() == [6, 7] and x.tolist() == [11, 12]


# ---- against numpy: random sequences --------------------------------------------------------------------------------

ACTIONS = ["assign", "assign flipped", "read", "derive", "realize", "slice", "forget"]


def play(actions: list[tuple[str, int, int]]) -> None:
    """A few tensors that are assigned to, read and derived from, lazily; numpy copies at every step."""
    tensors = [vector(i, i + 1, i + 2) for i in range(3)]
    arrays = [np.array([i, i + 1, i + 2], np.float32) for i in range(3)]
    derived: list[tuple[Tensor, np.ndarray]] = []
    for name, a, b in actions:
        x, y = tensors[a], tensors[b]
        if name == "assign":
            x.assign(x + y * 2)
            arrays[a] = arrays[a] + arrays[b] * 2
        elif name == "assign flipped":
            x.assign(y.flip(0))
            arrays[a] = arrays[b][::-1].copy()
        elif name == "read":
            np.testing.assert_array_equal(x.numpy(), arrays[a])
        elif name == "derive":
            derived.append((x * 3 + y, arrays[a] * 3 + arrays[b]))
        elif name == "realize":
            x.realize(*[t for t, _ in derived])
        elif name == "slice":
            x[1:] = y[:2] + 1
            arrays[a] = np.concatenate([arrays[a][:1], arrays[b][:2] + 1])
        else:
            derived.clear()
    for tensor, array in [*zip(tensors, arrays), *derived]:
        np.testing.assert_array_equal(tensor.numpy(), array)


actions = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 2), st.integers(0, 2)), max_size=10)


@given(actions)
@settings(max_examples=60, derandomize=True)
def test_random_sequences(actions: list[tuple[str, int, int]]) -> None:
    play(actions)


@pytest.mark.slow
@pytest.mark.timeout(0)
@given(actions)
@settings(max_examples=3000)
def test_many_random_sequences(actions: list[tuple[str, int, int]]) -> None:
    play(actions)
