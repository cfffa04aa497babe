"""
`gpufence-agent check`: whether this node can be enforced, with a remedy for each thing missing.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, TextIO

from agent.check.api import check_api
from agent.check.cards import check_cards
from agent.check.host import check_cgroups, check_clock, check_kill, check_pid_namespace
from agent.check.report import as_json, as_text, can_enforce
from agent.nvml.sampler import Sampler
from agent.procfs.lookup import Lookup
from agent.program import cluster_settings
from agent.reader import Reader
from agent.settings import read_agent_settings
from gpufence.findings import wrong
from kube import AccessError, connect, read_client_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent.settings import AgentSettings
    from gpufence.findings import Finding
    from kube import ClientSettings

CANNOT = 1


def main(arguments: Sequence[str], environ: Mapping[str, str], stdout: TextIO) -> int:
    """
    Print what was found; 1 where something is missing.
    """
    chosen = _parser().parse_args(arguments)
    reader = Reader(environ)
    settings = read_agent_settings(reader, needs_node=True)
    reader.check()
    access = read_client_settings(environ, user_agent="gpufence-agent")
    found = [*_of_host(settings), *_of_cards(settings), *_of_cluster(settings, access)]
    stdout.write(as_json(found) if chosen.output == "json" else as_text(found))
    return 0 if can_enforce(found) else CANNOT


def _of_host(settings: AgentSettings) -> Iterator[Finding]:
    yield check_pid_namespace()
    yield check_clock(settings.proc)
    yield check_cgroups(settings.proc)
    yield check_kill(wanted=settings.policy.last_resort_kill)


def _of_cards(settings: AgentSettings) -> list[Finding]:
    cards = Sampler(settings.sampler)
    try:
        return check_cards(cards, settings.sampler, Lookup(settings.proc))
    finally:
        cards.close()


def _of_cluster(settings: AgentSettings, access: ClientSettings) -> Iterator[Finding]:
    try:
        client = connect(access)
    except AccessError as error:
        yield wrong("API server", "no way to a cluster", str(error))
        return
    with client:
        yield from check_api(client, cluster_settings(settings))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpufence-agent check",
        description="Say whether this node can be enforced: what the kernel, the driver and the API"
        " server let the agent do, and what helps where something is missing.",
        epilog="Exit codes: 0 if it can, 1 if something is missing, 2 for a wrong call. Nothing is"
        " changed anywhere. The environment is that of the agent, see gpufence-agent --help;"
        " in a cluster: kubectl -n gpufence-system exec ds/gpufence-agent -- gpufence-agent check",
    )
    parser.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="default: table"
    )
    return parser
