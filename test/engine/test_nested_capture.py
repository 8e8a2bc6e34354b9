"""A captured function that calls another one."""
import numpy as np

from tensor_engine import Tensor, TinyJit


def test_inner_replays_are_part_of_the_outer_capture():
    @TinyJit
    def inner(x):
        return x * 2 + 1

    for value in range(3):
        inner(Tensor(np.full(4, value, np.float32)))  # captured before the outer function is

    @TinyJit
    def outer(x):
        return inner(x + 1).sum()

    results = [outer(Tensor(np.full(4, value, np.float32))) for value in range(5)]
    assert [r.item() for r in results] == [4 * (2 * (value + 1) + 1) for value in range(5)]


def test_an_inner_function_that_the_outer_capture_calls_for_the_second_time():
    inner = TinyJit(lambda x: x * 3)
    outer = TinyJit(lambda x: inner(x).sum())
    assert [outer(Tensor([1.0, value])).item() for value in range(5)] == [3 * (1 + value) for value in range(5)]
