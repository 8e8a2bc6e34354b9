"""What a user gets to read when a model or an input does not fit: all of it before anything runs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from nn.onnx.oracle import make_model
from onnx import TensorProto, helper, numpy_helper

from tensor_engine import GlobalCounters, Tensor, dtypes
from tensor_engine.nn.onnx import OnnxError, OnnxRunner


def relu(shape=(1, 3)):
    return make_model(
        [helper.make_node("Relu", ["x"], ["y"], name="act")], {"x": list(shape)}, ["y"]
    )


def two_unknown_operators():
    nodes = [
        helper.make_node("Fly", ["x"], ["a"], name="wing"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Swim", ["b"], ["y"], domain="sea"),
    ]
    return make_model(nodes, {"x": [1]}, ["y"], domains={"sea": 3})


def with_unknown_attribute():
    return make_model(
        [helper.make_node("Relu", ["x"], ["y"], name="act", slope=2.0)], {"x": [1]}, ["y"]
    )


def external_weights(folder):
    weight = numpy_helper.from_array(np.arange(2048, dtype=np.float32), "w")
    model = make_model(
        [helper.make_node("Add", ["x", "w"], ["y"])], {"x": [2048]}, ["y"], {"w": np.zeros(1)}
    )
    model.graph.initializer[0].CopyFrom(weight)
    path = folder / "model.onnx"
    onnx.save_model(
        model, path, save_as_external_data=True, location="weights.bin", size_threshold=0
    )
    return path


@pytest.mark.parametrize(
    "content",
    [b"", b"GIF89a not a model", b"\x08", b"\xff" * 100, "text".encode("utf-16")],
    ids=["empty", "text", "truncated", "ones", "utf-16"],
)
def test_a_file_that_is_no_model(content, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(OnnxError, match="model.onnx' is not an ONNX model: "):
        OnnxRunner(path)
    with pytest.raises(OnnxError, match="the given content is not an ONNX model: "):
        OnnxRunner(content)


def test_a_truncated_model_is_no_model():
    content = relu().SerializeToString()
    with pytest.raises(OnnxError, match="is not an ONNX model"):
        OnnxRunner(content[: len(content) // 2])


def test_an_opset_of_the_future():
    with pytest.raises(OnnxError, match="uses opset 999, but the installed onnx package .* update it"):
        OnnxRunner(make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": [1]}, ["y"], opset=999))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(OnnxError, match="missing.onnx' cannot be read"):
        OnnxRunner(tmp_path / "missing.onnx")


def test_all_missing_operators_are_named_in_one_error():
    with pytest.raises(OnnxError) as error:
        OnnxRunner(two_unknown_operators())
    lines = str(error.value).splitlines()
    assert len(lines) == 3
    assert lines[1].strip() == "operator Fly (node 'wing', domain ai.onnx, opset 13)"
    assert lines[2].strip() == "operator Swim (node that makes 'y', domain sea, opset 3)"


def test_an_attribute_that_would_be_ignored_is_named():
    with pytest.raises(OnnxError, match=r"attribute 'slope' of operator Relu \(node 'act'"):
        OnnxRunner(with_unknown_attribute())


def test_unresolved_dimensions_say_how_to_give_them():
    with pytest.raises(OnnxError) as error:
        OnnxRunner(relu(["batch", 3, None]))
    message = str(error.value)
    assert "input 'x' has dynamic dimensions [batch, 3, ?]" in message
    assert "input_shapes={'x': (batch, 3, ?)}" in message and "dims={'batch': …}" in message


@pytest.mark.parametrize(
    "options, message",
    [
        ({"input_shapes": {"z": (1, 3)}}, r"input_shapes names 'z', but the inputs are \['x'\]"),
        (
            {"input_shapes": {"x": (1, 3, 4)}},
            r"input 'x' has 2 dimensions, but input_shapes gives \(1, 3, 4\)",
        ),
        ({"dims": {"height": 3}}, "dims names 'height', but the symbolic dimensions are"),
    ],
    ids=["name", "rank", "dimension"],
)
def test_shapes_that_do_not_fit(options, message):
    with pytest.raises(OnnxError, match=message):
        OnnxRunner(relu(), **options)


@pytest.mark.parametrize(
    "inputs, message",
    [
        ({}, "needs the input 'x'"),
        ({"x": np.zeros((1, 3), np.float32), "z": np.zeros(1)}, "has no input 'z': its inputs are"),
        ({"x": np.zeros((1, 4), np.float32)}, r"must have shape \(1, 3\), not \(1, 4\)"),
        ({"x": np.zeros((1, 3), np.uint8)}, "must be float32, not uint8: cast it first"),
        ({"x": [[1.0, 2.0, 3.0]]}, "must be a Tensor or a numpy array, not a list"),
    ],
    ids=["missing", "unknown", "shape", "dtype", "list"],
)
def test_inputs_that_do_not_fit(inputs, message):
    with pytest.raises(OnnxError, match=message):
        OnnxRunner(relu())(inputs)


def test_a_tensor_of_another_dtype():
    with pytest.raises(OnnxError, match="must be float32"):
        OnnxRunner(relu())({"x": Tensor.zeros(1, 3, dtype=dtypes.int32)})


def test_external_weights_need_the_path(tmp_path):
    path = external_weights(tmp_path)
    content = path.read_bytes()
    with pytest.raises(OnnxError, match="give the path of the model"):
        OnnxRunner(content)
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(OnnxError, match="cannot be read"):
        OnnxRunner(path)


def with_suppression():
    """Boxes and scores, and an operator whose result has a size that nobody knows before."""
    nodes = [
        helper.make_node("Exp", ["x"], ["boxes"]),
        helper.make_node("Slice", ["boxes", "zero", "one", "two"], ["column"]),
        helper.make_node("Transpose", ["column"], ["scores"], perm=[0, 2, 1]),
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most"], ["chosen"], name="nms"),
    ]
    weights = {
        "zero": np.array([0]),
        "one": np.array([1]),
        "two": np.array([2]),
        "most": np.array([3]),
    }
    return make_model(nodes, {"x": [1, 5, 4]}, ["chosen"], weights)


def test_a_size_that_depends_on_values_says_what_to_do():
    with pytest.raises(
        OnnxError, match=r"NonMaxSuppression \(node 'nms'.*name the values before it as `outputs`"
    ):
        OnnxRunner(with_suppression())


def test_what_comes_after_the_named_outputs_is_left_out():
    runner = OnnxRunner(with_suppression(), outputs=["boxes", "scores"])
    x = np.arange(20, dtype=np.float32).reshape(1, 5, 4)
    outputs = runner({"x": x})
    assert list(outputs) == list(runner.outputs) == ["boxes", "scores"]
    assert outputs["boxes"].numpy() == pytest.approx(np.exp(x), rel=1e-5)
    assert outputs["scores"].numpy() == pytest.approx(
        np.exp(x)[:, :, :1].transpose(0, 2, 1), rel=1e-5
    )
    with pytest.raises(OnnxError, match="'elsewhere'"):
        OnnxRunner(with_suppression(), outputs=["elsewhere"])


def test_operators_after_the_named_outputs_need_not_be_known():
    runner = OnnxRunner(two_unknown_operators(), outputs=["x"])
    assert runner({"x": np.ones(1, np.float32)})["x"].tolist() == [1.0]


def test_a_shape_that_is_computed_from_values():
    """A graph of tensors has fixed shapes: the error names the node and the input."""
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=1),
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Cast", ["c"], ["s"], to=TensorProto.INT64),
        helper.make_node("Reshape", ["x", "s"], ["y"], name="shaper"),
    ]
    model = make_model(nodes, {"x": [1, 1, 4]}, ["y"], {"w": np.ones((1, 1, 4), np.float32)})
    with pytest.raises(
        OnnxError, match=r"Reshape \(node 'shaper'.*its input 'shape' decides shapes"
    ):
        OnnxRunner(model)


def test_an_input_that_decides_shapes_is_given_as_an_array():
    model = make_model(
        [helper.make_node("Reshape", ["x", "s"], ["y"])], {"x": [2, 3], "s": [2]}, ["y"]
    )
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    runner = OnnxRunner(model)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert runner.host_inputs == ["s"]
    assert runner({"x": x, "s": np.array([3, 2])})["y"].tolist() == x.reshape(3, 2).tolist()
    with pytest.raises(OnnxError, match="input 's' decides shapes: give it as a numpy array"):
        runner({"x": x, "s": Tensor([3, 2], dtype=dtypes.int64)})


def test_a_missing_operator_is_found_before_anything_runs():
    before = GlobalCounters.kernel_count
    with pytest.raises(OnnxError):
        OnnxRunner(two_unknown_operators())
    assert GlobalCounters.kernel_count == before


def test_a_shape_mismatch_inside_names_the_node():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="head")]
    model = make_model(nodes, {"x": [1, 3]}, ["y"], {"w": np.ones((4, 2), np.float32)})
    with pytest.raises(OnnxError, match=r"MatMul \(node 'head', domain ai.onnx, opset 13\): "):
        OnnxRunner(model)
