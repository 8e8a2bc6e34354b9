"""Threads that compute at the same time."""

from __future__ import annotations

import threading

from tensor_engine import Tensor, TinyJit


def test_a_capture_has_no_kernels_of_other_threads() -> None:
    begin, done = threading.Event(), threading.Event()

    def elsewhere() -> None:
        begin.wait(60)
        (Tensor([5.0, 6.0]) * 3).realize()
        done.set()

    def function(x: Tensor) -> Tensor:
        doubled = (x * 2).realize()
        if fast.calls == 2:
            begin.set()
            assert done.wait(60)
        return doubled + 1

    fast = TinyJit(function)
    thread = threading.Thread(target=elsewhere)
    thread.start()
    assert [fast(Tensor([float(number)])).item() for number in range(4)] == [1, 3, 5, 7]
    thread.join()
    assert fast.captured is not None
    assert len(fast.captured.launches) == 2
