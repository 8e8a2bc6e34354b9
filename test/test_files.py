"""Tensors in files: views read what they show and no more; writing writes to the file."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from tensor_engine import Tensor, dtypes
from tensor_engine.device import Device
from tensor_engine.runtime import disk
from tensor_engine.uop.provenance import RealizeError

VALUES = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "values").write_bytes(VALUES.tobytes())
    return tmp_path / "values"


def test_a_path_is_bytes(path):
    file = Tensor(path)
    assert (file.shape, file.dtype, file.device) == ((96,), dtypes.uint8, f"DISK:{path}")
    assert bytes(file.data()) == VALUES.tobytes()
    assert Tensor(path, device="CPU").tolist() == list(VALUES.tobytes())
    assert Tensor(path, dtype="float32").tolist() == VALUES.ravel().tolist()


VIEWS = {
    "all": lambda x: x,
    "rows": lambda x: x[1:3],
    "a row": lambda x: x[2],
    "a part of a row": lambda x: x[2:3, 1:4],
    "an element": lambda x: x[3, 5],
    "columns": lambda x: x[:, 2:4],
    "reversed": lambda x: x[::-1],
    "every second": lambda x: x[:, ::2],
    "transposed": lambda x: x.T,
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name, path):
    part = VIEWS[name](Tensor(path).bitcast("float32").reshape(4, 6))
    for there in (part, part.to("CPU"), part.to("PYTHON"), part.to("CPU") + 0):
        np.testing.assert_array_equal(there.numpy(), VIEWS[name](VALUES))


def test_only_the_bytes_of_a_part_are_read(path, monkeypatch):
    read = []
    seen = disk.DiskAllocator.as_memoryview
    monkeypatch.setattr(disk.DiskAllocator, "as_memoryview", lambda *a: read.append(a[2]) or seen(*a))
    part = Tensor(path)[8:24].bitcast("float32")[1:3].to("CPU")
    assert not read
    assert part.tolist() == [3, 4]
    assert read == [8]


def test_odd_places_and_types(tmp_path):
    content = bytes(range(64))
    (tmp_path / "x").write_bytes(content)
    for dtype in (d for d in dtypes.all if d not in (dtypes.bool, dtypes.bfloat16)):
        part = Tensor(tmp_path / "x")[3 : 3 + 2 * dtype.itemsize].bitcast(dtype)
        expected = np.frombuffer(content, dtype.name, 2, 3)
        np.testing.assert_array_equal(part.numpy(), expected)
        np.testing.assert_array_equal(part.to("CPU").numpy(), expected)


def test_writing(path):
    file = Tensor(path).bitcast("float32").reshape(4, 6)
    expected = VALUES.copy()
    file[1] = Tensor([9.0] * 6)
    file[2, 1:3].assign([7.0, 8.0])
    expected[1], expected[2, 1:3] = 9, [7, 8]
    np.testing.assert_array_equal(np.fromfile(path, np.float32).reshape(4, 6), expected)
    with pytest.raises(ValueError, match="not in one piece"):
        file[:, 0] = 1


def test_new_files(tmp_path):
    place = f"disk:{tmp_path / 'New'}"
    empty = Tensor.empty(2, 3, device=place)
    assert (tmp_path / "New").stat().st_size == 24
    empty.assign(Tensor(VALUES[:2, :3]) * 2)
    assert np.fromfile(tmp_path / "New", np.float32).tolist() == (VALUES[:2, :3] * 2).ravel().tolist()
    moved = (Tensor([1, 2]) + 1).to(place)  # the file keeps what lies behind
    assert (moved.device, moved.tolist()) == (f"DISK:{tmp_path / 'New'}", [2, 3])
    assert (tmp_path / "New").stat().st_size == 24


def test_a_file_that_is_read_only(path, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)  # the tests may run as root, who may write everything
    with pytest.raises(PermissionError, match="values is read-only"):
        Tensor(path)[:1].assign(1)
    assert path.read_bytes() == VALUES.tobytes()


def test_what_cannot_be(path, tmp_path):
    file = Tensor(path)
    with pytest.raises(FileNotFoundError):
        Tensor(tmp_path / "missing")
    with pytest.raises(ValueError, match="5 bytes are no whole number"):
        file[:5].bitcast("float32")
    with pytest.raises(ValueError, match="not in one piece"):
        file[::2].bitcast("int8")
    with pytest.raises(RealizeError, match=r"bring them to a device by \.to\(\)"):
        (file + 1).tolist()
    with pytest.raises(ValueError, match="DISK:path"):
        Device.canonicalize("disk")


def test_files_without_bytes(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    file = Tensor(tmp_path / "empty")
    assert (file.shape, file.tolist(), file.to("CPU").tolist()) == ((0,), [], [])
    assert Tensor(tmp_path / "empty", dtype="float64")[:0].bitcast("int16").shape == (0,)


def test_a_copy_is_in_memory(path):
    copied = copy.deepcopy(Tensor(path)[:4])
    assert (copied.device, copied.tolist()) == ("CPU", list(VALUES.tobytes()[:4]))
