"""
`gpufence-agent check`: whether this node can be enforced, with a remedy for each thing missing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TextIO

from agent.commands.checks import (
    check_api,
    check_cards,
    check_cgroups,
    check_clock,
    check_kill,
    check_pid_namespace,
)
from agent.nvml.sampler import Sampler
from agent.procfs.lookup import Lookup
from agent.program import cluster_settings
from agent.settings import read_agent_settings
from gpufence.findings import Level, wrong
from gpufence.text import aligned, printable
from kube import AccessError, connect, read_client_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent.settings import AgentSettings
    from gpufence.findings import Finding
    from kube import ClientSettings

CANNOT = 1
VERSION: Final = 1

_STATES: Final = {Level.LOOK: "warning", Level.WRONG: "missing"}
"""This command's words: what is wrong with a node is that something is missing."""


def check(environ: Mapping[str, str], stdout: TextIO, *, as_json: bool) -> int:
    """Print what was found; 1 where something is missing."""
    settings = read_agent_settings(environ, needs_node=True)
    access = read_client_settings(environ, user_agent="gpufence-agent")
    findings = [*_of_host(settings), *_of_cards(settings), *_of_cluster(settings, access)]
    stdout.write(json_of(findings) if as_json else text_of(findings))
    return 0 if can_enforce(findings) else CANNOT


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


def can_enforce(findings: Sequence[Finding]) -> bool:
    return all(item.level is not Level.WRONG for item in findings)


def text_of(findings: Sequence[Finding]) -> str:
    """Write a table, then the remedies, then the answer."""
    rows = [(item.subject, _state(item), printable(item.text)) for item in findings]
    table = aligned([("CHECK", "STATE", "FOUND"), *rows], gap="   ")
    lines = [f"{line}\n" for line in table]
    remedies = [item for item in findings if item.remedy]
    if remedies:
        lines.append("\n")
        lines += [f"{item.subject}: {item.remedy}\n" for item in remedies]
    answer = "can" if can_enforce(findings) else "cannot"
    lines.append(f"\nThis node {answer} be enforced.\n")
    return "".join(lines)


def json_of(findings: Sequence[Finding]) -> str:
    document = {
        "v": VERSION,
        "enforceable": can_enforce(findings),
        "checks": [
            {
                "subject": item.subject,
                "state": _state(item),
                "text": item.text,
                "remedy": item.remedy,
            }
            for item in findings
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _state(finding: Finding) -> str:
    return _STATES.get(finding.level, str(finding.level))
