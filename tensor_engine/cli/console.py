"""What commands share: tables, JSON, progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table


def print_json(document: Any) -> None:
    """One JSON document on stdout."""
    json.dump(document, sys.stdout, indent=2)
    sys.stdout.write("\n")


def print_table(title: str, columns: dict[str, str], rows: Iterable[Iterable[Any]]) -> None:
    """A table on stdout. `columns` maps a heading to left or right."""
    table = Table()
    for heading, side in columns.items():
        table.add_column(heading, justify=side)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*map(str, row))
    print_line(title)
    output().print(table)


def print_line(text: str) -> None:
    """Plain text on stdout."""
    output().print(text, highlight=False, markup=False)


def output() -> Console:
    """stdout; when it is no terminal, lines are not wrapped, so that other programs can read them."""
    return Console() if sys.stdout.isatty() else Console(width=200)


def progress() -> Progress:
    """A progress display on stderr, which shows nothing unless that is a terminal."""
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def milliseconds(seconds: float) -> str:
    """Seconds as text in milliseconds."""
    return f"{seconds * 1000:.2f}"
