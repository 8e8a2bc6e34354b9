"""A network on its own, captured: what bench measures and explain lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tensor_engine.engine.jit import TinyJit
from tensor_engine.perception.card import find_card, read_card
from tensor_engine.perception.network import Network
from tensor_engine.tensor import Tensor


def open_network(model: Path) -> Network:
    """The network of a model file, in the size that its card gives. Raises ModelError."""
    card_path = find_card(model)
    card = read_card(card_path) if card_path else {}
    return Network(model, card.get("input_size"), card.get("layout"))


def random_input(network: Network) -> Tensor:
    """The same noise every time."""
    values = np.random.default_rng(0).standard_normal(network.input_shape, np.float32)
    return Tensor(values).cast(network.dtype).realize()


def captured(network: Network) -> TinyJit[list[Tensor]]:
    """From the network's input in memory to its outputs in memory; the first two calls compile and capture."""
    return TinyJit(lambda given: list(network.runner({network.input: given}).values()))
