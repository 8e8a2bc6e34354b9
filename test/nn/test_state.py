"""The tensors of a model by name, and files of them."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tensor_engine import Tensor, TinyJit, dtypes, nn
from tensor_engine.nn.state import (
    get_parameters,
    get_state_dict,
    load_state_dict,
    safe_load,
    safe_load_metadata,
    safe_save,
    torch_load,
)


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


def test_tensors_stay_in_the_file_until_they_are_needed(tmp_path):
    path = tmp_path / "x.safetensors"
    safe_save({"a": Tensor([1.0, 2.0]), "b": Tensor([[3, 4]])}, path, {"made by": "a test"})
    loaded = safe_load(path)
    assert {tensor.device for tensor in loaded.values()} == {f"DISK:{path}"}
    loaded["a"].assign([5.0, 6.0])
    assert safe_load(path)["a"].tolist() == [5, 6]
    assert (safe_load(path, "CPU")["b"] + 1).tolist() == [[4, 5]]
    assert safe_load_metadata(path) == {"made by": "a test"}


def saved(header: bytes, content: bytes = b"", length: int | None = None) -> bytes:
    return (len(header) if length is None else length).to_bytes(8, "little") + header + content


def entry(**fields) -> bytes:
    return json.dumps({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **fields}}).encode()


DAMAGED = {
    "nothing": (b"", "cut off"),
    "short": (b"\1\0\0", "cut off"),
    "a long header": (saved(b"{}", length=2**63), "cut off"),
    "no JSON": (saved(b"\xff{"), "no JSON"),
    "no object": (saved(b"[1]"), "no JSON object"),
    "no entry": (saved(b'{"x": 3}'), "entry 'x' is damaged"),
    "no shape": (saved(b'{"x": {"dtype": "F32"}}'), "entry 'x' is damaged"),
    "a negative size": (saved(entry(shape=[-1])), "entry 'x' is damaged"),
    "a fraction": (saved(entry(shape=[1.0])), "entry 'x' is damaged"),
    "three offsets": (saved(entry(data_offsets=[0, 4, 8])), "entry 'x' is damaged"),
    "an unknown type": (saved(entry(dtype="F8_E4M3"), bytes(4)), "type 'F8_E4M3'"),
    "cut off": (saved(entry(), bytes(3)), "bytes 0 to 4 of 3"),
    "backwards": (saved(entry(data_offsets=[4, 0]), bytes(4)), "bytes 4 to 0"),
    "too many bytes": (saved(entry(data_offsets=[0, 8]), bytes(8)), "bytes 0 to 8"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files(name, tmp_path):
    content, message = DAMAGED[name]
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        safe_load(tmp_path / "x")


def test_files_that_are_cut_off_anywhere(tmp_path):
    safe_save({"a": Tensor([1.0, 2.0]), "b": Tensor(3)}, tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "cut").write_bytes(whole[:length])
        with pytest.raises(ValueError):
            safe_load(tmp_path / "cut")


# ---- PyTorch ----------------------------------------------------------------------------------------------------

# torch.save of PyTorch 2.13: views of torch.arange(12.).reshape(3, 4), and others
TORCH_FILE = Path(__file__).parent.parent / "fixtures" / "tensors.pt"


def test_files_of_pytorch():
    state = torch_load(TORCH_FILE)
    weight = np.arange(12, dtype=np.float32).reshape(3, 4)
    expected = {
        "weight": weight, "transposed": weight.T, "half": weight[1:, ::2].astype(np.float16), "strided": weight[:, ::2],
        "count": np.array(7), "flags": np.array([True, False]), "empty": np.zeros((0, 3), np.float32),
    }  # fmt: skip
    for name, array in expected.items():
        assert (state[name].shape, state[name].numpy().dtype) == (array.shape, array.dtype)
        np.testing.assert_array_equal(state[name].numpy(), array)
    assert (state["bias"].dtype, state["bias"].tolist()) == (dtypes.bfloat16, [1.5, -2])
    assert (state["nested"][0].tolist(), state["nested"][1]) == ([1, 2], {"x": 3})
    assert state["weight"].device == f"DISK:{TORCH_FILE}"


class Evil:
    def __reduce__(self):
        return Path.write_text, (Path("evil"), "was run")


def test_no_code_in_a_file_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("evil.pt", "w") as archive:
        archive.writestr("evil/data.pkl", pickle.dumps({"x": Evil()}))
    with pytest.raises(ValueError, match="asks for pathlib.*nothing of it was run"):
        torch_load("evil.pt")
    assert not Path("evil").exists()


def test_what_is_not_of_pytorch(tmp_path):
    (tmp_path / "x.pt").write_bytes(pickle.dumps(1))
    with pytest.raises(ValueError, match="zip format"):
        torch_load(tmp_path / "x.pt")
    with zipfile.ZipFile(tmp_path / "y.pt", "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(ValueError, match=r"no data\.pkl"):
        torch_load(tmp_path / "y.pt")
