"""How a sum of products changes with its factors: `python examples/gradient.py`."""

from __future__ import annotations

from tensor_engine import Tensor


def gradients() -> tuple[list[list[float]], list[list[float]]]:
    """dz/dx and dz/dy of z = sum(y @ x)."""
    x = Tensor.eye(3)
    y = Tensor([[2.0, 0.0, -2.0]])
    z = y.matmul(x).sum()
    z.backward()
    assert x.grad is not None and y.grad is not None
    return x.grad.tolist(), y.grad.tolist()


if __name__ == "__main__":
    for name, gradient in zip(("dz/dx", "dz/dy"), gradients()):
        print(name, gradient)
