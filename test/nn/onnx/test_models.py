"""Whole models against onnxruntime: two real detectors, and the heads that exporters of others write."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from nn.onnx.oracle import assert_same, make_model, run_onnxruntime, run_ours
from onnx import TensorProto, helper

RNG = np.random.default_rng(0)
node = helper.make_node


def floats(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def ints(*values):
    return np.array(values, dtype=np.int64)


def scalar(value):
    return np.array(value, dtype=np.float32)


def test_nanodet(nanodet_path):
    feeds = {"input.1": floats(1, 3, 320, 320)}
    session = onnxruntime.InferenceSession(nanodet_path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    expected = dict(zip(names, session.run(names, feeds)))
    assert_same(run_ours(nanodet_path, feeds), expected)


def test_centerface_at_a_size_that_it_does_not_declare(centerface_path):
    shape = (1, 3, 320, 320)
    model = onnx.load(centerface_path)
    (image,) = [
        i for i in model.graph.input if i.name not in {w.name for w in model.graph.initializer}
    ]
    feeds = {image.name: RNG.uniform(0, 255, shape).astype(np.float32)}
    actual = run_ours(centerface_path, feeds, input_shapes={image.name: shape})
    for dim, size in zip(image.type.tensor_type.shape.dim, shape):
        dim.dim_value = size
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    assert_same(actual, run_onnxruntime(model, feeds))


def yolov5_stem_and_head():
    """Slices of every second pixel, and boxes from sigmoids on a grid: (xy * 2 + grid) * stride, (wh * 2)² * anchors.

    The grid is made in the graph from the shape, as the exporter writes it for dynamic image sizes.
    """
    weights = {
        "w": floats(18, 12, 3, 3) * 0.2,
        "start0": ints(0), "start1": ints(1), "end": ints(2**31), "two": ints(2), "rows": ints(2), "columns": ints(3),
        "head": ints(0, 2, 9, -1), "zero": np.array(0), "one": np.array(1), "i2": np.array(2), "i3": np.array(3),
        "axis0": ints(0), "axis1": ints(1), "axis_last": ints(-1), "sizes": ints(2, 2, 5),
        "two_f": scalar(2.0), "half": scalar(0.5), "stride": scalar(2.0),
        "anchors": np.array([[10, 13], [16, 30]], np.float32).reshape(1, 2, 1, 2),
    }  # fmt: skip
    nodes = [
        *(node("Slice", ["x", f"start{r}", "end", "rows", "two"], [f"r{r}"]) for r in (0, 1)),
        *(
            node("Slice", [f"r{r}", f"start{c}", "end", "columns", "two"], [f"p{r}{c}"])
            for c in (0, 1)
            for r in (0, 1)
        ),
        node("Concat", ["p00", "p10", "p01", "p11"], ["focus"], axis=1),
        node("Conv", ["focus", "w"], ["conv"], pads=[1, 1, 1, 1]),
        node("Sigmoid", ["conv"], ["gate"]),
        node("Mul", ["conv", "gate"], ["silu"]),
        node("Shape", ["silu"], ["shape"]),
        node("Gather", ["shape", "i2"], ["ny"]),
        node("Gather", ["shape", "i3"], ["nx"]),
        node("Range", ["zero", "ny", "one"], ["ys"]),
        node("Range", ["zero", "nx", "one"], ["xs"]),
        node("Unsqueeze", ["ys", "axis1"], ["ys_column"]),
        node("Unsqueeze", ["xs", "axis0"], ["xs_row"]),
        node("Unsqueeze", ["ny", "axis0"], ["ny1"]),
        node("Unsqueeze", ["nx", "axis0"], ["nx1"]),
        node("Concat", ["ny1", "nx1"], ["grid_shape"], axis=0),
        node("Expand", ["ys_column", "grid_shape"], ["ygrid"]),
        node("Expand", ["xs_row", "grid_shape"], ["xgrid"]),
        node("Unsqueeze", ["ygrid", "axis_last"], ["ygrid1"]),
        node("Unsqueeze", ["xgrid", "axis_last"], ["xgrid1"]),
        node("Concat", ["xgrid1", "ygrid1"], ["grid_i"], axis=-1),
        node("Cast", ["grid_i"], ["grid_f"], to=TensorProto.FLOAT),
        node("Sub", ["grid_f", "half"], ["grid_c"]),
        node("Reshape", ["grid_c", "grid_flat"], ["grid"]),
        node("Reshape", ["silu", "head"], ["per_anchor"]),
        node("Transpose", ["per_anchor"], ["last"], perm=[0, 1, 3, 2]),
        node("Sigmoid", ["last"], ["s"]),
        node("Split", ["s", "sizes"], ["xy", "wh", "conf"], axis=-1),
        node("Mul", ["xy", "two_f"], ["xy2"]),
        node("Add", ["xy2", "grid"], ["xy3"]),
        node("Mul", ["xy3", "stride"], ["xy4"]),
        node("Mul", ["wh", "two_f"], ["wh2"]),
        node("Pow", ["wh2", "two_f"], ["wh3"]),
        node("Mul", ["wh3", "anchors"], ["wh4"]),
        node("Concat", ["xy4", "wh4", "conf"], ["y"], axis=-1),
    ]
    weights["grid_flat"] = ints(1, 1, -1, 2)
    return make_model(nodes, {"x": [1, 3, "h", "w_"]}, ["y"], weights, opset=13)


def yolov8_head():
    """Distances as the expectation of a softmax over 16 bins (a convolution with 0 … 15), boxes from anchor points."""
    weights = {
        "w": floats(64 + 3, 8, 1, 1),
        "flat": ints(1, 67, -1), "bins": ints(1, 4, 16, 16), "boxes": ints(1, 4, 16),
        "parts": ints(64, 3), "pair": ints(2, 2), "stride": scalar(8.0), "two": scalar(2.0),
        "dfl": np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1),
        "points": np.stack(np.meshgrid(np.arange(4) + 0.5, np.arange(4) + 0.5)).reshape(1, 2, 16).astype(np.float32),
    }  # fmt: skip
    nodes = [
        node("Conv", ["x", "w"], ["c"]),
        node("Reshape", ["c", "flat"], ["f"]),
        node("Split", ["f", "parts"], ["box", "cls"], axis=1),
        node("Reshape", ["box", "bins"], ["b4"]),
        node("Transpose", ["b4"], ["bt"], perm=[0, 2, 1, 3]),
        node("Softmax", ["bt"], ["soft"], axis=1),
        node("Conv", ["soft", "dfl"], ["expected"]),
        node("Reshape", ["expected", "boxes"], ["ltrb"]),
        node("Split", ["ltrb", "pair"], ["lt", "rb"], axis=1),
        node("Sub", ["points", "lt"], ["x1y1"]),
        node("Add", ["points", "rb"], ["x2y2"]),
        node("Add", ["x1y1", "x2y2"], ["sum"]),
        node("Div", ["sum", "two"], ["centre"]),
        node("Sub", ["x2y2", "x1y1"], ["size"]),
        node("Concat", ["centre", "size"], ["cxcywh"], axis=1),
        node("Mul", ["cxcywh", "stride"], ["pixels"]),
        node("Sigmoid", ["cls"], ["scores"]),
        node("Concat", ["pixels", "scores"], ["y"], axis=1),
    ]
    return make_model(nodes, {"x": [1, 8, 4, 4]}, ["y"], weights)


def ssd_head():
    """Box regression on fixed priors, softmax scores with the background cut, the best k of each class gathered."""
    weights = {
        "priors": np.abs(floats(1, 10, 2)), "prior_sizes": np.abs(floats(1, 10, 2)) + 0.1,
        "v0": scalar(0.1), "v1": scalar(0.2), "half": scalar(0.5), "parts": ints(2, 2),
        "start": ints(1), "end": ints(99), "axis": ints(2), "k": ints(4), "last": ints(-1), "tile": ints(1, 1, 1, 4),
        "classes": ints(1, 1, 2, 1),
    }  # fmt: skip
    nodes = [
        node("Split", ["loc", "parts"], ["dxy", "dwh"], axis=2),
        node("Mul", ["dxy", "v0"], ["dxy1"]),
        node("Mul", ["dxy1", "prior_sizes"], ["dxy2"]),
        node("Add", ["dxy2", "priors"], ["centre"]),
        node("Mul", ["dwh", "v1"], ["dwh1"]),
        node("Exp", ["dwh1"], ["dwh2"]),
        node("Mul", ["dwh2", "prior_sizes"], ["size"]),
        node("Mul", ["size", "half"], ["radius"]),
        node("Sub", ["centre", "radius"], ["low"]),
        node("Add", ["centre", "radius"], ["high"]),
        node("Concat", ["low", "high"], ["boxes"], axis=2),
        node("Softmax", ["conf"], ["probability"], axis=2),
        node("Slice", ["probability", "start", "end", "axis"], ["foreground"]),
        node("Transpose", ["foreground"], ["by_class"], perm=[0, 2, 1]),
        node("TopK", ["by_class", "k"], ["scores", "order"], axis=2, largest=1, sorted=1),
        node("Unsqueeze", ["order", "last"], ["order1"]),
        node("Tile", ["order1", "tile"], ["order4"]),
        node("Unsqueeze", ["boxes", "axis1"], ["boxes1"]),
        node("Tile", ["boxes1", "classes"], ["boxes2"]),
        node("GatherElements", ["boxes2", "order4"], ["best"], axis=2),
    ]
    weights["axis1"] = ints(1)
    weights["classes"] = ints(1, 2, 1, 1)
    return make_model(
        nodes, {"loc": [1, 10, 4], "conf": [1, 10, 3]}, ["best", "scores", "order"], weights
    )


def centernet_head():
    """Peaks of a heat map by max pooling, the best of them, and their column, row and class by Mod and Div."""
    weights = {
        "up": floats(4, 4, 4, 4) * 0.3, "w": floats(2, 4, 1, 1), "flat": ints(1, -1), "k": ints(5),
        "area": np.array(64), "width": np.array(8), "zero": scalar(0.0),
    }  # fmt: skip
    nodes = [
        node("ConvTranspose", ["x", "up"], ["u"], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Relu", ["u"], ["r"]),
        node("Conv", ["r", "w"], ["c"]),
        node("Sigmoid", ["c"], ["heat"]),
        node("MaxPool", ["heat"], ["peak"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]),
        node("Equal", ["heat", "peak"], ["is_peak"]),
        node("Where", ["is_peak", "heat", "zero"], ["kept"]),
        node("Reshape", ["kept", "flat"], ["line"]),
        node("TopK", ["line", "k"], ["score", "place"], axis=1),
        node("Div", ["place", "area"], ["label"]),
        node("Mod", ["place", "area"], ["within"]),
        node("Div", ["within", "width"], ["row"]),
        node("Mod", ["within", "width"], ["column"]),
    ]
    return make_model(nodes, {"x": [1, 4, 4, 4]}, ["score", "label", "row", "column"], weights)


def mobile_block():
    """A depthwise block with squeeze and excitation, hard activations and a classifier, as in MobileNetV3."""
    weights = {
        "dw": floats(8, 1, 3, 3), "scale": floats(8), "b": floats(8), "mean": floats(8), "var": np.abs(floats(8)) + 0.5,
        "down": floats(4, 8, 1, 1), "up": floats(8, 4, 1, 1), "fc": floats(5, 8), "fcb": floats(5),
        "low": scalar(0.0), "high": scalar(6.0),
    }  # fmt: skip
    nodes = [
        node("Conv", ["x", "dw"], ["c"], group=8, pads=[1, 1, 1, 1], strides=[2, 2]),
        node("BatchNormalization", ["c", "scale", "b", "mean", "var"], ["n"]),
        node("HardSwish", ["n"], ["h"]),
        node("GlobalAveragePool", ["h"], ["pooled"]),
        node("Conv", ["pooled", "down"], ["d"]),
        node("Relu", ["d"], ["dr"]),
        node("Conv", ["dr", "up"], ["u"]),
        node("HardSigmoid", ["u"], ["gate"], alpha=1 / 6),
        node("Mul", ["h", "gate"], ["excited"]),
        node("Clip", ["excited", "low", "high"], ["clipped"]),
        node("ReduceMean", ["clipped"], ["mean_"], axes=[2, 3], keepdims=1),
        node("Flatten", ["mean_"], ["flat"]),
        node("Gemm", ["flat", "fc", "fcb"], ["logits"], transB=1),
        node("Softmax", ["logits"], ["y"]),
    ]
    return make_model(nodes, {"x": [2, 8, 7, 7]}, ["y"], weights, opset=14)


def transformer_block():
    """Attention written out, layer normalisation and GELU by erf, as exporters of DETR-like detectors write them."""
    weights = {
        "qkv": floats(8, 24) * 0.3, "heads": ints(1, 6, 3, 2, 4), "merge": ints(1, 6, 8), "scale": scalar(0.5),
        "g": floats(8), "b": floats(8), "w1": floats(8, 16), "w2": floats(16, 8), "sqrt2": scalar(1.4142135),
        "one": scalar(1.0), "half": scalar(0.5), "axis0": ints(0),
    }  # fmt: skip
    nodes = [
        node("MatMul", ["x", "qkv"], ["p"]),
        node("Reshape", ["p", "heads"], ["h"]),
        node("Transpose", ["h"], ["t"], perm=[2, 0, 3, 1, 4]),
        node("Split", ["t"], ["q1", "k1", "v1"], axis=0, num_outputs=3),
        *(node("Squeeze", [f"{n}1", "axis0"], [n]) for n in "qkv"),
        node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q", "kt"], ["dots"]),
        node("Mul", ["dots", "scale"], ["scaled"]),
        node("Softmax", ["scaled"], ["attention"], axis=-1),
        node("MatMul", ["attention", "v"], ["mixed"]),
        node("Transpose", ["mixed"], ["mt"], perm=[0, 2, 1, 3]),
        node("Reshape", ["mt", "merge"], ["m"]),
        node("Add", ["x", "m"], ["residual"]),
        node("LayerNormalization", ["residual", "g", "b"], ["n"]),
        node("MatMul", ["n", "w1"], ["up"]),
        node("Div", ["up", "sqrt2"], ["e1"]),
        node("Erf", ["e1"], ["e2"]),
        node("Add", ["e2", "one"], ["e3"]),
        node("Mul", ["up", "e3"], ["e4"]),
        node("Mul", ["e4", "half"], ["gelu"]),
        node("MatMul", ["gelu", "w2"], ["down"]),
        node("Add", ["n", "down"], ["y"]),
    ]
    return make_model(nodes, {"x": [1, 6, 8]}, ["y"], weights, opset=18)


@pytest.mark.parametrize(
    "model, shapes",
    [
        (yolov5_stem_and_head(), {"x": (1, 3, 12, 16)}),
        (yolov8_head(), {"x": (1, 8, 4, 4)}),
        (ssd_head(), {"loc": (1, 10, 4), "conf": (1, 10, 3)}),
        (centernet_head(), {"x": (1, 4, 4, 4)}),
        (mobile_block(), {"x": (2, 8, 7, 7)}),
        (transformer_block(), {"x": (1, 6, 8)}),
    ],
    ids=["yolov5", "yolov8", "ssd", "centernet", "mobilenet", "transformer"],
)
def test_heads_of_exported_models(model, shapes):
    feeds = {name: floats(*shape) for name, shape in shapes.items()}
    assert_same(run_ours(model, feeds, input_shapes=shapes), run_onnxruntime(model, feeds))
