"""Sliding windows as ONNX describes them, in the form that the engine's convolutions and pools take."""

from collections.abc import Sequence

Pads = list[tuple[int, int]]  # before and after, for each spatial dimension


def paired(pads: list[int] | None, count: int) -> Pads:
    """ONNX lists what is added before each dimension, then what is added after each; nothing means none."""
    return list(zip(pads[:count], pads[count:])) if pads else [(0, 0)] * count


def flat(pads: Pads) -> tuple[int, ...]:
    """As the engine's windows take them: the last dimension first, before and after."""
    return tuple(amount for pair in reversed(pads) for amount in pair)


def halves(total: int, auto_pad: str) -> tuple[int, int]:
    """The two sides' shares; SAME_UPPER gives the odd one to the end."""
    small, large = total // 2, total - total // 2
    return (small, large) if auto_pad == "SAME_UPPER" else (large, small)


class Window:
    """The size, steps and padding of a window that slides over the spatial dimensions of [batch, channels, ...]."""

    def __init__(
        self,
        sizes: tuple[int, ...],
        kernel: Sequence[int],
        strides: list[int] | None,
        dilations: list[int] | None,
        auto_pad: str,
        pads: list[int] | None,
    ) -> None:
        count = len(kernel)
        self.kernel = tuple(kernel)
        self.strides = tuple(strides or [1] * count)
        self.dilations = tuple(dilations or [1] * count)
        self.pads = self._pads(sizes, auto_pad, pads)

    def _pads(self, sizes: tuple[int, ...], auto_pad: str, pads: list[int] | None) -> Pads:
        """Explicit, or by rule: VALID has none, SAME_* give ceil(size / stride) places."""
        if not auto_pad.startswith("SAME"):
            return paired(None if auto_pad == "VALID" else pads, len(self.kernel))
        reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations)]
        total = [
            max((-(-n // s) - 1) * s + r - n, 0) for n, s, r in zip(sizes, self.strides, reach)
        ]
        return [halves(t, auto_pad) for t in total]
