"""Every method that has a gradient, as a table: the same function for the engine and for PyTorch, and its arguments.

`NO_GRADIENT` names all other methods, and why. A method that is in neither is an error (test_gradient.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tensor_engine import Tensor, dtypes

try:
    import torch
    import torch.nn.functional as F
except ImportError:  # then nobody calls `theirs`
    torch = F = None  # type: ignore[assignment]

Shape = tuple[int, ...]


class Case(NamedTuple):
    """A function of float arguments, drawn between `low` and `high`; `shapes` None: any shape does.

    Some have no slope to measure: they go through a narrower type, or have a gradient that isn't theirs.
    """

    method: str
    ours: Callable[..., Tensor]
    theirs: Callable[..., Any]
    shapes: tuple[Shape, ...] | None = None
    low: float = -2.0
    high: float = 2.0
    has_slope: bool = True
    approximate: bool = False  # to 2e-7, as `erf` is

    def arguments(self, shapes: tuple[Shape, ...], seed: int) -> list[np.ndarray]:
        random = np.random.default_rng(seed)
        return [random.uniform(self.low, self.high, shape) for shape in shapes]


def same(method: str, low: float = -2.0, high: float = 2.0) -> Case:
    """A method that PyTorch has under the same name."""

    def theirs(x: Any) -> Any:
        return (getattr(F, method, None) or getattr(torch, method))(x)

    return Case(method, lambda x: getattr(x, method)(), theirs, None, low, high)


def fixed(method: str, ours: Callable[..., Tensor], theirs: Callable[..., Any], *shapes: Shape) -> Case:
    """A function of arguments of these shapes."""
    return Case(method, ours, theirs, shapes)


# ---- one element at a time --------------------------------------------------------------------------------------

ELEMENTWISE = [
    *map(same, [
        "abs", "asinh", "celu", "cos", "cosh", "elu", "exp", "exp2", "hardswish", "hardtanh",
        "leaky_relu", "logsigmoid", "mish", "neg", "relu", "relu6", "selu", "sigmoid", "silu", "sin", "sinh",
        "softplus", "softsign", "square", "tan", "tanh", "clone",
    ]),
    same("erf")._replace(approximate=True),
    same("log", 0.2, 3), same("log2", 0.2, 3), same("log10", 0.2, 3), same("log1p", -0.8, 3),
    same("sqrt", 0.2, 3), same("rsqrt", 0.2, 3), same("reciprocal", 0.2, 3),
    same("acosh", 1.2, 3), same("atanh", -0.8, 0.8), same("asin", -0.9, 0.9), same("acos", -0.9, 0.9), same("atan"),
    Case("hardsigmoid", lambda x: x.hardsigmoid(), lambda x: (x / 6 + 0.5).clamp(0, 1)),
    Case("celu", lambda x: x.celu(0.5), lambda x: F.celu(x, 0.5)),
    Case("elu", lambda x: x.elu(0.5), lambda x: F.elu(x, 0.5)),
    Case("leaky_relu", lambda x: x.leaky_relu(-0.5), lambda x: F.leaky_relu(x, -0.5)),
    Case("hardtanh", lambda x: x.hardtanh(-0.5, 0.7), lambda x: F.hardtanh(x, -0.5, 0.7)),
    Case("softplus", lambda x: x.softplus(3), lambda x: F.softplus(x, 3)),
    Case("gelu", lambda x: x.gelu(), lambda x: F.gelu(x, approximate="tanh")),
    Case("gelu", lambda x: x.gelu("none"), lambda x: F.gelu(x), approximate=True),
    Case("quick_gelu", lambda x: x.quick_gelu(), lambda x: x * torch.sigmoid(1.702 * x)),
    Case("polynomial", lambda x: x.polynomial((1.0, -2.0, 0.5)), lambda x: 1 - 2 * x + 0.5 * x * x),
    Case("distance_from_zero", lambda x: x.distance_from_zero(), lambda x: x.abs()),
    Case("unless_positive", lambda x: x.unless_positive(), lambda x: x.clamp(max=0)),
    Case("clamp", lambda x: x.clamp(-0.5, 0.7), lambda x: x.clamp(-0.5, 0.7)),
    Case("pow", lambda x: x**3, lambda x: x**3),
    Case("pow", lambda x: x**-2, lambda x: x**-2, None, 0.3, 2),
    Case("pow", lambda x: x**2.5, lambda x: x**2.5, None, 0.3, 2),
    Case("pow", lambda x: 2.5**x, lambda x: 2.5**x),
    Case("sub", lambda x: 3 - x, lambda x: 3 - x),
    Case("div", lambda x: 3 / x, lambda x: 3 / x, None, 0.3, 2),
    Case("contiguous", lambda x: x.contiguous() * x, lambda x: x * x),
    Case("contiguous_backward", lambda x: (x * x).contiguous_backward(), lambda x: x * x),
    Case("detach", lambda x: x.detach() * x, lambda x: x.detach() * x, has_slope=False),
    Case("to_float", lambda x: x.to_float() * x, lambda x: x * x),
    Case("double", lambda x: x.float().double() * x, lambda x: x.float().double() * x, has_slope=False),
    Case("float", lambda x: x.float().double(), lambda x: x.float().double(), has_slope=False),
    Case("bfloat16", lambda x: x.bfloat16().double(), lambda x: x.bfloat16().double(), has_slope=False),
    Case("half", lambda x: x.half().double(), lambda x: x.half().double(), has_slope=False),
    Case("cast", lambda x: x.cast(dtypes.float32).cast(dtypes.float64), lambda x: x.float().double(), has_slope=False),
    Case("where", lambda x: (x > 0.3).where(x * x, x), lambda x: torch.where(x > 0.3, x * x, x)),
    Case("masked_fill", lambda x: x.masked_fill(x > 0.5, 0.0), lambda x: x.masked_fill(x > 0.5, 0.0)),
    Case("sequential", lambda x: x.sequential([Tensor.exp, Tensor.sin]), lambda x: x.exp().sin()),
]  # fmt: skip

# ---- two operands that broadcast --------------------------------------------------------------------------------

PAIRS = [
    Case("add", lambda x, y: x + y, lambda x, y: x + y),
    Case("sub", lambda x, y: x - y, lambda x, y: x - y),
    Case("mul", lambda x, y: x * y, lambda x, y: x * y),
    Case("div", lambda x, y: x / y, lambda x, y: x / y, None, 0.3, 2),
    Case("maximum", lambda x, y: x.maximum(y), lambda x, y: torch.maximum(x, y)),
    Case("minimum", lambda x, y: x.minimum(y), lambda x, y: torch.minimum(x, y)),
    Case("pow", lambda x, y: x**y, lambda x, y: x**y, None, 0.3, 2),
    Case("mod", lambda x, y: x % y, lambda x, y: x % y, None, 0.3, 2),
    Case("fmod", lambda x, y: x.fmod(y), lambda x, y: torch.fmod(x, y), None, 0.3, 2),
    Case("usum", lambda x, y: x.usum(y, x), lambda x, y: x + y + x),
    Case("uprod", lambda x, y: x.uprod(y, x), lambda x, y: x * y * x),
    Case("lerp", lambda x, y: x.lerp(y, 0.3), lambda x, y: torch.lerp(*torch.broadcast_tensors(x, y), 0.3)),
    Case("copysign", lambda x, y: x.copysign(y) * y, lambda x, y: x.copysign(y) * y),
    Case("logaddexp", lambda x, y: x.logaddexp(y), lambda x, y: x.logaddexp(y)),
    Case("where", lambda x, y: (x > y).where(x, y * 2), lambda x, y: torch.where(x > y, x, y * 2)),
]

# ---- along an axis ----------------------------------------------------------------------------------------------

REDUCTIONS = [
    Case("sum", lambda x: x.sum(-1), lambda x: x.sum(-1)),
    Case("mean", lambda x: x.mean(0, keepdim=True), lambda x: x.mean(0, keepdim=True)),
    Case("prod", lambda x: x.prod(-1), lambda x: x.prod(-1)),
    Case("max", lambda x: x.max(-1), lambda x: x.amax(-1)),
    Case("min", lambda x: x.min(0), lambda x: x.amin(0)),
    Case("var", lambda x: x.var(-1, correction=0), lambda x: x.var(-1, correction=0)),
    Case("logsumexp", lambda x: x.logsumexp(-1), lambda x: x.logsumexp(-1)),
    Case("softmax", lambda x: x.softmax(-1), lambda x: x.softmax(-1)),
    Case("log_softmax", lambda x: x.log_softmax(0), lambda x: x.log_softmax(0)),
    Case("cumsum", lambda x: x.cumsum(-1), lambda x: x.cumsum(-1)),
    Case("cumprod", lambda x: x.cumprod(-1), lambda x: x.cumprod(-1)),
    Case("cummax", lambda x: x.cummax(-1)[0], lambda x: x.cummax(-1)[0]),
    Case("cummin", lambda x: x.cummin(-1)[0], lambda x: x.cummin(-1)[0]),
    Case("logcumsumexp", lambda x: x.logcumsumexp(-1), lambda x: x.logcumsumexp(-1)),
    Case("softmin", lambda x: x.softmin(-1), lambda x: F.softmin(x, -1)),
    Case("normalize", lambda x: x.normalize(dim=0), lambda x: F.normalize(x, dim=0), None, 0.3, 2),
    Case("normalize", lambda x: x.normalize(3, -1), lambda x: F.normalize(x, 3, -1), None, 0.3, 2),
    Case("var_mean", lambda x: x.var_mean(-1, correction=0)[0], lambda x: x.var(-1, correction=0)),
    Case("sort", lambda x: x.sort(-1)[0], lambda x: x.sort(-1)[0]),
    Case("topk", lambda x: x.topk(1, 0, largest=False)[0], lambda x: x.topk(1, 0, largest=False)[0]),
    Case("layernorm", lambda x: x.layernorm(-1), lambda x: F.layer_norm(x, x.shape[-1:])),
]  # fmt: skip

# ---- other arrangements, windows, products ----------------------------------------------------------------------

INDEX = np.array([[0, 2, 2], [1, 1, 0]])
TARGET = np.array([1, 0, 2])
MASK = np.array([[True, False, True], [False, True, True]])
FOUND = np.array([[[[1, 6], [12, 10]]]])
WEIGHT = np.array([0.5, 1.5, 2.0, 0.25])


def scattered(reduce: str | None) -> Case:
    names = {"add": "sum", "multiply": "prod", "max": "amax", "min": "amin"}

    def theirs(x: Any, y: Any) -> Any:
        index = torch.tensor([[0, 2, 1], [1, 3, 0]])
        if reduce is None:
            return x.scatter(1, index, y)
        return x.scatter_reduce(1, index, y, names[reduce])

    return fixed(
        "scatter", lambda x, y: x.scatter(1, Tensor([[0, 2, 1], [1, 3, 0]]), y, reduce), theirs, (2, 4), (2, 3)
    )


def reduced(reduce: str) -> Case:
    index = [[0, 0, 2], [1, 0, 2]]
    return fixed(
        "scatter_reduce", lambda x, y: x.scatter_reduce(1, Tensor(index), y, reduce),
        lambda x, y: x.scatter_reduce(1, torch.tensor(index), y, reduce), (2, 4), (2, 3),
    )  # fmt: skip


def orthogonal(x: Any) -> Any:
    """Two Newton-Schulz steps as in `newton_schulz`, for a wide matrix."""
    x = x / (x.norm() + 1e-7)
    for _ in range(2):
        x = 2 * x - 1.5 * (x @ x.T) @ x + 0.5 * (x @ x.T) @ (x @ x.T) @ x
    return x


def windowed(method: str, shapes: tuple[Shape, ...], **how: Any) -> Case:
    return fixed(
        method, lambda x, *rest: getattr(x, method)(*rest, **how), lambda x, *rest: getattr(F, method)(x, *rest, **how),
        *shapes,
    )  # fmt: skip


def pooled(method: str, **how: Any) -> Case:
    return fixed(
        method, lambda x: getattr(x, method)((2, 3), **how), lambda x: getattr(F, method)(x, (2, 3), **how),
        (1, 2, 5, 6),
    )  # fmt: skip


def padded(mode: str) -> Case:
    return fixed("pad", lambda x: x.pad((3, 1, 1, 2), mode), lambda x: F.pad(x, (3, 1, 1, 2), mode), (1, 2, 3, 4))


def resized(mode: str, align_corners: bool = False) -> Case:
    def theirs(x: Any) -> Any:
        if mode.startswith("nearest"):
            return F.interpolate(x, (5, 3), mode=mode)
        return F.interpolate(x, (5, 3), mode=f"bi{mode}", align_corners=align_corners)

    return fixed("interpolate", lambda x: x.interpolate((5, 3), mode, align_corners), theirs, (1, 1, 3, 4))


def attention(q: Any, k: Any, v: Any, is_causal: bool = False) -> Any:
    """By PyTorch's plain operations: its own attention has no second derivative."""
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    ahead = torch.ones_like(scores).triu(1) > 0
    return (scores.masked_fill(ahead, -torch.inf) if is_causal else scores).softmax(-1) @ v


