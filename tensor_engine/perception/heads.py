"""What a detector's outputs mean, a class a family.

Every head answers two questions with Tensor operations: how sure it is of each class at each of its
N anchors (`scores`), and where the box of a chosen anchor is (`boxes`). Boxes are decoded for the
chosen anchors only. Boxes are x1, y1, x2, y2 in pixels of the network's input.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from tensor_engine import Tensor, dtypes
from tensor_engine.perception.card import ModelCard
from tensor_engine.perception.errors import ModelError

Shape = Sequence[int]
Shapes = Sequence[Shape]


class Head(ABC):
    """A family's decoder for outputs of known shapes."""

    def __init__(self, card: ModelCard, shapes: Shapes, height: int, width: int):
        """`height` and `width` are those of the network's input. Raises ModelError if the shapes don't fit."""
        self.card, self.shapes, self.height, self.width = card, shapes, height, width
        if not self.fits(shapes, height, width, card.strides):
            raise ModelError(f"the outputs {show(shapes)} are not those of a {card.head} head: it has {self.wanted}")

    wanted: str  # the outputs of this family, for people
    classes: int  # how many classes the head tells apart

    @staticmethod
    @abstractmethod
    def fits(shapes: Shapes, height: int, width: int, strides: Sequence[int]) -> bool:
        """True if outputs of these shapes can be this family's."""

    @abstractmethod
    def class_scores(self, outputs: list[Tensor]) -> Tensor:
        """The network's class scores [N, C]."""

    @abstractmethod
    def boxes(self, outputs: list[Tensor], anchors: Tensor) -> Tensor:
        """The boxes [K, 4] of the chosen anchors, int32 [K]."""

    def scores(self, outputs: list[Tensor]) -> Tensor:
        """Class scores [N, C] from 0 to 1."""
        scores = self.class_scores(outputs).cast(dtypes.float32)
        return scores.sigmoid() if self.card.activation == "sigmoid" else scores


class Grid:
    """The cells of feature maps, coarser and coarser, in row order: column, row and stride of each, as [N, 1 or 2]."""

    def __init__(self, height: int, width: int, strides: Sequence[int]):
        cells = np.concatenate([grid_cells(height, width, stride) for stride in strides])
        self.cell = Tensor(np.ascontiguousarray(cells[:, :2], np.float32))
        self.stride = Tensor(np.ascontiguousarray(cells[:, 2:], np.float32))


