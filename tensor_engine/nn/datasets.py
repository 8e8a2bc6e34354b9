"""Data sets, read from local files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from tensor_engine.helpers import prod
from tensor_engine.tensor import Tensor

IMAGES, LABELS = 0x803, 0x801  # the first word of the file: unsigned bytes in three axes, or in one


def mnist(folder: str | Path, device: str | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Handwritten digits: (images, labels) to train with and (images, labels) to test with.

    Images: uint8 (count, 1, 28, 28). Labels: uint8 (count,). `folder` holds the four IDX files under their usual
    names, packed (.gz) or not: http://yann.lecun.com/exdb/mnist. Raises FileNotFoundError, and ValueError for files
    that are none of these.
    """
    parts = [("train-images-idx3-ubyte", IMAGES), ("train-labels-idx1-ubyte", LABELS)]
    parts += [("t10k-images-idx3-ubyte", IMAGES), ("t10k-labels-idx1-ubyte", LABELS)]
    train, train_labels, test, test_labels = (
        Tensor(read_idx(Path(folder), name, kind), device) for name, kind in parts
    )
    return train.unsqueeze(1), train_labels, test.unsqueeze(1), test_labels


def read_idx(folder: Path, name: str, kind: int) -> np.ndarray:
    """The array of an IDX file: a word for the kind, a word for the size of each axis, and the bytes."""
    packed = folder / f"{name}.gz"
    data = gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / name).read_bytes()
    start = 4 * (1 + (kind & 0xFF))
    found, *sizes = np.frombuffer(data[:start], ">u4").tolist() if len(data) >= start else [0]
    if found != kind or len(data) != start + prod(sizes):
        raise ValueError(f"{folder / name} is no IDX file of kind {kind:#x}, or is damaged")
    return np.frombuffer(data, np.uint8, offset=start).reshape(sizes)
