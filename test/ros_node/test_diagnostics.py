from dataclasses import replace

import pytest

from ros_node.accounting import FrameTotals
from ros_node.diagnostics import HOLD, CameraState, Level, Reporter, Snapshot
from ros_node.timing import Cycle, CycleTimes
from ros_node.worker import State

CALM = Snapshot(
    state=State.RUNNING,
    detail="",
    state_age=10.0,
    model={"model": "m.onnx"},
    totals=FrameTotals(),
    camera=CameraState(topic="/image_raw", transport="raw", publishers=1, images=10, silent_for=0.1),
    times=CycleTimes().summary(),
    deadline=0.0,
    delay=None,
)


def seen_by(camera):
    status = Reporter().report(replace(CALM, camera=replace(CALM.camera, **camera)), 1.0)["camera"]
    return status.level, status.message


def test_rates_are_per_second_since_the_last_report():
    reporter = Reporter()
    reporter.report(replace(CALM, totals=FrameTotals(received=100, published=90, superseded=10)), 1.0)
    now = FrameTotals(received=115, published=100, superseded=15)
    values = reporter.report(replace(CALM, totals=now), 0.5)["frames"].values
    assert (values["frame_rate_msg"], values["output_rate"]) == ("30.00", "20.00")
    assert (values["received"], values["published"], values["superseded"]) == (115, 100, 15)


def test_a_rejection_warns_for_a_few_reports_and_its_sentence_stays():
    reporter = Reporter()
    totals = FrameTotals(received=3, rejected={"truncated": 2, "size": 1})
    reports = [reporter.report(replace(CALM, totals=totals), 1.0)["frames"] for _ in range(HOLD + 1)]
    assert [report.level for report in reports] == [Level.WARN] * HOLD + [Level.OK]
    assert {report.message for report in reports[:HOLD]} == {"rejected: 2 truncated, 1 size"}
    assert reports[0].values["rejected_truncated"] == 2


@pytest.mark.parametrize("moments", [[0.1, 6.0, 0.1], [6.0, 6.0, 0.1]])
def test_silence_is_stale_at_once_and_over_at_once(moments):
    reporter = Reporter()
    for silent in moments:
        camera = replace(CALM.camera, silent_for=silent)
        level = reporter.report(replace(CALM, camera=camera), 1.0)["camera"].level
        assert level is (Level.STALE if silent > 5 else Level.OK)


def test_a_slow_camera_is_no_fault():
    assert seen_by({"silent_for": 3.4}) == (Level.OK, "images arrive")


def test_nobody_publishes():
    level, message = seen_by({"publishers": 0, "images": 0, "silent_for": 6.0})
    assert level is Level.STALE
    assert message == "nobody publishes /image_raw"


def test_a_camera_whose_images_never_arrive_gets_the_transport_hint():
    level, message = seen_by({"images": 0, "silent_for": 6.0})
    assert level is Level.WARN
    assert "FASTDDS_DEFAULT_PROFILES_FILE" in message


def test_images_that_the_middleware_lost_get_the_hint_too():
    level, message = seen_by({"lost": 7})
    assert level is Level.WARN
    assert message.startswith("7 images lost")


@pytest.mark.parametrize(
    ("state", "level"), [({"images": 0}, Level.ERROR), ({"images": 9}, Level.WARN)], ids=["only camera", "one of two"]
)
def test_incompatible_qos_names_the_policy(state, level):
    found, message = seen_by({"incompatible_policy": "RELIABILITY", **state})
    assert found is level
    assert "RELIABILITY" in message


def test_while_it_compiles_it_says_for_how_long():
    compiling = replace(CALM, state=State.COMPILING, detail="for 640x480 bgr8", state_age=12.4)
    status = Reporter().report(compiling, 1.0)["model"]
    assert status.level is Level.OK
    assert status.message == "compiling for 640x480 bgr8, 12 s so far"


def test_a_failure_is_an_error():
    status = Reporter().report(replace(CALM, state=State.FAILED, detail="no such file"), 1.0)["model"]
    assert (status.level, status.message) == (Level.ERROR, "failed no such file")


def test_timing_tells_milliseconds_delay_and_missed_deadlines():
    times = CycleTimes()
    times.record(Cycle(1.0, 1.001, 1.011, 1.0125, {"run": 0.01}), deadline=0.01)
    late = replace(CALM, times=times.summary(), deadline=0.01, delay=-2.5)
    reporter = Reporter()
    status = reporter.report(late, 1.0)["timing"]
    assert status.level is Level.WARN
    assert status.message == "1 deadlines of 10 ms missed"
    assert status.values["queue_p50_ms"] == "1.000"
    assert status.values["run_max_ms"] == "10.000"
    assert status.values["cycle_last_ms"] == "12.500"
    assert status.values["current_delay_from_realtime_ms"] == "-2500.0"
