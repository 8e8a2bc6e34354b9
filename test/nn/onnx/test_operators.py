"""Operators where the onnx package's cases are too few: known positions, resizing, random numbers, narrow floats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nn.onnx.oracle import assert_same, make_model, run_onnxruntime, run_ours
from onnx import TensorProto, helper

from tensor_engine import GlobalCounters, Tensor
from tensor_engine.nn.onnx import OnnxRunner
from tensor_engine.nn.onnx.ops.indexing import take
from tensor_engine.nn.onnx.ops.resize import Axis, Method, resize_matrix

RNG = np.random.default_rng(0)
node = helper.make_node


def floats(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


POSITIONS = {
    "progression": [1, 3, 5, 7],
    "backwards": [11, 10, 9],
    "edge padding": [0, 0, 0, 1, 2, 3, 11, 11],
    "reflection": [2, 1, 0, 1, 2, 3, 2],
    "shuffle of 2 groups": [0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11],
    "shuffle of 3 groups": [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11],
    "doubled": [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9],
    "any": [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4],
    "one": [7],
}


@pytest.mark.parametrize("positions", POSITIONS.values(), ids=POSITIONS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_known_positions(positions, axis):
    shape = [2, 3, 2]
    shape[axis] = 12
    x = floats(*shape)
    assert take(Tensor(x), np.array(positions), axis).tolist() == x.take(positions, axis).tolist()


@settings(max_examples=40)
@given(st.data())
def test_any_known_positions(data):
    size = data.draw(st.integers(1, 9))
    positions = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=20))
    x = np.arange(size * 2, dtype=np.float32).reshape(size, 2)
    assert take(Tensor(x), np.array(positions), 0).tolist() == x[positions].tolist()


def test_a_channel_shuffle_is_a_view():
    """ShuffleNet's shuffle as an exporter writes it: no kernel of its own."""
    order = np.arange(12).reshape(2, 6).T.reshape(-1)
    model = make_model(
        [node("Gather", ["x", "order"], ["y"], axis=1)],
        {"x": [1, 12, 2, 2]},
        ["y"],
        {"order": order},
    )
    x = Tensor(floats(1, 12, 2, 2)).realize()
    y = OnnxRunner(model)({"x": x})["y"]
    before = GlobalCounters.kernel_count
    y.realize()
    assert GlobalCounters.kernel_count == before
    assert y.tolist() == x.numpy()[:, order].tolist()


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize(
    "coordinates", ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]
)
@pytest.mark.parametrize("size", [(14, 10), (4, 3), (11, 9)], ids=["doubled", "halved", "odd"])
def test_resize(mode, coordinates, size):
    sizes = np.array([1, 2, *size])
    resize = node(
        "Resize",
        ["x", "", "", "sizes"],
        ["y"],
        mode=mode,
        coordinate_transformation_mode=coordinates,
    )
    model = make_model([resize], {"x": [1, 2, 7, 5]}, ["y"], {"sizes": sizes})
    feeds = {"x": floats(1, 2, 7, 5)}
    assert_same(run_ours(model, feeds), run_onnxruntime(model, feeds))


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("new_size", [3, 7, 12])
def test_weights_of_resizing_add_up_to_one(mode, new_size):
    matrix = resize_matrix(Axis(7, new_size, new_size / 7), Method(mode))
    np.testing.assert_allclose(matrix.sum(1), 1, rtol=1e-12)


def test_upsampling_before_opset_11():
    model = make_model(
        [node("Resize", ["x", "scales"], ["y"], mode="nearest")],
        {"x": [1, 1, 4, 6]},
        ["y"],
        {"scales": np.array([1, 1, 0.6, 1.5], np.float32)},
        opset=10,
    )
    feeds = {"x": floats(1, 1, 4, 6)}
    assert_same(run_ours(model, feeds), run_onnxruntime(model, feeds))


@pytest.mark.parametrize(
    "operator, attributes, mean, deviation",
    [
        ("RandomUniform", {"low": 2.0, "high": 6.0}, 4.0, 4 / 12**0.5),
        ("RandomNormal", {"mean": 3.0, "scale": 0.5}, 3.0, 0.5),
    ],
)
def test_random_numbers(operator, attributes, mean, deviation):
    nodes = [
        node(operator, [], ["r"], shape=[50, 80], **attributes),
        node("Add", ["x", "r"], ["y"]),
    ]
    model = make_model(nodes, {"x": [1]}, ["y"])
    y = run_ours(model, {"x": np.zeros(1, np.float32)})["y"]
    assert y.shape == (50, 80)
    assert abs(y.mean() - mean) < 5 * deviation / 4000**0.5
    assert abs(y.std() - deviation) < 0.05 * deviation


def test_bernoulli():
    model = make_model([node("Bernoulli", ["x"], ["y"])], {"x": [4000]}, ["y"])
    y = run_ours(model, {"x": np.full(4000, 0.3, np.float32)})["y"]
    assert set(y.tolist()) == {0.0, 1.0}
    assert abs(y.mean() - 0.3) < 5 * (0.3 * 0.7 / 4000) ** 0.5


@pytest.mark.parametrize("operator", ["Exp", "Sigmoid", "Tanh", "Softplus", "Erf", "Softmax"])
def test_half_is_as_exact_as_half_can_be(operator):
    """What is computed by way of 2 ** x in half would be off by half a percent."""
    x = np.linspace(-10, 10, 81, dtype=np.float16).reshape(9, 9)
    model = make_model([node(operator, ["x"], ["y"])], {"x": [9, 9]}, ["y"])
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    wide = make_model([node(operator, ["x"], ["y"])], {"x": [9, 9]}, ["y"])
    expected = run_onnxruntime(wide, {"x": x.astype(np.float32)})["y"]
    actual = run_ours(model, {"x": x})["y"]
    assert actual.dtype == np.float16
    np.testing.assert_allclose(actual, expected, rtol=2e-3, atol=1e-7)


@pytest.mark.parametrize("pair", [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3)])
@pytest.mark.parametrize("operator, attributes", [("Div", {}), ("Mod", {}), ("Mod", {"fmod": 1})])
def test_integer_division_over_all_signs(operator, attributes, pair):
    model = make_model(
        [node(operator, ["x", "d"], ["y"], **attributes)],
        {"x": [1]},
        ["y"],
        {"d": np.array([pair[1]])},
    )
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    feeds = {"x": np.array([pair[0]])}
    assert_same(run_ours(model, feeds), run_onnxruntime(model, feeds))


def test_a_loop_is_unrolled():
    """Powers of the input: the state is passed on, each trip's is collected."""
    body = helper.make_graph(
        [
            node("Mul", ["state", "x"], ["next"]),
            node("Identity", ["next"], ["row"]),
            node("Identity", ["c"], ["go"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, [3]),
        ],
        [
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, [3]),
            helper.make_tensor_value_info("row", TensorProto.FLOAT, [3]),
        ],
    )
    nodes = [node("Loop", ["trips", "", "x"], ["last", "rows"], body=body)]
    model = make_model(nodes, {"x": [3]}, ["last", "rows"], {"trips": np.array(4)})
    x = floats(3)
    actual = run_ours(model, {"x": x})
    np.testing.assert_allclose(actual["last"], x**5, rtol=1e-5)
    np.testing.assert_allclose(actual["rows"], np.stack([x**n for n in range(2, 6)]), rtol=1e-5)
