"""
Build, list and remove environments with unmodified wheels: `python -m simulator wheels --help`.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from gpufence.errors import GpufenceError
from simulator.progress import Progress
from simulator.wheels.catalog import WHEEL_SETS, find_wheels
from simulator.wheels.install import build, folder_of, is_built, remove

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
    """Do what the verb says; anything wrong is one line and the exit code 1."""
    parser = argparse.ArgumentParser(
        prog="python -m simulator wheels",
        description="Unmodified wheels of frameworks, each in an environment in the user's cache.",
    )
    parser.add_argument("verb", choices=("build", "list", "remove"))
    parser.add_argument("names", nargs="*", help="environments, such as torch-2.10 (all)")
    arguments = parser.parse_args(argv)
    progress = Progress(sys.stdout)
    try:
        wanted = [find_wheels(name) for name in arguments.names] or list(WHEEL_SETS)
        if arguments.verb == "build":
            build(wanted, progress)
        elif arguments.verb == "remove":
            remove(wanted, progress)
        else:
            for one in wanted:
                there = "built" if is_built(one) else "not built"
                print(f"{one.name:18} {one.size_mib:6} MiB  {there:9}  {folder_of(one)}")
    except GpufenceError as error:
        print(f"python -m simulator wheels: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
