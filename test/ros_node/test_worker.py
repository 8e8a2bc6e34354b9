"""The worker without ROS: a camera's thread on one side, a host that writes down what it is told on the other."""

import threading
from types import SimpleNamespace

import pytest

from ros_node.accounting import FrameCounts
from ros_node.worker import FrameWorker, Geometry, Slot, State
from tensor_engine.perception.errors import ModelError
from tensor_engine.perception.frame import BadImage

PATIENCE = 20.0
TINY = Geometry(2, 4, "mono8", 4)


def message(number=0, **fields):
    stamp = SimpleNamespace(sec=number, nanosec=0)
    header = SimpleNamespace(stamp=stamp, frame_id="")
    usual = {"data": bytes(8), "encoding": "mono8", "height": 2, "width": 4, "step": 4}
    return SimpleNamespace(header=header, **{**usual, **fields})


class Pipeline:
    """Waits to be told to go on, where a test wants that."""

    def __init__(self):
        self.prepared = []
        self.fault = None
        self.may_run = threading.Event()
        self.may_run.set()
        self.running = threading.Event()

    def prepare(self, height, width, encoding, step):
        self.prepared.append(Geometry(height, width, encoding, step))
        if self.fault:
            raise self.fault

    def __call__(self, frame):
        self.running.set()
        assert self.may_run.wait(PATIENCE)
        frame.check()
        if self.fault:
            raise self.fault
        return frame.stamp_ns


class Host:
    def __init__(self, pipeline):
        self.pipeline = pipeline
        self.states, self.published, self.rejected = [], [], []
        self.changed = threading.Condition()

    def load_pipeline(self):
        if isinstance(self.pipeline, Exception):
            raise self.pipeline
        return self.pipeline

    def pipeline_loaded(self, pipeline):
        assert pipeline is self.pipeline

    def publish_result(self, arrival, frame, result, started):
        assert arrival.received <= started
        self.note(self.published, arrival.message.header.stamp.sec)
        self.counts.publish()

    def image_rejected(self, error):
        self.note(self.rejected, error)

    def state_changed(self, state, detail):
        self.note(self.states, state)

    def note(self, where, what):
        with self.changed:
            where.append(what)
            self.changed.notify_all()

    def until(self, condition):
        with self.changed:
            assert self.changed.wait_for(condition, PATIENCE)


@pytest.fixture
def start():
    workers = []

    def start(pipeline, geometry=TINY):
        host = Host(pipeline)
        host.counts = FrameCounts()
        worker = FrameWorker(host, host.counts, geometry)
        workers.append(worker)
        worker.start()
        return worker, host

    yield start
    for worker in workers:
        assert worker.stop(PATIENCE)


def running(start, pipeline):
    worker, host = start(pipeline)
    host.until(lambda: worker.state is State.RUNNING)
    return worker, host


def test_a_slot_keeps_the_newest():
    slot = Slot()
    assert [slot.put(number) for number in range(3)] == [False, True, True]
    assert slot.take() == 2
    slot.close()
    assert slot.take() is None


def test_a_closed_slot_wakes_who_waits():
    slot = Slot()
    taken = []
    waiting = threading.Thread(target=lambda: taken.append(slot.take()))
    waiting.start()
    slot.close()
    waiting.join(PATIENCE)
    assert taken == [None]


def test_the_newest_image_goes_next_and_the_others_are_superseded(start):
    pipeline = Pipeline()
    worker, host = running(start, pipeline)
    pipeline.may_run.clear()
    worker.offer(message(1))
    assert pipeline.running.wait(PATIENCE)
    for number in (2, 3, 4):
        worker.offer(message(number))
    assert host.counts.totals().in_flight == 2
    pipeline.may_run.set()
    host.until(lambda: len(host.published) == 2)
    assert host.published == [1, 4]
    totals = host.counts.totals()
    assert (totals.received, totals.published, totals.superseded, totals.in_flight) == (4, 2, 2, 0)


def test_a_bad_image_and_a_fault_of_ours_are_rejected_and_the_next_image_goes(start):
    pipeline = Pipeline()
    worker, host = running(start, pipeline)
    worker.offer(message(data=b""))
    host.until(lambda: len(host.rejected) == 1)
    pipeline.fault = ZeroDivisionError("ours")
    worker.offer(message())
    host.until(lambda: len(host.rejected) == 2)
    pipeline.fault = None
    worker.offer(message(7))
    host.until(lambda: host.published == [7])
    assert isinstance(host.rejected[0], BadImage)
    assert host.counts.totals().rejected == {"empty": 1, "internal": 1}
    assert host.counts.totals().balanced


def test_a_new_geometry_is_compiled_for_once(start):
    pipeline = Pipeline()
    worker, host = running(start, pipeline)
    wide = {"width": 6, "step": 6, "data": bytes(12)}
    for number, fields in enumerate([wide, {}, wide, {}]):
        worker.offer(message(number, **fields))
        host.until(lambda number=number: host.published[-1:] == [number])
    assert pipeline.prepared == [TINY, Geometry(2, 6, "mono8", 6)]


def test_a_compile_that_fails_later_rejects_the_image_and_images_are_still_taken(start):
    pipeline = Pipeline()
    worker, host = running(start, pipeline)
    pipeline.fault = ZeroDivisionError("ours")
    worker.offer(message(width=6, step=6, data=bytes(12)))
    host.until(lambda: host.rejected)
    assert host.counts.totals().rejected == {"internal": 1}
    pipeline.fault = None
    host.until(lambda: worker.state is State.RUNNING)
    worker.offer(message(3))
    host.until(lambda: host.published == [3])


def test_the_camera_tells_the_geometry(start):
    pipeline = Pipeline()
    worker, host = start(pipeline, geometry=None)
    host.until(lambda: worker.state is State.WAITING)
    worker.offer(message(data=b""))
    host.until(lambda: host.rejected)
    assert pipeline.prepared == []
    worker.offer(message(2))
    host.until(lambda: worker.state is State.RUNNING)
    assert pipeline.prepared == [TINY]
    totals = host.counts.totals()
    assert (totals.received, totals.rejected, totals.passed) == (1, {"empty": 1}, 1)
    assert host.published == []


@pytest.mark.parametrize("fault", [ModelError("no such model"), ZeroDivisionError("ours")])
def test_a_pipeline_that_cannot_be_had_ends_the_worker_with_the_reason(start, fault):
    worker, host = start(fault)
    host.until(lambda: worker.state is State.FAILED)
    assert worker.failure is fault


def test_it_stops_while_it_waits_and_says_when_it_cannot(start):
    pipeline = Pipeline()
    worker, host = running(start, pipeline)
    pipeline.may_run.clear()
    worker.offer(message())
    assert pipeline.running.wait(PATIENCE)
    assert not worker.stop(0.01)
    pipeline.may_run.set()
    assert worker.stop(PATIENCE)
    assert host.published == [], "nothing goes out once it is asked to stop"
