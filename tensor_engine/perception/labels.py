"""Names of classes: from a text file, a YAML file, or the model itself."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from tensor_engine.perception.errors import ModelError
from tensor_engine.perception.extras import require


def read_labels(path: Path) -> list[str]:
    """The names in a file, in class order: one a line, or in YAML a list, or `names:` with a list
    or a mapping.

    Raises ModelError for a file that is missing, empty or not text.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ModelError(f"label file {path} is not there") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"label file {path} cannot be read: {error}") from None
    names = yaml_names(text, path) if path.suffix in (".yaml", ".yml") else text_names(text)
    if not names:
        raise ModelError(f"label file {path} holds no names")
    return names


def text_names(text: str) -> list[str]:
    """One name a line; empty lines don't count."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def yaml_names(text: str, path: Path) -> list[str]:
    """A list of names, or what stands under `names`. Raises ModelError."""
    yaml = require("yaml")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ModelError(f"label file {path} is no YAML: {error}") from None
    names = value.get("names") if isinstance(value, dict) else value
    return ordered_names(names, f"label file {path}")


def ordered_names(names: Any, origin: str) -> list[str]:
    """A list of names, or a mapping {0: name, 1: name, …} without gaps, as a list."""
    if isinstance(names, dict) and sorted(names) == list(range(len(names))):
        names = [names[number] for number in range(len(names))]
    if not isinstance(names, list):
        raise ModelError(f"{origin} must hold a list of names, or a mapping from 0, 1, 2, … to names")
    return [str(name) for name in names]


def embedded_labels(metadata: dict[str, str]) -> list[str]:
    """The names that Ultralytics' exporter writes into the model as text, like "{0: 'person', 1: 'car'}"; or none."""
    try:
        return ordered_names(ast.literal_eval(metadata["names"]), "the model's own label list")
    except (KeyError, ValueError, SyntaxError, TypeError):
        return []
