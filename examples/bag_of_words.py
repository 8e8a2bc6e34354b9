"""A bag-of-words language model, and what it costs in this engine, in plain Python and in numpy.

A context is a bag: the model takes the mean of its words' embeddings, and a linear layer gives every word a logit. The
five most likely words are chosen one after the other, each joins the bag. All five steps are one lazy graph, and the
captured call one native call: no word is looked at before the fifth is chosen.

    python examples/bag_of_words.py     # trains, continues some sentences, and prints the table
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from tensor_engine import Tensor, TinyJit
from tensor_engine.nn.optim import Adam
from tensor_engine.nn.quantize import OFFSET, Int4

TEXT = """
the robot rolls out of its dock at dawn and counts the cars along the wet street
a cyclist crosses in front of it so the robot waits until the lane is free again
two people with a dog stand near the old bridge and the camera sees all three of them
when rain falls on the lens every box around a person gets small and the score drops
at night the robot returns to its dock while the street sleeps and the lane is free
"""
WIDTH, CONTEXT, STEPS, GROUP = 16, 4, 5, 16
BATCHES = [1, 4, 16, 64, 256, 1024, 4096]

Weights = tuple[list[list[float]], list[list[float]], list[float]]


# ---- the model --------------------------------------------------------------------------------------------------


class BagOfWords:
    """Logits [batch, words] for bags [batch, words] of how often each word is there."""

    def __init__(self, words: int, width: int = WIDTH):
        self.words = words
        self.embedding = Tensor.normal(words, width, std=0.5)
        self.output = Tensor.normal(words, width, std=0.5)
        self.bias = Tensor.zeros(words).contiguous()

    def matrices(self) -> tuple[Tensor, Tensor]:
        """The embedding and the output layer, both [words, width]."""
        return self.embedding, self.output

    def logits(self, bag: Tensor, count: int) -> Tensor:
        """`count`: how many words are in each bag."""
        embedding, output = self.matrices()
        return (bag @ embedding / count) @ output.T + self.bias

    def extend(self, contexts: Tensor) -> Tensor:
        """The five words that follow, int32 [batch, 5], for contexts, int32 [batch, count]."""
        bag = contexts.one_hot(self.words).sum(1)
        chosen: list[Tensor] = []
        for count in range(contexts.shape[1], contexts.shape[1] + STEPS):
            word = self.logits(bag, count).argmax(1)
            bag = bag + word.one_hot(self.words)
            chosen.append(word)
        return Tensor.stack(*chosen, dim=1)

    def weights(self) -> Weights:
        """All parameters as lists."""
        embedding, output = self.matrices()
        return embedding.tolist(), output.tolist(), self.bias.tolist()


class Quantized(BagOfWords):
    """A copy of a model with two weights in a byte."""

    def __init__(self, model: BagOfWords):
        self.words, self.bias = model.words, model.bias
        self.packed = Int4(model.embedding, GROUP), Int4(model.output, GROUP)

    def matrices(self) -> tuple[Tensor, Tensor]:
        embedding, output = self.packed
        return embedding.dequantize(), output.dequantize()

    def weights(self) -> Weights:
        embedding, output = map(unpack, self.packed)
        return embedding, output, self.bias.tolist()


def train(model: BagOfWords, text: list[int], steps: int = 150) -> list[float]:
    """Learn which word follows each four of the text; the losses."""
    contexts = Tensor([text[i : i + CONTEXT] for i in range(len(text) - CONTEXT)])
    bags, targets = contexts.one_hot(model.words).sum(1).realize(), Tensor(text[CONTEXT:])
    optimizer = Adam([model.embedding, model.output, model.bias], lr=0.05)

    @TinyJit
    def step() -> Tensor:
        optimizer.zero_grad()
        loss = model.logits(bags, CONTEXT).sparse_categorical_crossentropy(targets).backward()
        optimizer.step()
        return loss

    with Tensor.train():
        return [step().item() for _ in range(steps)]


# ---- the same in plain Python and in numpy ----------------------------------------------------------------------


def unpack(packed: Int4) -> list[list[float]]:
    """The weights of a packed matrix, in plain Python."""
    rows = []
    for octets, scales in zip(packed.packed.tolist(), packed.scales.tolist()):
        numbers = [half - OFFSET for octet in octets for half in (octet & 15, octet >> 4)]
        rows.append([number * scales[place // GROUP] for place, number in enumerate(numbers)])
    return rows


def extend_python(weights: Weights, contexts: list[list[int]]) -> list[list[int]]:
    """What `extend` does, with lists and loops."""
    embedding, output, bias = weights
    words = range(len(bias))
    extended = []
    for context in contexts:
        total = [sum(column) for column in zip(*[embedding[word] for word in context])]
        chosen: list[int] = []
        for count in range(len(context), len(context) + STEPS):
            mean = [value / count for value in total]
            logits = [sum([m * w for m, w in zip(mean, row)]) + b for row, b in zip(output, bias)]
            word = max(words, key=logits.__getitem__)
            total = [value + more for value, more in zip(total, embedding[word])]
            chosen.append(word)
        extended.append(chosen)
    return extended


def extend_numpy(weights: tuple[np.ndarray, ...], contexts: np.ndarray) -> np.ndarray:
    """What `extend` does, in numpy."""
    embedding, output, bias = weights
    total = embedding[contexts].sum(1)
    chosen = []
    for count in range(contexts.shape[1], contexts.shape[1] + STEPS):
        word = (total / count @ output.T + bias).argmax(1)
        total = total + embedding[word]
        chosen.append(word)
    return np.stack(chosen, 1)


# ---- the table --------------------------------------------------------------------------------------------------


def median_ms(calls: list[Callable[[], object]], seconds: float = 2.0) -> list[float]:
    """The median time of each call; they are made in turn, at least twice and as often as the seconds allow."""
    times: list[list[float]] = []
    end = time.perf_counter() + seconds
    while len(times) < 2 or time.perf_counter() < end:
        times.append([seconds_of(call) for call in calls])
    return [statistics.median(column) * 1e3 for column in zip(*times)]


def seconds_of(call: Callable[[], object], enough: float = 0.005) -> float:
    """How long a call takes: the mean of as many in a row as take a few milliseconds."""
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < enough:
        call()
        count += 1
    return (time.perf_counter() - start) / count


def compare(model: BagOfWords, quantized: Quantized, contexts: np.ndarray) -> list[float]:
    """Milliseconds of each way, from the contexts to a list of words, if all agree on the words."""
    weights, lists, tensor = model.weights(), contexts.tolist(), Tensor(contexts).realize()
    arrays = tuple(np.array(w, np.float32) for w in weights)
    fast, packed = TinyJit(model.extend), TinyJit(quantized.extend)
    for _ in range(3):
        words, packed_words = fast(tensor).tolist(), packed(tensor).tolist()
    assert words == extend_python(weights, lists)
    assert packed_words == extend_python(quantized.weights(), lists)
    return median_ms([
        lambda: fast(Tensor(lists)).tolist(),
        lambda: fast(tensor).tolist(),
        lambda: packed(tensor).tolist(),
        lambda: extend_python(weights, lists),
        lambda: extend_numpy(arrays, contexts).tolist(),
    ])  # fmt: skip


def print_table(model: BagOfWords, quantized: Quantized) -> None:
    """Who is fastest from which batch on."""
    print("        captured: from a list,  from a Tensor,  and in 4 bits   plain Python      numpy")
    for batch in BATCHES:
        contexts = np.random.default_rng(batch).integers(0, model.words, (batch, CONTEXT)).astype(np.int32)
        whole, inside, packed, python, in_numpy = compare(model, quantized, contexts)
        print(f"{batch:5} {whole:20.3f} ms {inside:12.3f} ms {packed:11.3f} ms {python:11.3f} ms {in_numpy:7.3f} ms")


def main() -> None:
    """Train, continue, compare."""
    Tensor.manual_seed(7)
    text = TEXT.split()
    vocabulary = sorted(set(text))
    model = BagOfWords(len(vocabulary))
    losses = train(model, [vocabulary.index(word) for word in text])
    quantized = Quantized(model)
    floats = model.embedding.nbytes() + model.output.nbytes()
    print(f"{len(vocabulary)} words, embedding {WIDTH}, context {CONTEXT}, {STEPS} steps; ", end="")
    print(f"loss {losses[0]:.2f} → {losses[-1]:.2f}")
    print(f"matrices: {floats} bytes, in 4 bits {sum(m.nbytes for m in quantized.packed)} bytes\n")
    for start in ("the robot rolls out", "a cyclist crosses in", "at night the robot"):
        context = Tensor([[vocabulary.index(word) for word in start.split()]])
        for name, kind in (("", model), ("4 bits", quantized)):
            words = [vocabulary[word] for word in kind.extend(context).tolist()[0]]
            print(f"{name:6}  {start} … {' '.join(words)}")
    print()
    print_table(model, quantized)


if __name__ == "__main__":
    main()
