"""Normalisation over a batch, a layer, a group, an instance, or neighbouring channels."""

from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.nn.onnx.value import dtype_of
from tensor_engine.tensor import Tensor


def _per_channel(vector: Tensor, ndim: int) -> Tensor:
    """[channels] in the shape that broadcasts over [batch, channels, ...]."""
    return vector.reshape(-1, *[1] * (ndim - 2))


def _standardised(
    x: Tensor, axes: tuple[int, ...], epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean) / deviation over the axes, the mean, and 1 / deviation."""
    mean = x.mean(axes, keepdim=True)
    centred = x - mean
    inverse = ((centred * centred).mean(axes, keepdim=True) + epsilon).rsqrt()
    return centred * inverse, mean, inverse


@operator("ChannelAffine", domain="tensor_engine")
def channel_affine(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """x * scale + shift with a number for each channel: what is left of a BatchNormalization with constants."""
    return x * _per_channel(scale, x.ndim) + _per_channel(shift, x.ndim)


@operator("BatchNormalization")
def batch_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    *,
    epsilon: float = 1e-5,
    is_test: int = 1,
    momentum: float = 0.9,
    spatial: int = 1,
    training_mode: int = 0,
) -> tuple[Tensor, ...]:
    """Ioffe and Szegedy, "Batch Normalization", 2015. In training mode also the running mean and variance."""
    if not training_mode:
        factor = scale * (variance + epsilon).rsqrt()
        return (channel_affine(x, factor, bias - mean * factor).cast(x.dtype),)
    axes = (0, *range(2, x.ndim))
    batch_mean = x.mean(axes)
    batch_variance = (x - _per_channel(batch_mean, x.ndim)).square().mean(axes)
    (y,) = batch_normalization(x, scale, bias, batch_mean, batch_variance, epsilon=epsilon)
    running_mean = mean * momentum + batch_mean * (1 - momentum)
    return y, running_mean, variance * momentum + batch_variance * (1 - momentum)


@operator("LayerNormalization")
def layer_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    """Over all dimensions from the axis on, computed in the type `stash_type`; also the mean and 1 / deviation."""
    axes = tuple(range(axis % x.ndim, x.ndim))
    standard, mean, inverse = _standardised(x.cast(dtype_of(stash_type)), axes, epsilon)
    scaled = standard.cast(x.dtype) * scale
    return scaled if bias is None else scaled + bias, mean, inverse


@operator("RMSNormalization")
def rms_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    """Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019."""
    axes = tuple(range(axis % x.ndim, x.ndim))
    wide = x.cast(dtype_of(stash_type))
    inverse = ((wide * wide).mean(axes, keepdim=True) + epsilon).rsqrt()
    return (wide * inverse).cast(x.dtype) * scale


@operator("InstanceNormalization")
def instance_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5
) -> Tensor:
    standard, _, _ = _standardised(x, tuple(range(2, x.ndim)), epsilon)
    return channel_affine(standard, scale, bias)


@operator("GroupNormalization")
def group_normalization_by_group(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5, num_groups: int
) -> Tensor:
    """Until opset 20: scale and bias hold a number for each group."""
    members = x.shape[1] // num_groups
    wide = [v.reshape(-1, 1).expand(num_groups, members).reshape(-1) for v in (scale, bias)]
    return group_normalization(x, *wide, epsilon=epsilon, num_groups=num_groups)


@operator("GroupNormalization", since=21)
def group_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    *,
    epsilon: float = 1e-5,
    num_groups: int,
    stash_type: int = 1,
) -> Tensor:
    """Wu and He, "Group Normalization", 2018."""
    groups = x.reshape(x.shape[0], num_groups, -1).cast(dtype_of(stash_type))
    standard, _, _ = _standardised(groups, (2,), epsilon)
    return channel_affine(standard.cast(x.dtype).reshape(x.shape), scale, bias)


@operator("MeanVarianceNormalization")
def mean_variance_normalization(x: Tensor, *, axes: list[int] | None = None) -> Tensor:
    centred = x - x.mean(tuple(axes or (0, 2, 3)), keepdim=True)
    deviation = (centred * centred).mean(tuple(axes or (0, 2, 3)), keepdim=True).sqrt()
    return centred / (deviation + 1e-9)


@operator("LpNormalization")
def lp_normalization(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    """Divided by the p-norm along the axis; what has norm 0 stays 0."""
    norm = x.abs().sum(axis, keepdim=True) if p == 1 else (x * x).sum(axis, keepdim=True).sqrt()
    return (norm == 0).where(0, x / norm)


@operator("LRN")
def local_response_normalization(
    x: Tensor, *, alpha: float = 0.0001, beta: float = 0.75, bias: float = 1.0, size: int
) -> Tensor:
    """Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks", 2012, section 3.3."""
    before, after = (size - 1) // 2, size // 2
    channels = x.shape[1]
    squares = (x * x).pad([(0, 0), (before, after)] + [(0, 0)] * (x.ndim - 2))
    total = sum((squares[:, i : i + channels] for i in range(1, size)), squares[:, :channels])
    return x / (bias + alpha / size * total).pow(beta)
