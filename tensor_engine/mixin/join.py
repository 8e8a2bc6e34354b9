"""Several tensors made one, one made several, and elements repeated or moved along an axis."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensor_engine.dtype import least_upper_dtype
from tensor_engine.helpers import ceildiv
from tensor_engine.mixin.creation import CreationMixin
from tensor_engine.mixin.sizes import as_sequence, fixed, is_symbolic

if TYPE_CHECKING:
    from typing_extensions import Self


MOST_PARTS = 16  # each element asks for each part whether it comes from there; more parts are joined in groups first


class JoinMixin(CreationMixin):
    """cat, stack, split, repeat, roll and their kin."""

    __slots__ = ()

    # ---- joining

    def cat(self, *others: Self, dim: int = 0) -> Self:
        """This and the others behind each other along an axis. Raises ValueError if another axis differs in size."""
        axis = self.resolve_axis(dim)
        parts = [self, *others]
        self._check_parts(parts, axis)
        dtype = least_upper_dtype(*[part.dtype for part in parts])
        parts = [part.cast(dtype) for part in parts]
        if len(parts) > MOST_PARTS:
            groups = [parts[i : i + MOST_PARTS] for i in range(0, len(parts), MOST_PARTS)]
            first, *rest = [group[0].cat(*group[1:], dim=axis).contiguous() for group in groups]
            return first.cat(*rest, dim=axis)
        ends = list(itertools.accumulate(part.shape[axis] for part in parts))
        padded = [part._placed(axis, end - part.shape[axis], ends[-1] - end) for part, end in zip(parts, ends)]
        return self._chosen_by_position(padded, ends, axis)

    @staticmethod
    def _check_parts(parts: list[Any], axis: int) -> None:
        for part in parts[1:]:
            same = part.ndim == parts[0].ndim
            if not same or any(i != axis and a != b for i, (a, b) in enumerate(zip(part.shape, parts[0].shape))):
                shapes = " and ".join(str(p.shape) for p in parts)
                raise ValueError(f"can't cat shapes {shapes} along axis {axis}: the other axes must agree")

    def _placed(self, axis: int, before: int, after: int) -> Self:
        return self.pad_zeros([(before, after) if i == axis else (0, 0) for i in range(self.ndim)])

    def _chosen_by_position(self, padded: list[Self], ends: list[int], axis: int) -> Self:
        """At each position of `axis` the first of the tensors that ends behind it."""
        position = self.counting(ends[-1]).reshape((1,) * axis + (-1,) + (1,) * (self.ndim - axis - 1))
        result = padded[-1]
        for value, end in zip(padded[-2::-1], ends[-2::-1]):
            result = position.lt(end).where(value, result)
        return result

    def stack(self, *others: Self, dim: int = 0) -> Self:
        """This and the others along a new axis; `Tensor.stack(list)` takes them in a list, too."""
        first, *rest = [*self, *others] if isinstance(self, (list, tuple)) else [self, *others]
        return first.unsqueeze(dim).cat(*[other.unsqueeze(dim) for other in rest], dim=dim)

    # ---- splitting

    def split(self, sizes: int | Sequence[int], dim: int = 0) -> tuple[Self, ...]:
        """Parts of the given sizes, or all of one size, the last one smaller where it must be."""
        axis = self.resolve_axis(dim)
        length = self.shape[axis]
        if isinstance(sizes, int) or is_symbolic(sizes):
            sizes, length = fixed(sizes, "split into equal parts"), fixed(length, "split into equal parts")
            sizes = [min(sizes, length - start) for start in range(0, max(length, 1), max(sizes, 1))]
        if sum(sizes) != length:
            raise ValueError(f"split sizes {list(sizes)} don't add up to axis {axis} of shape {self.shape}")
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        return tuple(self._part(axis, start, start + size) for start, size in zip(starts, sizes))

    def _part(self, axis: int, start: int, stop: int) -> Self:
        return self.shrink([(start, stop) if i == axis else None for i in range(self.ndim)])

    def chunk(self, chunks: int, dim: int = 0) -> tuple[Self, ...]:
        """At most `chunks` parts of one size, the last one smaller where it must be."""
        if chunks < 1:
            raise ValueError(f"chunk needs at least 1 part, not {chunks}")
        return self.split(max(ceildiv(self.shape[self.resolve_axis(dim)], chunks), 1), dim)

    def unbind(self, dim: int = 0) -> tuple[Self, ...]:
        """The slices along an axis, without it."""
        axis = self.resolve_axis(dim)
        return tuple(part.squeeze(axis) for part in self.split(1, axis))

    # ---- repeating and moving

    def repeat(self, *repeats: Any) -> Self:
        """The whole of it again and again, a count an axis; more counts than axes give new axes in front."""
        counts = as_sequence(repeats)
        if len(counts) < self.ndim:
            raise ValueError(f"repeat needs a count for each axis of shape {self.shape}, got {counts}")
        shape = (1,) * (len(counts) - self.ndim) + self.shape
        separate = [size for pair in zip((1,) * len(counts), shape) for size in pair]
        grown = [size for pair in zip(counts, shape) for size in pair]
        return self.reshape(separate).expand(grown).reshape([n * size for n, size in zip(counts, shape)])

    def repeat_interleave(self, repeats: int, dim: int | None = None) -> Self:
        """Each element `repeats` times in a row along an axis; of the flattened tensor without one."""
        if dim is None:
            return self.flatten().repeat_interleave(repeats, 0)
        axis = self.resolve_axis(dim)
        before, after = self.shape[: axis + 1], self.shape[axis + 1 :]
        grown = self.unsqueeze(axis + 1).expand(before + (repeats,) + after)
        return grown.flatten(axis, axis + 1)

    def roll(self, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Self:
        """Elements moved along axes; what leaves at one end comes in at the other."""
        if dims is None:
            return self.flatten().roll(shifts, 0).reshape(self.shape)
        moves = ((shifts,), (dims,)) if isinstance(shifts, int) or isinstance(dims, int) else (shifts, dims)
        result = self
        for shift, dim in zip(*moves):
            axis = self.resolve_axis(dim)
            size = self.shape[axis]
            start = -shift % size if size else 0
            twice = result.repeat([2 if i == axis else 1 for i in range(self.ndim)])
            result = twice._part(axis, start, start + size)
        return result

    def meshgrid(self, *others: Self, indexing: str = "ij") -> tuple[Self, ...]:
        """The coordinates of a grid whose axes are these vectors. `indexing` "xy" exchanges the first two axes."""
        if indexing not in ("ij", "xy"):
            raise ValueError(f"meshgrid's indexing is 'ij' or 'xy', not {indexing!r}")
        vectors = [self, *others]
        axes = list(range(len(vectors)))
        if indexing == "xy" and len(axes) > 1:
            axes[:2] = [1, 0]
        lengths = tuple(vectors[axes.index(i)].numel() for i in range(len(axes)))
        return tuple(
            vector.reshape((1,) * axis + (-1,) + (1,) * (len(axes) - axis - 1)).expand(lengths)
            for vector, axis in zip(vectors, axes)
        )

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Self:
        """The elements of two axes whose places differ by `offset` (below the diagonal if negative), as the last axis.

        Raises ValueError if both axes are the same.
        """
        first, second = self.resolve_axis(dim1), self.resolve_axis(dim2)
        if first == second or self.ndim < 2:
            raise ValueError(f"diagonal needs two axes of shape {self.shape}, not {dim1} and {dim2}")
        others = [axis for axis in range(self.ndim) if axis not in (first, second)]
        matrix = self.permute([*others, first, second])
        rows, columns = matrix.shape[-2:]
        top, left = min(max(-offset, 0), rows), min(max(offset, 0), columns)
        n = min(rows - top, columns - left)
        square = matrix._part(len(others), top, top + n)._part(len(others) + 1, left, left + n).flatten(-2)
        # in rows that are longer by one than the matrix's, the diagonal is the first column
        longer = square.pad_zeros([(0, 0)] * len(others) + [(0, n)]).unflatten(-1, (n, n + 1))
        return longer._part(longer.ndim - 1, 0, 1).squeeze(-1)

    def diag(self) -> Self:
        """A square matrix with these elements on the diagonal, else zeros. Raises ValueError for more than one axis."""
        if self.ndim != 1:
            raise ValueError(f"diag needs one axis, not shape {self.shape}")
        n = self.shape[0]
        return self.unsqueeze(1).pad_zeros([(0, 0), (0, n)]).flatten()._part(0, 0, n * n).reshape(n, n)

    def usum(self, *others: Self) -> Self:
        """The sum of this and the others, element by element."""
        return functools.reduce(operator.add, others, self)

    def uprod(self, *others: Self) -> Self:
        """The product of this and the others, element by element."""
        return functools.reduce(operator.mul, others, self)
