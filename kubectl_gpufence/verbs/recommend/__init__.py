"""
`recommend`: how much memory each model needs, and the limit that would do, for people and for Git.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Final

import yaml

from gpufence.annotations import read_namespace_options
from gpufence.dialects import Units
from gpufence.errors import GpufenceError, InvalidError
from gpufence.names import PROFILE_GROUP, PROFILES
from gpufence.need import ProposalTerms, bounded, merged, read_need, summaries
from gpufence.need.profile import KIND, read_profile
from gpufence.need.summary import NO_TERMS
from gpufence.shape import as_object
from gpufence.snapshot import CARDS_AND_PODS
from gpufence.text import printable
from gpufence.times import write_moment
from kube import ForbiddenError, NotFoundError, core
from kube.kinds import ApiKind
from kubectl_gpufence.arguments import add_output, add_scope
from kubectl_gpufence.cluster_view import named
from kubectl_gpufence.pods import annotations_of, name_of, owner_of
from kubectl_gpufence.verbs.recommend.lines import chosen, need_listing, packings, title, unsure
from kubectl_gpufence.verbs.recommend.page import ModelDays, page
from kubectl_gpufence.verbs.recommend.patches import OWNER_KINDS, NodeWords, kustomization, patch_of
from kubectl_gpufence.view import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpufence.need import NeedSummary, NodeNeed
    from gpufence.need.profile import MemoryProfile
    from kube import JsonObject
    from kubectl_gpufence.cluster_view import SeenNode
    from kubectl_gpufence.output import Output
    from kubectl_gpufence.pods import StatusPod
    from kubectl_gpufence.reader import ClusterReader
    from kubectl_gpufence.verbs.recommend.patches import OwnerPatch


EXAMPLES: Final = """\
examples:
  kubectl gpufence recommend -A               every model: peak, target, and how far to trust it
  kubectl gpufence recommend -A -o html > memory.html    a page with each model's days, and the
                                              cards that would be free
  kubectl gpufence recommend -n team-a -o patch > patches.yaml
  kubectl gpufence recommend -n team-a -o patch --burst  where less is enough most of the time,
                                              request that, with the target as gpufence.io/burst
  kubectl gpufence recommend -n team-a -o kustomize > gpu-memory/kustomization.yaml

It reads the GPUMemoryProfiles, else what the agents remember of the last days. Nothing is applied:
patches say the targets in the words of each owner's own sharing system, for Git. At low confidence,
and while a model stands at its cap, there is no target.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_scope(parser)
    add_output(parser, "table", "json", "csv", "patch", "kustomize", "html")
    parser.add_argument(
        "--burst",
        action="store_true",
        help="in patches, request what is enough most of the time, and burst to the target",
    )


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    needs = read_needs(reader, call.namespace)
    if call.output == "html":
        return _show_page(call, reader, needs, output)
    if call.output in ("patch", "kustomize"):
        return _patches(call, reader, needs, output)
    listing = need_listing(needs.items, call.namespace, needs.source, needs.notes)
    output.show(listing, call.output)
    return 0


def _show_page(
    call: argparse.Namespace, reader: ClusterReader, needs: Needs, output: Output
) -> int:
    """Write what each model needs and took from day to day, and the cards that would be free."""
    nodes = needs.nodes or remembered(reader)[0]
    days = {owner.key: owner.days for owner in merged(nodes)}
    models = [ModelDays(item, days.get(item.key, ())) for item in needs.items]
    cluster = reader.cluster_of_nodes("", CARDS_AND_PODS)
    cards = packings(cluster.snapshots, needs.items, call.namespace)
    notes = tuple(
        dict.fromkeys((*needs.notes, *_newer(needs, nodes, call.namespace), *cluster.notes))
    )
    where = f"namespace {call.namespace}" if call.namespace else "all namespaces"
    output.lines(page(models, cards, where, notes, page_style()))
    output.notes(notes)
    return 0


def _newer(needs: Needs, nodes: Iterable[NodeNeed], namespace: str) -> Iterator[str]:
    """Say which owners agents have measured that the profiles, a little older, do not have yet."""
    measured = {owner.key[:3] for owner in merged(nodes) if namespace in ("", owner.key.namespace)}
    newer = measured - {item.key[:3] for item in needs.items}
    if needs.source == FROM_PROFILES and newer:
        owners = named(f"{within}/{name}" for within, _, name in newer)
        yield f"{counted(len(newer), 'owner')} measured, and in no profile yet: {owners}"


def page_style() -> str:
    """Read the page's style sheet from the package."""
    return files(__package__).joinpath("page.css").read_text(encoding="utf-8")


