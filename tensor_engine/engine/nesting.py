"""Values in nested tuples, lists and dicts: what is in them, and the same nesting with other values."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any


def take_apart(value: Any, leaves: list[Any]) -> Any:
    """How tuples, lists and dicts are nested, without what is in them, which goes to `leaves`."""
    if isinstance(value, (tuple, list)):
        return type(value), [take_apart(item, leaves) for item in value]
    if isinstance(value, dict):
        return type(value), [(key, take_apart(item, leaves)) for key, item in in_order(value)]
    leaves.append(value)
    return None


def in_order(value: dict[Any, Any]) -> list[tuple[Any, Any]]:
    """Entries by name: in which order they were given says nothing."""
    return sorted(value.items(), key=lambda entry: str(entry[0])) if len(value) > 1 else list(value.items())


def leaves_of(value: Any) -> list[Any]:
    """What is in nested tuples, lists and dicts."""
    leaves: list[Any] = []
    take_apart(value, leaves)
    return leaves


def rebuild(value: Any, make: Callable[[Any], Any]) -> Any:
    """The same nesting with each leaf replaced, in the order of `leaves_of`."""
    if isinstance(value, (tuple, list)):
        items = [rebuild(item, make) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        made = {key: rebuild(item, make) for key, item in in_order(value)}
        return {key: made[key] for key in value}
    return make(value)
