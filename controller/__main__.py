"""The controller's command line: `run`, which is the default."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter

from controller.settings import ControllerSettings
from gpufence import names
from gpufence.errors import GpufenceError
from gpufence.settings import help_text

_WRONG = 2


def main() -> int:
    """Run the command that the arguments name; return the exit code."""
    _parser().parse_args(sys.argv[1:] or ["run"])
    try:
        return _run()
    except GpufenceError as error:
        print(f"gpufence-controller: {error}", file=sys.stderr)
        return _WRONG


def _parser() -> ArgumentParser:
    settings = (
        "Settings are environment variables; what stands in brackets holds where one is not set."
        f"\n\n{help_text(ControllerSettings, 'The program')}"
    )
    about = "release claimed GPUs that nobody uses, and answer how busy an owner is, until SIGTERM"
    parser = ArgumentParser(
        "gpufence-controller",
        description="Release claimed GPUs that nobody uses, and answer how busy an owner is.",
        epilog=settings,
        formatter_class=RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser(
        "run",
        help=f"{about} (the default)",
        description=about,
        epilog=settings,
        formatter_class=RawDescriptionHelpFormatter,
    )
    return parser


def _run() -> int:
    from controller.program import run  # noqa: PLC0415 (--help loads what it needs)
    from kube import read_client_settings  # noqa: PLC0415 (--help loads what it needs)

    run(os.environ, read_client_settings(os.environ, user_agent=names.CONTROLLER))
    return 0


if __name__ == "__main__":
    sys.exit(main())