def _patches(call: argparse.Namespace, reader: ClusterReader, needs: Needs, output: Output) -> int:
    nodes, note = reader.nodes()
    notes = [*needs.notes, note]
    patches: list[OwnerPatch] = []
    for items in _by_owner(needs.items):
        patch, more = _patch(reader, items, nodes, burst=call.burst)
        patches += [] if patch is None else [patch]
        notes += more
    output.lines(patch_lines(patches, together=call.output == "kustomize"))
    if not patches:
        notes.append("nothing to change: no owner has a target that its template does not say")
    output.notes(note for note in notes if note)
    return 0


def patch_lines(patches: Sequence[OwnerPatch], *, together: bool) -> list[str]:
    """
    Write patches as YAML: each a document with its command, or all in one component of kustomize.
    """
    texts = [_Block(_yaml(patch.body)) for patch in patches]
    if together:
        return _yaml(kustomization(patches, texts)).splitlines() if patches else []
    lines = []
    for patch, text in zip(patches, texts, strict=True):
        comments = (f"# {printable(line)}" for line in (patch.command, *patch.comments))
        lines += ["---", *comments, *text.splitlines()]
    return lines


def _by_owner(items: Iterable[NeedSummary]) -> list[list[NeedSummary]]:
    """Return the items of each owner that has any target, with those that have none."""
    ordered = sorted(items, key=lambda item: item.key)
    owners = [list(items) for _, items in groupby(ordered, key=lambda item: item.key[:3])]
    return [items for items in owners if any(item.target_bytes for item in items)]


def _patch(
    reader: ClusterReader,
    items: Sequence[NeedSummary],
    nodes: Mapping[str, SeenNode],
    *,
    burst: bool,
) -> tuple[OwnerPatch | None, tuple[str, ...]]:
    key = items[0].key
    whose = f"{key.namespace} {title(items[0])}"
    kind = OWNER_KINDS.get(key.kind)
    if kind is None:
        return None, (
            f"{whose}: its template cannot be patched; write the target into its manifest",
        )
    try:
        raw = reader.client.get(kind.path(key.namespace, key.name))
        above, _, name = owner_of(as_object(raw.get("metadata"), "metadata")).partition("/")
        if above:  # a pod alone does not always tell its topmost owner
            owned = [item._replace(key=item.key._replace(kind=above, name=name)) for item in items]
            return _patch(reader, owned, nodes, burst=burst)
        return patch_of(items, raw, _words(items, nodes), burst=burst)
    except (NotFoundError, ForbiddenError, ValueError) as error:
        return None, (f"{whose}: {printable(str(error))}",)
    except InvalidError as error:
        return None, (f"{whose} cannot be read: {error}",)


def _words(items: Sequence[NeedSummary], nodes: Mapping[str, SeenNode]) -> NodeWords:
    """
    Return what numbers mean on the nodes with the models of card in question: nothing certain where
    they differ.
    """
    models = {item.key.card for item in items}
    sizes: set[int] = set()
    units: set[Units] = set()
    for node in nodes.values():
        cards = () if node.cards is None else node.cards.cards
        fitting = [card.memory_bytes for card in cards if card.full_model in models]
        if fitting and node.gpu is not None:
            sizes.update(fitting)
            units.add(node.gpu.units)
    gpushare = {unit.gpushare_bytes for unit in units}
    factors = {unit.volcano_factor for unit in units}
    plain = Units()
    return NodeWords(
        Units(
            (gpushare.pop() if len(gpushare) == 1 else None) if units else plain.gpushare_bytes,
            min(factors, default=plain.volcano_factor),
        ),
        min(sizes, default=None),
    )


class _Block(str):
    """Text of several lines that is written as such."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Writes blocks as people do."""


_Dumper.add_representer(
    _Block, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")
)


def _yaml(value: object) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=False)


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
    pods, note, hidden, _ = reader.agent_pods()
    today = write_moment(time.time())[:_DAY]
    answers = reader.together(lambda pod: _need(reader, pod, today), pods)
    silent = [pod.node or pod.name for pod, need in zip(pods, answers, strict=True) if not need]
    notes = [note] if hidden else []
    if silent:
        notes.append(f"{counted(len(silent), 'agent')} ({named(silent)}) told of no days")
    return [need for need in answers if need is not None], tuple(notes)


def _need(reader: ClusterReader, pod: StatusPod, today: str) -> NodeNeed | None:
    try:
        return bounded(read_need(reader.ask_agent(pod, PAGE)), today) if pod.ready else None
    except GpufenceError:
        return None
