import threading

from ros_node.accounting import FrameCounts, FrameTotals


def test_every_way_an_image_can_go_is_counted():
    counts = FrameCounts()
    for _ in range(5):
        counts.receive()
    counts.publish()
    counts.supersede()
    counts.reject("empty")
    counts.reject("empty")
    counts.pass_by()
    assert counts.totals() == FrameTotals(5, 1, 1, 1, 1, {"empty": 2})
    assert counts.totals().balanced


def test_a_lost_image_shows():
    assert not FrameTotals(received=3, published=1, superseded=1).balanced


def test_counts_hold_at_any_moment_with_several_threads():
    counts = FrameCounts()
    ended = threading.Event()

    def work(finish):
        for _ in range(2000):
            counts.receive()
            finish()

    threads = [
        threading.Thread(target=work, args=(finish,))
        for finish in (counts.publish, counts.supersede, lambda: counts.reject("size"))
    ]
    unbalanced = []

    def watch():
        while not ended.is_set():
            totals = counts.totals()
            if not totals.balanced or not 0 <= totals.in_flight <= 3:
                unbalanced.append(totals)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ended.set()
    watcher.join()
    assert unbalanced == []
    assert counts.totals() == FrameTotals(6000, 2000, 2000, 0, 0, {"size": 2000})
