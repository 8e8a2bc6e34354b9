"""What the network should say about a picture, and how wrong it is."""

from __future__ import annotations

import numpy as np

from tensor_engine import Tensor

from .network import CLASSES, STRIDE

AROUND = 1  # cells around an object's own that tell its box, too

Outputs = tuple[Tensor, Tensor, Tensor]


def targets(boxes: np.ndarray, classes: np.ndarray, height: int, width: int) -> np.ndarray:
    """What a picture of height x width pixels should give: float32 [C + 5, height / 4, width / 4].

    A heatmap for each class, with a hill of height 1 in each object's cell; around that, size and offset (both x
    before y, in cells) of the nearest object, and how much they matter.
    """
    count = len(CLASSES)
    wanted = np.zeros((count + 5, height // STRIDE, width // STRIDE), np.float32)
    heat, size, offset, weight = wanted[:count], wanted[count : count + 2], wanted[count + 2 : count + 4], wanted[-1]
    for box, kind in zip(boxes / STRIDE, classes):
        extent, centre = box[2:] - box[:2], (box[:2] + box[2:]) / 2
        hill = hill_of(centre, extent, *weight.shape)
        np.maximum(heat[kind], hill, out=heat[kind])
        rows, columns = near(centre, *weight.shape)
        mine = hill[rows, columns] > weight[rows, columns]
        y, x = np.mgrid[rows, columns]
        for part, value in ((size, extent[:, None, None]), (offset, centre[:, None, None] - np.stack([x, y]))):
            np.copyto(part[:, rows, columns], value, where=mine, casting="same_kind")
        np.maximum(weight[rows, columns], hill[rows, columns], out=weight[rows, columns])
    return wanted


def hill_of(centre: np.ndarray, extent: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """[rows, columns]: 1 in the centre's cell, and less the farther away, measured by the object's size."""
    x, y = np.arange(columns) - int(centre[0]), np.arange(rows) - int(centre[1])
    across, down = 0.5 + 0.1 * extent
    return np.exp(-0.5 * (y / down) ** 2)[:, None] * np.exp(-0.5 * (x / across) ** 2)


def near(centre: np.ndarray, rows: int, columns: int) -> tuple[slice, slice]:
    """The cells around a centre."""
    x, y = centre.astype(int)
    return slice(max(0, y - AROUND), min(rows, y + AROUND + 1)), slice(max(0, x - AROUND), min(columns, x + AROUND + 1))


def loss(outputs: Outputs, wanted: Tensor) -> Tensor:
    """How wrong the network is about a batch: at which cells, and about the boxes there, by shares of their sizes."""
    heat, size, offset = outputs
    hills, sizes, offsets, weight = wanted.split([heat.shape[1], 2, 2, 1], dim=1)
    errors = ((size - sizes).abs() + (offset - offsets).abs()) / sizes.maximum(1.0) * weight
    return focal(heat, hills) + errors.sum() / weight.sum().maximum(1.0)


def focal(heat: Tensor, hills: Tensor) -> Tensor:
    """The loss of a heatmap before its sigmoid, an object: little for what is nearly right, and for the hills' slopes.

    "Objects as points" (arXiv 1904.07850), equation 1.
    """
    sure, peaks = heat.sigmoid(), hills == 1
    missed = (1 - sure).square() * (-heat).softplus()
    imagined = (1 - hills).square().square() * sure.square() * heat.softplus()
    return peaks.where(missed, imagined).sum() / peaks.sum().maximum(1)
