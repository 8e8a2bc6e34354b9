"""Neural networks: layers, which hold tensors and are called with one. Their names are those of PyTorch's layers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tensor_engine.dtype import dtypes
from tensor_engine.helpers import make_tuple, prod
from tensor_engine.nn import datasets, optim, state
from tensor_engine.tensor import Tensor

Sizes = int | Sequence[int]

__all__ = [
    "BatchNorm", "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d", "Embedding",
    "GRUCell", "GroupNorm", "InstanceNorm", "LSTMCell", "LayerNorm", "LayerNorm2d", "Linear", "RMSNorm", "datasets",
    "optim", "state",
]  # fmt: skip


def spread(*shape: int, fan_in: int) -> Tensor:
    """What weights start as: even over ± 1 / sqrt(fan in)."""
    bound = 1 / math.sqrt(fan_in)
    return Tensor.uniform(*shape, low=-bound, high=bound)


def buffer(tensor: Tensor) -> Tensor:
    """A tensor that is a part of a layer, but that no optimiser updates."""
    tensor.is_param = False
    return tensor


# ---- products ---------------------------------------------------------------------------------------------------


class Linear:
    """(…, in_features) → (…, out_features): x @ weight.T + bias."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True):
        self.weight = spread(out_features, in_features, fan_in=in_features)
        self.bias = spread(out_features, fan_in=in_features) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return x.linear(self.weight.T, self.bias)


class Conv2d:
    """(batch, in_channels, …) → (batch, out_channels, …): see `Tensor.conv2d`.

    `kernel_size` has a number an axis, one number stands for two. `padding` "same" keeps the sizes (stride 1 only).
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
    ):
        kernel = make_tuple(kernel_size, 2)
        fan_in = in_channels // groups * prod(kernel)
        self.stride, self.dilation, self.groups = stride, dilation, groups
        self.padding = same_padding(kernel, stride, dilation) if isinstance(padding, str) else padding
        self.weight = spread(out_channels, in_channels // groups, *kernel, fan_in=fan_in)
        self.bias = spread(out_channels, fan_in=fan_in) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return x.conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding)


class Conv1d(Conv2d):
    """(batch, in_channels, length) → (batch, out_channels, length)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, *args: object, **kwargs: object):
        super().__init__(in_channels, out_channels, (kernel_size,), *args, **kwargs)  # type: ignore[arg-type]


