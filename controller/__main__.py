"""The controller's command line: `run`, which is the default."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from gpufence import names
from service.command import command_parser, exit_code

if TYPE_CHECKING:
    from argparse import ArgumentParser


def main() -> int:
    """Run the command that the arguments name; return the exit code."""
    _parser().parse_args(sys.argv[1:] or ["run"])
    return exit_code(names.CONTROLLER, _run)


def _parser() -> ArgumentParser:
    from controller.program import SETTINGS  # noqa: PLC0415 (what starts no program loads none)

    about = (
        "release GPUs that are claimed and not used, and answer how busy an owner is, until SIGTERM"
    )
    description = "Release GPUs that are claimed and not used, and answer how busy an owner is."
    parser, shown = command_parser(names.CONTROLLER, SETTINGS, description, "The program")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("run", help=f"{about} (the default)", description=about, **shown)
    return parser


def _run() -> int:
    from controller.program import run  # noqa: PLC0415 (--help loads what it needs)
    from kube import read_client_settings  # noqa: PLC0415 (--help loads what it needs)

    run(os.environ, read_client_settings(os.environ, user_agent=names.CONTROLLER))
    return 0


if __name__ == "__main__":
    sys.exit(main())
