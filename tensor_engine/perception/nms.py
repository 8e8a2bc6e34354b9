"""From the scores of all anchors to the few boxes that stay, as Tensor operations of fixed size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tensor_engine import Tensor, dtypes
from tensor_engine.perception.kernels import collect, find_cut, run_kernel, suppress


@dataclass(frozen=True)
class Candidates:
    """The K best anchors, best first: score float32 [K] (0 where there are fewer), anchor and class int32 [K]."""

    score: Tensor
    anchor: Tensor
    label: Tensor


def best_anchors(scores: Tensor, allowed: Tensor, threshold: Tensor, count: int) -> Candidates:
    """The `count` anchors whose best allowed class scores highest, above the threshold; ties by
    anchor.

    scores [N, C]; allowed bool [C]; threshold [1]. An anchor stands for its best class only. A NaN
    makes the best score NaN, which is above no threshold; an infinite one is none either.
    """
    considered = allowed.where(scores, 0.0)
    best = considered.max(axis=1)
    passed = (best > threshold.maximum(0.0)) & (best < float("inf"))
    score, anchor = largest(passed.where(best, 0.0), min(count, scores.shape[0]))
    label = considered[anchor].argmax(axis=1)
    return Candidates(score, anchor, label.cast(dtypes.int32))


def largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of float32 [N], best first, and where they stand, int32 [count]; ties by
    place.

    None may be negative or NaN; a value of 0 is not taken, and what is missing to `count` is 0.
    Values are compared by their bits, which have the same order.
    """
    values = values.contiguous()
    keys = values.bitcast(dtypes.int32).contiguous()
    cut = run_kernel(partial(find_cut, count=count), 1, dtypes.int32, keys)
    slots = run_kernel(collect, count + 2, dtypes.int32, keys, cut)
    is_filled = Tensor.arange(count) < slots[count + 1]
    places = is_filled.where(slots[:count], 0).contiguous()
    best, order = is_filled.where(values[places], 0.0).topk(count)
    return best, places[order].contiguous()


def overlaps(boxes: Tensor, threshold: Tensor) -> Tensor:
    """bool [K, K]: intersection over union above the threshold, for boxes [K, 4] as x1, y1, x2, y2.

    Multiplied out, so that empty boxes divide nothing by nothing and overlap nothing.
    """
    x1, y1, x2, y2 = boxes.transpose(0, 1).contiguous()
    shared = shared_length(x1, x2) * shared_length(y1, y2)
    area = (x2 - x1).maximum(0.0) * (y2 - y1).maximum(0.0)
    union = area.unsqueeze(1) + area - shared
    return shared > threshold * union


def shared_length(low: Tensor, high: Tensor) -> Tensor:
    """[K, K]: how much of them each two of the K intervals from low to high have in common."""
    return (high.unsqueeze(1).minimum(high) - low.unsqueeze(1).maximum(low)).maximum(0.0)


def is_finite(boxes: Tensor) -> Tensor:
    """bool [K]: no coordinate is NaN or infinite."""
    return boxes.isfinite().all(axis=1)


def keep_greedily(alive: Tensor, rivals: Tensor) -> Tensor:
    """What greedy suppression keeps: bool [K], the best first.

    alive bool [K]; rivals bool [K, K], symmetric. Candidate i stays if it is alive and no kept j <
    i is its rival.
    """
    return run_kernel(suppress, alive.shape[0], dtypes.bool, alive, rivals)
