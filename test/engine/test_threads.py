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


def test_threads_may_replay_one_capture() -> None:
    fast = TinyJit(lambda x: ((x + 1).contiguous() * 2).contiguous() - x)
    for _ in range(2):
        fast(Tensor([0.0] * 1000))
    failures = []

    def work(start: int) -> None:
        for number in range(start, start + 200):
            result = fast(Tensor([float(number)] * 1000))
            if set(result.tolist()) != {number + 2.0}:
                failures.append(number)

    threads = [threading.Thread(target=work, args=(1000 * i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
