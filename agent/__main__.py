"""The agent's command line: `run` (the default), `snapshot`, `check` and `verify`."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from service.command import command_parser, exit_code

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

_NAME = "gpufence-agent"


def main() -> int:
    """Run the command that the arguments name; return the exit code."""
    arguments = _parser().parse_args(sys.argv[1:] or ["run"])
    return exit_code(_NAME, partial(_COMMANDS[arguments.command], arguments))


def _parser() -> ArgumentParser:
    from agent.program import SETTINGS  # noqa: PLC0415 (its concerns have settings of their own)

    description = "Hold the pods of this node to their shares of its cards."
    parser, shown = command_parser(_NAME, SETTINGS, description, "The program")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    about = (
        "measure this node's cards and evict pods over their limits, until SIGTERM (the default)"
    )
    commands.add_parser("run", help=about, description=about, **shown)
    snapshot = commands.add_parser(
        "snapshot",
        help="look at this machine's cards and processes once, without a cluster",
        description="Look at this machine's cards and processes once, without a cluster.",
        epilog="It prints JSON, as /v1/snapshot of a running agent. Exit codes: 0, or 1 where no"
        " card can be read. The environment is that of the agent, see gpufence-agent --help; none"
        " of it is required.",
    )
    snapshot.add_argument(
        "--pod-logs",
        default="/var/log/pods",
        metavar="FOLDER",
        help="the kubelet's folder of logs, which tells pods' names (default %(default)s)",
    )
    check = commands.add_parser(
        "check",
        help="say whether this node can be enforced, with a remedy for each thing missing",
        description="Say whether this node can be enforced: what the kernel, the driver and the API"
        " server let the agent do, and what helps where something is missing.",
        epilog="Exit codes: 0 if it can, 1 if something is missing, 2 for a wrong call. Nothing is"
        " changed anywhere. The environment is that of the agent, see gpufence-agent --help;"
        " in a cluster: kubectl -n gpufence-system exec ds/gpufence-agent -- gpufence-agent check",
    )
    check.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="default: table"
    )
    verify = commands.add_parser(
        "verify",
        help="take memory of each card for some seconds, and say whether the driver does what"
        " gpufence assumes",
        description="Take memory of each card for some seconds, at most half of what is free, and"
        " say whether the driver does what gpufence assumes. Run it on cards that do no work.",
        epilog="Exit codes: 0 as assumed, 1 if something differs, 2 for a wrong call. No cluster"
        " and no framework is needed. With -o json the facts are there as well, to be attached to"
        " an issue: figures of driver and cards, no names of people or pods.",
    )
    verify.add_argument(
        "--program",
        action="append",
        default=[],
        metavar="FRAMEWORK=COMMAND",
        help="a program that takes all memory it can get, to see whether it keeps to a cap: torch,"
        " jax or cupy, and the command; without it those that are installed are tried",
    )
    verify.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="default: table"
    )
    return parser


def _run(_arguments: Namespace) -> int:
    from agent.program import run  # noqa: PLC0415 (each command loads what it needs)
    from kube import read_client_settings  # noqa: PLC0415 (each command loads what it needs)

    run(os.environ, read_client_settings(os.environ, user_agent=_NAME))
    return 0


def _snapshot(arguments: Namespace) -> int:
    from agent.commands.snapshot import snapshot  # noqa: PLC0415 (each loads what it needs)

    return snapshot(os.environ, sys.stdout, arguments.pod_logs)


def _check(arguments: Namespace) -> int:
    from agent.commands.check import check  # noqa: PLC0415 (each loads what it needs)

    return check(os.environ, sys.stdout, as_json=arguments.output == "json")


def _verify(arguments: Namespace) -> int:
    from agent.commands.verify import verify  # noqa: PLC0415 (each loads what it needs)

    as_json = arguments.output == "json"
    return verify(os.environ, sys.stdout, arguments.program, as_json=as_json)


_COMMANDS = {"run": _run, "snapshot": _snapshot, "check": _check, "verify": _verify}

if __name__ == "__main__":
    sys.exit(main())
