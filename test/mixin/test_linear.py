"""Products summed, and the norms around them, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from mixin.agree import agree

from tensor_engine import Tensor, dtypes

RANDOM = np.random.default_rng(2)


def values(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 4), (4, 5)),
        ((4,), (4,)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((2, 3, 4), (4, 5)),
        ((3, 4), (2, 4, 5)),
        ((2, 1, 3, 4), (6, 4, 5)),
        ((4,), (2, 4, 5)),
        ((2, 3, 4), (4,)),
    ],
)
def test_matmul(a, b):
    x, y = values(*a), values(*b)
    agree(Tensor(x) @ Tensor(y), x @ y, rtol=1e-5)
    agree(x @ Tensor(y), x @ y, rtol=1e-5)
    agree(Tensor(y).matmul(Tensor(x), reverse=True), x @ y, rtol=1e-5)


def test_matmul_of_other_types():
    x, y = RANDOM.integers(-100, 100, (3, 70)).astype(np.int8), RANDOM.integers(-100, 100, (70, 2)).astype(np.int8)
    agree(Tensor(x) @ Tensor(y), x.astype(np.int32) @ y.astype(np.int32))
    x, y = values(3, 70).astype(np.float16), values(70, 2).astype(np.float16)
    agree(Tensor(x) @ Tensor(y), (x.astype(np.float32) @ y.astype(np.float32)).astype(np.float16), rtol=1e-3)
    assert Tensor(x).dot(Tensor(y), dtype=dtypes.float32).dtype is dtypes.float32


def test_a_product_that_does_not_fit():
    with pytest.raises(ValueError, match=r"\(3, 4\) @ \(3, 4\): 4 is not 3"):
        Tensor(values(3, 4)) @ Tensor(values(3, 4))
    with pytest.raises(ValueError, match="needs axes"):
        Tensor(values(3, 4)) @ Tensor(2.0)


def test_linear():
    x, w, b = values(2, 3, 4), values(4, 5), values(5)
    agree(Tensor(x).linear(Tensor(w), Tensor(b)), x @ w + b, rtol=1e-5)
    agree(Tensor(x).linear(Tensor(w[:, 0])), x * w[:, 0], rtol=1e-5)


@pytest.mark.parametrize(
    "formula",
    [
        "ij,jk->ik",
        "ij,jk",
        "bij,bjk->bik",
        "ij->ji",
        "ij->",
        "ij",
        "ii->i",
        "ii",
        "i,j->ij",
        "i,i->",
        "bhqd,bhkd->bhqk",
        "...ij,...jk->...ik",
        "...i->...",
        "i...j,jk->k...i",
        "ij,jk,kl->il",
        "bcii->cb",
        "ij , jk -> k i",
    ],
)
def test_einsum(formula):
    inputs = formula.replace(" ", "").split("->")[0].split(",")
    sizes = dict.fromkeys("ijklbhqcd", 3) | {"j": 4, "k": 5}
    operands = [
        values(*[n for axis in term.replace("...", ".") for n in ([2, 3] if axis == "." else [sizes[axis]])])
        for term in inputs
    ]
    got = Tensor.einsum(formula, *[Tensor(a) for a in operands])
    agree(got, np.einsum(formula, *operands), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("formula", "words"),
    [("ij,jk->ik", "both 4 and 5"), ("ij->ij", "names 1"), ("i,jk", "doesn't fit"), ("ij,ij->z", "output")],
)
def test_a_formula_that_does_not_fit(formula, words):
    with pytest.raises(ValueError, match=words):
        Tensor.einsum(formula, Tensor(values(3, 4)), Tensor(values(5, 4) if "k" in formula else values(3, 4)))


def test_attention():
    q, k, v = values(2, 3, 4, 8), values(2, 3, 5, 8), values(2, 3, 5, 6)

    def attention(mask):
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(8) + mask
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return (weights / weights.sum(-1, keepdims=True) @ v).astype(np.float32)

    tensors = Tensor(q), Tensor(k), Tensor(v)
    triangle = np.tril(np.ones((4, 5), bool))
    agree(tensors[0].scaled_dot_product_attention(*tensors[1:]), attention(0), rtol=1e-4)
    causal = attention(np.where(triangle, 0, -np.inf))
    agree(tensors[0].scaled_dot_product_attention(*tensors[1:], is_causal=True), causal, rtol=1e-4)
    agree(tensors[0].scaled_dot_product_attention(*tensors[1:], attn_mask=Tensor(triangle)), causal, rtol=1e-4)
    added = values(4, 5)
    agree(tensors[0].scaled_dot_product_attention(*tensors[1:], attn_mask=Tensor(added)), attention(added), rtol=1e-4)


def test_layernorm():
    x = values(3, 4, 5)
    for axis in (-1, (1, 2)):
        expected = (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-5)
        agree(Tensor(x).layernorm(axis), expected, rtol=1e-4)


def test_batchnorm():
    x, w, b, mean, invstd = values(2, 3, 4, 4), values(3), values(3), values(3), values(3)
    spread = (slice(None), None, None)
    expected = (x - mean[spread]) * invstd[spread] * w[spread] + b[spread]
    agree(Tensor(x).batchnorm(Tensor(w), Tensor(b), Tensor(mean), Tensor(invstd)), expected, rtol=1e-5)
    agree(Tensor(x).batchnorm(None, None, Tensor(mean), Tensor(invstd)), (x - mean[spread]) * invstd[spread], rtol=1e-5)


def attended(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def test_attention_with_grouped_heads():
    random = np.random.default_rng(4)
    q, k, v = random.normal(size=(2, 6, 5, 4)), random.normal(size=(2, 3, 7, 4)), random.normal(size=(2, 3, 7, 4))
    expected = attended(q, k.repeat(2, 1), v.repeat(2, 1))
    agree(Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v), enable_gqa=True), expected, rtol=1e-9)
    mask = random.random((5, 7)) > 0.4
    mask[:, 0] = True
    masked = Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v), Tensor(mask), enable_gqa=True)
    agree(masked, attended(q, k.repeat(2, 1), v.repeat(2, 1), mask), rtol=1e-9)


def test_causal_attention_takes_no_mask():
    x = Tensor.ones(3, 2)
    with pytest.raises(ValueError, match="not both"):
        x.scaled_dot_product_attention(x, x, Tensor.ones(3, 3), is_causal=True)


def test_attention_that_drops_out():
    x, values = Tensor.zeros(1, 400), np.eye(400, dtype=np.float32)
    keys = Tensor.zeros(400, 400)
    assert np.allclose(x.scaled_dot_product_attention(keys, Tensor(values), dropout_p=0.5).numpy(), 1 / 400)
    with Tensor.train():
        kept = x.scaled_dot_product_attention(keys, Tensor(values), dropout_p=0.5).numpy()
    assert set(np.unique(kept.round(6)).tolist()) == {0.0, np.float32(0.005).round(6).item()}
    assert 100 < (kept > 0).sum() < 300


def test_types_to_sum_in():
    x = np.array([300.0, 300], np.float16)
    agree(Tensor.einsum("i,i->", Tensor(x), Tensor(x), dtype=dtypes.float32), np.float32(180000))
    agree(Tensor.einsum("i,i->i", Tensor(x), Tensor([1.0, 2]), dtype="float"), np.float32([300, 600]))
    agree(Tensor([[1.5, 2]]).linear(Tensor([[1.0], [2]]), Tensor([0.25]), dtype="half"), np.float16([[5.75]]))
