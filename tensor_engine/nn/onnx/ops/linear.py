"""Matrix products."""

from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.tensor import Tensor


@operator("MatMul")
def matmul(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


@operator("Gemm")
def gemm_before_7(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    broadcast: int = 0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    return gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)


@operator("Gemm", since=7)
def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    """alpha * A @ B + beta * C."""
    product = (a.transpose(0, 1) if transA else a) @ (b.transpose(0, 1) if transB else b)
    product = product if alpha == 1 else alpha * product
    if c is None:
        return product
    return product + (c if beta == 1 else beta * c)


@operator("Einsum")
def einsum(*operands: Tensor, equation: str) -> Tensor:
    return Tensor.einsum(equation.replace(" ", ""), *operands)


@operator("Det")
def det(x: Tensor) -> Tensor:
    """By expansion along the first row; meant for the small matrices of geometry."""
    size = x.shape[-1]
    if size == 1:
        return x[..., 0, 0]
    minors = [det(_without_row_and_column(x, column)) for column in range(size)]
    terms = [(-1) ** i * x[..., 0, i] * minor for i, minor in enumerate(minors)]
    return sum(terms[1:], terms[0])


def _without_row_and_column(x: Tensor, column: int) -> Tensor:
    return x[..., 1:, :column].cat(x[..., 1:, column + 1 :], dim=-1)
