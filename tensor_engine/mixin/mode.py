"""Whether tensors are for training now: what dropout, batch normalisation and optimisers ask."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tensor_engine.helpers import TRAINING, Context
from tensor_engine.mixin import OpMixin


class Mode(type):
    """Classes with `training`, which is the setting TRAINING under another name."""

    @property
    def training(cls) -> bool:
        """True while training. It may be set, and so may `Context(TRAINING=1)`."""
        return bool(TRAINING)

    @training.setter
    def training(cls, value: bool) -> None:
        TRAINING.value = int(value)


class ModeMixin(OpMixin, metaclass=Mode):
    """training, train, test, no_grad."""

    __slots__ = ()

    @staticmethod
    @contextlib.contextmanager
    def train(mode: bool = True) -> Iterator[None]:
        """`with Tensor.train():` sets `Tensor.training`, which layers like dropout ask, for a while."""
        with Context(TRAINING=int(mode)):
            yield

    @staticmethod
    @contextlib.contextmanager
    def test(mode: bool = True) -> Iterator[None]:
        """`with Tensor.test():` is `with Tensor.train(False):`."""
        with Context(TRAINING=int(not mode)):
            yield

    @staticmethod
    @contextlib.contextmanager
    def no_grad() -> Iterator[None]:
        """`with Tensor.no_grad():` changes nothing: gradients are made when they are asked for, and only then."""
        yield
