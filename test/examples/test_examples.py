"""The examples do what they say: what a reader sees when running them."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


def run(example: str, *arguments: str) -> list[str]:
    """The lines that an example prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(ROOT / "examples" / example), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=1500)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_gradient():
    """z = sum of y[j] * x[j, k]: dz/dx[j, k] is y[j], and dz/dy[j] the sum of row j of x."""
    assert run("gradient.py") == [
        "dz/dx [[2.0, 2.0, 2.0], [0.0, 0.0, 0.0], [-2.0, -2.0, -2.0]]",
        "dz/dy [[1.0, 1.0, 1.0]]",
    ]


def test_xor():
    assert run("xor.py")[-1] == "answers: [0, 1, 1, 0]"


# ---- digits, where there is no MNIST: three by five dots, near the middle, in some strength and width, among noise

GLYPHS = [
    "### #.# #.# #.# ###", ".#. ##. .#. .#. ###", "### ..# ### #.. ###", "### ..# ### ..# ###", "#.# #.# ### ..# ..#",
    "### #.. ### ..# ###", "### #.. ### #.# ###", "### ..# .#. .#. .#.", "### #.# ### #.# ###", "### #.# ### ..# ###",
]  # fmt: skip


def draw(digit: int, random: np.random.Generator) -> np.ndarray:
    """One image, uint8 (28, 28)."""
    dots = np.array([[dot == "#" for dot in row] for row in GLYPHS[digit].split()])
    strokes = np.kron(dots, np.ones((4, random.integers(4, 6))))
    image = random.random((28, 28)) * 60
    top, left = random.integers(2, 7, 2)
    image[top : top + strokes.shape[0], left : left + strokes.shape[1]] += strokes * random.integers(120, 190)
    return image.astype(np.uint8)


def write_digits(folder: Path, name: str, count: int, seed: int) -> None:
    """A pair of IDX files, as MNIST's."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, count).astype(np.uint8)
    images = np.stack([draw(digit, random) for digit in labels])
    for kind, magic, array in (("images-idx3", 0x803, images), ("labels-idx1", 0x801, labels)):
        header = struct.pack(f">{1 + array.ndim}I", magic, *array.shape)
        (folder / f"{name}-{kind}-ubyte.gz").write_bytes(gzip.compress(header + array.tobytes()))


def accuracy(lines: list[str]) -> float:
    words = lines[-1].split()
    assert (words[0], words[2]) == ("accuracy:", "%")
    return float(words[1])


def test_digits(tmp_path: Path):
    """What was learned from some drawn digits is right of others."""
    write_digits(tmp_path, "train", 2000, seed=0)
    write_digits(tmp_path, "t10k", 300, seed=1)
    assert accuracy(run("mnist.py", str(tmp_path), "--steps", "30", "--batch", "32")) > 90


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.skipif("MNIST" not in os.environ, reason="MNIST= names no folder with the four files of the digits")
def test_mnist():
    """tinygrad's users expect 97.5 % after 70 steps of 512."""
    assert accuracy(run("mnist.py", os.environ["MNIST"])) > 97.5
