"""
`gpufence-agent verify`: whether this machine's driver does what gpufence assumes.

Processes of its own take memory of each card for some seconds, at most half of what is free. Two
results: facts, to attach to an issue, and a verdict.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from agent.commands.check import INITIAL_PID_NAMESPACE
from agent.commands.snapshot import first_sample
from agent.commands.verify.assumptions import as_assumed, findings, verdict
from agent.commands.verify.caps import read_programs
from agent.commands.verify.facts import VERSION, DriverFacts
from agent.commands.verify.trial import try_card
from agent.nvml.sampler import Sampler
from agent.procfs.lookup import Lookup
from agent.settings import read_agent_settings
from gpufence import names
from gpufence.errors import Level
from gpufence.quantity import MIB
from gpufence.reserves import read_reserves
from gpufence.text import aligned, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent.commands.verify.facts import CardFacts
    from agent.commands.verify.trial import Programs
    from agent.model.sample import Sample
    from agent.settings import AgentSettings
    from gpufence.errors import Finding

_WORDS: Final = {
    Level.OK: "as assumed",
    Level.WRONG: "differs",
    Level.LOOK: "look",
    Level.UNKNOWN: "not tried",
}
_V2: Final = Path("/sys/fs/cgroup/cgroup.controllers")
_LIMIT: Final = "NVIDIA_GPU_MEMORY_LIMIT"
_MPS_PIPES: Final = "CUDA_MPS_PIPE_DIRECTORY"


def verify(
    environ: Mapping[str, str], stdout: TextIO, programs: Sequence[str], *, as_json: bool
) -> int:
    """Try every card, and print what was found; 1 where something differs."""
    reserves = read_reserves(environ.get(names.RESERVE, ""), names.RESERVE)
    facts = measured(read_agent_settings(environ), environ, read_programs(programs))
    found = findings(facts, reserves)
    stdout.write(json_of(facts, found) if as_json else text_of(found))
    return int(not as_assumed(found))


def measured(
    settings: AgentSettings, environ: Mapping[str, str], programs: Programs
) -> DriverFacts:
    """Try every card that both NVML and CUDA show."""
    sampler = Sampler(settings.sampler)
    try:
        sample = first_sample(sampler, settings.sampler)
        cards = tuple(_tried(sampler, Lookup(settings.proc), sample, programs))
    finally:
        sampler.close()
    own = Lookup(settings.proc).look(os.getpid())
    limit = environ.get(_LIMIT, "")
    return DriverFacts(
        driver=sample.driver,
        kernel=os.uname().release,
        cgroup_version=2 if _V2.exists() else 1,
        host_pids=os.readlink("/proc/self/ns/pid") == INITIAL_PID_NAMESPACE,  # noqa: PTH115 - its text
        in_container=own is not None and own.owner is not None,
        mps=_MPS_PIPES in environ,
        driver_limit_bytes=int(limit) * MIB if limit.isdecimal() else None,
        cards=cards,
        trouble=sample.trouble.text if not cards else "",
    )


def _tried(
    sampler: Sampler, lookup: Lookup, sample: Sample, programs: Programs
) -> Iterator[CardFacts]:
    for item in sample.cards:
        card = item.card
        sys.stderr.write(f"trying card {card.index}, {printable(card.full_model)} ...\n")
        yield try_card(sampler, lookup, card, programs)


def text_of(found: Sequence[Finding]) -> str:
    """Write a table, then the remedies, then the verdict."""
    rows = [(item.subject, _WORDS[item.level], printable(item.text)) for item in found]
    lines = aligned([("ASSUMPTION", "STATE", "FOUND"), *rows], gap="   ")
    remedies = [f"{item.subject}: {item.remedy}" for item in found if item.remedy]
    parts = [lines, ["", *remedies] if remedies else [], ["", verdict(found)]]
    return "".join(f"{line}\n" for part in parts for line in part)


def json_of(facts: DriverFacts, found: Sequence[Finding]) -> str:
    """Write both results."""
    rows = [
        {
            "assumption": item.subject,
            "state": _WORDS[item.level],
            "text": item.text,
            "remedy": item.remedy,
        }
        for item in found
    ]
    document = {
        "v": VERSION,
        "verdict": verdict(found),
        "assumptions": rows,
        "facts": facts.document(),
    }
    return json.dumps(document, indent=2) + "\n"
