"""Tensors from nothing, from Python and from numpy, and how they come back."""
import numpy as np
from tinygrad import Tensor, dtypes

# from Python and numpy
t = Tensor([[1, 2, 3], [4, 5, 6]])
assert t.shape == (2, 3) and t.ndim == 2 and t.numel() == 6 and t.dtype == dtypes.int
assert t.tolist() == [[1, 2, 3], [4, 5, 6]]
assert Tensor([1.5, 2]).dtype == dtypes.default_float == dtypes.float32
assert Tensor([True, False]).dtype == dtypes.bool
assert Tensor(3.5).shape == () and Tensor(3.5).item() == 3.5
array = np.linspace(0, 1, 12, dtype=np.float64).reshape(3, 4)
np.testing.assert_array_equal(Tensor(array).numpy(), array)
assert Tensor(array).dtype == dtypes.float64 and Tensor(array, dtype=dtypes.half).dtype == dtypes.float16
assert Tensor(b"abc").tolist() == [97, 98, 99] and Tensor(b"abc").dtype == dtypes.uint8
assert Tensor([]).shape == (0,) and Tensor(np.zeros((2, 0))).shape == (2, 0)

# constants and counting
np.testing.assert_array_equal(Tensor.zeros(2, 3).numpy(), np.zeros((2, 3), np.float32))
np.testing.assert_array_equal(Tensor.ones((2, 3), dtype=dtypes.int16).numpy(), np.ones((2, 3), np.int16))
np.testing.assert_array_equal(Tensor.full((2, 2), 7).numpy(), np.full((2, 2), 7, np.int32))
np.testing.assert_array_equal(Tensor.arange(5).numpy(), np.arange(5, dtype=np.int32))
np.testing.assert_array_equal(Tensor.arange(5, 10, 2).numpy(), np.arange(5, 10, 2, dtype=np.int32))
np.testing.assert_allclose(Tensor.arange(5.5, -1, -1.5).numpy(), np.arange(5.5, -1, -1.5, np.float32))
np.testing.assert_allclose(Tensor.linspace(0, 10, 5).numpy(), np.linspace(0, 10, 5, dtype=np.float32))
np.testing.assert_array_equal(Tensor.eye(2, 4).numpy(), np.eye(2, 4, dtype=np.float32))
assert Tensor.empty(3, 4, dtype=dtypes.int8).shape == (3, 4)

# in the shape of another
like = Tensor.ones(2, 3, dtype=dtypes.half)
for made, value in ((like.zeros_like(), 0), (like.ones_like(), 1), (like.full_like(9), 9)):
    assert made.dtype == dtypes.half
    np.testing.assert_array_equal(made.numpy(), np.full((2, 3), value, np.float16))
assert like.ones_like(dtype=dtypes.int).dtype == dtypes.int and like.empty_like().shape == (2, 3)

# sizes, and Python's side
assert t.size() == (2, 3) and t.size(1) == 3 and t.nbytes() == 24 and t.element_size() == 4
assert len(t) == 2 and not t.is_floating_point() and like.is_floating_point()
assert [row.tolist() for row in t] == [[1, 2, 3], [4, 5, 6]]
assert bytes(Tensor([1, 2], dtype=dtypes.uint8).data()) == b"\x01\x02"
a, b = Tensor.arange(3).meshgrid(Tensor.arange(2))
np.testing.assert_array_equal(a.numpy() * 10 + b.numpy(), [[0, 1], [10, 11], [20, 21]])
print("creation", t.tolist(), Tensor.eye(2).tolist())
