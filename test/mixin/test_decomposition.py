"""Products of simpler matrices, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from mixin.agree import agree
from mixin.evaluate import evaluate

from tensor_engine import Tensor

RANDOM = np.random.default_rng(6)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (5, 3), (2, 4, 3)])
def test_newton_schulz(shape):
    x = RANDOM.normal(size=shape)
    u, s, v = np.linalg.svd(x, full_matrices=False)
    s = s / (np.sqrt((s * s).sum(-1, keepdims=True)) + 1e-7)
    for _ in range(4):
        s = 2 * s - 1.5 * s**3 + 0.5 * s**5
    agree(Tensor(x).newton_schulz(4, (2, -1.5, 0.5)), u * s[..., None, :] @ v, rtol=1e-9)
    with pytest.raises(ValueError, match="needs matrices"):
        Tensor([1.0]).newton_schulz(1, (1.0,))


MATRICES = {
    "one": np.array([[-3.0]]),
    "square": RANDOM.normal(size=(4, 4)),
    "tall": RANDOM.normal(size=(6, 3)),
    "wide": RANDOM.normal(size=(2, 5)),
    "a batch": RANDOM.normal(size=(2, 3, 3)),
    "of rank 1": np.outer([1.0, 2, 3], [4, 5, 6.0]),
    "diagonal": np.diag([1.0, -2, 3]),
    "zeros": np.zeros((3, 2)),
    "a column": RANDOM.normal(size=(3, 1)),
    "no columns": np.zeros((3, 0)),
    "of far different sizes": np.array([[1.0, 1e-9], [1, 2e-9]]),
}


def close(a, b, tolerance=1e-12):
    np.testing.assert_allclose(a, b, atol=tolerance)


@pytest.mark.parametrize("name", MATRICES)
def test_qr(name):
    x = MATRICES[name]
    q, r = (evaluate(part.uop) for part in Tensor(x).qr())
    rows = x.shape[-2]
    close(q.swapaxes(-1, -2) @ q, np.broadcast_to(np.eye(rows), q.shape))
    close(q @ r, x)
    close(np.tril(r, -1), np.zeros(r.shape))
    assert r.shape == x.shape


@pytest.mark.parametrize("name", MATRICES)
def test_svd(name):
    x = MATRICES[name]
    u, s, v = (evaluate(part.uop) for part in Tensor(x).svd())
    (rows, columns), k = x.shape[-2:], min(x.shape[-2:])
    close(s, np.linalg.svd(x, compute_uv=False))
    for side, size in ((u, rows), (v, columns)):
        close(side.swapaxes(-1, -2) @ side, np.broadcast_to(np.eye(size), side.shape))
    close(u[..., :k] * s[..., None, :] @ v[..., :k, :], x)
    small = Tensor(x).svd(full_matrices=False)
    assert [part.shape[-2:] for part in small[::2]] == [(rows, k), (k, columns)]


def test_types():
    x = np.float16([[1, 2], [3, 4]])
    for part in (*Tensor(x).qr(), *Tensor(x).svd()):
        assert part.dtype.name == "float16"
    s = Tensor(np.int32([[3, 0], [0, 4]])).svd()[1]
    assert s.numpy().tolist() == [4, 3]


def test_gradients():
    """The singular values change by u · dX · v (their perturbation theory); q r by dX itself."""
    x = MATRICES["tall"]
    tensor = Tensor(x)
    u, s, v = np.linalg.svd(x, full_matrices=False)
    weights = np.array([1.0, 2, -1])
    (gradient,) = (tensor.svd()[1] * Tensor(weights)).sum().gradient(tensor)
    close(evaluate(gradient.uop), u * weights @ v, 1e-9)
    weights = RANDOM.normal(size=(6, 3))
    q, r = tensor.qr()
    (gradient,) = ((q @ r) * Tensor(weights)).sum().gradient(tensor)
    close(evaluate(gradient.uop), weights, 1e-9)
