"""Tensors whose sizes depend on a variable: for each value of it they are what numpy makes of a size that is known."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensor_engine import GlobalCounters, Tensor, Variable, dtypes
from tensor_engine.engine import program as kernels
from tensor_engine.uop.provenance import RealizeError

A = np.random.default_rng(0).standard_normal((3, 7, 4)).astype(np.float32)
VALUES = [1, 2, 5, 7]


def n(value: int) -> Any:
    return Variable("n", 1, 7).bind(value)


def agree(found: Tensor, wanted: Any) -> None:
    values, wanted = found.numpy(), np.asarray(wanted)
    assert values.shape == wanted.shape
    np.testing.assert_allclose(values, wanted, rtol=2e-5, atol=1e-5)


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def both(function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """What is written in the same way for Tensors and arrays."""
    return function, function


Case = tuple[Callable[[Tensor, Any], Tensor], Callable[[np.ndarray, int], Any]]
CASES: dict[str, Case] = {
    # parts
    "the first": both(lambda x, n: x[:, :n]),
    "behind": both(lambda x, n: x[:, n:]),
    "shrink": (lambda x, n: x.shrink(((0, 3), (n - 1, n), (0, 4))), lambda x, n: x[:, n - 1 : n]),
    "one place": both(lambda x, n: x[:, n - 1]),
    "from the end": both(lambda x, n: x[:, -n]),
    "cut to the axis": both(lambda x, n: x[:, : n + 3]),
    "a window": both(lambda x, n: x[:, n : n + 2]),
    "numbers on a variable axis": both(lambda x, n: x[:, :n][:, -3:2]),
    "the last": both(lambda x, n: x[:, :n][:, -1]),
    "every second": both(lambda x, n: x[:, :n][:, ::2]),
    "backwards": both(lambda x, n: x[:, :n][:, ::-1]),
    "picked": (lambda x, n: x[:, :n][:, Tensor([0, -1])], lambda x, n: x[:, :n][:, [0, -1]]),
    # other arrangements
    "flattened": (lambda x, n: x[:, :n].flatten(), lambda x, n: x[:, :n].ravel()),
    "inferred": both(lambda x, n: x[:, :n].reshape(3, -1)),
    "joined axes": both(lambda x, n: x[:, :n].reshape(3 * n, 4)),
    "stored, joined axes": (lambda x, n: (x[:, :n] + 1).contiguous().reshape(3 * n, 2, 2),
                            lambda x, n: (x[:, :n] + 1).reshape(3 * n, 2, 2)),
    "turned, joined axes": (lambda x, n: (x[:, :n].permute(2, 1, 0) + 1).reshape(4 * n, 3).contiguous() * 2,
                            lambda x, n: (x[:, :n].transpose(2, 1, 0) + 1).reshape(4 * n, 3) * 2),
    "repeated": (lambda x, n: x[:, :1].expand(3, n, 4), lambda x, n: np.repeat(x[:, :1], n, 1)),
    "tiled": (lambda x, n: x[:, :n].repeat(1, 2, 1), lambda x, n: np.tile(x[:, :n], (1, 2, 1))),
    "rolled": (lambda x, n: x[:, :n].roll(1, 1), lambda x, n: np.roll(x[:, :n], 1, 1)),
    "padded": (lambda x, n: x[:, :n].pad(((0, 0), (1, 2), (0, 1))),
               lambda x, n: np.pad(x[:, :n], ((0, 0), (1, 2), (0, 1)))),
    "padded to a known size": (lambda x, n: (x[:, :n] + 1).pad((None, (0, 7 - n), None)),
                               lambda x, n: np.pad(x[:, :n] + 1, ((0, 0), (0, 7 - n), (0, 0)))),
    "padded by the variable": (lambda x, n: x.pad((0, 0, n, 0), value=2.0),
                               lambda x, n: np.pad(x, ((0, 0), (n, 0), (0, 0)), constant_values=2.0)),
    "joined": (lambda x, n: x[:, :n].cat(x[:, :2], dim=1), lambda x, n: np.concatenate([x[:, :n], x[:, :2]], 1)),
    "cut and joined": (lambda x, n: x[:, :n].cat(x[:, n:], dim=1), lambda x, n: x),
    "stacked": (lambda x, n: x[:, :n].stack(x[:, :n]), lambda x, n: np.stack([x[:, :n]] * 2)),
    # reductions
    "sum": both(lambda x, n: x[:, :n].sum(1)),
    "sum of all": both(lambda x, n: x[:, :n].sum()),
    "mean": both(lambda x, n: x[:, :n].mean(1)),
    "mean of all": both(lambda x, n: x[:, :n].mean()),
    "mean over another axis": both(lambda x, n: x[:, :n].mean(0)),
    "max": both(lambda x, n: x[:, :n].max(1)),
    "variance": (lambda x, n: x[:, : n + 1].var(1, correction=0), lambda x, n: x[:, : n + 1].var(1)),
    "argmax": both(lambda x, n: x[:, :n].argmax(1)),
    "softmax": (lambda x, n: x[:, :n].softmax(1), lambda x, n: softmax(x[:, :n], 1)),
    "softmax over the last axis": (lambda x, n: x[:, :n].transpose(1, 2).softmax(-1),
                                   lambda x, n: softmax(x[:, :n], 1).swapaxes(1, 2)),
    "cumsum": both(lambda x, n: x[:, :n].cumsum(1)),
    "sort": (lambda x, n: x[:, :n].sort(1)[0], lambda x, n: np.sort(x[:, :n], 1)),
    # products
    "product over the variable": both(lambda x, n: x[0, :n].T @ x[1, :n]),
    "product of as many rows": both(lambda x, n: x[0, :n] @ x[1].T),
    "square product": both(lambda x, n: x[0, :n] @ x[1, :n].T),
    # element by element
    "two parts": both(lambda x, n: x[:, :n] * x[:, -n:]),
    "times the variable": both(lambda x, n: x[:, :n] * n - n / 2),
    "the variable first": both(lambda x, n: n - x[:, :n]),
    "where": (lambda x, n: (x[:, :n] > 0).where(x[:, :n], n), lambda x, n: np.where(x[:, :n] > 0, x[:, :n], n)),
    # made of nothing
    "ones": (lambda x, n: Tensor.ones(n, 2), lambda x, n: np.ones((n, 2))),
    "stored ones": (lambda x, n: Tensor.ones(n, 4).contiguous()[:, 1:2], lambda x, n: np.ones((n, 1))),
    "arange": (lambda x, n: Tensor.arange(n), lambda x, n: np.arange(n)),
    "arange from the variable": (lambda x, n: Tensor.arange(n, n + 3), lambda x, n: np.arange(n, n + 3)),
    "arange by steps": (lambda x, n: Tensor.arange(0, n, 2), lambda x, n: np.arange(0, n, 2)),
    "a mask that looks back": (lambda x, n: Tensor.full((3, n + 3), -9.0).triu(n + 1),
                               lambda x, n: np.triu(np.full((3, n + 3), -9.0), n + 1)),
    "the variable itself": (lambda x, n: Tensor(n), lambda x, n: n),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_kernel_for_all_values(name: str) -> None:
    engine, numpy = CASES[name]
    x = Tensor(A).realize()
    agree(engine(x, n(3)), numpy(A, 3))
    compiled = len(kernels.programs)
    for value in VALUES:
        agree(engine(x, n(value)), numpy(A, value))
    assert len(kernels.programs) == compiled


def test_attention_to_as_many_places_as_the_variable_says() -> None:
    key, value = (np.random.default_rng(i).standard_normal((2, 4, 7, 8)).astype(np.float32) for i in range(2))
    query = key[:, :, :1]
    for size in VALUES:
        k, v = Tensor(key)[:, :, : n(size)], Tensor(value)[:, :, : n(size)]
        scores = softmax(query @ key[:, :, :size].swapaxes(-1, -2) / np.sqrt(8), -1)
        agree(Tensor(query).scaled_dot_product_attention(k, v), scores @ value[:, :, :size])


def test_convolution_over_a_variable_length() -> None:
    torch = pytest.importorskip("torch", reason="the values are compared with PyTorch's")
    weight = np.random.default_rng(1).standard_normal((2, 3, 3)).astype(np.float32)
    x = A.transpose(2, 0, 1)[:1].copy()
    for size in (3, 5, 7):
        part = Tensor(x)[:, :, : Variable("n", 3, 7).bind(size)]
        for stride, padding in [(1, 0), (1, 1), (2, 1)]:
            wanted = torch.nn.functional.conv1d(
                torch.tensor(x[:, :, :size]), torch.tensor(weight), stride=stride, padding=padding
            )
            agree(part.conv2d(Tensor(weight), stride=stride, padding=padding), wanted.numpy())


def test_two_variables() -> None:
    x = Tensor(A).realize()
    for i in VALUES:
        for j in (1, 4):
            vi, vj = Variable("i", 1, 7).bind(i), Variable("j", 1, 7).bind(j)
            agree((x[0, :vi] @ x[1, :vj].T).mean(0), (A[0, :i] @ A[1, :j].T).mean(0))
            agree(x[0, :vi].cat(x[1, :vj]), np.concatenate([A[0, :i], A[1, :j]]))
            product = (x[0, :vi] @ x[1, :vj].T + 1).contiguous()
            agree(product.reshape(vj * vi) * 2, (A[0, :i] @ A[1, :j].T + 1).ravel() * 2)


def test_gradients() -> None:
    for value in VALUES:
        x = Tensor(A[0])
        loss = (x[: n(value)].exp() * x[: n(value)].mean(0)).sum()
        part = A[0, :value]
        wanted = np.zeros_like(A[0])
        wanted[:value] = np.exp(part) * part.mean(0) + np.exp(part).sum(0) / value
        agree(loss.gradient(x)[0], wanted)


def test_a_part_is_written_to() -> None:
    for value in VALUES:
        x, wanted = Tensor(A[0]), A[0].copy()
        x[n(value) - 1 : n(value)] = Tensor(A[1, :1])
        wanted[value - 1 : value] = A[1, :1]
        agree(x, wanted)
        x[: n(value), 1:3] = 2.0
        wanted[:value, 1:3] = 2.0
        agree(x, wanted)
        x[-n(value)] = 7.0
        wanted[-value] = 7.0
        agree(x, wanted)


def test_random_numbers() -> None:
    for value in VALUES:
        numbers = Tensor.rand(n(value), 300).numpy()
        assert numbers.shape == (value, 300) and 0 <= numbers.min() < numbers.max() < 1
        assert len(np.unique(numbers)) > 0.99 * numbers.size


def test_memory_is_as_large_as_the_variable_may_become() -> None:
    x = Tensor(A).realize()
    part = x[:, : n(2)].contiguous().realize()
    assert part.uop.base.arg.capacity == 3 * 7 * 4
    agree(part, A[:, :2])


# ---- shapes -------------------------------------------------------------------------------------------------------


def test_shapes_show_the_variable() -> None:
    x = Tensor(A)
    assert repr(x[:, : n(5)].shape) == "(3, n=5, 4)"
    assert repr(x[:, n(5) :].shape) == "(3, (-(n=5)) + 7, 4)"
    assert repr(x[:, : n(5)]) == "<Tensor (3, n=5, 4) dtypes.float32 on CPU, not computed>"
    assert x[:, n(5) - 1 : n(5)].shape == (3, 1, 4)
    assert x[:, : n(5)].shape[1] is n(5), "equal sizes are one node"


def test_unbind_gives_the_variable_and_its_value() -> None:
    variable = Variable("n", 1, 7)
    assert variable.bind(3).unbind() == (variable, 3)


def test_the_largest_range_decides_how_a_number_is_stored() -> None:
    assert Tensor(n(3)).dtype is dtypes.int32
    assert Tensor(Variable("large", 0, 1 << 40).bind(1 << 35)).item() == 1 << 35
    assert (Tensor([1.5]) * n(2)).dtype is dtypes.float32
    assert (Tensor([1], dtype="int8") * n(2)).dtype is dtypes.int8
    assert (Tensor([1], dtype="int8") + Variable("m", 0, 1000).bind(999)).tolist() == [1000]


def test_no_elements_at_all() -> None:
    x, none = Tensor(A[0]).realize(), Variable("m", 0, 7).bind(0)
    assert x[:none].numpy().shape == (0, 4)
    assert x[:none].sum(0).tolist() == [0, 0, 0, 0]
    agree(x[:none].cat(x), A[0])


# ---- what is refused ----------------------------------------------------------------------------------------------


REFUSED: dict[str, tuple[type[Exception], str, Callable[[Tensor], Any]]] = {
    "a value out of range": (ValueError, "'n' goes from 1 to 7; 8 is outside", lambda x: n(8)),
    "two values at once": (RealizeError, "'n' is bound to 2 and to 3",
                           lambda x: (x[:, : n(2)].sum() + x[:, : n(3)].sum()).item()),
    "no value": (ValueError, "bind", lambda x: x[:, : Variable("n", 1, 7)].numpy()),
    "no value inside": (RealizeError, "'n' has no value", lambda x: x[:, : Variable("n", 1, 7)].sum().numpy()),
    "a known size as a variable one": (ValueError, "can't reshape", lambda x: x[:, :2].reshape(3, n(2), 4)),
    "a known and a variable size": (ValueError, "don't broadcast", lambda x: x[:, :2] + x[:, : n(2)]),
    "a part beyond the axis": (ValueError, "is not inside 7", lambda x: x.shrink((None, (0, n(2) + 1), None))),
    "a place beyond the axis": (IndexError, "out of range", lambda x: x[:, n(2)]),
    "a bound that may count from either end": (IndexError, "from which end", lambda x: x[:, n(2) - 2 :]),
    "a negative size": (ValueError, "not negative", lambda x: Tensor.ones(n(2) - 2)),
    "a length": (TypeError, "depends on a variable", lambda x: len(x[0, : n(2)])),
    "an int": (TypeError, "is no int", lambda x: range(n(2))),
    "a decision": (ValueError, "can't decide", lambda x: 1 if n(2) < 5 else 2),
    "parts of one size": (NotImplementedError, "split", lambda x: x[:, : n(2)].split(2, 1)),
    "a step on variable bounds": (IndexError, "flip", lambda x: x[:, n(3) : 0 : -1]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    kind, message, use = REFUSED[name]
    with pytest.raises(kind, match=message):
        use(Tensor(A))


def test_static_shapes_are_ints_without_a_kernel() -> None:
    GlobalCounters.reset()
    shape = Tensor(A)[:, 1:3].reshape(-1).pad((1, 2)).shape
    assert all(type(size) is int for size in shape) and GlobalCounters.kernel_count == 0
