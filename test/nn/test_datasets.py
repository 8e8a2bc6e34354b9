"""Reading data sets from files that the tests write."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

from tensor_engine import dtypes
from tensor_engine.nn.datasets import mnist

NAMES = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]


def write(folder, packed):
    random = np.random.default_rng(0)
    arrays = [random.integers(0, 256, shape, np.uint8) for shape in [(5, 28, 28), (5,), (2, 28, 28), (2,)]]
    for name, array in zip(NAMES, arrays):
        header = struct.pack(f">{1 + array.ndim}I", 0x800 + array.ndim, *array.shape)
        data = header + array.tobytes()
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(data))
        else:
            (folder / name).write_bytes(data)
    return arrays


@pytest.mark.parametrize("packed", [True, False])
def test_mnist(tmp_path, packed):
    arrays = write(tmp_path, packed)
    tensors = mnist(tmp_path)
    assert [t.shape for t in tensors] == [(5, 1, 28, 28), (5,), (2, 1, 28, 28), (2,)]
    for tensor, array in zip(tensors, arrays):
        assert tensor.dtype is dtypes.uint8
        np.testing.assert_array_equal(tensor.numpy(), array.reshape(tensor.shape))


def test_what_is_not_there_or_damaged(tmp_path):
    with pytest.raises(FileNotFoundError, match="train-images"):
        mnist(tmp_path)
    write(tmp_path, packed=False)
    path = tmp_path / NAMES[1]
    for damaged in (path.read_bytes()[:-1], b"\0\0\x08\x03" + path.read_bytes()[4:], b""):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="train-labels.* is no IDX file"):
            mnist(tmp_path)
