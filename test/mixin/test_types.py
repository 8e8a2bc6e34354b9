"""Types by name, and bits read as another type, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from mixin.agree import agree

from tensor_engine import Tensor, dtypes
from tensor_engine.uop.uop import UOp

NAMES = {
    "float": np.float32,
    "half": np.float16,
    "double": np.float64,
    "short": np.int16,
    "int": np.int32,
    "long": np.int64,
    "bool": np.bool_,
}


@pytest.mark.parametrize("name", NAMES)
def test_by_name(name):
    x = np.array([0, 1, -2.75, 100], np.float32)
    agree(getattr(Tensor(x), name)(), x.astype(NAMES[name]))
    assert getattr(Tensor, name) is getattr(UOp, name)


def test_bfloat16_keeps_eight_digits():
    assert Tensor([1.0, 1.00390625, 3.0]).bfloat16().tolist() == [1.0, 1.0, 3.0]


WIDTHS = [np.uint8, np.int16, np.float32, np.int64, np.float64]


@pytest.mark.parametrize("source", WIDTHS)
@pytest.mark.parametrize("target", WIDTHS)
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_bitcast(source, target, rows):
    raw = np.random.default_rng(2).integers(0, 0x3F, (rows, 16), np.uint8)  # no nan among them, which is never equal
    x = raw.view(source)
    agree(Tensor(x).bitcast(getattr(dtypes, np.dtype(target).name)), x.view(target), rtol=0)


def test_bitcast_runs():
    raw = np.arange(24, dtype=np.uint8)
    assert np.array_equal(Tensor(raw).bitcast(dtypes.uint32).numpy(), raw.view(np.uint32))
    assert np.array_equal(Tensor(raw.view(np.uint64)).bitcast(dtypes.uint8).numpy(), raw)


def test_bits_that_do_not_fit():
    with pytest.raises(ValueError, match="can't bitcast 3 elements of 8 bits to 32"):
        Tensor(np.zeros(3, np.uint8)).bitcast(dtypes.int32)
    with pytest.raises(ValueError, match="differ in width"):
        Tensor(1).bitcast(dtypes.uint8)
