"""Choosing and suppressing candidates, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perception.oracle import Box, greedy_nms

from tensor_engine import Context, Tensor
from tensor_engine.perception.nms import best_anchors, is_finite, keep_greedily, largest, overlaps


def kept_by_definition(alive, rivals) -> list[bool]:
    """The sentence itself: i stays if it is alive and no kept j < i is its rival."""
    kept: list[bool] = []
    for i, living in enumerate(alive):
        kept.append(bool(living) and not any(kept[j] and rivals[i][j] for j in range(i)))
    return kept


def keep(alive, rivals) -> list[bool]:
    return keep_greedily(Tensor(np.asarray(alive)), Tensor(np.asarray(rivals))).tolist()


# one size a few: every size is another program to compile
@given(st.sampled_from([1, 2, 3, 37]), st.integers(0, 2**32 - 1), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_random_rivalries(count, seed, density):
    rng = np.random.default_rng(seed)
    rivals = rng.random((count, count)) < density
    rivals |= rivals.T
    alive = rng.random(count) < 0.8
    assert keep(alive, rivals) == kept_by_definition(alive, rivals)


@pytest.mark.parametrize("count", [2, 17, 64, 100])
def test_the_longest_chain(count):
    """Each candidate is the rival of its neighbours only: every decision waits for the one before."""
    rivals = np.abs(np.subtract.outer(np.arange(count), np.arange(count))) == 1
    assert keep([True] * count, rivals) == [i % 2 == 0 for i in range(count)]


def test_all_rivals_and_no_rivals():
    count = 40
    assert keep([True] * count, np.ones((count, count), bool)) == [True] + [False] * (count - 1)
    assert keep([True] * count, np.zeros((count, count), bool)) == [True] * count
    assert keep([False] * count, np.ones((count, count), bool)) == [False] * count


BOXES = st.lists(
    st.tuples(*[st.integers(0, 20)] * 2, *[st.integers(0, 12)] * 2, st.integers(1, 9), st.integers(0, 2)),
    min_size=24, max_size=24,
)


@given(BOXES, st.sampled_from([0.0, 0.3, 0.45, 0.61, 1.0]))
@settings(max_examples=40, deadline=None)
def test_boxes_against_a_plain_greedy_loop(rows, threshold):
    boxes = [Box(x, y, x + w, y + h, score / 10, label) for x, y, w, h, score, label in rows]
    boxes.sort(key=lambda b: -b.score)
    corners = Tensor(np.array([[b.x1, b.y1, b.x2, b.y2] for b in boxes], np.float32))
    labels = np.array([b.label for b in boxes])
    rivals = overlaps(corners, Tensor([threshold])).numpy() & (labels[:, None] == labels)
    kept = keep([True] * len(boxes), rivals)
    assert [b for b, stays in zip(boxes, kept) if stays] == greedy_nms(boxes, threshold)


def test_broken_boxes_overlap_nothing():
    nan, inf = float("nan"), float("inf")
    boxes = Tensor([[0, 0, 4, 4], [nan, 0, 4, 4], [0, 0, inf, 4], [4, 4, 0, 0], [2, 2, 2, 2], [-inf, 0, 4, nan]])
    assert is_finite(boxes).tolist() == [True, False, False, True, True, False]
    found = overlaps(boxes, Tensor([0.5])).numpy()
    assert found[0].tolist() == [True, False, False, False, False, False]


def choose(scores, allowed, threshold, count):
    table = Tensor(np.asarray(scores, np.float32))
    found = best_anchors(table, Tensor(np.asarray(allowed)), Tensor([threshold]), count)
    return found.score.numpy(), found.anchor.tolist(), found.label.tolist()


def test_the_best_class_of_the_best_anchors_in_order():
    scores = [[0.1, 0.9], [0.5, 0.2], [0.3, 0.35], [0.0, 0.0], [0.8, 0.7]]
    score, anchor, label = choose(scores, [True, True], 0.4, 4)
    np.testing.assert_allclose(score, [0.9, 0.8, 0.5, 0.0], rtol=1e-6)
    assert anchor[:3] == [0, 4, 1] and label[:3] == [1, 0, 0]


def test_equal_scores_keep_the_order_of_anchors():
    score, anchor, _ = choose([[0.5]] * 40, [True], 0.1, 20)
    assert anchor == list(range(20)) and score.tolist() == [0.5] * 20


def test_a_class_that_is_not_allowed_is_as_if_it_were_not_there():
    score, anchor, label = choose([[0.9, 0.6], [0.2, 0.1]], [False, True], 0.5, 2)
    np.testing.assert_allclose(score, [0.6, 0.0], rtol=1e-6)
    assert anchor[0] == 0 and label[0] == 1


def test_a_score_at_the_threshold_is_not_above_it():
    score, _, _ = choose([[0.5], [0.75]], [True], 0.5, 2)
    assert score.tolist() == [0.75, 0.0]


@pytest.mark.parametrize("where", ["first", "best", "alone"])
def test_nan_never_becomes_a_candidate(where):
    scores = {"first": [[np.nan, 0.9]], "best": [[0.9, np.nan]], "alone": [[np.nan, np.nan]]}[where] + [[0.6, 0.5]]
    score, anchor, _ = choose(scores, [True, True], 0.1, 2)
    np.testing.assert_allclose(score, [0.6, 0.0], rtol=1e-6)
    assert anchor[0] == 1


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_against_a_stable_sort(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 12, (50, 3)).astype(np.float32) / 12
    score, anchor, label = choose(scores, [True] * 3, 0.3, 16)
    best = scores.max(axis=1)
    order = [i for i in np.argsort(-best, kind="stable") if best[i] > 0.3][:16]
    assert anchor[: len(order)] == order
    assert score[: len(order)].tolist() == best[order].tolist()
    assert label[: len(order)] == scores[order].argmax(axis=1).tolist()
    assert not score[len(order) :].any()


@pytest.mark.parametrize("count", [1, 8, 40])
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 9, 10**6]))
@settings(max_examples=15, deadline=None)
def test_the_largest_of_many_with_ties(count, seed, kinds):
    """Fewer, as many and more values above 0 than wanted; few kinds of values make ties at the cut."""
    rng = np.random.default_rng(seed)
    values = (rng.integers(0, kinds, 40) / kinds * rng.integers(0, 2, 40)).astype(np.float32)
    best, places = (t.numpy() for t in largest(Tensor(values), count))
    order = [i for i in np.argsort(-values, kind="stable") if values[i] > 0][:count]
    assert places[: len(order)].tolist() == order
    np.testing.assert_array_equal(best, np.pad(values[order], (0, count - len(order))))


def test_values_beyond_one_and_infinite_ones_are_in_order():
    best, places = largest(Tensor([1e-30, np.inf, 0.0, 3e38, 1e-42]), 5)
    assert places.tolist()[:4] == [1, 3, 0, 4]
    assert best.tolist()[:2] == [np.inf, float(np.float32(3e38))]


@pytest.mark.parametrize("device", ["CPU:LLVM", "CPU:C", "PYTHON"])
def test_the_hand_written_kernels_on_every_backend(device):
    rng = np.random.default_rng(7)
    values = (rng.integers(0, 9, 30) / 9).astype(np.float32)
    rivals = rng.random((12, 12)) < 0.3
    rivals |= rivals.T
    with Context(DEV=device):
        best, places = (t.numpy() for t in largest(Tensor(values), 12))
        kept = keep([True] * 12, rivals)
    assert places.tolist() == np.argsort(-values, kind="stable")[:12].tolist()
    np.testing.assert_array_equal(best, values[places])
    assert kept == kept_by_definition([True] * 12, rivals)
