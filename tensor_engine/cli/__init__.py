"""The command line: `tensor-engine`, which is also `python -m tensor_engine`."""

from __future__ import annotations

import sys

from tensor_engine.perception.extras import MissingExtra, require

USER_MISTAKE, OUR_MISTAKE, INTERRUPTED = 2, 1, 130


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0, 2 for the user's mistake, 1 for ours, 130 when interrupted."""
    try:
        require("click")
        require("rich")
    except MissingExtra as error:
        sys.exit(say(str(error), USER_MISTAKE))
    from tensor_engine.cli.app import run

    sys.exit(run(arguments))


def say(message: str, code: int) -> int:
    """An error on stderr; gives back the exit code."""
    print(f"tensor-engine: {message}", file=sys.stderr)
    return code
