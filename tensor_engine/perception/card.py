"""The model card: what the file of a network does not say about itself.

A card is `NAME.yaml` beside `NAME.onnx`, or in the package's models folder. models/README.md lists
its keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tensor_engine.perception.errors import ModelError
from tensor_engine.perception.extras import require
from tensor_engine.perception.labels import read_labels

HEADS = ("nanodet", "yolov5", "yolov8", "yolox", "ssd", "centernet", "centerface")


@dataclass(frozen=True)
class ModelCard:
    """How to feed a network and how to read it. Pixel units are 0 to 255; triples are in the order of `color`."""

    name: str = ""
    licence: str = ""
    source: str = ""
    training: str = ""  # from what it learnt
    evaluation: str = ""  # how right it is, and how fast

    input_size: tuple[int, int] | None = None  # height, width; None: what the model declares
    layout: str | None = None  # nchw or nhwc; None: what the model declares
    color: str = "rgb"  # rgb or bgr
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)  # the network sees (pixel - mean) / std
    std: tuple[float, ...] = (255.0, 255.0, 255.0)
    pad: float = 114.0  # the value around the letterboxed image

    head: str | None = None  # one of HEADS; None: told from the outputs
    strides: tuple[int, ...] = (8, 16, 32)
    activation: str = "none"  # what is still to be applied to scores: none or sigmoid
    box_format: str = "xyxy"  # ssd only: xyxy, yxyx or cxcywh
    box_unit: str = "image"  # ssd only: image (0 to 1) or pixel (of the network's input)
    background: bool = True  # ssd only: class 0 is the background and is no detection

    labels: tuple[str, ...] = ()
    score_threshold: float = 0.4
    nms_threshold: float = 0.6


# What a family's exporters agree upon; a card need not repeat it.
FAMILY: dict[str, dict[str, Any]] = {
    "nanodet": {
        "color": "bgr",
        "mean": (103.53, 116.28, 123.675),
        "std": (57.375, 57.12, 58.395),
        "pad": 0.0,
    },
    "yolox": {"color": "bgr", "std": (1.0, 1.0, 1.0)},
    "centerface": {"std": (1.0, 1.0, 1.0), "pad": 0.0, "strides": (4,), "nms_threshold": 0.3},
    "centernet": {"strides": (4,)},
}


def make_card(values: dict[str, Any], head: str) -> ModelCard:
    """The card of a model with this head: defaults, then the family's, then what the file says."""
    return ModelCard(**{**FAMILY.get(head, {}), **values, "head": head})


def read_card(path: Path) -> dict[str, Any]:
    """The checked values of a card file.

    Raises ModelError that names the file and the key for an unknown key or a value of the wrong
    kind.
    """
    values = load_yaml(path)
    unknown = sorted(set(values) - set(CHECKS))
    if unknown:
        raise ModelError(f"card {path}: unknown key {unknown[0]!r}; the keys are {', '.join(CHECKS)}")
    checked = {key: check_value(path, key, value) for key, value in values.items()}
    if isinstance(checked.get("labels"), Path):
        checked["labels"] = tuple(read_labels(find_label_file(checked["labels"], path)))
    return checked


def load_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file. Raises ModelError."""
    yaml = require("yaml")
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"card {path} is not there") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ModelError(f"card {path} cannot be read as YAML: {error}") from None
    if not isinstance(values, dict):
        raise ModelError(f"card {path} must hold keys and values, like `head: yolov8`")
    return values


def check_value(path: Path, key: str, value: Any) -> Any:
    """The value in the form that ModelCard wants. Raises ModelError that names file and key."""
    wanted, convert = CHECKS[key]
    try:
        return convert(value)
    except (TypeError, ValueError):
        raise ModelError(f"card {path}: {key} must be {wanted}, not {value!r}") from None


def find_card(model: Path) -> Path | None:
    """The card beside the model, else the one of that name in a models folder, else None."""
    name = f"{model.stem}.yaml"
    candidates = [model.with_name(name), *(folder / name for folder in models_folders())]
    return next((path for path in candidates if path.is_file()), None)


def find_label_file(name: Path, card: Path) -> Path:
    """A label file that a card names: beside the card, else in a models folder."""
    candidates = [card.parent / name, *(folder / name for folder in models_folders())]
    return next((path for path in candidates if path.is_file()), candidates[0])


def models_folders() -> list[Path]:
    """Where the package's cards are: models/ of a checkout, share/tensor_engine/models of an installation."""
    package = Path(__file__).resolve().parents[1]
    installed = [parent / "share" / "tensor_engine" / "models" for parent in package.parents]
    return [folder for folder in (package.parent / "models", *installed) if folder.is_dir()]


# ---- what each key may hold ----------------------------------------------------------------------------------------


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: Any) -> float:
    if not _is_number(value) or value != value:
        raise TypeError
    return float(value)


def _fraction(value: Any) -> float:
    if not 0 <= _number(value) <= 1:
        raise ValueError
    return float(value)


def _triple(value: Any) -> tuple[float, ...]:
    """Three numbers, or one for all three channels."""
    values = [value] * 3 if _is_number(value) else value
    if not isinstance(values, list) or len(values) != 3:
        raise TypeError
    return tuple(_number(v) for v in values)


def _nonzero_triple(value: Any) -> tuple[float, ...]:
    if 0 in _triple(value):
        raise ValueError
    return _triple(value)


def _positive_ints(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise TypeError
    if not all(isinstance(v, int) and not isinstance(v, bool) and v > 0 for v in value):
        raise ValueError
    return tuple(value)


def _size(value: Any) -> tuple[int, int]:
    height, width = _positive_ints(value)
    return height, width


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _label_list(value: Any) -> tuple[str, ...] | Path:
    if isinstance(value, str):
        return Path(value)
    if not isinstance(value, list) or not value:
        raise TypeError
    return tuple(str(name) for name in value)


def _one_of(*choices: str) -> tuple[str, Callable[[Any], str]]:
    def convert(value: Any) -> str:
        if value not in choices:
            raise ValueError
        return value

    return f"one of {', '.join(choices)}", convert


_TEXT = ("text", _text)
_FRACTION = ("a number from 0 to 1", _fraction)

CHECKS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "name": _TEXT,
    "licence": _TEXT,
    "source": _TEXT,
    "training": _TEXT,
    "evaluation": _TEXT,
    "input_size": ("[height, width], two whole numbers above 0", _size),
    "layout": _one_of("nchw", "nhwc"),
    "color": _one_of("rgb", "bgr"),
    "mean": ("a number or a list of three", _triple),
    "std": ("a number or a list of three, none of them 0", _nonzero_triple),
    "pad": ("a number", _number),
    "head": _one_of(*HEADS),
    "strides": ("a list of whole numbers above 0", _positive_ints),
    "activation": _one_of("none", "sigmoid"),
    "box_format": _one_of("xyxy", "yxyx", "cxcywh"),
    "box_unit": _one_of("image", "pixel"),
    "background": ("true or false", _flag),
    "labels": ("a file name or a list of names", _label_list),
    "score_threshold": _FRACTION,
    "nms_threshold": _FRACTION,
}

assert set(CHECKS) == {field.name for field in fields(ModelCard)}, "every field of a card needs its check"
