"""From the scores of all anchors to the few boxes that stay, as Tensor operations of fixed size."""

from __future__ import annotations

from dataclasses import dataclass

from tensor_engine import Tensor, dtypes

BLOCK = 16  # candidates that are settled together


@dataclass(frozen=True)
class Candidates:
    """The K best anchors, best first: score float32 [K] (0 where there are fewer), anchor and class int32 [K]."""

    score: Tensor
    anchor: Tensor
    label: Tensor


def best_anchors(scores: Tensor, allowed: Tensor, threshold: Tensor, count: int) -> Candidates:
    """The `count` anchors whose best allowed class scores highest, above the threshold; ties by anchor.

    scores [N, C]; allowed bool [C]; threshold [1]. An anchor stands for its best class only. A NaN makes the
    best score NaN, which is above no threshold.
    """
    considered = allowed.where(scores, 0.0)
    best = considered.max(axis=1)
    passed = (best > threshold).where(best, 0.0)
    score, anchor = passed.topk(min(count, passed.shape[0]))
    label = considered[anchor].argmax(axis=1)
    return Candidates(score, anchor.cast(dtypes.int32), label.cast(dtypes.int32))


def overlaps(boxes: Tensor, threshold: Tensor) -> Tensor:
    """bool [K, K]: intersection over union above the threshold, for boxes [K, 4] as x1, y1, x2, y2.

    Multiplied out, so that empty boxes divide nothing by nothing and overlap nothing.
    """
    low, high = boxes[:, :2], boxes[:, 2:]
    sides = (high.unsqueeze(1).minimum(high) - low.unsqueeze(1).maximum(low)).maximum(0.0)
    shared = sides[:, :, 0] * sides[:, :, 1]
    extent = (high - low).maximum(0.0)
    area = extent[:, 0] * extent[:, 1]
    union = area.unsqueeze(1) + area - shared
    return shared > threshold * union


def is_finite(boxes: Tensor) -> Tensor:
    """bool [K]: no coordinate is NaN or infinite."""
    return boxes.isfinite().all(axis=1)


def keep_greedily(alive: Tensor, rivals: Tensor) -> Tensor:
    """What greedy suppression keeps: bool [K], the best first.

    alive bool [K]; rivals bool [K, K], symmetric. Candidate i stays if it is alive and no kept j < i is its rival.

    Greedy suppression is sequential; here it is the fixed point of that sentence, reached by iteration from any
    start. If all before i are right, one more iteration makes i right and all before it stay right. So the blocks
    of BLOCK candidates are settled one after the other: what earlier blocks suppress is computed once a block,
    and BLOCK iterations within the block (cheap: BLOCK * K pairs) make its members right one by one. All blocks
    iterate alike, so that the program has two kernels, run again and again; after the round of the last block
    every candidate is right, whatever the input.
    """
    count = alive.shape[0]
    blocks = -(-count // BLOCK)
    missing = blocks * BLOCK - count
    alive = alive.pad(((0, missing),))
    index = Tensor.arange(blocks * BLOCK)
    before = index.unsqueeze(1) > index
    beats = rivals.pad(((0, missing), (0, missing))) & before
    block = index // BLOCK
    inside = block.unsqueeze(1) == block
    from_outside = (beats & inside.logical_not()).contiguous()
    within = diagonal_blocks(beats, blocks).contiguous()

    keep = alive.contiguous()
    for _ in range(blocks):
        free = (alive & (from_outside & keep).any(axis=1).logical_not()).contiguous()
        for _ in range(BLOCK):
            keep = (free & suppressed_within(within, keep).logical_not()).contiguous()
    return keep[:count]


def diagonal_blocks(matrix: Tensor, blocks: int) -> Tensor:
    """[blocks, BLOCK, BLOCK] from the diagonal of a bool [blocks * BLOCK, blocks * BLOCK]."""
    tiles = matrix.reshape(blocks, BLOCK, blocks, BLOCK)
    number = Tensor.arange(blocks)
    own = (number.reshape(-1, 1, 1, 1) == number.reshape(1, 1, -1, 1)) & tiles
    return own.any(axis=2)


def suppressed_within(within: Tensor, keep: Tensor) -> Tensor:
    """bool [K]: candidates with a kept rival before them in their own block."""
    own = keep.reshape(-1, 1, BLOCK)
    return (within & own).any(axis=2).flatten()
