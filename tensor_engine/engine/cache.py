"""The compile cache on disk: content-addressed, private to the user, safe with several processes at once.

An entry's name is the SHA-256 of all that determines its bytes; the file holds the SHA-256 of the content and then
the content. A file that does not fit its checksum is removed and made again. What is in the cache may be machine
code, so a folder that others could write is refused.
"""
from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

from tensor_engine.helpers import CACHE, cache_dir

MAX_BYTES = 1 << 30
CHECKSUM_BYTES = hashlib.sha256().digest_size
EVICTION_INTERVAL = 256  # the folder is measured on the first write and then every so many writes


class DiskCache:
    """A cache in one folder, made when it is first used. Problems with the folder warn once and are no errors."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES):
        self.folder, self.max_bytes = folder, max_bytes
        self.writes = 0
        self.lock = threading.Lock()
        self.usable = self._prepare()

    def _prepare(self) -> bool:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            problem = _not_private(self.folder)
        except OSError as error:
            problem = str(error)
        if problem:
            self._warn(problem)
        return not problem

    def _warn(self, problem: str) -> None:
        warnings.warn(f"the compile cache {self.folder} is not used: {problem}", RuntimeWarning, stacklevel=2)

    def path(self, namespace: str, key: bytes) -> Path:
        """Where an entry lies."""
        digest = hashlib.sha256(b"%d:%s" % (len(namespace.encode()), namespace.encode()) + key).hexdigest()
        return self.folder / digest[:2] / digest[2:]

    def read(self, path: Path) -> bytes | None:
        """The entry, or None if it is not there or damaged (then it is removed)."""
        try:
            data = path.read_bytes()
        except OSError:
            return None
        content = data[CHECKSUM_BYTES:]
        if hashlib.sha256(content).digest() == data[:CHECKSUM_BYTES]:
            _touch(path)
            return content
        _remove(path)
        return None

    def write(self, path: Path, content: bytes) -> None:
        """Store an entry: a reader sees all of it or nothing."""
        if not self.usable:
            return
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            _write_atomically(path, hashlib.sha256(content).digest() + content)
            self._count_write()
        except OSError as error:
            self.usable = False
            self._warn(str(error))

    def _count_write(self) -> None:
        with self.lock:
            due = self.writes % EVICTION_INTERVAL == 0
            self.writes += 1
        if due:
            self.evict()

    def evict(self) -> None:
        """Remove the entries that were not used for the longest time, until the rest fits the limit."""
        entries = sorted(_entries(self.folder), key=lambda entry: entry[1])
        total = sum(size for _, _, size in entries)
        for path, _, size in entries:
            if total <= self.max_bytes:
                return
            _remove(Path(path))
            total -= size


def _not_private(folder: Path) -> str:
    """Why this folder must not be trusted; empty if it may."""
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        return "it is no folder"
    if info.st_uid != os.getuid():
        return "it belongs to another user"
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write it (mode {stat.S_IMODE(info.st_mode):o}); run chmod 700 on it"
    return ""


# Others may remove the entry meanwhile, and the folder may be read-only: neither matters here.


def _touch(path: Path) -> None:
    """Mark as used now."""
    with contextlib.suppress(OSError):
        os.utime(path)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _write_atomically(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _entries(folder: Path) -> list[tuple[str, float, int]]:
    """(path, time of last use, bytes) of all files, unfinished ones included."""
    found = []
    for group in filter(os.path.isdir, os.scandir(folder)):
        for entry in os.scandir(group):
            with contextlib.suppress(OSError):
                info = entry.stat(follow_symlinks=False)
                found.append((entry.path, info.st_mtime, info.st_size))
    return found


_caches: dict[Path, DiskCache] = {}


def disk_cache() -> DiskCache:
    """The cache in the folder that the settings name."""
    folder = cache_dir()
    if folder not in _caches:
        _caches[folder] = DiskCache(folder)
    return _caches[folder]


def cached(namespace: str, key: bytes | str, make: Callable[[], bytes]) -> bytes:
    """What `make` gave when it was last asked for this key in this namespace, else what it gives now.

    `namespace` and `key` must hold everything that the bytes depend on. With CACHE=0 `make` is always called.
    """
    if not CACHE:
        return make()
    cache = disk_cache()
    if not cache.usable:
        return make()
    path = cache.path(namespace, key.encode() if isinstance(key, str) else key)
    content = cache.read(path)
    if content is None:
        content = make()
        cache.write(path, content)
    return content
