"""The commands, and what becomes of their errors."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

import click

from tensor_engine.cli import INTERRUPTED, OUR_MISTAKE, USER_MISTAKE, say
from tensor_engine.cli.bench import bench
from tensor_engine.cli.detect import detect
from tensor_engine.cli.devices import devices
from tensor_engine.cli.explain import explain
from tensor_engine.cli.replay import replay
from tensor_engine.device import Device
from tensor_engine.helpers import DEBUG
from tensor_engine.perception.errors import ModelError, SourceError
from tensor_engine.perception.extras import MissingExtra
from tensor_engine.perception.frame import BadImage

USER_ERRORS = (ModelError, SourceError, BadImage, MissingExtra)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tensor_engine", message="%(version)s")
def app() -> None:
    """From camera bytes to detections in one captured program."""
    try:
        Device.DEFAULT  # noqa: B018 (reads the DEV setting)
    except ValueError as error:
        raise click.UsageError(f"DEV: {error}") from None


for command in (detect, replay, bench, devices, explain):
    app.add_command(command)


def run(arguments: list[str] | None) -> int:
    """Run a command; its exit code."""
    return guarded(lambda: app.main(arguments, prog_name="tensor-engine", standalone_mode=False))


def guarded(action: Callable[[], object]) -> int:
    """The exit code of an action; errors become one line on stderr (with DEBUG=1, ours with a traceback)."""
    try:
        code = action()
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show(sys.stderr)
        return USER_MISTAKE
    except USER_ERRORS as error:
        return say(str(error), USER_MISTAKE)
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        sys.stderr.close()
        return 0
    except Exception as error:
        if DEBUG:
            traceback.print_exc()
        return say(f"internal error: {type(error).__name__}: {error} (DEBUG=1 shows where)", OUR_MISTAKE)
