"""Reads and writes the cache entries that other processes do at the same time, and damages some.

Ends with code 1 if an entry is wrong.
"""
import contextlib
import sys

from tensor_engine.engine.cache import cached, disk_cache

seed = int(sys.argv[1])
for i in range(200):
    number = (i * 7 + seed) % 10
    content = bytes([number]) * 5000
    if cached("n", str(number), lambda content=content: content) != content:
        sys.exit(1)
    if i % 10 == seed:
        path = disk_cache().path("n", str(number).encode())
        with contextlib.suppress(FileNotFoundError):
            path.write_bytes(path.read_bytes()[:100])
    if i % 50 == 0:
        disk_cache().evict()
