"""What the pipeline says about one object."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Detection:
    """One object: its label, how sure the network is (0 to 1), and its box.

    The centre and the size are in pixels of the source image, x to the right, y down. `class_id` is
    the label's name, or the class number as text where there are no labels.
    """

    class_id: str
    score: float
    center_x: float
    center_y: float
    size_x: float
    size_y: float

    @property
    def corners(self) -> tuple[float, float, float, float]:
        """x1, y1, x2, y2 in source pixels."""
        half_x, half_y = self.size_x / 2, self.size_y / 2
        return (
            self.center_x - half_x,
            self.center_y - half_y,
            self.center_x + half_x,
            self.center_y + half_y,
        )
