"""Matrices as products of simpler ones. Axes before the last two are a batch.

Each step is written so that all steps of a loop run the same kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensor_engine.dtype import dtypes, least_upper_dtype
from tensor_engine.mixin.sorting import SortingMixin

if TYPE_CHECKING:
    from typing_extensions import Self

# every pair of columns is turned so often, and once more each time that there are twice as many: the angles that are
# left shrink quadratically from one sweep to the next
JACOBI_SWEEPS = 4
RIGHT_ANGLE = {dtypes.float32: 1e-7, dtypes.float64: 1e-15}  # columns whose cosine is smaller are left as they are


class DecompositionMixin(SortingMixin):
    """qr, svd, newton_schulz."""

    __slots__ = ()

    def newton_schulz(self, steps: int, params: tuple[float, ...], eps: float = 1e-7) -> Self:
        """The matrices with singular values near 1: `steps` times x becomes p0 x + p1 (x xᵀ) x + p2 (x xᵀ)² x + ….

        It starts from this over its Frobenius norm plus `eps`. For (3.4445, -4.775, 2.0315) see Jordan, "Muon", 2024.
        Raises ValueError for fewer than two axes.
        """
        self._need_matrices("newton_schulz")
        if self.shape[-2] > self.shape[-1]:
            return self.transpose(-2, -1).newton_schulz(steps, params, eps).transpose(-2, -1)
        x = self / (self.square().sum((-2, -1), keepdim=True).sqrt() + eps)
        for _ in range(steps):
            square, power, total = x @ x.transpose(-2, -1), x, x * params[0]
            for param in params[1:]:
                power = square @ power
                total = total + power * param
            x = total
        return x

    def _need_matrices(self, what: str) -> None:
        if self.ndim < 2:
            raise ValueError(f"{what} needs matrices, not shape {self.shape}")

    def _wide(self) -> Self:
        """In float32 or float64."""
        x = self.to_float()
        return x.cast(least_upper_dtype(x.dtype, dtypes.float32))

    # ---- qr: a reflection for each column (Householder, 1958)

    def qr(self) -> tuple[Self, Self]:
        """Q (m, m) with columns at right angles and of length 1, and R (m, n), zero below the diagonal: Q @ R is this.

        Raises ValueError for fewer than two axes.
        """
        self._need_matrices("qr")
        *batch, rows, columns = self.shape
        q, r = self._unit(rows).expand(*batch, rows, rows), self._wide()
        row, column = self._first(rows), self._first(columns)
        is_left = row.const_like(1).contiguous()
        for _ in range(min(rows, columns)):
            mirror, weighted = (r @ column * is_left)._mirror_to(row)
            r = (r - mirror.unsqueeze(-1) * (weighted.unsqueeze(-2) @ r)).contiguous()
            q = (q - (q @ weighted.unsqueeze(-1)) * mirror.unsqueeze(-2)).contiguous()
            is_left = (is_left - row).contiguous()
            row, column = row._next(), column._next()
        return q.cast(self.to_float().dtype), r.cast(self.to_float().dtype)

    def _mirror_to(self, axis: Self) -> tuple[Self, Self]:
        """v and 2 v / (v · v), where I - 2 v vᵀ / (v · v) turns this vector to `axis`, or into its opposite.

        The side is the one where no digits are lost.
        """
        place = (self * axis).sum(-1, keepdim=True)
        size = self.square().sum(-1, keepdim=True).sqrt()
        v = self + axis * place.lt(0).where(-size, size)
        length = v.square().sum(-1, keepdim=True)
        return v, v * 2 / length.eq(0).where(1, length)

    def _unit(self, size: int) -> Self:
        """The unit matrix where this lives."""
        return self.eye(size, dtype=self._wide().dtype, device=self.uop.device)

    def _first(self, size: int) -> Self:
        """1 and then zeros, in memory, so that no kernel knows where the 1 stands."""
        return self._unit(size)._part(0, 0, min(size, 1)).flatten().contiguous()

    def _next(self) -> Self:
        """Each element one place further on."""
        return self._placed(0, 1, 0)._part(0, 0, self.shape[0]).contiguous()

    # ---- svd: columns turned in pairs until all stand at right angles (Hestenes, 1958)

    def svd(self, full_matrices: bool = True) -> tuple[Self, Self, Self]:
        """U, S, V with U @ diag(S) @ V this: columns of U and rows of V at right angles and of length 1, S descending.

        For (m, n): U (m, m), S (min(m, n),), V (n, n); without `full_matrices` U (m, k), V (k, n) for k = min(m, n).
        Raises ValueError for fewer than two axes.
        """
        self._need_matrices("svd")
        if self.shape[-2] < self.shape[-1]:
            u, s, v = self.transpose(-2, -1).svd(full_matrices)
            return v.transpose(-2, -1), s, u.transpose(-2, -1)
        *batch, rows, columns = self.shape
        own = self.to_float().dtype
        both = self._wide().cat(self._unit(columns).expand(*batch, columns, columns), dim=-2)
        turned, v = both._turned_columns(rows).split((rows, columns), -2)
        s, order = turned.square().sum(-2).sqrt().sort(descending=True)
        turned, v = (part.gather(-1, order.unsqueeze(-2).expand(part.shape)) for part in (turned, v))
        # reflections complete the columns where they are too few, or zero
        u, r = (turned / s.eq(0).where(1, s).unsqueeze(-2)).qr()
        signs = r.diagonal(0, -2, -1).lt(0).where(-1.0, 1.0)
        u = u * signs.pad_to(*batch, rows, value=1.0).unsqueeze(-2)
        u = u if full_matrices else u._part(u.ndim - 1, 0, columns)
        return u.cast(own), s.cast(own), v.transpose(-2, -1).cast(own)

    def _turned_columns(self, height: int) -> Self:
        """The columns turned in pairs until their first `height` elements stand at right angles.

        Every column meets every other once a sweep, and then all are back in their places.
        """
        columns = self.shape[-1]
        if columns < 2:
            return self
        pairs = self._placed(self.ndim - 1, 0, columns % 2)
        left, right = pairs.chunk(2, -1)
        sweeps = JACOBI_SWEEPS + columns.bit_length()
        for _ in range(sweeps * (pairs.shape[-1] - 1)):
            left, right = left._turned_against(right, height)
            left, right = left._next_pairs(right)
        return left.cat(right, dim=-1)._part(self.ndim - 1, 0, columns)

    def _turned_against(self, other: Self, height: int) -> tuple[Self, Self]:
        """Columns a of this and b of the other as c a - s b and s a + c b, so that they stand at right angles."""
        a, b = (side._part(self.ndim - 2, 0, height) for side in (self, other))
        aa, bb, ab = ((x * y).sum(-2, keepdim=True) for x, y in ((a, a), (b, b), (a, b)))
        turns = ab.abs().gt((aa * bb).sqrt() * RIGHT_ANGLE[self.dtype])
        slope = (bb - aa) / turns.where(ab * 2, 1)
        tangent = slope.lt(0).where(-1.0, 1.0) / (slope.abs() + (slope.square() + 1).sqrt())
        tangent = turns.where(tangent, 0).contiguous()
        c = (tangent.square() + 1).rsqrt()
        s = c * tangent
        return c * self - s * other, s * self + c * other

    def _next_pairs(self, other: Self) -> tuple[Self, Self]:
        """Who meets whom next: the first column stays, all others go round one place further on."""
        axis, count = self.ndim - 1, self.shape[-1]
        if count == 1:
            return self.contiguous(), other.contiguous()
        stays, moves = self.split((1, count - 1), axis)
        enters, rest = other.split((1, count - 1), axis)
        left = stays.cat(enters, moves._part(axis, 0, count - 2), dim=axis)
        right = rest.cat(moves._part(axis, count - 2, count - 1), dim=axis)
        return left.contiguous(), right.contiguous()
