"""The tensors of a model by name, and files of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from tensor_engine import Tensor, TinyJit, dtypes, nn
from tensor_engine.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


class Model:
    def __init__(self):
        self.layers = [nn.Linear(2, 3), nn.BatchNorm(3)]
        self.named = {"a": Tensor([1.0])}
        self.pair = Pair(Tensor([2.0]), Tensor([3.0]))
        self.name, self.nothing = "model", None


def test_names_are_the_way_to_a_tensor():
    model = Model()
    state = get_state_dict(model)
    assert list(state) == [
        "layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias", "layers.1.running_mean",
        "layers.1.running_var", "layers.1.num_batches_tracked", "named.a", "pair.left", "pair.right",
    ]  # fmt: skip
    assert state["pair.right"] is model.pair.right
    assert get_parameters(model)[0] is model.layers[0].weight
    assert [name for name, t in state.items() if not t.is_param] == list(state)[4:7]


def test_loading():
    source, model = Model(), Model()
    load_state_dict(model, get_state_dict(source))
    for name, tensor in get_state_dict(source).items():
        np.testing.assert_array_equal(get_state_dict(model)[name].numpy(), tensor.numpy())
    model.pair.left.assign([7.0]).realize()
    assert source.pair.left.tolist() == [2]


def test_loading_keeps_type_and_axes():
    model, half = {"x": Tensor.zeros(1)}, Tensor(2.5, dtype=dtypes.float16)
    load_state_dict(model, {"x": half})
    assert (model["x"].dtype, model["x"].tolist()) == (dtypes.float32, [2.5])


def test_a_captured_model_sees_what_is_loaded():
    model = {"x": Tensor([1.0])}
    run = TinyJit(lambda y: (model["x"] * y).realize())
    for _ in range(3):
        assert run(Tensor([2.0])).item() == 2
    load_state_dict(model, {"x": Tensor([5.0])})
    assert run(Tensor([2.0])).item() == 10


def test_what_does_not_fit():
    model = {"x": Tensor([1.0]), "y": Tensor([1.0])}
    with pytest.raises(KeyError, match="lacks \\['z'\\], the state lacks \\['y'\\]"):
        load_state_dict(model, {"x": Tensor([2.0]), "z": Tensor([1.0])})
    assert model["x"].item() == 1
    load_state_dict(model, {"x": Tensor([2.0]), "z": Tensor([1.0])}, strict=False)
    assert (model["x"].item(), model["y"].item()) == (2, 1)
    with pytest.raises(ValueError, match=r"x has shape \(1,\) in the model and \(2,\)"):
        load_state_dict(model, {"x": Tensor([1.0, 2.0])}, strict=False)


# ---- files ------------------------------------------------------------------------------------------------------


def test_files_hold_every_type(tmp_path):
    pytest.importorskip("safetensors")
    tensors = {d.name: Tensor(np.array([[0, 1, 0], [1, 1, 0]]), dtype=d) for d in dtypes.all}
    tensors |= {"scalar": Tensor(3.5), "nothing": Tensor.zeros(0, 3), "view": Tensor([[1, 2], [3, 4]]).T}
    safe_save(tensors, tmp_path / "x.safetensors", {"made by": "a test"})
    loaded = safe_load(tmp_path / "x.safetensors")
    assert loaded.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert (loaded[name].dtype, loaded[name].shape) == (tensor.dtype, tensor.shape)
        np.testing.assert_array_equal(loaded[name].numpy(), tensor.numpy())


def test_files_are_those_of_others(tmp_path):
    others = pytest.importorskip("safetensors.numpy")
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([True, False])}
    others.save_file(arrays, tmp_path / "theirs.safetensors")
    ours = safe_load(tmp_path / "theirs.safetensors")
    safe_save(ours, tmp_path / "ours.safetensors")
    back = others.load_file(tmp_path / "ours.safetensors")
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array)
        assert back[name].dtype == array.dtype


def test_damaged_files(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    (tmp_path / "x").write_bytes(b"\xff" * 20)
    with pytest.raises(safetensors.SafetensorError):
        safe_load(tmp_path / "x")
