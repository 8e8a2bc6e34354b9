"""Tensor as a user meets it: making one, asking for values, writing to it, and the errors."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from mixin.evaluate import evaluate

from tensor_engine import Context, GlobalCounters, Tensor, dtypes
from tensor_engine.engine.realize import buffer_of
from tensor_engine.uop import provenance
from tensor_engine.uop.uop import UOp

RANDOM = np.random.default_rng(0)


def values(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


# ---- what a tensor is


def test_slots():
    assert Tensor.__slots__ == ("uop", "is_param", "grad", "storage")
    assert not hasattr(Tensor(1), "__dict__")


def test_equal_graphs_are_one():
    assert (Tensor(3) + 4).uop is (Tensor(3) + 4).uop
    assert (Tensor(0.0) + 1).uop is not (Tensor(-0.0) + 1).uop
    assert Tensor(1).uop is not Tensor(1.0).uop


def test_nothing_runs_before_a_value_is_asked_for():
    before = GlobalCounters.kernel_count
    x = Tensor(values(4, 4))
    y = ((x @ x).softmax() + 1).sum()
    assert "not computed" in repr(y)
    assert GlobalCounters.kernel_count == before
    y.realize()
    assert GlobalCounters.kernel_count > before
    assert "not computed" not in repr(y)


def test_a_value_is_computed_once():
    x = Tensor(values(4)) * 2
    x.realize()
    before = GlobalCounters.kernel_count
    x.realize().numpy()
    assert GlobalCounters.kernel_count == before


def test_views_cost_no_kernel():
    x = Tensor(values(4, 6))
    before = GlobalCounters.kernel_count
    x.permute(1, 0).reshape(2, 12)[:, ::2].realize()
    x.reshape(24).numpy()
    assert GlobalCounters.kernel_count == before


def test_the_package_gives_its_names():
    import tensor_engine

    assert {"Tensor", "TinyJit", "Device", "dtypes", "Variable", "GlobalCounters", "Context", "nn"} <= set(
        tensor_engine.__all__
    )
    assert all(getattr(tensor_engine, name) is not None for name in tensor_engine.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Tensors'"):
        tensor_engine.Tensors  # noqa: B018


# ---- making one


@pytest.mark.parametrize("dtype", [d for d in dtypes.all if d is not dtypes.bfloat16], ids=lambda d: d.name)
def test_arrays_of_every_type(dtype):
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype.name)
    x = Tensor(array)
    assert (x.dtype, x.shape, x.numpy().dtype) == (dtype, (2, 3), array.dtype)
    np.testing.assert_array_equal(x.numpy(), array)
    np.testing.assert_array_equal((x.T + 0).numpy(), array.T)


def test_lists():
    assert Tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert Tensor([1, 2]).dtype is dtypes.int32
    assert Tensor([1, 2.0]).dtype is dtypes.float32
    assert Tensor([True, False]).dtype is dtypes.bool
    assert Tensor([1, 2**40]).tolist() == [1, 2**40]
    assert Tensor([2**63]).dtype is dtypes.uint64
    assert Tensor([1, 2], dtype="half").dtype is dtypes.float16
    assert Tensor((1, 2)).tolist() == [1, 2]
    assert Tensor([]).shape == (0,)
    assert Tensor([[], []]).numpy().shape == (2, 0)


def test_numbers():
    assert Tensor(3).item() == 3
    assert Tensor(2**40).item() == 2**40
    assert Tensor(True).dtype is dtypes.bool
    assert Tensor(np.float64(0.1)).item() == 0.1
    assert Tensor(np.int8(-3)).dtype is dtypes.int8
    assert math.isnan(Tensor(math.nan).item())
    assert Tensor(3, dtype=dtypes.float64).item() == 3.0


def test_bytes():
    x = Tensor(b"\x00\x80\xff")
    assert (x.dtype, x.tolist()) == (dtypes.uint8, [0, 128, 255])


def test_awkward_arrays():
    array = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(Tensor(array[::2, ::-1]).numpy(), array[::2, ::-1])
    np.testing.assert_array_equal(Tensor(array.T).numpy(), array.T)
    np.testing.assert_array_equal(Tensor(array.astype(">f8")).numpy(), array)
    assert Tensor(np.float32(2)).shape == ()


def test_the_content_is_a_copy():
    array = np.zeros(3, np.float32)
    x = Tensor(array)
    array[:] = 1
    assert x.tolist() == [0, 0, 0]
    x.numpy()[:] = 5
    assert x.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ([[1, 2], [3]], ValueError, "equal lengths"),
        (np.array([1j]), TypeError, "complex128"),
        (np.array(["a"]), TypeError, "no dtype"),
        ("text", TypeError, "not of a str"),
        ({}, TypeError, "not of a dict"),
        ([Tensor(1), Tensor(2)], TypeError, "Tensor.stack"),
        ([[1], [Tensor(2)]], TypeError, "Tensor.stack"),
        ([1, None], TypeError, "real numbers.*None"),
        (["a"], TypeError, "real numbers.*'a'"),
        ([2**64], TypeError, "64 bits"),
        ([1j], TypeError, "real numbers"),
    ],
)
def test_what_is_no_array_of_numbers(data, error, words):
    with pytest.raises(error, match=words):
        Tensor(data)


def test_unknown_types_and_devices():
    with pytest.raises(TypeError, match="unknown dtype 'float33'"):
        Tensor([1], dtype="float33")
    with pytest.raises(ValueError, match="no device 'TPU'"):
        Tensor([1], device="TPU")


def test_bfloat16_rounds_to_even():
    x = np.float32([1, 1 + 2**-8, 1 + 3 * 2**-8, 3.14159, -1e38, np.inf, np.nan])
    expected = np.float32([1, 1, 1 + 2**-6, 3.140625, -9.96921e37, np.inf, np.nan])
    np.testing.assert_allclose(Tensor(x, dtype="bfloat16").numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(Tensor(x).cast("bfloat16").numpy(), expected, rtol=1e-6)


CASTS = [-1.0, -2.5, 256.0, 300.0, 2147483646.0, 1e20, -1e20, math.inf, math.nan, 0.99, -0.99]


@pytest.mark.parametrize("dtype", dtypes.ints, ids=lambda d: d.name)
def test_floats_become_integers_the_same_on_every_way(dtype):
    made = Tensor(CASTS, dtype=dtype).tolist()
    cast = Tensor(np.array(CASTS)).cast(dtype)
    assert cast.tolist() == made == evaluate(cast.uop).tolist()
    assert [Tensor(v, dtype=dtypes.float64).cast(dtype).item() for v in CASTS] == made


# ---- asking for values


def test_item_and_tolist():
    assert Tensor([[7]]).item() == 7
    assert Tensor(values(2, 3)).tolist() is not None
    with pytest.raises(ValueError, match=r"shape \(2,\) has 2"):
        Tensor([1, 2]).item()


def test_numpy_takes_a_tensor_for_an_array():
    x = values(3)
    np.testing.assert_array_equal(np.asarray(Tensor(x)), x)
    assert isinstance(x * Tensor(x), Tensor)


def test_data_is_the_memory():
    x = Tensor([1.0, 2.0]).realize()
    assert np.frombuffer(x.data(), np.float32).tolist() == [1, 2]
    assert len(Tensor([]).data()) == 0
    table = Tensor([[1, 2, 3], [4, 5, 6]], dtype=dtypes.int16).data()
    assert (table.format, table.shape, table[1, 2], bytes(table)[:4]) == ("h", (2, 3), 6, b"\1\0\2\0")
    assert (Tensor(2.5).data().tolist(), Tensor([True, False]).data().tolist()) == (2.5, [True, False])


def test_data_keeps_its_memory():
    seen = (Tensor([1, 2, 3]) + 1).data()
    others = [(Tensor([7, 7, 7]) + number).realize() for number in range(4)]
    assert np.frombuffer(seen, np.int32).tolist() == [2, 3, 4]
    assert others[0].tolist() == [7, 7, 7]
    assert Tensor([1.5]).half().data().nbytes == 2


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_have_memory_of_their_own(copied):
    x = Tensor([1.0, 2.0], is_param=False)
    (x * x).sum().backward()
    y = copied(x)
    x.assign([5, 6]).realize()
    assert y.tolist() == [1, 2]
    assert (y.grad.tolist(), y.is_param) == ([2, 4], False)
    y.assign([7, 8]).realize()
    assert x.tolist() == [5, 6]
    for given in (Tensor(3), Tensor.zeros(2, 0), Tensor([1.5]).cast("bfloat16"), Tensor([1], device="PYTHON") + 1):
        again = copied(given)
        assert (again.shape, again.dtype, again.device) == (given.shape, given.dtype, given.device)
        assert again.tolist() == given.tolist()


def test_a_pickled_tensor_has_its_values_in_another_process():
    pickled = pickle.dumps(Tensor([1, 2, 3]) * 2)
    script = f"""
