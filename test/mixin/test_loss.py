"""Losses against their definitions in numpy."""

from __future__ import annotations

import numpy as np
import pytest
from mixin.agree import agree

from tensor_engine import Tensor

RANDOM = np.random.default_rng(5)
LOGITS = RANDOM.normal(size=(6, 4)).astype(np.float32) * 3
CLASSES = RANDOM.integers(0, 4, 6).astype(np.int32)
HITS = np.eye(4)[CLASSES]
LOG = LOGITS - np.log(np.exp(LOGITS.astype(np.float64)).sum(1, keepdims=True))
REDUCE = {"mean": np.mean, "sum": np.sum, "none": lambda x: x}


def single(x):
    return np.asarray(x, np.float32)


@pytest.mark.parametrize("reduction", REDUCE)
def test_binary_cross_entropy(reduction):
    p = 1 / (1 + np.exp(-LOGITS.astype(np.float64)))
    loss = REDUCE[reduction](-HITS * np.log(p) - (1 - HITS) * np.log(1 - p))
    target = Tensor(HITS.astype(np.float32))
    agree(Tensor(single(p)).binary_crossentropy(target, reduction), single(loss), rtol=1e-4)
    agree(Tensor(LOGITS).binary_crossentropy_logits(target, reduction), single(loss), rtol=1e-5)


def test_binary_cross_entropy_with_weights_and_large_logits():
    weight = np.float32([1, 2, 3, 4])
    p = 1 / (1 + np.exp(-LOGITS.astype(np.float64)))
    loss = (-weight * HITS * np.log(p) - (1 - HITS) * np.log(1 - p)).mean()
    target = Tensor(HITS.astype(np.float32))
    agree(Tensor(LOGITS).binary_crossentropy_logits(target, pos_weight=Tensor(weight)), single(loss), rtol=1e-5)
    large = Tensor([1000.0, -1000.0]).binary_crossentropy_logits(Tensor([0.0, 0.0]), "none")
    agree(large, single([1000, 0]))


@pytest.mark.parametrize("reduction", REDUCE)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy(reduction, smoothing):
    target = HITS * (1 - smoothing) + smoothing / 4
    loss = REDUCE[reduction](-(LOG * target).sum(1))
    agree(Tensor(LOGITS).cross_entropy(Tensor(CLASSES), reduction, smoothing), single(loss), rtol=1e-5)
    agree(Tensor(LOGITS).cross_entropy(Tensor(single(HITS)), reduction, smoothing), single(loss), rtol=1e-5)
    sparse = Tensor(LOGITS).sparse_categorical_crossentropy(
        Tensor(CLASSES), label_smoothing=smoothing, reduction=reduction
    )
    agree(sparse, single(loss), rtol=1e-5)


def test_classes_along_the_second_of_three_axes():
    logits = RANDOM.normal(size=(2, 4, 3)).astype(np.float32)
    classes = RANDOM.integers(0, 4, (2, 3))
    log = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    loss = -np.take_along_axis(log, classes[:, None], 1).mean()
    agree(Tensor(logits).cross_entropy(Tensor(classes)), single(loss), rtol=1e-5)
    agree(Tensor(log).nll_loss(Tensor(classes)), single(loss), rtol=1e-5)


def test_ignored_classes():
    classes = CLASSES.copy()
    classes[::2] = -1
    loss = -LOG[np.arange(6), classes][classes >= 0]
    agree(Tensor(LOGITS).sparse_categorical_crossentropy(Tensor(classes)), single(loss.mean()), rtol=1e-5)
    agree(Tensor(single(LOG)).nll_loss(Tensor(classes), ignore_index=-1), single(loss.mean()), rtol=1e-5)


def test_weighted_classes():
    weight = np.float32([1, 2, 3, 4])
    each = -LOG[np.arange(6), CLASSES] * weight[CLASSES]
    mean = each.sum() / weight[CLASSES].sum()
    agree(Tensor(single(LOG)).nll_loss(Tensor(CLASSES), Tensor(weight)), single(mean), rtol=1e-5)
    agree(Tensor(single(LOG)).nll_loss(Tensor(CLASSES), Tensor(weight), reduction="none"), single(each), rtol=1e-5)


def test_an_unknown_reduction():
    with pytest.raises(ValueError, match="reduction is one of"):
        Tensor(LOGITS).cross_entropy(Tensor(CLASSES), "average")
