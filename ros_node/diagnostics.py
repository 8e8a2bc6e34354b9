"""What is said on /diagnostics: four tasks, each a level, a sentence and values. Knows no ROS type."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ros_node.accounting import FrameTotals
from ros_node.timing import CycleSummary
from ros_node.worker import State

SILENCE = 5.0  # seconds without an image before the camera counts as silent: 0.3 Hz is not
HOLD = 3  # reports that a raised level stays, so that it does not flap
TRANSPORT_HINT = (
    "Fast DDS drops best-effort images that are larger than its shared memory: start the camera "
    "with FASTDDS_DEFAULT_PROFILES_FILE=<share/tensor_engine>/config/fastdds_images.xml "
    "(up to ROS 2 Jazzy: FASTRTPS_DEFAULT_PROFILES_FILE)"
)


class Level(enum.IntEnum):
    """As in diagnostic_msgs/DiagnosticStatus."""

    OK = 0
    WARN = 1
    ERROR = 2
    STALE = 3


@dataclass(frozen=True)
class Status:
    """One task's report."""

    level: Level
    message: str
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class CameraState:
    """What is known of the camera and of the way its images come."""

    topic: str = ""
    transport: str = ""
    publishers: int = 0
    images: int = 0
    lost: int = 0
    incompatible_policy: str = ""
    silent_for: float = 0.0


@dataclass(frozen=True)
class Snapshot:
    """Everything that one report tells; durations in seconds."""

    state: State
    detail: str
    state_age: float
    model: Mapping[str, object]
    totals: FrameTotals
    camera: CameraState
    times: CycleSummary
    deadline: float
    delay: float | None


class Reporter:
    """Turns snapshots into statuses; remembers the last one, for rates and for steady levels."""

    def __init__(self) -> None:
        self._last = FrameTotals()
        self._last_lost = 0
        self._last_misses = 0
        self._recent: dict[str, deque[Status]] = {}

    def report(self, now: Snapshot, elapsed: float) -> dict[str, Status]:
        """The tasks' statuses, `elapsed` seconds after the last report."""
        statuses = {
            "model": model_status(now),
            "camera": camera_status(now.camera, self._last_lost),
            "frames": frames_status(now.totals, self._last, elapsed),
            "timing": timing_status(now, self._last_misses),
        }
        self._last = now.totals
        self._last_lost, self._last_misses = now.camera.lost, now.times.deadline_misses
        return {task: self._steady(task, status) for task, status in statuses.items()}

    def _steady(self, task: str, status: Status) -> Status:
        """Holds the worst of the last few levels, with its sentence."""
        recent = self._recent.setdefault(task, deque(maxlen=HOLD))
        recent.append(status)
        raised = [past for past in recent if past.level in (Level.WARN, Level.ERROR)]
        if status.level is Level.STALE or not raised:
            return status
        worst = max(reversed(raised), key=lambda past: past.level)
        return replace(worst, values=status.values)


def model_status(now: Snapshot) -> Status:
    """Whether the program is ready, and what the node is doing while it is not."""
    level = Level.ERROR if now.state is State.FAILED else Level.OK
    message = f"{now.state.value} {now.detail}".strip()
    if now.state is State.COMPILING:
        message += f", {now.state_age:.0f} s so far"
    return Status(level, message, {"state": now.state.name.lower(), **now.model})


def camera_status(camera: CameraState, last_lost: int) -> Status:
    """Whether images come, and why not."""
    values = {
        "topic": camera.topic,
        "transport": camera.transport,
        "publishers": camera.publishers,
        "images": camera.images,
        "lost_in_transport": camera.lost,
        "incompatible_qos": camera.incompatible_policy,
        "seconds_since_last_image": f"{camera.silent_for:.1f}",
    }
    level, message = _camera_judgement(camera, camera.lost - last_lost)
    return Status(level, message, values)


def _camera_judgement(camera: CameraState, newly_lost: int) -> tuple[Level, str]:
    silent = camera.silent_for > SILENCE
    if camera.incompatible_policy:
        level = Level.ERROR if silent or not camera.images else Level.WARN
        return level, f"a camera on {camera.topic} offers an incompatible {camera.incompatible_policy} policy"
    if newly_lost:
        return Level.WARN, f"{newly_lost} images lost on the way. {TRANSPORT_HINT}"
    if not silent:
        return Level.OK, "images arrive" if camera.images else "no image yet"
    if camera.publishers == 0:
        return Level.STALE, f"nobody publishes {camera.topic}"
    if camera.images == 0:
        return Level.WARN, f"a camera publishes {camera.topic}, but no image arrives. {TRANSPORT_HINT}"
    return Level.STALE, f"no image for {camera.silent_for:.0f} s"


def frames_status(now: FrameTotals, last: FrameTotals, elapsed: float) -> Status:
    """Rates since the last report, and where every image went."""
    rate_in = (now.received - last.received) / elapsed
    rate_out = (now.published - last.published) / elapsed
    news = {
        reason: count - last.rejected.get(reason, 0)
        for reason, count in now.rejected.items()
        if count > last.rejected.get(reason, 0)
    }
    message = f"{rate_in:.1f} images/s in, {rate_out:.1f} detection messages/s out"
    if news:
        message = "rejected: " + ", ".join(f"{count} {reason}" for reason, count in news.items())
    values = {
        "frame_rate_msg": f"{rate_in:.2f}",
        "output_rate": f"{rate_out:.2f}",
        "received": now.received,
        "published": now.published,
        "superseded": now.superseded,
        "in_flight": now.in_flight,
        "rejected": sum(now.rejected.values()),
        **{f"rejected_{reason}": count for reason, count in sorted(now.rejected.items())},
        "passed_while_not_running": now.passed,
        "total_dropped_frames": now.superseded,
    }
    return Status(Level.WARN if news else Level.OK, message, values)


def timing_status(now: Snapshot, last_misses: int) -> Status:
    """Every stage's milliseconds, the deadline, and how old the last output was."""
    values: dict[str, object] = {"cycles_in_window": now.times.cycles}
    for stage, summary in now.times.stages.items():
        for statistic, seconds in vars(summary).items():
            values[f"{stage}_{statistic}_ms"] = f"{seconds * 1e3:.3f}"
    values["deadline_ms"] = f"{now.deadline * 1e3:g}"
    values["deadline_misses"] = now.times.deadline_misses
    if now.delay is not None:
        values["current_delay_from_realtime_ms"] = f"{now.delay * 1e3:.1f}"
    misses = now.times.deadline_misses - last_misses
    if misses:
        return Status(Level.WARN, f"{misses} deadlines of {now.deadline * 1e3:g} ms missed", values)
    return Status(Level.OK, _cycle_sentence(now.times), values)


def _cycle_sentence(times: CycleSummary) -> str:
    cycle = times.stages.get("cycle")
    if cycle is None:
        return "no cycle yet"
    return f"a cycle takes {cycle.p50 * 1e3:.1f} ms (p50), {cycle.p99 * 1e3:.1f} ms (p99)"
