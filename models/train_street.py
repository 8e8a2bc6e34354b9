"""Train the street detector, models/street.onnx, with our own engine, from a video of one street.

The video is vtest.avi of Debian's package opencv-doc (`apt-get download opencv-doc && dpkg -x opencv-doc*.deb .`).
Its first 150 frames are for judging only.

    python models/train_street.py train vtest.avi       # → models/street.onnx; goes on where it was interrupted
    python models/train_street.py evaluate vtest.avi --teacher nanodet_m.onnx

Labels come with the repository (models/street/labels.json). To make them anew:

    python models/train_street.py label vtest.avi --teacher nanodet_m.onnx
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import click
import cv2
import numpy as np
import onnx
from street.evaluation import evaluate_model
from street.export import to_onnx
from street.labels import Labels, difference, empty_scene, label
from street.network import StreetNet
from street.objective import loss
from street.scenes import SIZE, Scenes
from street.teacher import Teacher

from tensor_engine import Tensor, TinyJit, nn
from tensor_engine.cli.console import print_line, progress
from tensor_engine.nn.state import (
    get_parameters,
    get_state_dict,
    load_state_dict,
    safe_load,
    safe_load_metadata,
    safe_save,
)
from tensor_engine.perception.sources import open_source

MODELS = Path(__file__).resolve().parent
LABELS = MODELS / "street" / "labels.json"
HELD_OUT = 150  # frames at the beginning that are for judging
FIRST = 200  # the first frame to learn from; those between show the same moments as the held-out ones
KEYFRAMES = 4  # the teacher looks at one of so many frames

FILE = click.Path(path_type=Path)
WARM_UP = 100  # steps in which the learning rate rises
SAVE_EVERY = 50  # steps


@click.group(help=__doc__, context_settings={"max_content_width": 120})
def main() -> None:
    """Each command is a step of the way."""


# ---- labels -----------------------------------------------------------------------------------------------------


@main.command("label")
@click.argument("video", type=FILE)
@click.option("--teacher", required=True, type=FILE, help="NanoDet-M or another detector of the COCO classes.")
@click.option("--out", type=FILE, default=LABELS, show_default=True)
def make_labels(video: Path, teacher: Path, out: Path) -> None:
    """Label all frames of VIDEO by what a teacher sees in them and by what moves.

    It looks at 200 frames of vtest.avi for about two seconds each.
    """
    frames = read_frames(video)
    scene, look = empty_scene(frames), Teacher(teacher)
    numbers = range(0, len(frames), KEYFRAMES)
    with progress() as bar:
        sights = {n: look(frames[n], difference(frames[n], scene)) for n in bar.track(numbers, description="looking")}
    labels = label(frames, sights)
    labels.save(out)
    people = sum(len(boxes) for boxes in labels.people.values())
    print_line(f"{out}: {people} people in {len(labels.people)} frames, {len(labels.cars)} parked cars")


def read_frames(video: Path) -> np.ndarray:
    """All frames, BGR uint8 [n, height, width, 3]."""
    return np.stack([sourced.frame.pixels() for sourced in open_source(video).frames()])


# ---- training ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """How long and how fast to learn."""

    steps: int
    batch: int
    rate: float
    seed: int

    def rate_at(self, step: int) -> float:
        """Up in a line, down in half a cosine."""
        share = min(1.0, step / self.steps)
        return self.rate * min(1.0, (step + 1) / WARM_UP) * 0.5 * (1 + np.cos(np.pi * share))


class Trainer:
    """A network, its optimiser, and how far they are."""

    def __init__(self, recipe: Recipe):
        Tensor.manual_seed(recipe.seed)
        self.recipe, self.network, self.done = recipe, StreetNet(), 0
        self.optimizer = nn.optim.AdamW(get_parameters(self.network), lr=recipe.rate)
        self.captured = TinyJit(self.learn)

    def learn(self, images: Tensor, wanted: Tensor, rate: Tensor) -> Tensor:
        """One step on uint8 [B, 3, H, W] and its targets; the loss before it."""
        self.optimizer.lr.assign(rate)
        self.optimizer.zero_grad()
        wrong = loss(self.network(images.float() / 255), wanted).backward()
        return wrong.realize(*self.optimizer.schedule_step())

    def step(self, images: np.ndarray, wanted: np.ndarray) -> float:
        """The same, captured."""
        rate = np.array([self.recipe.rate_at(self.done)], np.float32)
        with Tensor.train():
            wrong = self.captured(*(Tensor(array).realize() for array in (images, wanted, rate)))
        self.done += 1
        return float(wrong.item())

    def state(self) -> dict[str, Tensor]:
        """All that training goes on from."""
        kept = {f"optimizer.{number}": tensor for number, tensor in enumerate(self.optimizer.state)}
        return {**get_state_dict(self.network, "network."), **kept}

    def save(self, path: Path) -> None:
        """Write a checkpoint; the one before stays whole until it is written."""
        draft = path.with_suffix(".draft")
        safe_save(self.state(), draft, {"done": str(self.done), "recipe": json.dumps(vars(self.recipe))})
        draft.replace(path)

    def load(self, path: Path) -> None:
        """Go on from a checkpoint."""
        self.done = checkpoint_steps(path, self.recipe)
        load_state_dict(self.state(), safe_load(path))


def checkpoint_steps(path: Path, recipe: Recipe) -> int:
    """How many steps a checkpoint has behind it. Raises ClickException if they were of another recipe."""
    metadata = safe_load_metadata(path)
    if json.loads(metadata["recipe"]) != vars(recipe):
        raise click.ClickException(f"{path} is of another training; remove it, or name another --checkpoint")
    return int(metadata["done"])


@main.command("train")
@click.argument("video", type=FILE)
@click.option("--labels", type=FILE, default=LABELS, show_default=True)
@click.option("--checkpoint", type=FILE, default=Path("street.safetensors"), show_default=True)
@click.option("--out", type=FILE, default=MODELS / "street.onnx", show_default=True)
@click.option("--steps", default=3000, show_default=True)
@click.option("--batch", default=8, show_default=True, help="Pictures a step.")
@click.option("--rate", default=2e-3, show_default=True, help="The highest learning rate.")
@click.option("--seed", default=1, show_default=True)
def train_network(video: Path, labels: Path, checkpoint: Path, out: Path, **recipe: float) -> None:
    """Learn from the frames of VIDEO behind the held-out ones, and export the network."""
    cv2.setNumThreads(1)
    trainer = Trainer(Recipe(**recipe))  # type: ignore[arg-type]
    if checkpoint.is_file():
        trainer.load(checkpoint)
    known = Labels.load(labels)
    scenes = Scenes(read_frames(video)[FIRST : max(known.people) + 1], known, FIRST)
    run(trainer, scenes, checkpoint)
    export(trainer.network, out)


def run(trainer: Trainer, scenes: Scenes, checkpoint: Path) -> None:
    """Steps to the end, with checkpoints."""
    recipe = trainer.recipe
    with progress() as bar:
        task = bar.add_task("compiling", total=recipe.steps, completed=trainer.done)
        losses: list[float] = []
        while trainer.done < recipe.steps:
            losses.append(trainer.step(*scenes.batch(recipe.batch, (recipe.seed, trainer.done))))
            bar.update(task, completed=trainer.done, description=f"loss {losses[-1]:.3f}")
            if trainer.done % SAVE_EVERY == 0 or trainer.done == recipe.steps:
                trainer.save(checkpoint)
                print_line(f"{trainer.done} steps, mean loss {np.mean(losses):.4f}")
                losses = []


def export(network: StreetNet, out: Path) -> None:
    """Write the ONNX file."""
    onnx.save(to_onnx(network, *SIZE), out)
    print_line(f"{out}: {out.stat().st_size / 1e6:.2f} MB")


@main.command("export")
@click.option("--checkpoint", type=FILE, default=Path("street.safetensors"), show_default=True)
@click.option("--out", type=FILE, default=MODELS / "street.onnx", show_default=True)
def export_checkpoint(checkpoint: Path, out: Path) -> None:
    """Export the network of a checkpoint, of a training that has not ended, say."""
    network = StreetNet()
    state = {name.removeprefix("network."): tensor for name, tensor in safe_load(checkpoint).items()}
    load_state_dict(network, {name: state[name] for name in get_state_dict(network)})
    export(network, out)


# ---- judgement --------------------------------------------------------------------------------------------------


@main.command("evaluate")
@click.argument("recording", type=FILE)
@click.option("--teacher", required=True, type=FILE, help="NanoDet-M.")
@click.option("--model", type=FILE, default=MODELS / "street.onnx", show_default=True)
@click.option("--labels", type=FILE, default=LABELS, show_default=True)
def evaluate(recording: Path, teacher: Path, model: Path, labels: Path) -> None:
    """AP50 on the first 150 frames of RECORDING, a video or a bag."""
    frames = read_frames(recording)[:HELD_OUT]
    for line in evaluate_model(model, teacher, frames, Labels.load(labels)):
        print_line(line)


if __name__ == "__main__":
    main()
