"""The webhook's command line: `serve` (the default) and `rewrite`."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from typing import TYPE_CHECKING, TextIO

from gpufence.mode import MODES
from gpufence.settings import help_text
from service.command import command_parser, exit_code
from webhook.policy import DriverLimits
from webhook.settings import PodSettings, WebhookSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NAME = "gpufence-webhook"
_FORMATS = ("explain", "yaml", "patch", "json")
_EXIT_CODES = """
exit code: 0 well, 1 a pod would be refused, or with --strict be warned about, 2 the call or the
manifest cannot be read
"""


def main(
    argv: Sequence[str] | None = None,
    environ: Mapping[str, str] = os.environ,
    stdin: TextIO = sys.stdin,
    stdout: TextIO = sys.stdout,
) -> int:
    """Run the command that the arguments name; return the exit code."""
    arguments = parser().parse_args(argv)
    if arguments.command == "rewrite":
        return exit_code(_NAME, lambda: _rewrite(arguments, environ, stdin, stdout))
    return exit_code(_NAME, lambda: _serve(environ))


def _rewrite(
    arguments: argparse.Namespace, environ: Mapping[str, str], stdin: TextIO, stdout: TextIO
) -> int:
    # Each command loads only what it needs: this one answers in a tenth of a second, and a server
    # carries no parser of manifests.
    from webhook.command import show_rewrite  # noqa: PLC0415 (see above)

    return show_rewrite(arguments, environ, stdin, stdout)


def _serve(environ: Mapping[str, str]) -> int:
    gc.disable()  # what is loaded is no garbage; the server collects from its first request on
    try:
        from kube import read_client_settings  # noqa: PLC0415 (`rewrite` needs none of it)
        from webhook.program import run  # noqa: PLC0415 (`rewrite` needs none of it)

        run(environ, read_client_settings(environ, user_agent=_NAME))
    finally:
        gc.enable()
    return 0


def parser() -> argparse.ArgumentParser:
    top, shown = command_parser(_NAME, WebhookSettings)
    commands = top.add_subparsers(dest="command", metavar="command")
    commands.add_parser(
        "serve",
        help="answer the API server's admission reviews until SIGTERM (the default)",
        **shown,
    )
    rewrite = commands.add_parser(
        "rewrite",
        help="show what would happen to the pods of a manifest, without a cluster",
        description="Show what gpufence would do to the pods of a manifest, without a cluster.",
        epilog=help_text(PodSettings, "settings from the environment, as for the server:")
        + _EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_arguments(rewrite)
    return top


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        required=True,
        metavar="FILE",
        help="manifest of whatever holds pods, or a folder; - is standard input; repeatable",
    )
    parser.add_argument("--card", metavar="MEMORY", help="memory of the card, such as 15360Mi")
    parser.add_argument(
        "--gpushare-unit", choices=("GiB", "MiB"), help="what aliyun.com/gpu-mem counts there"
    )
    parser.add_argument(
        "--driver-limits",
        choices=tuple(DriverLimits),
        help="whether the driver holds containers to their limit",
    )
    parser.add_argument("--compute-capability", metavar="MAJOR.MINOR", help="such as 7.5")
    parser.add_argument(
        "--mode", choices=MODES, default="cap", help="the namespace's (default cap)"
    )
    parser.add_argument(
        "--namespace-annotation",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an annotation of the namespace; repeatable",
    )
    parser.add_argument("-o", "--output", choices=_FORMATS, default="explain")
    parser.add_argument(
        "--strict", action="store_true", help="end with 1 where a pod would get a warning, too"
    )


if __name__ == "__main__":
    sys.exit(main())
