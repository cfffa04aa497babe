"""
Where recommendations come from: profiles of the cluster, else what agents remember, else what they
report since they started.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpufence.annotations import read_namespace_options
from gpufence.errors import GpufenceError, InvalidError
from gpufence.names import PROFILE_GROUP, PROFILES
from gpufence.need import (
    Confidence,
    NeedKey,
    NeedReasons,
    NeedSummary,
    ProposalTerms,
    bounded,
    read_need,
    summaries,
)
from gpufence.need.profile import KIND, read_profile
from gpufence.need.summary import NO_TERMS
from gpufence.snapshot import OWNER_ROWS
from gpufence.times import write_moment
from kube import ForbiddenError, NotFoundError, core
from kube.kinds import ApiKind
from kubectl_gpufence.pods import annotations_of, is_ready, name_of, node_of
from kubectl_gpufence.recommend.lines import chosen
from kubectl_gpufence.report.owners import owner_lines
from kubectl_gpufence.scene import named
from kubectl_gpufence.table import counted

if TYPE_CHECKING:
    from gpufence.need import NodeNeed
    from gpufence.need.profile import MemoryProfile
    from kube import JsonObject
    from kubectl_gpufence.ask import ClusterReader
    from kubectl_gpufence.report.owners import OwnerLine

PROFILE: Final = ApiKind(PROFILE_GROUP, KIND, PROFILES)
PAGE: Final = "/v1/need"
"""What an agent remembers, on its status port."""

_DAY: Final = len("2026-11-19")

FROM_PROFILES: Final = "profiles"
FROM_AGENTS: Final = "agents"
FROM_REPORT: Final = "report"


@dataclass(frozen=True, slots=True)
class Needs:
    """
    What is known of the models of a namespace, or of all, whose words it is, and what is missing.
    """

    source: str
    items: tuple[NeedSummary, ...]
    notes: tuple[str, ...] = field(default=())


def read_needs(reader: ClusterReader, namespace: str) -> Needs:
    """Ask for what models need, the best that is to be had."""
    profiles, why_not = _profiles(reader, namespace)
    if profiles:
        every = (item for profile in profiles for item in profile.containers)
        return Needs(FROM_PROFILES, tuple(chosen(every, namespace)), why_not)
    nodes, silent = remembered(reader)
    if nodes:
        terms = _ceilings(reader, namespace)
        said = summaries(nodes, lambda key: terms.get(key.namespace, NO_TERMS))
        items = tuple(chosen(said, namespace))
        return Needs(FROM_AGENTS, items, (*why_not, *silent))
    scene = reader.scene_of_nodes("", OWNER_ROWS)
    items = tuple(_reported(line) for line in owner_lines(scene, namespace))
    since = (
        "no agent remembers days: these are figures since the agents started, to be trusted less"
    )
    return Needs(FROM_REPORT, items, (*why_not, since, *scene.notes))


def _ceilings(reader: ClusterReader, namespace: str) -> dict[str, ProposalTerms]:
    """Read what namespaces allow at most; nothing where they may not be read."""

    def keep(raw: JsonObject) -> tuple[str, ProposalTerms]:
        options = read_namespace_options(annotations_of(raw))
        return name_of(raw), ProposalTerms(most_bytes=options.max_memory_bytes)

    try:
        if namespace:
            return dict([keep(reader.client.get(core("namespaces", namespace)))])
        return dict(reader.listed(core("namespaces"), keep))
    except (ForbiddenError, NotFoundError):
        return {}


def _profiles(reader: ClusterReader, namespace: str) -> tuple[list[MemoryProfile], tuple[str, ...]]:
    """Read the profiles, and say why there are none or which cannot be read."""
    path = PROFILE.path(namespace) if namespace else PROFILE.everywhere
    notes: list[str] = []

    def keep(raw: JsonObject) -> MemoryProfile | None:
        try:
            return read_profile(raw)
        except InvalidError as error:
            notes.append(f"a profile cannot be read: {error}")
            return None

    try:
        read = reader.listed(path, keep)
    except NotFoundError:
        return [], ("this cluster has no GPUMemoryProfiles: the agents are asked",)
    except ForbiddenError:
        return [], ("you may not list GPUMemoryProfiles: the agents are asked",)
    profiles = [profile for profile in read if profile is not None]
    if not any(profile.containers for profile in profiles):
        notes.append("no GPUMemoryProfile says anything yet: the agents are asked")
        return [], tuple(notes)
    return profiles, tuple(notes)


def remembered(reader: ClusterReader) -> tuple[list[NodeNeed], tuple[str, ...]]:
    """Ask all agents what they remember; who does not answer is named, by node."""
    pods, hidden = reader.agent_pods()
    today = write_moment(time.time())[:_DAY]
    answers = reader.together(lambda pod: _need(reader, pod, today), pods)
    silent = [
        node_of(pod) or name_of(pod) for pod, need in zip(pods, answers, strict=True) if not need
    ]
    notes = [hidden] if hidden else []
    if silent:
        notes.append(f"{counted(len(silent), 'agent')} ({named(silent)}) told of no days")
    return [need for need in answers if need is not None], tuple(notes)


def _need(reader: ClusterReader, pod: JsonObject, today: str) -> NodeNeed | None:
    try:
        return bounded(read_need(reader.ask_agent(pod, PAGE)), today) if is_ready(pod) else None
    except GpufenceError:
        return None


def _reported(line: OwnerLine) -> NeedSummary:
    """Make a need of a report's line, which knows neither containers nor days."""
    row = line.row
    target = None if line.full else line.suggested_bytes
    why = f"since the agents started; {line.remark}".removesuffix("; ")
    return NeedSummary(
        NeedKey(row.namespace, row.kind, row.name, "", ""),
        row.peak_bytes,
        target,
        Confidence.LOW,
        days=0,
        pods=row.pods,
        held_seconds=0.0,
        limit_bytes=row.limit_bytes,
        told_bytes=None,
        capped=line.full,
        out_of_memory=0,
        evictions=row.evictions,
        reasons=NeedReasons(why, why, why),
    )
