"""Average precision, against a case worked out by hand and a slow copy of its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensor_engine.perception.accuracy import average_precision, overlaps

A, B, C = [0, 0, 10, 10], [20, 0, 30, 10], [40, 0, 50, 10]
NOTHING = np.zeros((0, 5))


def rows(*boxes):
    return np.array(boxes, float)


def test_by_hand():
    """Three objects in two images. In order of scores: right (1 of 1), wrong, right (2 of 3), a double, wrong.

    The recalls 1/3 and 2/3 are reached at precisions 1 and 2/3, the last is not: (1 + 2/3) / 3.
    """
    first = rows([*A, 0.9], [20, 8, 30, 18, 0.8], [*A, 0.5])
    second = rows([41, 0, 51, 10, 0.7], [0, 0, 5, 5, 0.1])
    ap = average_precision([first, second], [rows(A, B), rows(C)])
    assert ap == pytest.approx((1 + 2 / 3) / 3)


def test_a_later_better_precision_counts_for_lower_recalls():
    """Wrong, right, right: both recalls at precision 2/3."""
    found = rows([*C, 0.9], [*A, 0.8], [*B, 0.7])
    assert average_precision([found], [rows(A, B)]) == pytest.approx(2 / 3)


def test_ends():
    assert average_precision([rows([*A, 0.3])], [rows(A)]) == 1
    assert average_precision([NOTHING], [rows(A)]) == 0
    assert average_precision([rows([*A, 0.3]), NOTHING], [np.zeros((0, 4)), rows(A)]) == 0
    with pytest.raises(ValueError, match="at least one true box"):
        average_precision([NOTHING], [np.zeros((0, 4))])


def test_a_detection_takes_the_box_that_it_overlaps_most():
    near = [2, 0, 12, 10]
    found = rows([*near, 0.9], [*A, 0.8])
    assert average_precision([found], [rows(A, near)]) == 1


def test_overlaps_by_hand():
    shared = overlaps(rows(A, [5, 0, 15, 10], [3, 3, 3, 9]), rows(A, [9, 9, 5, 5]))
    np.testing.assert_allclose(shared, [[1, 0], [1 / 3, 0], [0, 0]])


def slow_average_precision(scored, total):
    """The area under the interpolated curve, recall by recall. scored: (score, right or not)."""
    ordered = [right for _, right in sorted(scored, key=lambda pair: -pair[0])]
    points = [(sum(ordered[: n + 1]) / total, sum(ordered[: n + 1]) / (n + 1)) for n in range(len(ordered))]
    recalls = [step / total for step in range(1, total + 1)]
    return sum(max((p for r, p in points if r >= recall - 1e-9), default=0.0) for recall in recalls) / total


@given(st.lists(st.booleans(), max_size=12), st.integers(0, 3), st.randoms(use_true_random=False))
def test_against_the_definition(hits, missed, random):
    """Every object in a place of its own: a detection is right if it is there, and far away otherwise."""
    total = sum(hits) + missed
    if not total:
        return
    scores = random.sample(range(1, 100), len(hits))
    places = [[100 * n, 0, 100 * n + 10, 10] if hit else [0, 500, 9, 509] for n, hit in enumerate(hits)]
    unseen = [[0, 900 + 20 * n, 9, 910 + 20 * n] for n in range(missed)]
    truth = [place for place, hit in zip(places, hits) if hit] + unseen
    found = np.array([[*place, score] for place, score in zip(places, scores)], float).reshape(-1, 5)
    expected = slow_average_precision(list(zip(scores, hits)), total)
    assert average_precision([found], [np.array(truth, float)]) == pytest.approx(expected)
