"""Where the largest of each window stands, and back again, against PyTorch and by definition."""

from __future__ import annotations

import numpy as np
import pytest
from mixin.agree import agree
from mixin.derivative import check_gradient

from tensor_engine import Tensor

RANDOM = np.random.default_rng(12)


def test_places_by_definition():
    x = np.float32([[1, 5, 2, 0], [3, 4, 8, 8], [0, 0, 9, 1], [7, 0, 0, 0]])
    largest, places = Tensor(x[None, None]).max_pool2d(return_indices=True)
    agree(largest, np.float32([[[[5, 8], [7, 9]]]]))
    agree(places, np.int32([[[[1, 6], [12, 10]]]]))
    back = np.zeros(16, np.float32)
    back[[1, 6, 12, 10]] = [5, 8, 7, 9]
    agree(largest.max_unpool2d(places), back.reshape(1, 1, 4, 4))


def test_padding_is_never_the_place():
    for lowest in (-np.inf, np.nan):
        x = Tensor(np.full((1, 1, 2), lowest, np.float32))
        largest, places = x.max_pool2d((3,), 1, padding=1, return_indices=True)
        agree(largest, np.full((1, 1, 2), lowest, np.float32))
        agree(places, np.zeros((1, 1, 2), np.int32))


CASES = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 1, "padding": 1},
    {"kernel_size": (3, 2), "stride": (2, 1)},
    {"kernel_size": 2, "dilation": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    {"kernel_size": (1, 1)},
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_places_as_pytorch(case):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")
    x = RANDOM.integers(-3, 4, (2, 3, 8, 7)).astype(np.float32)
    expected = torch.nn.functional.max_pool2d(torch.tensor(x), return_indices=True, **case)
    largest, places = Tensor(x).max_pool2d(return_indices=True, **case)
    agree(largest, expected[0].numpy())
    agree(places, expected[1].numpy().astype(np.int32))


@pytest.mark.parametrize("case", [c for c in CASES if "dilation" not in c and "ceil_mode" not in c], ids=str)
def test_unpool_as_pytorch(case):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")
    x = RANDOM.normal(size=(2, 2, 8, 6))
    largest, places = torch.nn.functional.max_pool2d(torch.tensor(x), return_indices=True, **case)
    for size in (None, (8, 6)):
        if size is None and case.get("stride") == (2, 1):
            continue  # the smallest size that fits cuts places off
        expected = torch.nn.functional.max_unpool2d(largest, places, output_size=size, **case)
        got = Tensor(largest.numpy()).max_unpool2d(Tensor(places.numpy()), output_size=size, **case)
        agree(got, expected.numpy())


def test_gradient_goes_to_the_places():
    check_gradient(lambda x: x.max_pool2d(return_indices=True)[0].square(), RANDOM.normal(size=(1, 2, 4, 4)))
    places = Tensor(RANDOM.normal(size=(1, 2, 4, 4))).max_pool2d(return_indices=True)[1]
    check_gradient(lambda x: x.max_unpool2d(places).square(), RANDOM.normal(size=(1, 2, 2, 2)))


# ---- images in another size


@pytest.mark.parametrize("size", [(1, 1), (5, 9), (3, 4), (12, 2)])
@pytest.mark.parametrize(
    ("mode", "align"),
    [("nearest", None), ("nearest-exact", None), *((m, a) for m in ("bilinear", "bicubic") for a in (False, True))],
)
def test_interpolate_as_pytorch(mode, align, size):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")
    x = RANDOM.normal(size=(1, 2, 6, 4))
    expected = torch.nn.functional.interpolate(torch.tensor(x), size, mode=mode, align_corners=align).numpy()
    agree(Tensor(x).interpolate(size, mode, bool(align)), expected, rtol=1e-9)


def test_cubic_interpolation_goes_through_a_parabola():
    """Keys' kernel with slope -0.5 would; with PyTorch's -0.75 the middle of two is off by known weights."""
    x = np.array([[0.0, 1, 4, 9, 16, 25]])
    middle = np.array([-0.09375, 0.59375, 0.59375, -0.09375])
    got = Tensor(x).interpolate((11,), "cubic", align_corners=True).numpy()[0]
    np.testing.assert_allclose(got[::2], x[0], rtol=1e-12)
    np.testing.assert_allclose(got[3:9:2], [x[0, i : i + 4] @ middle for i in range(3)], rtol=1e-12)


def test_gradient_of_cubic_interpolation():
    check_gradient(lambda x: x.interpolate((5, 3), "cubic"), RANDOM.normal(size=(1, 1, 3, 4)))
