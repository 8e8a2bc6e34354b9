import pytest

from ros_node.timing import Cycle, CycleTimes


def cycle(seconds, **pipeline):
    return Cycle(received=10.0, started=10.1, finished=10.3, published=10.0 + seconds, pipeline=pipeline)


def test_stages_are_in_the_order_in_which_they_happen():
    stages = cycle(0.5, load=0.05, run=0.15, total=0.2).stages()
    assert list(stages) == ["queue", "load", "run", "publish", "cycle"]
    assert stages == pytest.approx({"queue": 0.1, "load": 0.05, "run": 0.15, "publish": 0.2, "cycle": 0.5})


def test_percentiles_maximum_and_last_over_the_window():
    times = CycleTimes(window=100)
    for number in range(1, 151):
        times.record(cycle(1.0, run=float(number)), deadline=0.0)
    summary = times.summary()
    run = summary.stages["run"]
    # In the window are 51 to 150: half of them are 100 at most, 99 of 100 are 149 at most.
    assert (summary.cycles, run.p50, run.p99, run.max, run.last) == (100, 100.0, 149.0, 150.0, 150.0)


def test_a_stage_that_only_some_cycles_have():
    times = CycleTimes()
    times.record(cycle(1.0, run=1.0), 0.0)
    times.record(cycle(1.0, capture=5.0, run=2.0), 0.0)
    assert times.summary().stages["capture"].p50 == 5.0
    times.record(cycle(1.0, run=3.0), 0.0)
    assert "capture" not in times.summary().stages


def test_deadlines():
    times = CycleTimes()
    for seconds, deadline in [(0.4, 0.5), (0.6, 0.5), (0.6, 0.0), (0.7, 0.5)]:
        times.record(cycle(seconds), deadline)
    assert times.summary().deadline_misses == 2


def test_before_the_first_cycle():
    summary = CycleTimes().summary()
    assert (summary.cycles, summary.deadline_misses, summary.stages) == (0, 0, {})