def grid_cells(height: int, width: int, stride: int) -> np.ndarray:
    """(column, row, stride) of every cell of one feature map, row by row."""
    rows, columns = np.mgrid[: height // stride, : width // stride]
    return np.stack([columns.ravel(), rows.ravel(), np.full(rows.size, stride)], axis=1)


def cell_counts(height: int, width: int, strides: Sequence[int]) -> list[int]:
    """How many cells each feature map has."""
    return [(height // stride) * (width // stride) for stride in strides]


def from_centre(centre: Tensor, extent: Tensor) -> Tensor:
    """Boxes from centres [K, 2] and sizes [K, 2]."""
    half = extent * 0.5
    return (centre - half).cat(centre + half, dim=1)


class NanoDet(Head):
    """Pairs of outputs, one a stride: class scores [1, n, C], and distances to the four sides [1,
    n, 4 * bins].

    A distance is the expectation of a softmax over its bins, in strides, from the centre of the
    cell (Generalized Focal Loss, arXiv 2006.04388, section 3.2).
    """

    wanted = "for each stride class scores [1, n, C], then distances [1, n, 4*bins]"

    def __init__(self, card: ModelCard, shapes: Shapes, height: int, width: int):
        super().__init__(card, shapes, height, width)
        self.classes = shapes[0][2]
        self.bins = shapes[1][2] // 4
        self.grid = Grid(height, width, card.strides)

    @staticmethod
    def fits(shapes: Shapes, height: int, width: int, strides: Sequence[int]) -> bool:
        if len(shapes) != 2 * len(strides) or any(len(s) != 3 or s[0] != 1 for s in shapes):
            return False
        scores, bins = shapes[0::2], shapes[1::2]
        counts = cell_counts(height, width, strides)
        widths_agree = len({s[2] for s in scores}) == len({b[2] for b in bins}) == 1
        rows_agree = [s[1] for s in scores] == [b[1] for b in bins] == counts
        return widths_agree and rows_agree and bins[0][2] % 4 == 0

    def class_scores(self, outputs: list[Tensor]) -> Tensor:
        return Tensor.cat(*outputs[0::2], dim=1)[0]

    def boxes(self, outputs: list[Tensor], anchors: Tensor) -> Tensor:
        logits = Tensor.cat(*outputs[1::2], dim=1)[0][anchors]
        bins = logits.reshape(-1, 4, self.bins).softmax(-1)
        steps = Tensor.arange(self.bins, dtype=dtypes.float32)
        stride = self.grid.stride[anchors]
        side = (bins * steps).sum(-1) * stride
        centre = (self.grid.cell[anchors] + 0.5) * stride
        return (centre - side[:, :2]).cat(centre + side[:, 2:], dim=1)


class YoloV5(Head):
    """One output [1, N, 5 + C], fully decoded: centre, size, objectness, class scores; three anchors a cell."""

    wanted = "one output [1, N, 5 + C] with three rows a cell"
    rows_per_cell = 3

    def __init__(self, card: ModelCard, shapes: Shapes, height: int, width: int):
        super().__init__(card, shapes, height, width)
        self.classes = shapes[0][2] - 5

    @classmethod
    def fits(cls, shapes: Shapes, height: int, width: int, strides: Sequence[int]) -> bool:
        rows = cls.rows_per_cell * sum(cell_counts(height, width, strides))
        return len(shapes) == 1 and tuple(shapes[0][:2]) == (1, rows) and len(shapes[0]) == 3 and shapes[0][2] > 5

    def class_scores(self, outputs: list[Tensor]) -> Tensor:
        rows = outputs[0][0]
        return rows[:, 4:5] * rows[:, 5:]

    def boxes(self, outputs: list[Tensor], anchors: Tensor) -> Tensor:
        rows = outputs[0][0][:, :4][anchors]
        return from_centre(rows[:, :2], rows[:, 2:])


class Yolox(YoloV5):
    """One output [1, N, 5 + C], one row a cell: offset from the cell and log of the size, both in strides."""

    wanted = "one output [1, N, 5 + C] with one row a cell"
    rows_per_cell = 1

    def __init__(self, card: ModelCard, shapes: Shapes, height: int, width: int):
        super().__init__(card, shapes, height, width)
        self.grid = Grid(height, width, card.strides)

    def boxes(self, outputs: list[Tensor], anchors: Tensor) -> Tensor:
        rows = outputs[0][0][:, :4][anchors]
        stride = self.grid.stride[anchors]
        centre = (rows[:, :2] + self.grid.cell[anchors]) * stride
        return from_centre(centre, rows[:, 2:].exp() * stride)


class YoloV8(Head):
    """One output [1, 4 + C, N], fully decoded: centre, size, class scores. Also YOLO11 and others of its makers."""

    wanted = "one output [1, 4 + C, N] with one column a cell"

    def __init__(self, card: ModelCard, shapes: Shapes, height: int, width: int):
        super().__init__(card, shapes, height, width)
        self.classes = shapes[0][1] - 4

    @staticmethod
    def fits(shapes: Shapes, height: int, width: int, strides: Sequence[int]) -> bool:
        columns = sum(cell_counts(height, width, strides))
        return len(shapes) == 1 and len(shapes[0]) == 3 and shapes[0][::2] == (1, columns) and shapes[0][1] > 4

    def class_scores(self, outputs: list[Tensor]) -> Tensor:
        return outputs[0][0][4:].transpose(0, 1)

    def boxes(self, outputs: list[Tensor], anchors: Tensor) -> Tensor:
        rows = outputs[0][0][:4].transpose(0, 1)[anchors]
        return from_centre(rows[:, :2], rows[:, 2:])


class Ssd(Head):
    """Boxes [1, N, 4], and either scores [1, N, C] or labels [1, N] and scores [1, N]. The card
    tells the units.

    With `background`, class 0 is no class: columns count from 1, and so do labels. A count of the
    boxes ([1]), which some exporters add, is not needed: rows behind it have score 0.
    """

    wanted = "boxes [1, N, 4] and scores [1, N, C], or boxes [1, N, 4], labels [1, N] and scores [1, N]"

    def __init__(self, card: ModelCard, shapes: Shapes, height: int, width: int):
        super().__init__(card, shapes, height, width)
        self.box_output = next(i for i, s in enumerate(shapes) if len(s) == 3 and s[2] == 4)
        self.others = [i for i, s in enumerate(shapes) if i != self.box_output and len(s) > 1]
        self.first = 1 if card.background else 0
        self.classes = self.count_classes()

    def count_classes(self) -> int:
        if self.is_listed:
            if not self.card.labels:
                raise ModelError("the outputs list class numbers: name the classes in the card (`labels: …`)")
            return len(self.card.labels)
        return self.shapes[self.others[0]][2] - self.first

    @property
    def is_listed(self) -> bool:
        """True if the network has already chosen a class for each box."""
        return len(self.others) == 2

    @staticmethod
    def fits(shapes: Shapes, height: int, width: int, strides: Sequence[int]) -> bool:
        tables = [tuple(s) for s in shapes if len(s) > 1]
        boxes = next((s for s in tables if len(s) == 3 and s[0] == 1 and s[2] == 4), None)
        if boxes is None:
            return False
        tables.remove(boxes)
        listed = tables == [boxes[:2], boxes[:2]]
        return listed or (len(tables) == 1 and len(tables[0]) == 3 and tables[0][:2] == boxes[:2])

    def class_scores(self, outputs: list[Tensor]) -> Tensor:
        if not self.is_listed:
            return outputs[self.others[0]][0][:, self.first :]
        labels, scores = (outputs[i][0].unsqueeze(1) for i in self.others)
        numbers = Tensor.arange(self.first, self.first + self.classes, dtype=dtypes.float32)
        return (labels.cast(dtypes.float32) == numbers).where(scores, 0.0)

    def boxes(self, outputs: list[Tensor], anchors: Tensor) -> Tensor:
        rows = outputs[self.box_output][0][anchors].cast(dtypes.float32)
        if self.card.box_unit == "image":
            rows = rows * Tensor(self.axis_sizes(), dtype=dtypes.float32)
        if self.card.box_format == "cxcywh":
            return from_centre(rows[:, :2], rows[:, 2:])
        if self.card.box_format == "yxyx":
            return Tensor.cat(rows[:, 1:2], rows[:, 0:1], rows[:, 3:4], rows[:, 2:3], dim=1)
        return rows

    def axis_sizes(self) -> list[int]:
        sizes = [self.height, self.width] if self.card.box_format == "yxyx" else [self.width, self.height]
        return sizes * 2


class CenterNet(Head):
    """Heatmap [1, C, h, w], size [1, 2, h, w], offset [1, 2, h, w] in cells, x before y (arXiv
    1904.07850).

    A peak is a cell that no other of its 3x3 neighbourhood beats. More outputs (landmarks) are not
    read.
    """

    wanted = "a heatmap [1, C, h, w], sizes [1, 2, h, w] and offsets [1, 2, h, w]"

    def __init__(self, card: ModelCard, shapes: Shapes, height: int, width: int):
        super().__init__(card, shapes, height, width)
        self.classes = shapes[0][1]
        self.stride = card.strides[0]
        self.grid = Grid(height, width, card.strides)

    @staticmethod
    def fits(shapes: Shapes, height: int, width: int, strides: Sequence[int]) -> bool:
        cells = (height // strides[0], width // strides[0])
        maps_agree = all(len(s) == 4 and s[0] == 1 and tuple(s[2:]) == cells for s in shapes)
        return len(shapes) >= 3 and maps_agree and shapes[1][1] == shapes[2][1] == 2

    def class_scores(self, outputs: list[Tensor]) -> Tensor:
        heat = outputs[0]
        peak = heat.max_pool2d(kernel_size=(3, 3), stride=1, padding=1) == heat
        return peak.where(heat, -np.inf if self.card.activation == "sigmoid" else 0.0).flatten(2)[0].transpose(0, 1)

    def boxes(self, outputs: list[Tensor], anchors: Tensor) -> Tensor:
        extent, offset = (rows_of_map(output)[anchors] for output in outputs[1:3])
        centre = (self.grid.cell[anchors] + offset) * self.stride
        return from_centre(centre, extent * self.stride)


class CenterFace(CenterNet):
    """Like CenterNet with y before x, the logarithm of the size, and offsets from the middle of the
    cell.

    The face detector of arXiv 1911.03599.
    """

    def boxes(self, outputs: list[Tensor], anchors: Tensor) -> Tensor:
        extent, offset = (rows_of_map(output)[anchors].flip(1) for output in outputs[1:3])
        centre = (self.grid.cell[anchors] + offset + 0.5) * self.stride
        return from_centre(centre, extent.exp() * self.stride)


def rows_of_map(output: Tensor) -> Tensor:
    """A map [1, D, h, w] as rows [h * w, D]."""
    return output[0].flatten(1).transpose(0, 1)


FAMILIES: dict[str, type[Head]] = {
    "nanodet": NanoDet,
    "yolov5": YoloV5,
    "yolov8": YoloV8,
    "yolox": Yolox,
    "ssd": Ssd,
    "centernet": CenterNet,
    "centerface": CenterFace,
}

# Families whose outputs leave nothing open. The others look alike, or need units that only a card can tell.
TOLD_APART = ("nanodet", "yolov8", "yolov5")
USUAL_STRIDES = (8, 16, 32)


def tell_head(shapes: Shapes, height: int, width: int, strides: Sequence[int] = USUAL_STRIDES) -> str:
    """The family that outputs of these shapes belong to. Raises ModelError if that takes a card."""
    fitting = [name for name in TOLD_APART if FAMILIES[name].fits(shapes, height, width, strides)]
    if len(fitting) == 1:
        return fitting[0]
    known = ", ".join(FAMILIES)
    raise ModelError(f"the outputs {show(shapes)} don't tell the kind of head: name it in a card (`head:` {known})")


def show(shapes: Shapes) -> str:
    """Shapes as text."""
    return ", ".join(str(list(shape)) for shape in shapes)