import pickle
from tensor_engine import Tensor
other = Tensor([9, 9, 9]).realize()
print(pickle.loads({pickled!r}).tolist())"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "[2, 4, 6]", done.stderr

def test_several_at_once():
    a, b = Tensor(values(3)) + 1, Tensor(values(3)) * 2
    Tensor.realize(a, b)
    assert "not computed" not in repr(a) + repr(b)


def test_sizes():
    x = Tensor(values(2, 3))
    assert (x.size(), x.size(-1), x.ndim, x.numel(), x.nbytes(), x.element_size()) == ((2, 3), 3, 2, 6, 24, 4)
    assert x.is_floating_point() and not x.int().is_floating_point()


def test_allclose_and_sequential():
    x = Tensor([1.0, 2.0])
    assert x.allclose(x + 1e-7).item()
    assert not x.allclose(x + 1e-3).item()
    assert x.sequential([Tensor.exp, Tensor.log, lambda t: t * 2]).allclose(x * 2).item()


# ---- writing


def test_writing_to_places():
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = Tensor(array)
    before = x + 10
    for index, value in [
        (0, 5),
        ((slice(None), 1), [7, 8, 9]),
        ((slice(None, None, -2), slice(1, None, 2)), [[1, 2], [3, 4]]),
        ((-1, ..., -1), math.inf),
        ((slice(0, 0),), 3),
        ((None, 2), 6),
    ]:
        x[index] = value
        array[index] = value
    np.testing.assert_array_equal(x.numpy(), array)
    np.testing.assert_array_equal(before.numpy(), np.arange(12, dtype=np.float32).reshape(3, 4) + 10)


