"""The street detector's network: an hourglass of plain convolutions that ends at a quarter of the image's size.

Its outputs are those of CenterNet (Zhou et al., "Objects as points", arXiv 1904.07850): a heatmap with a hill on the
centre of each object, and around each centre the object's size and the way to its centre.
"""

from __future__ import annotations

from tensor_engine import Tensor, nn

STRIDE = 4  # pixels a cell of the outputs
CLASSES = ("person", "car")
WIDTHS = (8, 16, 32, 64)  # channels at a half, a quarter, an eighth, a sixteenth of the size
RARE = -4.6  # what the heatmap starts from: a sigmoid of 0.01


class Block:
    """Convolution, batch norm and, unless it is a part of a sum, relu."""

    def __init__(self, in_channels: int, out_channels: int, kernel: int = 3, stride: int = 1, relu: bool = True):
        self.conv = nn.Conv2d(in_channels, out_channels, kernel, stride, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm(out_channels)
        self.relu = relu

    def __call__(self, x: Tensor) -> Tensor:
        x = self.norm(self.conv(x))
        return x.relu() if self.relu else x


class Residual:
    """Two blocks, whose result is added to what came in (He et al., arXiv 1512.03385)."""

    def __init__(self, channels: int):
        self.first, self.second = Block(channels, channels), Block(channels, channels, relu=False)

    def __call__(self, x: Tensor) -> Tensor:
        return (x + self.second(self.first(x))).relu()


class Up:
    """A coarse map, made twice as large, is added to a finer one of before; a block mixes them."""

    def __init__(self, coarse: int, fine: int):
        self.lateral, self.mix = Block(coarse, fine, kernel=1, relu=False), Block(fine, fine)

    def __call__(self, coarse: Tensor, fine: Tensor) -> Tensor:
        return self.mix((fine + twice_as_large(self.lateral(coarse))).relu())


def twice_as_large(x: Tensor) -> Tensor:
    """Each element of the last two axes as a square of four."""
    return x.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)


class StreetNet:
    """RGB images float32 [B, 3, H, W] from 0 to 1, H and W multiples of 16 → heat [B, C, H/4, W/4] before its sigmoid,
    size [B, 2, H/4, W/4] and offset [B, 2, H/4, W/4], both x before y, in cells.
    """

    def __init__(self, classes: int = len(CLASSES), widths: tuple[int, int, int, int] = WIDTHS):
        half, quarter, eighth, sixteenth = widths
        self.half, self.quarter = Block(3, half, stride=2), Block(half, quarter, stride=2)
        self.eighth, self.mix = Block(quarter, eighth, stride=2), Block(eighth, eighth)
        self.sixteenth, self.residual = Block(eighth, sixteenth, stride=2), Residual(sixteenth)
        self.up_to_eighth, self.up_to_quarter = Up(sixteenth, eighth), Up(eighth, quarter)
        self.heat, self.size, self.offset = (nn.Conv2d(quarter, channels, 1) for channels in (classes, 2, 2))
        self.heat.bias = Tensor.full((classes,), RARE)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        quarter = self.quarter(self.half(x))
        eighth = self.mix(self.eighth(quarter))
        sixteenth = self.residual(self.sixteenth(eighth))
        mixed = self.up_to_quarter(self.up_to_eighth(sixteenth, eighth), quarter)
        return self.heat(mixed), self.size(mixed), self.offset(mixed)
