"""Fourier transforms, as matrix products."""

import numpy as np

from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.nn.onnx.value import numpy_dtype_of, to_tensor
from tensor_engine.tensor import Tensor


@operator("DFT")
def dft_by_attribute(
    x: Tensor,
    dft_length: np.ndarray | None = None,
    *,
    axis: int = 1,
    inverse: int = 0,
    onesided: int = 0,
) -> Tensor:
    return dft(x, dft_length, np.array(axis), inverse=inverse, onesided=onesided)


@operator("DFT", since=20)
def dft(
    x: Tensor,
    dft_length: np.ndarray | None = None,
    axis: np.ndarray | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Tensor:
    """The discrete transform along an axis of [..., real] or [..., (real, imaginary)].

    `onesided` leaves out the half of a spectrum that mirrors the other; its inverse is the real signal.
    """
    along = -2 if axis is None else int(axis.item())
    signal = x.transpose(along, -2)
    natural = 2 * (signal.shape[-2] - 1) if inverse and onesided else signal.shape[-2]
    length = natural if dft_length is None else int(dft_length.item())
    return _transform(signal, length, bool(inverse), bool(onesided)).transpose(along, -2)


@operator("STFT")
def stft(
    signal: Tensor,
    frame_step: np.ndarray,
    window: Tensor | None = None,
    frame_length: np.ndarray | None = None,
    *,
    onesided: int = 1,
) -> Tensor:
    """[batch, frames, bins, 2]: the transform of each frame of the signal, weighted by the window."""
    length = _frame_length(window, frame_length)
    frames = signal.transpose(1, 2).windows((length,), int(frame_step.item())).permute(0, 2, 3, 1)
    if window is not None:
        frames = frames * window.reshape(-1, 1)
    return _transform(frames, length, False, bool(onesided))


def _frame_length(window: Tensor | None, frame_length: np.ndarray | None) -> int:
    if frame_length is not None:
        return int(frame_length.item())
    if window is None:
        raise OnnxError("it has neither a window nor a frame length")
    return window.shape[0]


def _transform(x: Tensor, length: int, inverse: bool, onesided: bool) -> Tensor:
    """Along the last axis but one, cut or padded with zeros to the length."""
    bins = length // 2 + 1
    given = min(x.shape[-2], bins if inverse and onesided else length)
    made = bins if onesided and not inverse else length
    angles = (
        (1 if inverse else -1) * 2 * np.pi * np.outer(np.arange(given), np.arange(made)) / length
    )
    weights = np.full((given, 1), 1 / length if inverse else 1.0)
    if inverse and onesided:
        weights[1 : (length + 1) // 2] *= 2  # these bins stand for their mirror images, too
    kind = numpy_dtype_of(x.dtype)
    cos, sin = (to_tensor((f(angles) * weights).astype(kind), x.device) for f in (np.cos, np.sin))
    real = _part(x, given, 0)
    if x.shape[-1] == 1:
        return (real @ cos).stack(real @ sin, dim=-1)
    imaginary = _part(x, given, 1)
    new_real = real @ cos - imaginary @ sin
    if inverse and onesided:
        return new_real.unsqueeze(-1)
    return new_real.stack(real @ sin + imaginary @ cos, dim=-1)


def _part(x: Tensor, count: int, number: int) -> Tensor:
    """The real (0) or imaginary (1) part of the first elements, as rows of a matrix."""
    return x[..., :count, number]
