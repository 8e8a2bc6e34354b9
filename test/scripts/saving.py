"""State: parameters by name, saved and loaded as safetensors, cast and counted."""
import os
import tempfile

import numpy as np
from tinygrad import Device, Tensor, dtypes, nn
from tinygrad.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save


class Block:
    def __init__(self, width):
        self.norm = nn.LayerNorm(width)
        self.layers = [nn.Linear(width, width), nn.Linear(width, width, bias=False)]
        self.scale = Tensor.ones(width)
        self.name = "block"

    def __call__(self, x):
        for layer in self.layers:
            x = x + layer(self.norm(x)).relu() * self.scale
        return x


model, other = Block(6), Block(6)
state = get_state_dict(model)
assert sorted(state) == ["layers.0.bias", "layers.0.weight", "layers.1.weight", "norm.bias", "norm.weight", "scale"]
assert sum(p.numel() for p in get_parameters(model)) == 6 * 6 * 2 + 6 * 4

x = Tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6))
assert not np.allclose(model(x).numpy(), other(x).numpy())
load_state_dict(other, state, verbose=False)
np.testing.assert_allclose(model(x).numpy(), other(x).numpy(), rtol=1e-6)

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "block.safetensors")
    state["half"] = Tensor([1.5, 2.5], dtype=dtypes.half)
    state["numbers"] = Tensor([[1, -2, 3]], dtype=dtypes.int64)
    state["flags"] = Tensor([True, False])
    safe_save(state, path)
    loaded = safe_load(path)
    assert sorted(loaded) == sorted(state)
    for name, tensor in state.items():
        back = loaded[name].to(Device.DEFAULT)
        assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape), name
        np.testing.assert_array_equal(back.numpy(), tensor.numpy())
    third = Block(6)
    load_state_dict(third, {name: t for name, t in loaded.items() if "." in name or name == "scale"}, verbose=False)
    np.testing.assert_allclose(third(x).numpy(), model(x).numpy(), rtol=1e-6)

# what is computed on is a copy
kept = model.scale.clone().realize()
model.scale.assign(model.scale * 2).realize()
assert kept.tolist() == [1] * 6 and model.scale.tolist() == [2] * 6
model.scale.replace(Tensor.zeros(6))
np.testing.assert_allclose(model(x).numpy(), x.numpy())
print("saving", sorted(state), kept.tolist())
