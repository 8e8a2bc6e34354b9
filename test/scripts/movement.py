"""The same elements elsewhere: reshapes, permutations, pads, parts, joins."""
import numpy as np
from tinygrad import Tensor

x = np.arange(24).reshape(2, 3, 4).astype(np.float32)
t = Tensor(x)


def same(tensor, expected):
    assert tensor.shape == expected.shape, (tensor.shape, expected.shape)
    np.testing.assert_array_equal(tensor.numpy(), expected)


same(t.reshape(6, 4), x.reshape(6, 4))
same(t.reshape(-1, 2, 2), x.reshape(-1, 2, 2))
same(t.view(24), x.reshape(24))
same(t.reshape(2, 1, 3, 4).expand(2, 5, 3, 4), np.broadcast_to(x[:, None], (2, 5, 3, 4)))
same(t.permute(2, 0, 1), x.transpose(2, 0, 1))
same(t.transpose(0, 2), x.swapaxes(0, 2))
same(t[0].T, x[0].T)
same(t.flip(0), x[::-1])
same(t.flip((0, 2)), x[::-1, :, ::-1])
same(t.shrink(((0, 1), None, (1, 3))), x[:1, :, 1:3])
same(t.pad(((0, 0), (1, 2), None), value=-1), np.pad(x, ((0, 0), (1, 2), (0, 0)), constant_values=-1))
same(t.pad((1, 2, 0, 1)), np.pad(x, ((0, 0), (0, 1), (1, 2))))
for mode, theirs in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
    same(t.reshape(1, 2, 3, 4).pad((2, 1, 1, 2), mode=mode)[0], np.pad(x, ((0, 0), (1, 2), (2, 1)), mode=theirs))
same(t.squeeze().unsqueeze(0).unsqueeze(-1), x[None, ..., None])
same(t.unsqueeze(1).squeeze(1), x)
same(t.flatten(), x.ravel())
same(t.flatten(1), x.reshape(2, 12))
same(t.unflatten(2, (2, -1)), x.reshape(2, 3, 2, 2))
same(t.rearrange("a b c -> (a c) b"), x.transpose(0, 2, 1).reshape(8, 3))
same(t.rearrange("a b (c d) -> a d b c", d=2), x.reshape(2, 3, 2, 2).transpose(0, 3, 1, 2))
same(t.cat(t + 100, dim=1), np.concatenate([x, x + 100], 1))
same(Tensor.cat(t, t, t, dim=-1), np.concatenate([x, x, x], -1))
same(t.stack(t + 1, dim=1), np.stack([x, x + 1], 1))
same(Tensor.stack([t, t + 1]), np.stack([x, x + 1]))
same(t.repeat(1, 2, 3), np.tile(x, (1, 2, 3)))
same(t.repeat((2, 1, 1, 1)), np.tile(x, (2, 1, 1, 1)))
same(t.repeat_interleave(2, dim=1), x.repeat(2, 1))
for part, expected in zip(t.split(2, dim=1), (x[:, :2], x[:, 2:])):
    same(part, expected)
for part, expected in zip(t.split([1, 3], dim=2), (x[..., :1], x[..., 1:])):
    same(part, expected)
assert [part.shape for part in t.chunk(3, dim=2)] == [(2, 3, 2), (2, 3, 2)]
same(t.roll(1, 2), np.roll(x, 1, 2))
same(t.roll((1, -1), (0, 1)), np.roll(x, (1, -1), (0, 1)))
same(t.unfold(2, 3, 1), np.lib.stride_tricks.sliding_window_view(x, 3, 2))
same(t[0].diagonal(), np.diagonal(x[0]))
same(t.diagonal(1, 1, 2), np.diagonal(x, 1, 1, 2))
same(t[0, 0].diag(), np.diag(x[0, 0]))
same(t.tril(), np.tril(x))
same(t.triu(1), np.triu(x, 1))
same(t.shrink_to(1, None, 2).pad_to(2, 3, 4), np.pad(x[:1, :, :2], ((0, 1), (0, 0), (0, 2))))
print("movement", t.permute(2, 0, 1).shape, t.rearrange("a b c -> c (a b)").tolist()[0])
