"""
`gpufence-agent snapshot`: one look at this machine, the first thing to run on a node.

Whose a process is comes from the kernel alone; no cluster is asked. Pods have names where the
kubelet's folder of logs can be read, otherwise their UIDs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from agent.attribute import attribute
from agent.clock import boottime, timestamp
from agent.judge import judge
from agent.model.memory import Memory
from agent.model.pod import PodOnNode, pods_on_node
from agent.model.policy import EvictionPolicy
from agent.model.state import About, AgentState, TickResult
from agent.nvml.sampler import Sampler
from agent.procfs.lookup import Lookup
from agent.settings import read_agent_settings
from agent.snapshot_view import snapshot_of
from gpufence.snapshot import write_snapshot
from service.command import version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent.model.sample import Sample
    from agent.model.use import Occupant
    from agent.nvml.settings import SamplerSettings
    from agent.ports import Cards
    from agent.settings import AgentSettings
    from gpufence.snapshot import Snapshot

_WHOLE = 0.9
_SHORT_ID = 12
_NO_PAUSE = EvictionPolicy(start_pause_seconds=0.0)
_NAME_PARTS = 3


BLIND = 1


def snapshot(environ: Mapping[str, str], stdout: TextIO, pod_logs: str) -> int:
    """Print what is there as JSON; 1 where no card can be read."""
    rows = look_once(read_agent_settings(environ), pod_logs)
    stdout.write(write_snapshot(rows) + "\n")
    return BLIND if rows.trouble else 0


def look_once(settings: AgentSettings, pod_logs: str) -> Snapshot:
    """Return what is on the cards now. Nobody is judged: there are no limits without a cluster."""
    started, started_at = timestamp(), boottime()
    cards = Sampler(settings.sampler)
    try:
        sample = first_sample(cards, settings.sampler)
    finally:
        cards.close()
    listed = (item.processes for item in sample.cards if item.processes is not None)
    pids = {process.pid for each in listed for process in each.processes}
    occupants = Lookup(settings.proc).occupants(pids)
    pods = pods_on_node(_pods(occupants.values(), names_of_pods(pod_logs)))
    observation = attribute(sample, occupants, pods)
    now = boottime()
    decision, _ = judge(observation, Memory(now), _NO_PAUSE, now)
    blind = sample.trouble and not any(item.memory for item in sample.cards)
    state = AgentState(
        started_at=started_at,
        at=now,
        last=TickResult(observation, decision),
        measured_at=None if blind else sample.taken_at,
    )
    about = About(
        node=settings.node or os.uname().nodename,
        version=version(),
        started=started,
        gap_seconds=now - sample.taken_at + 1.0,
        cap_slack_bytes=settings.policy.cap_slack_bytes,
    )
    return snapshot_of(state, about, now, timestamp())


def first_sample(cards: Cards, settings: SamplerSettings) -> Sample:
    """Look; where a look takes all the time it has, NVML is still opening, so look again."""
    until = boottime() + settings.start_seconds
    while True:
        began = boottime()
        sample = cards.sample(frozenset())
        now = boottime()
        if not sample.trouble or now - began < _WHOLE * settings.deadline_seconds or now > until:
            return sample


def _pods(
    occupants: Iterable[Occupant], known: Mapping[str, tuple[str, str]]
) -> Iterator[PodOnNode]:
    """Make up a pod for each UID that the kernel names, with the containers it names."""
    containers: dict[str, dict[str, str]] = {}
    for item in occupants:
        owner = item.owner
        if owner is not None and owner.container_id is not None:
            uid = owner.pod_uid or ""
            containers.setdefault(uid, {})[owner.container_id] = owner.container_id[:_SHORT_ID]
    for uid, ids in containers.items():
        namespace, name = known.get(uid, ("", ""))
        yield PodOnNode(
            uid=uid or "own-pod", namespace=namespace, name=name, mode=None, containers=ids
        )


def names_of_pods(folder: str) -> dict[str, tuple[str, str]]:
    """
    Return namespace and name by UID; nothing where there is no such folder, or none may look.

    They are for people alone: nothing is ever decided by them.
    """
    try:
        entries = os.listdir(folder)  # noqa: PTH208 - names are all that is wanted
    except OSError:
        return {}
    parts = (entry.split("_") for entry in entries)
    return {part[2]: (part[0], part[1]) for part in parts if len(part) == _NAME_PARTS}
