"""The same elements in another arrangement: nothing is computed, and none of these costs a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensor_engine.helpers import inverse_permutation, prod
from tensor_engine.mixin.rearrange import rearrange
from tensor_engine.mixin.sizes import (
    as_sequence,
    as_whole,
    certain,
    check_sizes,
)
from tensor_engine.mixin.transcendental import TranscendentalMixin
from tensor_engine.uop.op import Ops

if TYPE_CHECKING:
    from typing_extensions import Self


class MovementMixin(TranscendentalMixin):
    """Reshape, permute, expand, shrink, pad, flip, and what is made of them."""

    __slots__ = ()

    # ---- the seven primitives

    def reshape(self, *shape: Any) -> Self:
        """The elements in another shape. -1 stands for what is left over, None for the size that is there."""
        sizes = as_sequence(shape)
        new = tuple(self.shape[i] if size is None else size for i, size in enumerate(sizes))
        if -1 in new:
            new = self._infer(new)
        check_sizes(new)
        if prod(new) != prod(self.shape):
            raise ValueError(f"can't reshape {self.shape} to {sizes}: {prod(self.shape)} elements are not {prod(new)}")
        return self if new == self.shape else self.movement(Ops.RESHAPE, new)

    def _infer(self, shape: tuple[Any, ...]) -> tuple[Any, ...]:
        """`shape` with its -1 replaced. Sizes that stay are left out first: not all variables can be divided by."""
        rest, known = list(self.shape), 1
        for size in shape:
            if size in rest:
                rest.remove(size)
            elif size != -1:
                known = known * size
        total = prod(rest)
        if shape.count(-1) > 1 or 0 in shape or as_whole(total % known) != 0:
            raise ValueError(f"can't reshape {self.shape} to {shape}: no size for -1 fits")
        return tuple(as_whole(total // known) if size == -1 else size for size in shape)

    def permute(self, *order: Any) -> Self:
        """The axes in another order."""
        axes = tuple(self.resolve_axis(axis) for axis in as_sequence(order))
        if sorted(axes) != list(range(self.ndim)):
            raise ValueError(f"permute{axes} is not an order of the {self.ndim} axes of shape {self.shape}")
        return self if axes == tuple(range(self.ndim)) else self.movement(Ops.PERMUTE, axes)

    def expand(self, *shape: Any) -> Self:
        """Axes of size 1 repeated, and new axes in front. -1 and None keep a size."""
        sizes = as_sequence(shape)
        missing = len(sizes) - self.ndim
        if missing < 0:
            raise ValueError(f"can't expand {self.shape} to {sizes}: fewer axes")
        aligned = (1,) * missing + self.shape
        new = tuple(old if size is None or size == -1 else size for old, size in zip(aligned, sizes))
        check_sizes(new)
        if any(old != size and old != 1 for old, size in zip(aligned, new)):
            raise ValueError(f"can't expand {self.shape} to {sizes}: only axes of size 1 can grow")
        return self.broadcast_to(new)

    def shrink(self, arg: Sequence[tuple[Any, Any] | None]) -> Self:
        """The elements from start to stop, an axis a pair; None keeps an axis whole."""
        if len(arg) != self.ndim:
            raise ValueError(f"shrink needs a pair or None for each axis of shape {self.shape}, got {arg}")
        bounds = tuple((0, size) if pair is None else as_sequence(pair) for size, pair in zip(self.shape, arg))
        if bounds == tuple((0, size) for size in self.shape):
            return self
        for (start, stop), size in zip(bounds, self.shape):
            if not (certain(start >= 0) and certain(start <= stop) and certain(stop <= size)):
                raise ValueError(f"can't shrink shape {self.shape} to {arg}: ({start}, {stop}) is not inside {size}")
        return self.movement(Ops.SHRINK, bounds)

    def pad_zeros(self, pads: Sequence[tuple[Any, Any]]) -> Self:
        """Zeros before and after, an axis a pair of counts that are not negative."""
        arg = tuple((as_whole(before), as_whole(after)) for before, after in pads)
        return self if all(pair == (0, 0) for pair in arg) else self.movement(Ops.PAD, arg)

    def flip(self, *axes: Any) -> Self:
        """The order of the elements reversed along the axes; all of them if none are given."""
        chosen = as_sequence(axes) if axes else tuple(range(self.ndim))
        turned = {self.resolve_axis(axis) for axis in chosen}
        if len(turned) != len(chosen):
            raise ValueError(f"flip got an axis twice: {chosen}")
        return self.movement(Ops.FLIP, tuple(i in turned for i in range(self.ndim))) if turned else self

    def shear(self, axis: int, along: int, step: int = 1) -> Self:
        """An axis that begins later, the further along another one: at k of `along` it begins at element k * step.

        As long as there are elements for each k: (n, count) becomes (n - step * (count - 1), count).
        Raises ValueError where that is nothing.
        """
        axis, along = self.resolve_axis(axis), self.resolve_axis(along)
        reach = step * (self.shape[along] - 1)
        if axis == along or step < 0 or not certain(reach < self.shape[axis]):
            raise ValueError(f"can't shear axis {axis} of shape {self.shape} by {step} along axis {along}")
        return self if reach == 0 else self.movement(Ops.SHEAR, (axis, along, step))

    # ---- names for common reshapes and permutes

    view = reshape

    def transpose(self, dim0: int = 1, dim1: int = 0) -> Self:
        """Two axes exchanged."""
        order = list(range(self.ndim))
        a, b = self.resolve_axis(dim0), self.resolve_axis(dim1)
        order[a], order[b] = order[b], order[a]
        return self.permute(order)

    @property
    def T(self) -> Self:
        """The matrix transposed."""
        return self.transpose()

    def movedim(self, source: int, destination: int) -> Self:
        """One axis moved to another place; the others keep their order."""
        order = [axis for axis in range(self.ndim) if axis != self.resolve_axis(source)]
        order.insert(self.resolve_axis(destination), self.resolve_axis(source))
        return self.permute(order)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Self:
        """The axes from `start_dim` to `end_dim`, both included, as one."""
        start, end = self.resolve_axis(start_dim), self.resolve_axis(end_dim)
        return self.reshape(self.shape[:start] + (prod(self.shape[start : end + 1]),) + self.shape[end + 1 :])

    def unflatten(self, dim: int, sizes: Sequence[int]) -> Self:
        """One axis as several. -1 stands for what is left over."""
        axis = self.resolve_axis(dim)
        return self.reshape(self.shape[:axis] + tuple(sizes) + self.shape[axis + 1 :])

    def squeeze(self, dim: int | Sequence[int] | None = None) -> Self:
        """Without the axes of size 1: all of them, or those given that have that size."""
        if dim is None:
            return self.reshape(tuple(size for size in self.shape if size != 1))
        dims = {self.resolve_axis(d) for d in ((dim,) if isinstance(dim, int) else dim)}
        return self.reshape(tuple(size for i, size in enumerate(self.shape) if i not in dims or size != 1))

    def unsqueeze(self, dim: int) -> Self:
        """With a new axis of size 1 at `dim`."""
        axis = self.resolve_axis(dim, extra=1)
        return self.reshape(self.shape[:axis] + (1,) + self.shape[axis:])

    def shrink_to(self, *shape: Any) -> Self:
        """The first elements of each axis, as many as `shape` says; None keeps an axis whole."""
        sizes = as_sequence(shape)
        return self.shrink([None if size is None else (0, size) for size in sizes])

    def rearrange(self, formula: str, **sizes: int) -> Self:
        """Axes by name, as in the library einops: "b h w c -> b c h w", "(b n) c -> b n c" with n=2,
        "... a b -> ... b a".

        Names in parentheses make one axis together; all but one of them need a size on the left. "1" is an axis of
        size 1. Raises ValueError for a formula that doesn't fit the shape.
        """
        return rearrange(self, formula, sizes)

    def unpermute(self, order: Sequence[int]) -> Self:
        """What `permute(order)` undoes."""
        return self.permute(inverse_permutation(order))
