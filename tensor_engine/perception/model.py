"""A detector ready to be traced: network, head, card and the names of its classes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tensor_engine.perception.card import ModelCard, find_card, make_card, models_folders, read_card
from tensor_engine.perception.errors import ModelError
from tensor_engine.perception.heads import FAMILIES, USUAL_STRIDES, Head, Shapes, tell_head
from tensor_engine.perception.labels import embedded_labels, read_labels
from tensor_engine.perception.network import Network

DEFAULT_MODEL = "street.onnx"


@dataclass(frozen=True)
class Model:
    """What the files say, taken together. `labels` is empty, or names every class of the head."""

    card: ModelCard
    network: Network
    head: Head
    labels: list[str]

    def class_name(self, number: int) -> str:
        """A class's label, or its number as text where there are no labels."""
        return self.labels[number] if self.labels else str(number)

    def class_number(self, name: str) -> int:
        """The number of a class by its name. Raises ValueError that lists the names."""
        names = [self.class_name(number) for number in range(self.head.classes)]
        if name not in names:
            raise ValueError(f"no class {name!r}; the model knows {', '.join(names)}")
        return names.index(name)


def default_model() -> Path:
    """Where the street detector is that comes with the package; where it should be, if it is not there."""
    return next((folder / DEFAULT_MODEL for folder in models_folders()), Path("models", DEFAULT_MODEL))


def load_model(path: Path, card_path: Path | None = None, label_path: Path | None = None) -> Model:
    """Read a model file, its card and its labels. Raises ModelError.

    Without `card_path` the card is looked for (see find_card), and a model can do without one if
    its outputs tell the head. Labels come from `label_path`, else the card, else the model file
    itself.
    """
    card_path = card_path or find_card(path)
    values = read_card(card_path) if card_path else {}
    network = Network(path, values.get("input_size"), values.get("layout"))
    shapes = output_shapes(network, path)
    try:
        size, strides = (network.height, network.width), values.get("strides", USUAL_STRIDES)
        kind = values.get("head") or tell_head(shapes, *size, strides)
        card = make_card(values, kind)
        head = FAMILIES[kind](card, shapes, *size)
    except ModelError as error:
        raise ModelError(f"model {path}: {error}") from None
    labels = read_labels(label_path) if label_path else list(card.labels) or embedded_labels(network.metadata)
    if labels and len(labels) != head.classes:
        origin = label_path or (card_path if card.labels else "the model file itself")
        raise ModelError(f"model {path} tells {head.classes} classes apart, but {origin} names {len(labels)}")
    return Model(card, network, head, labels)


def output_shapes(network: Network, path: Path) -> Shapes:
    """The shapes of the network's outputs. Raises ModelError if they change from image to image."""
    shapes = [shape for shape in network.output_shapes() if shape is not None]
    if len(shapes) != len(network.output_shapes()):
        raise ModelError(f"model {path} has outputs whose size depends on the image; export it without suppression")
    return shapes
