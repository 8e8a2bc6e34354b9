"""The compile cache on disk."""
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from tensor_engine.engine import cache as module
from tensor_engine.engine.cache import DiskCache, cached
from tensor_engine.helpers import Context


@pytest.fixture
def folder(tmp_path):
    with Context(CACHEDIR=str(tmp_path / "cache"), CACHE=1):
        yield tmp_path / "cache"
    module._caches.clear()


def entries(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file()]


class Maker:
    """Gives what it was made with, and counts how often it was asked."""

    def __init__(self, content: bytes = b"machine code"):
        self.content, self.calls = content, 0

    def __call__(self) -> bytes:
        self.calls += 1
        return self.content


def test_an_entry_is_made_once(folder):
    make = Maker()
    assert [cached("llvm", "key", make) for _ in range(3)] == [b"machine code"] * 3
    assert make.calls == 1
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(entries(folder)) == 1


def test_namespace_and_key_are_told_apart(folder):
    contents = {("a", "bc"): b"1", ("ab", "c"): b"2", ("", "abc"): b"3", ("abc", ""): b"4"}
    for (namespace, key), content in contents.items():
        cached(namespace, key, Maker(content))
    for (namespace, key), content in contents.items():
        assert cached(namespace, key.encode(), Maker(b"wrong")) == content


def test_empty_content(folder):
    cached("n", "k", Maker(b""))
    assert cached("n", "k", Maker(b"wrong")) == b""


def test_the_setting_turns_it_off(folder):
    make = Maker()
    with Context(CACHE=0):
        cached("n", "k", make)
        cached("n", "k", make)
    assert make.calls == 2
    assert not folder.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:10],
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: bytes([data[0] ^ 128]) + data[1:],
        lambda data: bytes(len(data)),
    ],
    ids=["empty", "cut in the checksum", "cut", "longer", "bit in the content", "bit in the checksum", "zeros"],
)
def test_a_damaged_entry_is_made_again(folder, damage):
    cached("n", "k", Maker())
    (path,) = entries(folder)
    path.write_bytes(damage(path.read_bytes()))
    make = Maker()
    assert cached("n", "k", make) == b"machine code"
    assert make.calls == 1
    assert cached("n", "k", Maker(b"wrong")) == b"machine code"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_is_refused(folder, mode):
    folder.mkdir()
    cache = DiskCache(folder)
    cache.write(cache.path("n", b"k"), b"planted")
    folder.chmod(mode)
    module._caches.clear()
    make = Maker()
    with pytest.warns(RuntimeWarning, match="others may write it .*chmod 700"):
        assert cached("n", "k", make) == b"machine code"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cached("n", "k", make)  # it warned once
    assert make.calls == 2


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(folder):
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, -1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert not DiskCache(folder).usable


def test_a_link_and_a_file_in_place_of_the_folder_are_refused(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(RuntimeWarning, match="no folder"):
        assert not DiskCache(folder).usable
    folder.unlink()
    folder.write_text("")
    with pytest.warns(RuntimeWarning, match="not used"):
        assert cached("n", "k", Maker()) == b"machine code"


def test_a_disk_that_cannot_be_written_is_no_error(folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.tempfile, "mkstemp", full)
    make = Maker()
    with pytest.warns(RuntimeWarning, match="No space left") as caught:
        assert [cached("n", str(i), make) for i in range(3)] == [b"machine code"] * 3
    assert len(caught) == 1


def test_a_damaged_entry_in_a_folder_that_is_read_only(folder, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    cached("n", "k", Maker())
    (path,) = entries(folder)
    path.write_bytes(b"damaged")
    monkeypatch.setattr(module.tempfile, "mkstemp", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    monkeypatch.setattr(os, "utime", refuse)
    with pytest.warns(RuntimeWarning, match="Permission denied"):
        assert cached("n", "k", Maker()) == b"machine code"


def test_what_fails_to_be_made_leaves_nothing(folder):
    def fail() -> bytes:
        raise RuntimeError("no such instruction")

    with pytest.raises(RuntimeError, match="no such instruction"):
        cached("n", "k", fail)
    assert entries(folder) == []


def test_the_longest_unused_entries_leave_first(folder):
    cache = DiskCache(folder, max_bytes=500)
    paths = [cache.path("n", str(i).encode()) for i in range(4)]
    for age, path in enumerate(paths):
        cache.write(path, bytes(100))
        os.utime(path, (0, time.time() - 1000 + age))
    assert cache.read(paths[0]) == bytes(100)  # used: now the newest
    cache.evict()
    assert [p.exists() for p in paths] == [True, False, True, True]


def test_several_processes_at_once(folder):
    script = Path(__file__).with_name("hammer_cache.py")
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "CACHEDIR": str(folder), "CACHE": "1"}
    workers = [subprocess.Popen([sys.executable, script, str(seed)], env=environment) for seed in range(3)]
    assert [worker.wait(timeout=120) for worker in workers] == [0, 0, 0]
    assert not [p for p in entries(folder) if p.name.startswith(".new-")]