def test_writing_in_place_with_an_operator():
    array = np.arange(6, dtype=np.float32)
    x = Tensor(array)
    x[:3] *= 10
    x[1:] += x[:-1]
    array[:3] *= 10
    array[1:] += array[:-1].copy()
    assert x.tolist() == array.tolist()


def test_writing_that_cannot_be():
    x = Tensor(values(3, 4))
    with pytest.raises(IndexError, match="integers"):
        x[[0.5, 1]] = 1
    with pytest.raises(ValueError, match="expand"):
        x[0] = [1, 2, 3]


def test_assign():
    x = Tensor([1.0, 2.0]).realize()
    memory, r = buffer_of(x.uop), x + 10
    x.assign(x * 3)
    Tensor.realize(r, x)
    assert (r.tolist(), x.tolist()) == ([11, 12], [3, 6])
    assert buffer_of(x.uop) is memory
    x.assign(x + 1).assign(x * 2)
    assert x.tolist() == [8, 14]
    assert x.assign(5).tolist() == [5, 5]


def test_assign_that_cannot_be():
    x = Tensor([1.0, 2.0]).realize()
    with pytest.raises(ValueError, match="int32 to dtypes.float32"):
        x.assign(Tensor([1, 2]))
    with pytest.raises(ValueError, match="can't expand"):
        x.assign(Tensor([1.0, 2.0, 3.0]))


def test_replace_and_clone():
    x = Tensor([1.0, 2.0])
    y = x.clone()
    x.replace(x + 1)
    assert (x.tolist(), y.tolist()) == ([2, 3], [1, 2])
    with pytest.raises(ValueError, match="can't replace"):
        x.replace(Tensor([1.0]))


# ---- devices, lines, training


def test_devices_do_not_meet_by_themselves():
    x, y = Tensor([1.0], device="CPU"), Tensor([1.0], device="PYTHON")
    with pytest.raises(ValueError, match="CPU and PYTHON"):
        x + y
    assert (x + y.to("cpu")).tolist() == [2]
    assert (x.to("PYTHON") + y).device == "PYTHON"
    assert (Tensor(1.0) + y).tolist() == [2]


