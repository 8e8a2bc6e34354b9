"""How right detections are: average precision, the area under the curve of precision over recall."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def average_precision(found: Sequence[np.ndarray], truth: Sequence[np.ndarray], overlap: float = 0.5) -> float:
    """The average precision of one class over several images, from 0 to 1.

    For each image: found [n, 5] holds x1, y1, x2, y2 and the score, truth [m, 4] the boxes that are there. The best
    score first, a detection is right if it overlaps a box of the truth that no better one has taken; it takes the one
    that it overlaps most. Precision at a recall is the best at that or any higher recall, and all recalls count (as in
    Pascal VOC from 2010 on: Everingham et al., "The Pascal visual object classes challenge: a retrospective", 2015).
    Raises ValueError where there is no truth at all.
    """
    total = sum(len(boxes) for boxes in truth)
    if not total:
        raise ValueError("average precision needs at least one true box")
    pairs = [matches(f, t, overlap) for f, t in zip(found, truth, strict=True)]
    scores = np.concatenate([f[:, 4] for f in found])
    right = np.concatenate(pairs)[np.argsort(-scores, kind="stable")]
    hits = np.cumsum(right)
    precision = hits / np.arange(1, len(right) + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float(best[right].sum() / total)


def matches(found: np.ndarray, truth: np.ndarray, overlap: float) -> np.ndarray:
    """bool [n]: which detections of one image are right."""
    right, free = np.zeros(len(found), bool), np.ones(len(truth), bool)
    shared = overlaps(found, truth)
    for number in np.argsort(-found[:, 4], kind="stable"):
        candidates = np.where(free & (shared[number] >= overlap), shared[number], -1.0)
        if candidates.size and candidates.max() >= 0:
            free[candidates.argmax()] = False
            right[number] = True
    return right


def overlaps(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Intersection over union [n, m] of boxes [n, 4 or more] and [m, 4 or more] as x1, y1, x2, y2."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:4], b[None, :, 2:4])
    shared = np.clip(high - low, 0, None).prod(axis=2)
    union = areas(a)[:, None] + areas(b) - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def areas(boxes: np.ndarray) -> np.ndarray:
    """[n]: what each box covers; one turned inside out covers nothing."""
    return np.clip(boxes[:, 2:4] - boxes[:, :2], 0, None).prod(axis=1)
