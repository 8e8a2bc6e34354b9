"""Reading and writing by place: slices, computed indices, masks, gather, scatter."""
import numpy as np
from tinygrad import Tensor

x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
t = Tensor(x)


def same(tensor, expected):
    np.testing.assert_array_equal(tensor.numpy(), expected)


# reading
same(t[1], x[1])
same(t[-1, 0], x[-1, 0])
same(t[:, 1:3, ::2], x[:, 1:3, ::2])
same(t[::-1, ..., -2], x[::-1, ..., -2])
same(t[None, :, None, 1], x[None, :, None, 1])
same(t[2:1], x[2:1])
same(t[[2, 0]], x[[2, 0]])
same(t[Tensor([[0, 1], [2, 2]])], x[np.array([[0, 1], [2, 2]])])
same(t[Tensor([0, 2]), :, Tensor([-1, 0])], x[np.array([0, 2]), :, np.array([-1, 0])])
same(t[:, Tensor([3, 1]), 1:3], x[:, [3, 1], 1:3])
index = np.array([[[0], [2], [1], [1]]])
same(t.gather(0, Tensor(index)), np.take_along_axis(x[:, :, :1], index, 0))
same(t[0].masked_select(t[0] > 7), x[0][x[0] > 7])
same((t[0] > 17).nonzero(), np.argwhere(x[0] > 17))
same(t.masked_fill(t > 30, -1), np.where(x > 30, np.float32(-1), x))
same((t > 30).where(t, 0), np.where(x > 30, x, 0))

# writing in place
y, u = x.copy(), Tensor(x).contiguous().realize()
y[0, 1:3] = 7
u[0, 1:3] = 7
y[1] *= 10
u[1] *= 10
y[:, :, ::2] += 1
u[:, :, ::2] += 1
alias = u
u -= 0.5
assert alias is u
y -= 0.5
y[2, :, 0] = np.arange(4)
u[2, :, 0] = Tensor([0.0, 1, 2, 3])
same(u, y)
y[[0, 2]] = -5
u[Tensor([0, 2])] = -5
y[1, [3, 0], 1:3] = [[1, 2], [3, 4]]
u[1, Tensor([3, 0]), 1:3] = Tensor([[1.0, 2], [3, 4]])
same(u, y)

# several values for one place
into, src, where = np.zeros(4, np.float32), np.float32([1, 2, 3, 4]), Tensor([0, 2, 2, 3])
same(Tensor(into).scatter(0, Tensor([3, 0, 1]), Tensor(src[:3])), np.float32([2, 3, 0, 1]))
same(Tensor(into).scatter(0, where, 1.5, reduce="add"), np.float32([1.5, 0, 3, 1.5]))
same(Tensor(into + 2).scatter(0, where, 3.0, reduce="multiply"), np.float32([6, 2, 18, 6]))
combined = {"sum": [2, 1, 6, 5], "prod": [1, 1, 6, 4], "amax": [1, 1, 3, 4], "mean": [1, 1, 2, 2.5]}
for reduce, expected in combined.items():
    same(Tensor(into + 1).scatter_reduce(0, where, Tensor(src), reduce), np.float32(expected))
same(Tensor(into + 9).scatter_reduce(0, where, Tensor(src), "amin", include_self=False), np.float32([1, 9, 2, 4]))
print("indexing", u[1].tolist(), (t[0] > 17).nonzero().tolist())
