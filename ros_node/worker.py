"""The thread that loads, compiles and runs the pipeline, newest frame first."""

from __future__ import annotations

import enum
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from ros_node.accounting import FrameCounts
from tensor_engine.perception.frame import BadImage, Frame
from tensor_engine.perception.pipeline import Pipeline, Result
from tensor_engine.perception.sources import frame_of_message

T = TypeVar("T")


class State(enum.Enum):
    """What the worker is doing, in words for the log and for /diagnostics."""

    LOADING = "loading the model"
    WAITING = "waiting for the camera's first image, to compile for its size and encoding"
    COMPILING = "compiling"
    RUNNING = "running"
    FAILED = "failed"


@dataclass(frozen=True)
class Arrival:
    """An image message and when it came."""

    message: Any
    received: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Geometry:
    """What a program is compiled for. A compressed image has one only once it is decoded."""

    height: int
    width: int
    encoding: str
    step: int

    @classmethod
    def of(cls, frame: Frame) -> Geometry:
        """The geometry that a frame announces."""
        return cls(frame.height, frame.width, frame.encoding, frame.step)

    def __str__(self) -> str:
        return f"{self.width}x{self.height} {self.encoding}"


class Slot(Generic[T]):
    """One place for the newest item."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._item: T | None = None
        self._closed = False

    def put(self, item: T) -> bool:
        """Leaves an item; true when it replaced one that nobody had taken."""
        with self._changed:
            replaced = self._item is not None
            self._item = item
            self._changed.notify()
            return replaced

    def take(self) -> T | None:
        """Waits for the newest item; None once the slot is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._item is not None or self._closed)
            item, self._item = self._item, None
            return None if self._closed else item

    def close(self) -> None:
        """Wakes whoever waits; nothing comes out any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class Host(Protocol):
    """What the worker needs of the node. Every method is called on the worker's thread."""

    def load_pipeline(self) -> Pipeline: ...
    def pipeline_loaded(self, pipeline: Pipeline) -> None: ...
    def publish_result(self, arrival: Arrival, frame: Frame, result: Result, started: float) -> None: ...
    def image_rejected(self, error: Exception) -> None: ...
    def state_changed(self, state: State, detail: str) -> None: ...


class FrameWorker(threading.Thread):
    """Runs the pipeline on the newest image.

    Without an announced geometry the camera's first usable image tells it: the
    program is compiled for it, and images are taken from then on.
    """

    def __init__(self, host: Host, counts: FrameCounts, geometry: Geometry | None) -> None:
        # A daemon, so that a compile in progress cannot keep the process from ending.
        super().__init__(name="pipeline", daemon=True)
        self.state = State.LOADING
        self.detail = ""
        self.state_since = time.monotonic()
        self.compile_seconds = 0.0
        self.failure: Exception | None = None
        self._host = host
        self._counts = counts
        self._announced = geometry
        self._captured: set[Geometry] = set()
        self._samples: Slot[Arrival] = Slot()
        self._frames: Slot[Arrival] = Slot()
        self._stopping = threading.Event()

    def offer(self, message: Any) -> None:
        """Takes the camera's next image; returns at once. One thread may call this."""
        if self.state is State.RUNNING:
            self._counts.receive()
            if self._frames.put(Arrival(message)):
                self._counts.supersede()
        elif self.state is State.WAITING:
            self._samples.put(Arrival(message))
        else:
            self._counts.pass_by()

    def stop(self, timeout: float) -> bool:
        """Asks the thread to end; false when it is still busy after `timeout` seconds."""
        self._stopping.set()
        self._samples.close()
        self._frames.close()
        self.join(timeout)
        return not self.is_alive()

    def run(self) -> None:
        """Loads, compiles, and runs until stopped."""
        try:
            self._serve()
        except Exception as error:
            self.failure = error
            self._enter(State.FAILED, str(error))

    def _serve(self) -> None:
        self._enter(State.LOADING)
        self.pipeline = self._host.load_pipeline()
        if self._stopping.is_set():
            return
        self._host.pipeline_loaded(self.pipeline)
        if self._announced:
            self._capture(self._announced)
        else:
            self._capture_for_camera()
        self._enter(State.RUNNING, f"after {self.compile_seconds:.1f} s of compiling")
        for arrival in iter(self._frames.take, None):
            self._process(arrival)

    def _capture(self, geometry: Geometry) -> None:
        """Compiles for a known geometry."""
        self._enter(State.COMPILING, f"for {geometry}")
        self.pipeline.prepare(geometry.height, geometry.width, geometry.encoding, geometry.step)
        self._captured.add(geometry)
        self.compile_seconds = time.monotonic() - self.state_since

    def _capture_for_camera(self) -> None:
        """Compiles for the first usable image, which is itself not published."""
        self._enter(State.WAITING)
        for arrival in iter(self._samples.take, None):
            try:
                frame = frame_of_message(arrival.message)
                frame.check()
                geometry = Geometry.of(frame.decode())
            except BadImage as error:
                self._counts.receive()
                self._reject(error.reason, error)
            else:
                self._counts.pass_by()
                self._capture(geometry)
                return

    def _process(self, arrival: Arrival) -> None:
        started = time.monotonic()
        try:
            frame = frame_of_message(arrival.message)
            self._follow(frame)
            result = self.pipeline(frame)
        except BadImage as error:
            self._reject(error.reason, error)
        except Exception as error:  # a fault of ours: told in full, and the next image is tried
            self._reject("internal", error)
        else:
            self._publish(arrival, frame, result, started)

    def _follow(self, frame: Frame) -> None:
        """Compiles when the camera has changed its size or encoding."""
        geometry = Geometry.of(frame)
        if frame.is_compressed or geometry in self._captured:
            return
        frame.check()
        try:
            self._capture(geometry)
        finally:
            self._enter(State.RUNNING)

    def _reject(self, reason: str, error: Exception) -> None:
        self._counts.reject(reason)
        self._host.image_rejected(error)

    def _publish(self, arrival: Arrival, frame: Frame, result: Result, started: float) -> None:
        if not self._stopping.is_set():
            self._host.publish_result(arrival, frame, result, started)

    def _enter(self, state: State, detail: str = "") -> None:
        self.detail = detail
        self.state_since = time.monotonic()
        self.state = state
        if not self._stopping.is_set():
            self._host.state_changed(state, detail)
