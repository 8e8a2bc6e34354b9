"""Order: sort, argsort, topk, one-hot, and a histogram, a median and unique values made of them."""
import numpy as np
from tinygrad import Tensor, dtypes

rng = np.random.default_rng(4)
x = rng.permutation(60).reshape(3, 20).astype(np.float32)
t = Tensor(x)


def same(tensor, expected):
    np.testing.assert_array_equal(tensor.numpy(), expected)


values, places = t.sort()
same(values, np.sort(x, 1))
same(places, np.argsort(x, 1))
same(t.sort(dim=0, descending=True)[0], np.sort(x, 0)[::-1])
same(t.argsort(dim=1, descending=True), np.argsort(-x, 1))
best, where = t.topk(4)
same(best, -np.sort(-x, 1)[:, :4])
same(where, np.argsort(-x, 1)[:, :4])
same(t.topk(2, dim=0, largest=False)[0], np.sort(x, 0)[:2])
same(t.gather(1, places), values.numpy())
assert places.dtype == dtypes.int32

# equal values keep their order
ties = np.array([2, 1, 2, 0, 1, 2], np.int32)
same(Tensor(ties).sort()[1], np.argsort(ties, kind="stable"))

# a long row
long = rng.normal(size=600).astype(np.float32)
same(Tensor(long).sort()[0], np.sort(long))

# made of them
numbers = rng.integers(0, 6, 40)
counts = Tensor(numbers).one_hot(6).sum(0)
same(counts, np.bincount(numbers, minlength=6))
same(Tensor.zeros(6, dtype=dtypes.int).scatter(0, Tensor(numbers), 1, reduce="add"), counts.numpy())
median = t.sort(dim=1)[0][:, 9:11].mean(axis=1)
same(median, np.median(x, 1))
line = Tensor(numbers).sort()[0]
is_new = line.ne(line.roll(1)).cat(Tensor([True]))[:-1]
unique = line.masked_select((Tensor.arange(40) == 0) | is_new)
same(unique, np.unique(numbers))
order = t[0].argsort()
same(order.argsort(), np.argsort(np.argsort(x[0])))
print("sorting", where.tolist(), unique.tolist())
