"""The example: the engine, plain Python and numpy choose the same words, with float weights and with packed ones."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tensor_engine import Tensor, TinyJit, dtypes

PATH = Path(__file__).resolve().parents[2] / "examples" / "bag_of_words.py"
WORDS, WIDTH = 64, 16


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bag_of_words", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def models(example: ModuleType) -> list[Any]:
    """A model, its bias not zero, and its copy in 4 bits."""
    Tensor.manual_seed(1)
    model = example.BagOfWords(WORDS, WIDTH)
    model.bias = Tensor.normal(WORDS, std=0.1).realize()
    return [model, example.Quantized(model)]


def contexts_of(batch: int, count: int) -> np.ndarray:
    return np.random.default_rng(batch).integers(0, WORDS, (batch, count)).astype(np.int32)


def margin(weights: Any, contexts: np.ndarray, words: np.ndarray) -> float:
    """By how much the chosen words' logits are ahead of all others', in doubles: the least of all choices."""
    embedding, output, bias = (np.array(w, np.float64) for w in weights)
    total, least = embedding[contexts].sum(1), np.inf
    for step, chosen in enumerate(words.T):
        logits = total / (contexts.shape[1] + step) @ output.T + bias
        two = np.sort(logits, axis=1)[:, -2:]
        assert (logits[np.arange(len(chosen)), chosen] == two[:, 1]).all()
        least = min(least, (two[:, 1] - two[:, 0]).min())
        total = total + embedding[chosen]
    return least


@pytest.mark.parametrize("kind", [0, 1], ids=["float", "4 bits"])
@pytest.mark.parametrize("batch", [1, 64, pytest.param(4096, marks=pytest.mark.slow)])
def test_plain_python_chooses_the_same_words(example: ModuleType, models: list[Any], kind: int, batch: int) -> None:
    model, weights = models[kind], models[kind].weights()
    contexts = contexts_of(batch, example.CONTEXT)
    fast = TinyJit(model.extend)
    for _ in range(3):
        words = fast(Tensor(contexts)).tolist()
    assert words == example.extend_python(weights, contexts.tolist())
    arrays = tuple(np.array(w, np.float32) for w in weights)
    assert words == example.extend_numpy(arrays, contexts).tolist()
    assert margin(weights, contexts, np.array(words)) > 1e-6, "rounding decides: choose other contexts"


def test_no_kernel_stores_or_reads_unpacked_weights(example: ModuleType, models: list[Any]) -> None:
    model, quantized = models
    fast = TinyJit(quantized.extend)
    for _ in range(2):
        fast(Tensor(contexts_of(5, example.CONTEXT)))
    memory = {buffer for launch in fast.captured.launches for buffer in launch.buffers}
    matrices = {(b.dtype, b.size) for b in memory if b.size >= WORDS * WIDTH // 2}
    assert matrices == {(dtypes.uint8, WORDS * WIDTH // 2)}
    written = {id(launch.buffers[0]) for launch in fast.captured.launches}
    assert all(b.dtype is not dtypes.uint8 for b in memory if id(b) in written)
    floats = model.embedding.nbytes() + model.output.nbytes()
    assert sum(matrix.nbytes for matrix in quantized.packed) == floats // 8 + 2 * 2 * WORDS * WIDTH // example.GROUP


def test_packed_weights_are_unpacked_alike(example: ModuleType, models: list[Any]) -> None:
    for packed, matrix in zip(models[1].packed, models[1].matrices()):
        assert example.unpack(packed) == matrix.tolist()


def test_training_learns_the_text(example: ModuleType) -> None:
    Tensor.manual_seed(3)
    text = example.TEXT.split()
    vocabulary = sorted(set(text))
    model = example.BagOfWords(len(vocabulary))
    losses = example.train(model, [vocabulary.index(word) for word in text], steps=60)
    assert losses[0] > 3.5 and losses[-1] < 0.5
    context = [vocabulary.index(word) for word in text[: example.CONTEXT]]
    assert vocabulary[model.extend(Tensor([context])).tolist()[0][0]] == text[example.CONTEXT]
