"""The executable `perception_node`."""

from __future__ import annotations

import sys
from typing import Any

from ros_node import process


def main(args: list[str] | None = None, **options: Any) -> int:
    """Runs the node until SIGINT or SIGTERM; the exit code. Options go to `ros_node.serve`."""
    # First of all: ROS and the engine take a second to import, and a signal may come meanwhile.
    ending = process.ask_to_end()
    try:
        from ros_node.serve import serve
    except ModuleNotFoundError as error:
        print(f"perception_node: {error}. ROS 2 packages come from apt as ros-$ROS_DISTRO-NAME", file=sys.stderr)
        return process.USER_MISTAKE
    return serve(ending, args, **options)


if __name__ == "__main__":
    sys.exit(main())
