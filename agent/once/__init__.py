"""
`gpufence-agent snapshot`: one look at this machine, the first thing to run on a node.

Whose a process is comes from the kernel alone; no cluster is asked. Pods have names where the
kubelet's folder of logs can be read, otherwise their UIDs.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, TextIO

from agent.once.look import look_once
from agent.once.report import as_text
from agent.reader import Reader
from agent.settings import read_agent_settings
from gpufence.snapshot import write_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BLIND = 1


def main(arguments: Sequence[str], environ: Mapping[str, str], stdout: TextIO) -> int:
    """
    Print what is there; 1 where no card can be read.
    """
    chosen = _parser().parse_args(arguments)
    reader = Reader(environ)
    settings = read_agent_settings(reader)
    reader.check()
    said = look_once(settings, chosen.pod_logs)
    if chosen.output == "json":
        stdout.write(write_snapshot(said) + "\n")
    else:
        stdout.write(as_text(said))
    return BLIND if said.trouble else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpufence-agent snapshot",
        description="Look at this machine's cards and processes once, without a cluster.",
        epilog="Exit codes: 0, or 1 where no card can be read. The environment is that of the"
        " agent, see gpufence-agent --help; none of it is required.",
    )
    parser.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="default: table"
    )
    parser.add_argument(
        "--pod-logs",
        default="/var/log/pods",
        metavar="FOLDER",
        help="the kubelet's folder of logs, which tells pods' names (default %(default)s)",
    )
    return parser
