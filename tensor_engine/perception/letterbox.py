"""Fitting a source image into a network's input: geometry, and the pixels as Tensor operations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensor_engine import Tensor, dtypes
from tensor_engine.perception.card import ModelCard
from tensor_engine.perception.frame import CHANNELS, PIXEL_BYTES


@dataclass(frozen=True)
class Layout:
    """How a raw image lies in its buffer. Two frames of one layout can share a captured program."""

    height: int
    width: int
    step: int
    encoding: str

    @property
    def size(self) -> int:
        """Bytes of the whole buffer."""
        return self.height * self.step


@dataclass(frozen=True)
class Letterbox:
    """The largest resize that keeps the aspect ratio, centred in the network's input.

    All in pixels: the source, the canvas (the network's input), the resized image and its place on
    the canvas.
    """

    source_height: int
    source_width: int
    canvas_height: int
    canvas_width: int

    @property
    def scale(self) -> float:
        return min(self.canvas_height / self.source_height, self.canvas_width / self.source_width)

    @property
    def height(self) -> int:
        return max(1, round(self.source_height * self.scale))

    @property
    def width(self) -> int:
        return max(1, round(self.source_width * self.scale))

    @property
    def top(self) -> int:
        return (self.canvas_height - self.height) // 2

    @property
    def left(self) -> int:
        return (self.canvas_width - self.width) // 2

    @property
    def padding(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Rows above and below, columns left and right."""
        below = self.canvas_height - self.height - self.top
        right = self.canvas_width - self.width - self.left
        return (self.top, below), (self.left, right)

    def to_source(self, boxes: Tensor) -> Tensor:
        """Boxes [K, 4] as x1, y1, x2, y2 of the canvas, in source pixels and clipped to the image.

        The sizes of the resized image are rounded, so the two axes have their own exact ratios.
        """
        limit = [self.source_width, self.source_height] * 2
        ratio = [self.source_width / self.width, self.source_height / self.height] * 2
        corner = [self.left, self.top] * 2
        place = Tensor(corner, dtype=dtypes.float32), Tensor(ratio, dtype=dtypes.float32)
        moved = (boxes - place[0]) * place[1]
        return moved.maximum(0.0).minimum(Tensor(limit, dtype=dtypes.float32))


@dataclass(frozen=True)
class Taps:
    """For each sample of a resized axis: its two source neighbours, and the weight of the second."""

    low: np.ndarray  # int32 [n]
    high: np.ndarray  # int32 [n]
    weight: np.ndarray  # float32 [n]

    @staticmethod
    def bilinear(source: int, resized: int) -> Taps:
        """Half-pixel centres, edges repeated: sample i lies at (i + 0.5) * source / resized - 0.5."""
        position = (np.arange(resized) + 0.5) * (source / resized) - 0.5
        position = np.clip(position, 0, source - 1)
        low = np.floor(position).astype(np.int32)
        high = np.minimum(low + 1, source - 1).astype(np.int32)
        return Taps(low, high, (position - low).astype(np.float32))


def resize(buffer: Tensor, layout: Layout, box: Letterbox, color: str) -> Tensor:
    """The image in a uint8 buffer [height * step], resized: float32 [3, height, width] of the
    letterbox, 0 to 255.

    Bilinear without rounding, first down the rows, whose bytes are neighbours in memory, then along
    them. Choosing the columns also converts the encoding to `color` (rgb or bgr): a channel is a
    byte offset within the pixel.
    """
    rows, columns = Taps.bilinear(layout.height, box.height), Taps.bilinear(layout.width, box.width)
    pixel = PIXEL_BYTES[layout.encoding]
    image = buffer.reshape(layout.height, layout.step)[:, : layout.width * pixel]
    upper, lower = (image[Tensor(places)].cast(dtypes.float32) for places in (rows.low, rows.high))
    blended = (upper + (lower - upper) * Tensor(rows.weight).reshape(-1, 1)).contiguous()

    order = CHANNELS[layout.encoding][:: 1 if color == "rgb" else -1]
    offset = np.array(order, np.int32).reshape(3, 1)
    left, right = (blended[:, Tensor(places * pixel + offset)] for places in (columns.low, columns.high))
    return (left + (right - left) * Tensor(columns.weight)).permute(1, 0, 2)


def network_input(buffer: Tensor, layout: Layout, box: Letterbox, card: ModelCard) -> Tensor:
    """What the network sees: float32 [1, 3, canvas height, canvas width], padded and normalised as the card says."""
    image = resize(buffer, layout, box, card.color)
    canvas = image.pad(((0, 0), *box.padding), value=card.pad)
    mean, std = (Tensor(list(v), dtype=dtypes.float32).reshape(3, 1, 1) for v in (card.mean, card.std))
    return ((canvas - mean) / std).unsqueeze(0)
