"""Layers against PyTorch's over their hyperparameters: values, and gradients for the input and every weight."""

from __future__ import annotations

import numpy as np
import pytest
from mixin.evaluate import evaluate

from tensor_engine import Tensor, nn
from tensor_engine.nn.state import get_parameters, get_state_dict

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")

IMAGE, ROW = (2, 4, 7, 6), (2, 4, 9)
SAME = [  # layers that both call by the same name, with the same arguments
    ("Linear", (4, 3), {}, (2, 5, 4)),
    ("Linear", (4, 3), {"bias": False}, (0, 4)),
    ("Conv2d", (4, 6, 3), {}, IMAGE),
    ("Conv2d", (4, 6, (3, 2)), {"stride": (2, 1), "padding": (1, 0)}, IMAGE),
    ("Conv2d", (4, 6, 3), {"dilation": 2, "groups": 2, "bias": False}, IMAGE),
    ("Conv2d", (4, 8, 3), {"groups": 4, "padding": "same"}, IMAGE),
    ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1}, ROW),
    ("Conv1d", (4, 6, 3), {"groups": 2, "dilation": 3}, ROW),
    ("ConvTranspose2d", (4, 6, 3), {}, IMAGE),
    ("ConvTranspose2d", (4, 6, (3, 2)), {"stride": 2, "padding": 1, "output_padding": (1, 0)}, IMAGE),
    ("ConvTranspose2d", (4, 6, 3), {"groups": 2, "dilation": 2, "bias": False}, IMAGE),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 3, "padding": 1}, ROW),
    ("GroupNorm", (2, 4), {"eps": 1e-3}, IMAGE),
    ("GroupNorm", (4, 4), {"affine": False}, ROW),
    ("LayerNorm", ((7, 6),), {}, IMAGE),
    ("LayerNorm", (9,), {"elementwise_affine": False, "eps": 1e-2}, ROW),
    ("RMSNorm", (9,), {"eps": 1e-3}, ROW),
]
RENAMED = [
    ("BatchNorm", (4,), {}, "BatchNorm2d", (4,), {}, IMAGE),
    ("BatchNorm", (4,), {"eps": 1e-2, "momentum": 0.3}, "BatchNorm1d", (4,), {"eps": 1e-2, "momentum": 0.3}, ROW),
    ("BatchNorm", (4,), {"affine": False}, "BatchNorm1d", (4,), {"affine": False}, (5, 4)),
    ("InstanceNorm", (4,), {}, "InstanceNorm2d", (4,), {"affine": True}, IMAGE),
]
CASES = [(name, args, how, name, args, how, shape) for name, args, how, shape in SAME] + RENAMED


def pair(name, args, how, their_name, their_args, their_how):
    """A layer and PyTorch's, with the same weights."""
    ours, theirs = getattr(nn, name)(*args, **how), getattr(torch.nn, their_name)(*their_args, **their_how)
    random = np.random.default_rng(1)
    with torch.no_grad():
        for key, weight in theirs.named_parameters():
            values = random.normal(size=tuple(weight.shape)).astype(np.float32)
            weight.copy_(torch.tensor(values))
            setattr(ours, key, Tensor(values))
    return ours, theirs


def differentiated(layer, x):
    """The output, and the gradients of its weighted sum for the input and the weights by name."""
    weights = {key: value for key, value in get_state_dict(layer).items() if value.is_param}
    result = layer(x)
    seed = Tensor(np.random.default_rng(2).normal(size=result.shape).astype(np.float32))
    gradients = result.gradient(x, *weights.values(), gradient=seed)
    return evaluate(result.uop), dict(zip(["input", *weights], (evaluate(g.uop) for g in gradients)))


def differentiated_by_torch(layer, x):
    given = torch.tensor(x, requires_grad=True)
    result = layer(given)
    seed = torch.tensor(np.random.default_rng(2).normal(size=tuple(result.shape)).astype(np.float32))
    result.backward(seed)
    gradients = {"input": given.grad, **{key: weight.grad for key, weight in layer.named_parameters()}}
    return result.detach().numpy(), {key: value.numpy() for key, value in gradients.items()}


def close(found, expected, what):
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4, err_msg=what)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[3]} {case[5]}")
def test_layers(case):
    *names, shape = case
    ours, theirs = pair(*names)
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    with Tensor.train():
        result, gradients = differentiated(ours, Tensor(x))
    expected, their_gradients = differentiated_by_torch(theirs, x)
    close(result, expected, "output")
    assert gradients.keys() == their_gradients.keys()
    for key, gradient in their_gradients.items():
        close(gradients[key], gradient, key)


@pytest.mark.parametrize("how", [{}, {"momentum": 0.3}], ids=str)
def test_batchnorm_gathers_the_same_statistics(how):
    ours, theirs = pair("BatchNorm", (3,), how, "BatchNorm1d", (3,), how)
    with Tensor.train():
        for step in range(4):
            x = np.random.default_rng(step).normal(step, 1 + step, (5, 3)).astype(np.float32)
            ours(Tensor(x)).realize()
            theirs(torch.tensor(x))
    for key in ("running_mean", "running_var", "num_batches_tracked"):
        close(getattr(ours, key).numpy(), getattr(theirs, key).numpy(), key)
    x = np.random.default_rng(9).normal(size=(2, 3)).astype(np.float32)
    close(ours(Tensor(x)).numpy(), theirs.eval()(torch.tensor(x)).detach().numpy(), "not training")


@pytest.mark.parametrize("name", ["LSTMCell", "GRUCell"])
@pytest.mark.parametrize("bias", [True, False])
def test_cells_over_several_steps(name, bias):
    ours, theirs = pair(name, (3, 4), {"bias": bias}, name, (3, 4), {"bias": bias})
    x = np.random.default_rng(3).normal(size=(5, 2, 3)).astype(np.float32)

    def last_hidden(cell, steps):
        state = None
        for step in steps:
            state = cell(step, state)
        return state[0] if isinstance(state, tuple) else state

    inputs = Tensor(x)
    hidden = last_hidden(ours, [inputs[i] for i in range(5)])
    gradients = hidden.sum().gradient(inputs, *get_parameters(ours))
    their_inputs = torch.tensor(x, requires_grad=True)
    expected = last_hidden(theirs, list(their_inputs))
    their_gradients = torch.autograd.grad(expected.sum(), [their_inputs, *theirs.parameters()])
    close(evaluate(hidden.uop), expected.detach().numpy(), "hidden")
    by_name = dict(zip(["input", *get_state_dict(ours)], gradients))
    for (key, gradient) in zip(["input", *dict(theirs.named_parameters())], their_gradients):
        close(evaluate(by_name[key].uop), gradient.numpy(), key)


def test_embedding():
    ours, theirs = pair("Embedding", (5, 3), {}, "Embedding", (5, 3), {})
    index = np.array([[4, 0, 2], [2, 2, 1]], np.int32)
    result = ours(Tensor(index))
    expected = theirs(torch.tensor(index))
    close(evaluate(result.uop), expected.detach().numpy(), "output")
    (gradient,) = result.square().sum().gradient(ours.weight)
    expected.square().sum().backward()
    close(evaluate(gradient.uop), theirs.weight.grad.numpy(), "weight")
