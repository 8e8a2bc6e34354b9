"""Sums of products: matrices, einsum, convolution, pooling, attention, resizing, factorisation."""
import numpy as np
from tinygrad import Tensor

rng = np.random.default_rng(1)


def array(*shape):
    return rng.normal(size=shape).astype(np.float32)


def near(tensor, expected, tolerance=1e-4):
    assert tensor.shape == np.shape(expected), (tensor.shape, np.shape(expected))
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=tolerance, atol=tolerance)


a, b = array(4, 6), array(6, 3)
near(Tensor(a) @ Tensor(b), a @ b)
near(Tensor(a).dot(Tensor(b[:, 0])), a @ b[:, 0])
near(Tensor(b).matmul(Tensor(a), reverse=True), a @ b)
near(Tensor(array(2, 1, 4, 6) * 0 + a) @ Tensor(np.stack([b] * 5)), np.broadcast_to(a @ b, (2, 5, 4, 3)))
near(Tensor(a).linear(Tensor(b), Tensor(b[0])), a @ b + b[0])
near(Tensor.einsum("ij,jk->ki", Tensor(a), Tensor(b)), (a @ b).T)
near(Tensor.einsum("...ij->...", Tensor(a)), a.sum())
near(Tensor.einsum("ij,ij->i", Tensor(a), Tensor(a)), (a * a).sum(1))

# convolution by its definition
x, w, bias = array(2, 4, 7, 6), array(6, 2, 3, 2), array(6)


def convolution(x, w, bias, stride, padding, groups):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    size, out = w.shape[1], w.shape[0] // groups
    parts = [
        np.einsum("nchwij,ocij->nohw", windows[:, g * size : g * size + size], w[g * out : g * out + out])
        for g in range(groups)
    ]
    return np.concatenate(parts, 1) + bias[:, None, None]


near(Tensor(x).conv2d(Tensor(w), Tensor(bias), groups=2), convolution(x, w, bias, 1, 0, 2))
near(Tensor(x).conv2d(Tensor(w), Tensor(bias), groups=2, stride=2, padding=1), convolution(x, w, bias, 2, 1, 2))
# the transposed convolution is the adjoint: <conv(x), y> = <x, transposed(y)>
kernel = array(4, 3, 3, 3)
image, other = array(1, 3, 6, 6), array(1, 4, 4, 4)
one = (Tensor(image).conv2d(Tensor(kernel)) * Tensor(other)).sum().item()
two = (Tensor(image) * Tensor(other).conv_transpose2d(Tensor(kernel))).sum().item()
assert abs(one - two) < 1e-3

# pooling
blocks = x[:, :, :6].reshape(2, 4, 3, 2, 3, 2)
near(Tensor(x).max_pool2d(), blocks.max((3, 5)))
near(Tensor(x).avg_pool2d(), blocks.mean((3, 5)))
assert Tensor(x).max_pool2d(kernel_size=3, stride=2, padding=1, ceil_mode=True).shape == (2, 4, 4, 4)
largest, places = Tensor(x).max_pool2d(return_indices=True)
near(Tensor(x).flatten(2).gather(2, places.flatten(2)), largest.flatten(2).numpy())
back = largest.max_unpool2d(places, output_size=(2, 4, 7, 6))
near(back, np.where(back.numpy() != 0, x, 0))

# attention
q, k, v = array(2, 4, 5, 8), array(2, 2, 5, 8), array(2, 2, 5, 8)
scores = q @ k.repeat(2, 1).swapaxes(2, 3) / np.sqrt(8)
scores = np.where(np.tril(np.ones((5, 5))) > 0, scores, -np.inf)
weights = np.exp(scores - scores.max(-1, keepdims=True))
attended = weights / weights.sum(-1, keepdims=True) @ v.repeat(2, 1)
near(Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v), is_causal=True, enable_gqa=True), attended)

# resizing and factorisation
line = np.float32([[0, 10, 20, 30]])
near(Tensor(line).interpolate((7,), align_corners=True), [[0, 5, 10, 15, 20, 25, 30]])
near(Tensor(line).interpolate((2,), mode="nearest"), [[0, 20]])
square = array(3, 3)
orthogonal, upper = Tensor(square).qr()
near(orthogonal @ upper, square)
near(orthogonal.transpose() @ orthogonal, np.eye(3))
print("products", places[0, 0].tolist(), round(one - two, 2))
