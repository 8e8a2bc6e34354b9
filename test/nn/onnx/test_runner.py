"""OnnxRunner: shapes given at load, laziness, shared weights, host values, batch normalisation folded."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from nn.onnx.oracle import assert_same, make_model, run_onnxruntime, run_ours
from onnx import helper

from tensor_engine import GlobalCounters, Tensor, TinyJit, dtypes
from tensor_engine.nn.onnx import OnnxRunner, TensorSpec
from tensor_engine.nn.onnx.graph import parse_graph
from tensor_engine.nn.onnx.model import opsets_of, read_model
from tensor_engine.nn.onnx.transform import fold_batchnorm, fold_constants

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def conv_norm(transposed=False, group=1, bias=True, also_read=False):
    """A convolution and a batch normalisation; `also_read`: somebody else reads the convolution, too."""
    op_type = "ConvTranspose" if transposed else "Conv"
    weights = {
        "w": floats(4, 4 // group, 3, 3),
        "scale": floats(4),
        "b": floats(4),
        "mean": floats(4),
    }
    weights["var"] = np.abs(floats(4)) + 0.5
    inputs = ["x", "w", "bias"] if bias else ["x", "w"]
    if bias:
        weights["bias"] = floats(4)
    nodes = [
        helper.make_node(op_type, inputs, ["c"], group=group),
        helper.make_node(
            "BatchNormalization", ["c", "scale", "b", "mean", "var"], ["n"], epsilon=1e-3
        ),
        helper.make_node("Add", ["n", "c"], ["y"])
        if also_read
        else helper.make_node("Relu", ["n"], ["y"]),
    ]
    return make_model(nodes, {"x": [2, 4, 6, 5]}, ["y"], weights)


def dynamic_relu():
    return make_model(
        [helper.make_node("Relu", ["x"], ["y"])], {"x": ["batch", 3, "height", "width"]}, ["y"]
    )


def test_specs():
    runner = OnnxRunner(conv_norm())
    assert runner.inputs == {"x": TensorSpec((2, 4, 6, 5), dtypes.float32)}
    assert runner.outputs == {"y": TensorSpec((2, 4, 4, 3), dtypes.float32)}


def test_dynamic_dimensions_by_shape_and_by_name():
    by_shape = OnnxRunner(dynamic_relu(), input_shapes={"x": (1, 3, 4, 5)})
    by_name = OnnxRunner(dynamic_relu(), dims={"batch": 1, "height": 4, "width": 5})
    assert by_shape.inputs == by_name.inputs
    assert by_name.outputs["y"].shape == (1, 3, 4, 5)


def test_a_declared_shape_may_be_replaced():
    runner = OnnxRunner(conv_norm(), input_shapes={"x": (1, 4, 9, 9)})
    assert runner.outputs["y"].shape == (1, 4, 7, 7)


def test_sources(tmp_path):
    model = conv_norm()
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    feeds = {"x": floats(2, 4, 6, 5)}
    expected = run_onnxruntime(model, feeds)
    for source in (model, path, str(path), path.read_bytes()):
        assert_same(run_ours(source, feeds), expected)


def test_another_device_than_the_default():
    model = conv_norm()
    feeds = {"x": floats(2, 4, 6, 5)}
    outputs = OnnxRunner(model, device="PYTHON")(feeds)
    assert outputs["y"].device == "PYTHON"
    assert_same({"y": outputs["y"].numpy()}, run_onnxruntime(model, feeds))


def test_external_weights(tmp_path):
    model = conv_norm()
    feeds = {"x": floats(2, 4, 6, 5)}
    expected = run_onnxruntime(model, feeds)
    path = tmp_path / "model.onnx"
    onnx.save_model(
        model, path, save_as_external_data=True, location="weights.bin", size_threshold=0
    )
    assert (tmp_path / "weights.bin").stat().st_size > 0
    assert_same(run_ours(path, feeds), expected)


def test_a_call_computes_nothing():
    runner = OnnxRunner(conv_norm())
    x = Tensor(floats(2, 4, 6, 5)).realize()
    before = GlobalCounters.kernel_count
    outputs = runner({"x": x})
    assert GlobalCounters.kernel_count == before
    outputs["y"].realize()
    assert GlobalCounters.kernel_count > before


def test_weights_are_shared_by_calls_and_are_no_parameters():
    runner = OnnxRunner(conv_norm())
    weights = dict(runner._graph.weights)
    assert weights and not any(w.is_param for w in weights.values())
    runner({"x": floats(2, 4, 6, 5)})
    runner({"x": floats(2, 4, 6, 5)})
    assert all(runner._graph.weights[name] is weight for name, weight in weights.items())
    assert len(runner._graph.weights) == len(weights)


def test_captured_calls_take_new_inputs():
    model = conv_norm()
    runner = OnnxRunner(model)
    captured = TinyJit(lambda x: runner({"x": x})["y"].realize())
    for _ in range(4):
        x = floats(2, 4, 6, 5)
        expected = run_onnxruntime(model, {"x": x})["y"]
        np.testing.assert_allclose(
            captured(Tensor(x).realize()).numpy(), expected, rtol=1e-3, atol=1e-4
        )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("transposed, group", [(False, 1), (False, 2), (True, 1), (True, 2)])
def test_batch_normalisation_after_a_convolution(transposed, group, bias):
    model = conv_norm(transposed, group, bias)
    feeds = {"x": floats(2, 4, 6, 5)}
    assert_same(run_ours(model, feeds), run_onnxruntime(model, feeds))


def test_batch_normalisation_is_not_folded_into_a_convolution_that_is_read_elsewhere():
    model = conv_norm(also_read=True)
    feeds = {"x": floats(2, 4, 6, 5)}
    assert_same(run_ours(model, feeds), run_onnxruntime(model, feeds))


@pytest.mark.parametrize(
    "model, operators",
    [
        (conv_norm(), ["Conv", "Relu"]),
        (conv_norm(transposed=True), ["ConvTranspose", "Relu"]),
        (conv_norm(transposed=True, group=2), ["ConvTranspose", "ChannelAffine", "Relu"]),
        (conv_norm(also_read=True), ["Conv", "ChannelAffine", "Add"]),
    ],
    ids=["conv", "transposed", "transposed-grouped", "read-twice"],
)
def test_what_folding_leaves(model, operators):
    model = read_model(model)
    graph = parse_graph(model.graph, opsets_of(model))
    fold_batchnorm(graph)
    assert [node.op_type for node in graph.nodes] == operators


def test_nodes_that_leave_out_their_first_output():
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r"], ["", "h1"], hidden_size=2),
        helper.make_node("LSTM", ["x", "w2", "r"], ["", "h2"], hidden_size=2),
        helper.make_node("Sub", ["h1", "h2"], ["y"]),
    ]
    weights = {"w": floats(1, 8, 3), "w2": floats(1, 8, 3), "r": floats(1, 8, 2)}
    model = make_model(nodes, {"x": [4, 1, 3]}, ["y"], weights)
    feeds = {"x": floats(4, 1, 3)}
    assert_same(run_ours(model, feeds), run_onnxruntime(model, feeds))


def test_constants_are_folded():
    nodes = [
        helper.make_node("Constant", [], ["two"], value_float=2.0),
        helper.make_node("Mul", ["two", "w"], ["scaled"]),
        helper.make_node("Transpose", ["scaled"], ["t"]),
        helper.make_node("MatMul", ["x", "t"], ["y"]),
    ]
    model = make_model(nodes, {"x": [2, 3]}, ["y"], {"w": floats(5, 3)})
    graph = parse_graph(model.graph, opsets_of(model))
    fold_constants(graph)
    assert [node.op_type for node in graph.nodes] == ["MatMul"]
    feeds = {"x": floats(2, 3)}
    assert_same(run_ours(model, feeds), run_onnxruntime(model, feeds))


def test_shapes_are_computed_on_the_host():
    """View-like code of an exporter: sizes read, combined and used as a target, with no kernel for any of it."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"]),
        helper.make_node("Unsqueeze", ["batch", "zeros"], ["batch1"]),
        helper.make_node("Concat", ["batch1", "minus"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["y"]),
    ]
    weights = {"zero": np.array(0), "zeros": np.array([0]), "minus": np.array([-1])}
    model = make_model(nodes, {"x": ["n", 3, 4]}, ["y"], weights)
    x = Tensor(floats(2, 3, 4)).realize()
    runner = OnnxRunner(model, dims={"n": 2})
    before = GlobalCounters.kernel_count
    y = runner({"x": x})["y"].realize()
    assert y.shape == (2, 12)
    assert GlobalCounters.kernel_count == before, "a view costs no kernel"
    assert y.tolist() == x.reshape(2, 12).tolist()


def test_an_old_model_is_converted():
    """Opset 6 broadcasts by attribute, which opset 7 does away with."""
    nodes = [helper.make_node("Add", ["x", "b"], ["y"], broadcast=1, axis=1)]
    model = make_model(nodes, {"x": [2, 3, 4]}, ["y"], {"b": floats(3)}, opset=6)
    x = floats(2, 3, 4)
    b = onnx.numpy_helper.to_array(model.graph.initializer[0])
    np.testing.assert_allclose(run_ours(model, {"x": x})["y"], x + b[:, None], rtol=1e-6)