def same_padding(kernel: Sequence[int], stride: Sizes, dilation: Sizes) -> list[int]:
    """The counts, last axis first, that keep the sizes; an odd one more behind."""
    if set(make_tuple(stride, len(kernel))) != {1}:
        raise ValueError(f"padding 'same' keeps the sizes, which a stride of {stride} doesn't")
    totals = [d * (k - 1) for k, d in zip(kernel, make_tuple(dilation, len(kernel)))]
    return [count for total in totals[::-1] for count in (total // 2, total - total // 2)]


class ConvTranspose2d:
    """(batch, in_channels, …) → (batch, out_channels, …): see `Tensor.conv_transpose2d`."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
    ):
        kernel = make_tuple(kernel_size, 2)
        fan_in = out_channels // groups * prod(kernel)
        self.stride, self.padding, self.output_padding = stride, padding, output_padding
        self.dilation, self.groups = dilation, groups
        self.weight = spread(in_channels, out_channels // groups, *kernel, fan_in=fan_in)
        self.bias = spread(out_channels, fan_in=fan_in) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return x.conv_transpose2d(
            self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding, self.output_padding
        )


class ConvTranspose1d(ConvTranspose2d):
    """(batch, in_channels, length) → (batch, out_channels, length)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, *args: object, **kwargs: object):
        super().__init__(in_channels, out_channels, (kernel_size,), *args, **kwargs)  # type: ignore[arg-type]


class Embedding:
    """Integers (…) → (…, embed_size): the rows of a table. What is outside the table gives zeros."""

    def __init__(self, vocab_size: int, embed_size: int):
        self.weight = Tensor.glorot_uniform(vocab_size, embed_size)

    def __call__(self, idx: Tensor) -> Tensor:
        return self.weight[idx]


# ---- norms ------------------------------------------------------------------------------------------------------


class BatchNorm:
    """(batch, size, …) with mean 0 and variance 1 in each channel: of the batch while `Tensor.training`, else of all
    batches so far (Ioffe and Szegedy, "Batch normalization", 2015).

    While training, the running mean and variance are assigned; `Optimizer.step` computes them along.
    """

    def __init__(
        self,
        sz: int,
        eps: float = 1e-5,
        affine: bool = True,
        track_running_stats: bool = True,
        momentum: float = 0.1,
    ):
        self.eps, self.momentum, self.track_running_stats = eps, momentum, track_running_stats
        self.weight = Tensor.ones(sz) if affine else None
        self.bias = Tensor.zeros(sz) if affine else None
        if track_running_stats:
            self.running_mean, self.running_var = buffer(Tensor.zeros(sz)), buffer(Tensor.ones(sz))
            self.num_batches_tracked = buffer(Tensor.zeros(dtype=dtypes.int64))

    def __call__(self, x: Tensor) -> Tensor:
        mean, var = self.calc_stats(x)
        return x.batchnorm(self.weight, self.bias, mean, (var + self.eps).rsqrt())

    def calc_stats(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and the variance to use for each channel."""
        if self.track_running_stats and not Tensor.training:
            return self.running_mean, self.running_var
        axes = [axis for axis in range(x.ndim) if axis != 1]
        mean, var = x.mean(axes), x.var(axes, correction=0)
        if self.track_running_stats:
            self.track(mean.detach(), var.detach(), x.numel() // x.shape[1])
        return mean, var

    def track(self, mean: Tensor, var: Tensor, count: int) -> None:
        """Take a batch's statistics into those of all; `count` values were seen of each channel."""
        unbiased = var * (count / max(count - 1, 1))
        for running, seen in ((self.running_mean, mean), (self.running_var, unbiased)):
            running.assign((running * (1 - self.momentum) + seen * self.momentum).cast(running.dtype))
        self.num_batches_tracked.assign(self.num_batches_tracked + 1)


BatchNorm2d = BatchNorm3d = BatchNorm


class GroupNorm:
    """(batch, num_channels, …) with mean 0 and variance 1 in each group of channels of each sample (Wu and He, 2018).
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True):
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Tensor.ones(num_channels) if affine else None
        self.bias = Tensor.zeros(num_channels) if affine else None

    def __call__(self, x: Tensor) -> Tensor:
        grouped = x.reshape(x.shape[0], self.num_groups, -1).layernorm(eps=self.eps).reshape(x.shape)
        if self.weight is None or self.bias is None:
            return grouped
        shape = (1, -1) + (1,) * (x.ndim - 2)
        return grouped * self.weight.reshape(shape) + self.bias.reshape(shape)


class InstanceNorm(GroupNorm):
    """(batch, num_features, …) with mean 0 and variance 1 in each channel of each sample (Ulyanov et al., 2016)."""

    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True):
        super().__init__(num_features, num_features, eps, affine)


class LayerNorm:
    """(…, normalized_shape) with mean 0 and variance 1 over these last axes (Ba et al., 2016)."""

    def __init__(self, normalized_shape: Sizes, eps: float = 1e-5, elementwise_affine: bool = True):
        self.normalized_shape = make_tuple(normalized_shape, 1)
        self.axes = tuple(range(-len(self.normalized_shape), 0))
        self.eps = eps
        self.weight = Tensor.ones(self.normalized_shape) if elementwise_affine else None
        self.bias = Tensor.zeros(self.normalized_shape) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        if x.shape[-len(self.axes) :] != self.normalized_shape:
            raise ValueError(f"a LayerNorm of {self.normalized_shape} doesn't fit {x.shape}")
        centred = x.layernorm(self.axes, self.eps)
        return centred if self.weight is None or self.bias is None else centred * self.weight + self.bias


class LayerNorm2d(LayerNorm):
    """(batch, channels, height, width), normalised over the channels."""

    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class RMSNorm:
    """(…, dim) with mean square 1 over the last axis (Zhang and Sennrich, 2019). Half is squared in float32."""

    def __init__(self, dim: int, eps: float = 1e-6, elementwise_affine: bool = True):
        self.eps = eps
        self.weight = Tensor.ones(dim) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        wide = x.float()
        normal = (wide * (wide.square().mean(-1, keepdim=True) + self.eps).rsqrt()).cast(x.dtype)
        return normal if self.weight is None else normal * self.weight


# ---- cells with memory ------------------------------------------------------------------------------------------


class RecurrentCell:
    """The weights of a cell that has `gates` gates: for the input, and for the state before."""

    def __init__(self, gates: int, input_size: int, hidden_size: int, bias: bool):
        self.hidden_size = hidden_size
        rows = gates * hidden_size
        self.weight_ih = spread(rows, input_size, fan_in=hidden_size)
        self.weight_hh = spread(rows, hidden_size, fan_in=hidden_size)
        self.bias_ih = spread(rows, fan_in=hidden_size) if bias else None
        self.bias_hh = spread(rows, fan_in=hidden_size) if bias else None

    def from_input(self, x: Tensor) -> Tensor:
        """The gates' share of the input."""
        return x.linear(self.weight_ih.T, self.bias_ih)

    def from_hidden(self, hidden: Tensor) -> Tensor:
        """The gates' share of the state before."""
        return hidden.linear(self.weight_hh.T, self.bias_hh)

    def no_state(self, x: Tensor) -> Tensor:
        """The state at first."""
        return Tensor.zeros(x.shape[0], self.hidden_size, dtype=x.dtype, device=x.device)


class LSTMCell(RecurrentCell):
    """One step: x (batch, input_size), (hidden, cell) → (hidden, cell), each (batch, hidden_size).

    Hochreiter and Schmidhuber, "Long short-term memory", 1997, with a forget gate.
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True):
        super().__init__(4, input_size, hidden_size, bias)

    def __call__(self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        hidden, cell = hc if hc is not None else (self.no_state(x), self.no_state(x))
        take, keep, new, show = (self.from_input(x) + self.from_hidden(hidden)).chunk(4, dim=1)
        cell = keep.sigmoid() * cell + take.sigmoid() * new.tanh()
        return (show.sigmoid() * cell.tanh()).contiguous(), cell.contiguous()


class GRUCell(RecurrentCell):
    """One step: x (batch, input_size), hidden → hidden, (batch, hidden_size).

    Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014; the reset gate after the product.
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True):
        super().__init__(3, input_size, hidden_size, bias)

    def __call__(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        hidden = self.no_state(x) if hidden is None else hidden
        reset, keep, new = self.from_input(x).chunk(3, dim=1)
        reset_before, keep_before, new_before = self.from_hidden(hidden).chunk(3, dim=1)
        candidate = (new + (reset + reset_before).sigmoid() * new_before).tanh()
        share = (keep + keep_before).sigmoid()
        return (share * hidden + (1 - share) * candidate).contiguous()