THREE = (2, 3, 4)
ARRANGED = [
    fixed("std_mean", lambda x: sum(x.std_mean(1)), lambda x: sum(torch.std_mean(x, 1)), (2, 3)),
    fixed("std", lambda x: x.std(1), lambda x: x.std(1), (2, 3)),
    fixed("std", lambda x: x.std(correction=0), lambda x: x.std(correction=0), (2, 3)),
    fixed("reshape", lambda x: x.reshape(4, 3, 2), lambda x: x.reshape(4, 3, 2), THREE),
    fixed("permute", lambda x: x.permute(2, 0, 1), lambda x: x.permute(2, 0, 1), THREE),
    fixed("unpermute", lambda x: x.unpermute((2, 0, 1)), lambda x: x.permute(1, 2, 0), THREE),
    fixed("expand", lambda x: x.unsqueeze(1).expand(2, 5, 3, 4), lambda x: x[:, None].expand(2, 5, 3, 4), THREE),
    fixed("broadcast_to", lambda x: x.broadcast_to((2, 2, 3, 4)), lambda x: x.broadcast_to((2, 2, 3, 4)), THREE),
    fixed("shrink", lambda x: x.shrink([(1, 2), None, (1, 4)]), lambda x: x[1:2, :, 1:4], THREE),
    fixed("pad_zeros", lambda x: x.pad_zeros([(1, 0), (0, 0), (0, 2)]), lambda x: F.pad(x, (0, 2, 0, 0, 1, 0)), THREE),
    fixed("flip", lambda x: x.flip(0, 2), lambda x: x.flip(0, 2), THREE),
    fixed("shear", lambda x: x.shear(2, 0), lambda x: torch.stack([x[k, :, k : k + 3] for k in range(2)]), THREE),
    fixed("transpose", lambda x: x.transpose(0, 2), lambda x: x.transpose(0, 2), THREE),
    fixed("T", lambda x: x.T, lambda x: x.T, (3, 4)),
    fixed("movedim", lambda x: x.movedim(0, 2), lambda x: x.movedim(0, 2), THREE),
    fixed("flatten", lambda x: x.flatten(1), lambda x: x.flatten(1), THREE),
    fixed("unflatten", lambda x: x.unflatten(2, (2, 2)), lambda x: x.unflatten(2, (2, 2)), THREE),
    fixed("squeeze", lambda x: x.squeeze(1), lambda x: x.squeeze(1), (2, 1, 3)),
    fixed("unsqueeze", lambda x: x.unsqueeze(1), lambda x: x.unsqueeze(1), THREE),
    fixed("roll", lambda x: x.roll((1, 2), (0, 2)), lambda x: x.roll((1, 2), (0, 2)), THREE),
    fixed("repeat", lambda x: x.repeat(2, 1, 3), lambda x: x.repeat(2, 1, 3), THREE),
    fixed("repeat_interleave", lambda x: x.repeat_interleave(3, 1), lambda x: x.repeat_interleave(3, 1), THREE),
    fixed("split", lambda x: x.split([1, 2], 1)[1], lambda x: x.split([1, 2], 1)[1], THREE),
    fixed("chunk", lambda x: x.chunk(2, 2)[1], lambda x: x.chunk(2, 2)[1], THREE),
    fixed("unbind", lambda x: x.unbind(1)[2], lambda x: x.unbind(1)[2], THREE),
    fixed("stack", lambda x: x.stack(x * 2, x, dim=1), lambda x: torch.stack([x, x * 2, x], 1), THREE),
    fixed("cat", lambda x, y, z: x.cat(y, z, dim=1), lambda *parts: torch.cat(parts, 1), (2, 1), (2, 2), (2, 0)),
    fixed("meshgrid", lambda x, y: x.meshgrid(y)[0] * x.meshgrid(y)[1], lambda x, y: x[:, None] * y, (2,), (3,)),
    fixed("tril", lambda x: x.tril(), lambda x: x.tril(), THREE),
    fixed("triu", lambda x: x.triu(1), lambda x: x.triu(1), THREE),
    fixed("diagonal", lambda x: x.diagonal(), lambda x: x.diagonal(), (3, 3)),
    fixed("diagonal", lambda x: x.diagonal(1, 0, 2), lambda x: x.diagonal(1, 0, 2), THREE),
    fixed("diag", lambda x: x.diag(), lambda x: x.diag(), (3,)),
    fixed("rearrange", lambda x: x.rearrange("a b (c d) -> (a d) c b", d=2),
          lambda x: x.unflatten(2, (2, 2)).permute(0, 3, 2, 1).flatten(0, 1), (2, 3, 4)),
    fixed("shrink_to", lambda x: x.shrink_to(1, None, 2), lambda x: x[:1, :, :2], THREE),
    fixed("pad_to", lambda x: x.pad_to(3, 5, value=1.0), lambda x: F.pad(x, (0, 2, 0, 1), value=1.0), (2, 3)),
    fixed("masked_select", lambda x: x.masked_select(Tensor(MASK)), lambda x: x.masked_select(torch.tensor(MASK)),
          (2, 3)),
    fixed("__getitem__", lambda x: x[Tensor(MASK)], lambda x: x[torch.tensor(MASK)], (2, 3, 2)),
    fixed("written", lambda x, y: x.written((Tensor([2, 0, 2]), slice(0, 2)), y),
          lambda x, y: torch.cat([torch.cat([y[1:2], x[1:2, :2], y[2:]]), x[:, 2:]], 1), (3, 4), (3, 2)),
    *map(reduced, ["sum", "prod", "mean", "amax", "amin"]),
    fixed("unfold", lambda x: x.unfold(2, 3, 1), lambda x: x.unfold(2, 3, 1), THREE),
    fixed("windows", lambda x: x.windows((3,), 1), lambda x: x.unfold(2, 3, 1), THREE),
    fixed("spread", lambda x: x.spread((2, 1)), lambda x: F.pad(x[:, :, None], (0, 0, 0, 1)).flatten(1, 2)[:, :-1],
          THREE),
    fixed("gather", lambda x: x.gather(1, Tensor(INDEX)), lambda x: x.gather(1, torch.tensor(INDEX)), (2, 4)),
    fixed("take", lambda x: x.take(Tensor([2, 0, 2]), 1), lambda x: x[:, [2, 0, 2]], THREE),
    *map(scattered, [None, "add", "multiply", "max", "min"]),
    fixed("written", lambda x, y: x.written((slice(None), slice(1, 3)), y),
          lambda x, y: torch.cat([x[:, :1], y, x[:, 3:]], 1), (2, 4), (2, 2)),
    fixed("__getitem__", lambda x: x[:, ::2, 1:4:2], lambda x: x[:, ::2, 1:4:2], THREE),
    fixed("__getitem__", lambda x: x[1, None, ..., -2], lambda x: x[1, None, ..., -2], THREE),
    fixed("__getitem__", lambda x: x[:, [0, 2, 2, -1]], lambda x: x[:, [0, 2, 2, -1]], THREE),
    fixed("__getitem__", lambda x: x[Tensor([[0, 1]]), :, Tensor([1, 1])],
          lambda x: x[torch.tensor([[0, 1]]), :, torch.tensor([1, 1])], THREE),
    padded("constant"), padded("reflect"), padded("replicate"), padded("circular"),
    resized("cubic"), resized("cubic", align_corners=True),
    resized("nearest"), resized("nearest-exact"), resized("linear"), resized("linear", align_corners=True),
    pooled("max_pool2d"), pooled("max_pool2d", stride=1), pooled("max_pool2d", padding=1, stride=2),
    pooled("max_pool2d", dilation=2, stride=1), pooled("max_pool2d", ceil_mode=True),
    fixed("max_unpool2d", lambda x: x.max_unpool2d(Tensor(FOUND)), lambda x: F.max_unpool2d(x, torch.tensor(FOUND), 2),
          (1, 1, 2, 2)),
    pooled("avg_pool2d"), pooled("avg_pool2d", stride=1), pooled("avg_pool2d", padding=1, stride=2),
    pooled("avg_pool2d", ceil_mode=True), pooled("avg_pool2d", padding=1, count_include_pad=False),
    windowed("conv2d", ((2, 2, 5, 6), (4, 2, 2, 3), (4,))),
    windowed("conv2d", ((2, 2, 5, 6), (4, 2, 2, 3)), stride=2, padding=(1, 0)),
    windowed("conv2d", ((2, 2, 5, 6), (4, 2, 2, 3)), dilation=(1, 2)),
    windowed("conv2d", ((2, 2, 5, 6), (4, 1, 2, 3)), groups=2, padding=1),
    windowed("conv_transpose2d", ((1, 2, 3, 4), (2, 3, 2, 3), (3,))),
    windowed("conv_transpose2d", ((1, 2, 3, 4), (2, 3, 2, 3)), stride=2, padding=1, output_padding=1),
    windowed("conv_transpose2d", ((1, 2, 3, 4), (2, 3, 2, 3)), groups=2, dilation=2),
    fixed("matmul", lambda x, y: x @ y, lambda x, y: x @ y, (2, 1, 3, 4), (5, 4, 2)),
    fixed("dot", lambda x, y: x.dot(y), lambda x, y: x @ y, (4,), (4,)),
    fixed("contract", lambda x, y: x.contract(y, 1), lambda x, y: x * y @ torch.ones(4, dtype=torch.float64),
          (3, 4), (3, 4)),
    fixed("linear", lambda x, w, b: x.linear(w, b), lambda x, w, b: x @ w + b, (2, 3), (3, 4), (4,)),
    fixed("einsum", lambda x, y: Tensor.einsum("bij,bkj->ik", x, y), lambda x, y: torch.einsum("bij,bkj->ik", x, y),
          (2, 3, 4), (2, 2, 4)),
    *[fixed("scaled_dot_product_attention",
            lambda q, k, v, how=how: q.scaled_dot_product_attention(k, v, **how),
            lambda q, k, v, how=how: attention(q, k, v, **how), *[(1, 2, 3, 4)] * 3)
      for how in ({}, {"is_causal": True})],
    fixed("newton_schulz", lambda x: x.newton_schulz(2, (2, -1.5, 0.5)), orthogonal, (3, 4)),
    fixed("qr", lambda x: x.qr()[1][:3], lambda x: torch.linalg.qr(x)[1], (4, 3)),
    fixed("qr", lambda x: x.qr()[0][:, :3], lambda x: torch.linalg.qr(x)[0], (4, 3)),
    fixed("svd", lambda x: x.svd()[1], lambda x: torch.linalg.svd(x)[1], (4, 3)),
    fixed("batchnorm", lambda x, w, b: x.batchnorm(w, b, x.mean((0, 2)), (x.var((0, 2), correction=0) + 1e-5).rsqrt()),
          lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (3, 2, 4), (2,), (2,)),
    fixed("binary_crossentropy", lambda x, y: x.sigmoid().binary_crossentropy(y.sigmoid()),
          lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), (2, 3), (2, 3)),
    fixed("binary_crossentropy_logits", lambda x, y: x.binary_crossentropy_logits(y.sigmoid(), "sum"),
          lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid(), reduction="sum"), (2, 3), (2, 3)),
    fixed("cross_entropy", lambda x: x.cross_entropy(Tensor(TARGET), label_smoothing=0.1),
          lambda x: F.cross_entropy(x, torch.tensor(TARGET), label_smoothing=0.1), (3, 4)),
    fixed("sparse_categorical_crossentropy", lambda x: x.sparse_categorical_crossentropy(Tensor(TARGET)),
          lambda x: F.cross_entropy(x, torch.tensor(TARGET)), (3, 4)),
    fixed("nll_loss", lambda x: x.log_softmax().nll_loss(Tensor(TARGET), Tensor(WEIGHT)),
          lambda x: F.nll_loss(x.log_softmax(-1), torch.tensor(TARGET), torch.tensor(WEIGHT)), (3, 4)),
]  # fmt: skip