def test_the_line_where_an_operation_was_written_is_known():
    line = inspect.currentframe().f_lineno + 1
    x = Tensor(values(3, 5)).exp().softmax()
    assert provenance.where(x.uop) == f"{__file__}:{line}"
    assert provenance.where(UOp.const(dtypes.int8, 77)) == ""


def test_train_is_for_a_while():
    assert not Tensor.training
    with Tensor.train():
        assert Tensor.training
        with Tensor.train(False):
            assert not Tensor.training
        assert Tensor.training
    assert not Tensor.training


# ---- through the whole engine

X = values(2, 6, 9, 9)
WHOLE = {
    "conv": lambda x: x.conv2d(Tensor(W), stride=2, padding=1).silu(),
    "depthwise": lambda x: x.conv2d(Tensor(W[:6, :1]), groups=6, padding=1).relu(),
    "transposed": lambda x: x.conv_transpose2d(Tensor(W[:6, :4]), stride=2, padding=1),
    "max pool": lambda x: x.max_pool2d(3, 2, 1, 1),
    "mean pool": lambda x: x.avg_pool2d(2, ceil_mode=True),
    "linear resize": lambda x: x.interpolate((18, 14)),
    "nearest resize": lambda x: x.interpolate((18, 18), mode="nearest"),
    "cat": lambda x: x.cat(x * 2, x[:, :2], dim=1),
    "pick": lambda x: x[:, Tensor([1, 3, -1])],
    "argmax": lambda x: x.argmax(1),
    "softmax": lambda x: x.softmax(1),
    "variance": lambda x: x.var((0, 1)),
    "layernorm": lambda x: x.layernorm((2, 3)),
    "matmul": lambda x: x @ x.transpose(-1, -2),
    "einsum": lambda x: Tensor.einsum("bchw,bdhw->bcd", x, x),
    "sort": lambda x: x.sort(1)[0],
    "topk": lambda x: x.flatten().topk(7)[1],
    "cumsum": lambda x: x.flatten(1).cumsum(1),
    "roll and step": lambda x: x.roll(2, 1)[:, ::-2],
    "reflect": lambda x: x.pad((2, 1), mode="reflect"),
    "powers": lambda x: x.abs() ** 1.5 + x**3 + 2**x,
    "rounding": lambda x: (x * 5).round() + (x * 3).floor() % 4,
    "bits": lambda x: ((x * 100).int() // 7 % 5) ^ 3 | 8,
    "curves": lambda x: x.gelu() + x.erf() + x.mish() + x.tanh() + x.sigmoid(),
    "angles": lambda x: (x * 30).sin() + (x * 30).cos(),
    "scatter": lambda x: x[0, 0].scatter(1, Tensor([[0, 4, 4]]), Tensor([[1.0, 2.0, 3.0]])),
    "half": lambda x: (x.half() * 3).exp2().sum(1),
    "bfloat16": lambda x: x.cast("bfloat16") * 3,
}
W = values(12, 6, 3, 3)


@pytest.mark.parametrize("name", WHOLE)
def test_the_engine_computes_what_the_graph_says(name):
    result = WHOLE[name](Tensor(X))
    expected = evaluate(result.uop)
    loose = result.dtype in (dtypes.float16, dtypes.bfloat16)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-2 if loose else 1e-4, atol=2e-5)


@pytest.mark.parametrize("name", ["matmul", "curves", "bits", "pick", "max pool"])
def test_on_the_reference_device(name):
    with Context(DEV="PYTHON"):
        x = Tensor(X[:, :, :4, :4])
        result = WHOLE[name](x)
        np.testing.assert_allclose(result.numpy(), evaluate(result.uop), rtol=1e-4, atol=2e-5)


def test_printing_shows_values_and_repr_computes_nothing():
    x = Tensor([[1.5, 2.0], [3.0, 4.0]]) * 2
    GlobalCounters.reset()
    assert "not computed" in repr(x) and GlobalCounters.kernel_count == 0
    assert str(x).split() == ["Tensor([[3.,", "4.],", "[6.,", "8.]],", "dtypes.float32)"]


def test_one_element_is_a_python_number():
    assert float(Tensor([2.5])) == 2.5 and int(Tensor(7)) == 7
    with pytest.raises(ValueError, match="one element"):
        float(Tensor([1.0, 2.0]))
