"""Where recommendations come from: profiles of the cluster, else what agents remember."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpufence.annotations import read_namespace_options
from gpufence.errors import GpufenceError, InvalidError
from gpufence.names import PROFILE_GROUP, PROFILES
from gpufence.need import (
    ProposalTerms,
    bounded,
    read_need,
    summaries,
)
from gpufence.need.profile import KIND, read_profile
from gpufence.need.summary import NO_TERMS
from gpufence.times import write_moment
from kube import ForbiddenError, NotFoundError, core
from kube.kinds import ApiKind
from kubectl_gpufence.cluster_view import named
from kubectl_gpufence.pods import annotations_of, is_ready, name_of, node_of
from kubectl_gpufence.verbs.recommend.lines import chosen, unsure
from kubectl_gpufence.view import counted

if TYPE_CHECKING:
    from gpufence.need import NeedSummary, NodeNeed
    from gpufence.need.profile import MemoryProfile
    from kube import JsonObject
    from kubectl_gpufence.reader import ClusterReader

PROFILE: Final = ApiKind(PROFILE_GROUP, KIND, PROFILES)
PAGE: Final = "/v1/need"
"""What an agent remembers, on its status port."""

_DAY: Final = len("2026-11-19")

FROM_PROFILES: Final = "profiles"
FROM_AGENTS: Final = "agents"


@dataclass(frozen=True, slots=True)
class Needs:
    """
    What is known of the models of a namespace, or of all, whose words it is, and what is missing;
    `nodes` is what agents remember, where they were asked.
    """

    source: str
    items: tuple[NeedSummary, ...]
    notes: tuple[str, ...] = ()
    nodes: tuple[NodeNeed, ...] = ()


def read_needs(reader: ClusterReader, namespace: str) -> Needs:
    """Ask for what models need, the best that is to be had."""
    profiles, why_not = _profiles(reader, namespace)
    if profiles:
        every = (item for profile in profiles for item in profile.containers)
        items = tuple(chosen(every, namespace))
        return Needs(FROM_PROFILES, items, (*why_not, *unsure(items)))
    nodes, silent = remembered(reader)
    terms = _ceilings(reader, namespace) if nodes else {}
    said = summaries(nodes, lambda key: terms.get(key.namespace, NO_TERMS))
    items = tuple(chosen(said, namespace))
    return Needs(FROM_AGENTS, items, (*why_not, *silent, *unsure(items)), tuple(nodes))


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