CASES = [*ELEMENTWISE, *PAIRS, *REDUCTIONS, *ARRANGED]

# ---- all other methods ------------------------------------------------------------------------------------------

NO_GRADIENT = {
    "constant in steps": "floor ceil round trunc sign floordiv",
    "gives bools": "lt le gt ge eq ne isnan isinf isfinite isclose allclose any all logical_not bool",
    "gives whole numbers": """
        argmax argmin argsort nonzero multinomial one_hot short int long randperm randint order_keys""",
    "of whole numbers": "bitwise_and bitwise_or bitwise_xor bitwise_not lshift rshift bitcast regrouped_bits threefry",
    "makes values of none": """
        full zeros ones arange linspace eye empty rand randn uniform normal scaled_uniform glorot_uniform
        kaiming_uniform kaiming_normal full_like zeros_like ones_like
        empty_like rand_like randn_like counting const const_like""",
    "random; test_random.py has its gradient": "dropout",
    "a part of methods that are above": "meet alu movement reduce_axis exclusive_scan as_operand from_uop",
    "no values": """
        shape dtype device ndim numel resolve_axis resolve_axes uop storage size element_size nbytes is_floating_point
        is_param is_param_ grad train test no_grad manual_seed""",
    "gradients themselves": "gradient backward",
    "gives values to Python, or to memory": "item tolist numpy data realize assign replace to to_",
}


def words(text: str) -> set[str]:
    return set(text.split())
