"""
Finding records of how pods ended: at the agents, in the ConfigMaps of those that do not answer, and
what a pod that lives has held so far.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.errors import GpufenceError
from gpufence.names import WHY_KEY, WHY_LABEL, WHY_RUNNING
from gpufence.records import MOST_RECORDS, NodeRecords, read_records
from gpufence.shape import as_text, as_texts
from gpufence.text import printable
from kube import ForbiddenError, core
from kube.discovery import Kinds
from kubectl_gpufence.agents import silence_reason
from kubectl_gpufence.cluster_view import named
from kubectl_gpufence.owners import kind_called
from kubectl_gpufence.reader import MissingError
from kubectl_gpufence.refusals import REFUSED, of_owner, ours
from kubectl_gpufence.verbs.why.below import owners_below
from kubectl_gpufence.verbs.why.story import FoundRecord
from kubectl_gpufence.view import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpufence.records import Record
    from kube import JsonObject
    from kubectl_gpufence.pods import SeenEvent, StatusPod
    from kubectl_gpufence.reader import ClusterReader
    from kubectl_gpufence.verbs.why.below import OwnerName

_PAGE: Final = "/v1/why"
_HIDDEN: Final = "you may neither ask agents nor list ConfigMaps: Role gpufence-viewer"
_ALIVE: Final = "it has not ended: `kubectl gpufence explain` has the present"


class WantedRecords(NamedTuple):
    """
    What is asked for: a namespace, empty for all, and a pod, or an owner as `Kind/name` with those
    `below` it.
    """

    namespace: str
    pod: str = ""
    owner: str = ""
    below: frozenset[OwnerName] = frozenset()

    def fits(self, record: Record) -> bool:
        if self.namespace not in ("", record.namespace):
            return False
        if self.owner:
            named = self.owner in (record.owner, record.controller)
            return named or (record.namespace, record.owner) in self.below
        return self.pod in ("", record.name)

    @property
    def shown(self) -> str:
        what = self.owner or f"pod {self.pod}"
        return f"{what} in namespace {self.namespace}" if self.namespace else what


class Known(NamedTuple):
    """What nodes remember, by node; `hidden`: why neither agents nor ConfigMaps can be read."""

    nodes: dict[str, NodeRecords]
    notes: tuple[str, ...] = ()
    hidden: str = ""


class FoundEnds(NamedTuple):
    """Records, the newest first, refusals of an owner's pods, and what is missing from them."""

    records: list[FoundRecord]
    notes: list[str]
    refused: list[SeenEvent]


def find(namespace: str, word: str, reader: ClusterReader) -> FoundEnds:
    """
    Return how pods ended, and which were never made.

    Raises:
        MissingError: there is none of what was named, or none may be read.
    """
    kinds = Kinds(reader.client)
    asked = _asked(namespace, word, kinds)
    known = _known(reader)
    if asked.owner:
        more = owners_below(reader, kinds, word, _owners(known, namespace))
        asked = asked._replace(below=more.found)
        known = known._replace(notes=(*known.notes, *more.notes))
    found = _chosen(known.nodes, asked)
    refused = _refused(reader, namespace, asked.owner) if asked.owner else []
    if found or refused or not word:
        if known.hidden and not refused:
            raise MissingError(known.hidden)
        notes = known.notes or ((known.hidden,) if known.hidden else ())
        nothing = [] if found or refused else [_nothing(asked, known)]
        return FoundEnds(found, [*notes, *nothing], refused)
    if asked.pod and (living := _chosen(_running(reader), asked)):
        return FoundEnds(living, [*known.notes, _ALIVE], [])
    raise MissingError(known.hidden or _missing(asked, known))


def _refused(reader: ClusterReader, namespace: str, owner: str) -> list[SeenEvent]:
    return of_owner(ours(reader.events(namespace, f"reason={REFUSED}") or ()), owner)


def _asked(namespace: str, word: str, kinds: Kinds) -> WantedRecords:
    called, separator, name = word.partition("/")
    if not separator:
        return WantedRecords(namespace, pod=word)
    kind = kind_called(kinds, called).kind
    return (
        WantedRecords(namespace, name)
        if kind == "Pod"
        else WantedRecords(namespace, owner=f"{kind}/{name}")
    )


def _chosen(nodes: dict[str, NodeRecords], asked: WantedRecords) -> list[FoundRecord]:
    fitting = (
        FoundRecord(node, record)
        for node, known in nodes.items()
        for record in known.records
        if asked.fits(record)
    )
    return sorted(fitting, key=lambda each: each.record.key, reverse=True)


def _owners(known: Known, namespace: str) -> list[OwnerName]:
    """Return the owners that records name, those of the last ends first."""
    records = [each.record for each in _chosen(known.nodes, WantedRecords(namespace))]
    return [*dict.fromkeys((each.namespace, each.owner) for each in records if each.owner)]


def _known(reader: ClusterReader) -> Known:
    """Ask all agents, and read the ConfigMaps of nodes whose agents do not answer."""
    pods, note, hidden, home = reader.agent_pods()
    answers = list(zip(pods, reader.together(lambda pod: _page(reader, pod), pods), strict=True))
    nodes = {each.node: each for _, each in answers if isinstance(each, NodeRecords)}
    silent = {pod.node or pod.name: each for pod, each in answers if isinstance(each, str)}
    try:
        stored = {} if pods and not silent else _stored(reader, home)
    except ForbiddenError:
        why = named(list(silent)) if silent else ""
        notes = (f"nothing is known of {why}: {next(iter(silent.values()))}",) if silent else ()
        unknown = not nodes and (hidden or silent)
        return Known(nodes, notes, hidden=f"{_HIDDEN} in {home} allows both" if unknown else "")
    notes = () if pods or stored or hidden else (note,)
    if unread := [node for node in silent if node not in stored]:
        notes = (f"{counted(len(unread), 'agent')} ({named(unread)}) did not answer",)
    return Known({**stored, **nodes}, notes)


def _page(reader: ClusterReader, pod: StatusPod, query: str = "") -> NodeRecords | str:
    """Return what an agent remembers, or why that is not known."""
    if not pod.ready:
        return "its pod is not ready"
    try:
        return read_records(reader.ask_agent(pod, _PAGE, {"only": query} if query else None))
    except GpufenceError as error:
        return silence_reason(error, pod.namespace)


def _stored(reader: ClusterReader, home: str) -> dict[str, NodeRecords]:
    """Read what agents have stored; what no agent wrote is left out."""

    def keep(raw: JsonObject) -> NodeRecords | None:
        try:
            data = as_texts(raw.get("data"), "data")
            return read_records(as_text(data.get(WHY_KEY), WHY_KEY))
        except GpufenceError:
            return None

    path = core("namespaces", home, "configmaps")
    query: dict[str, str | int] = {"labelSelector": f"app.kubernetes.io/name={WHY_LABEL}"}
    found = reader.listed(path, keep, query)
    return {each.node: each for each in found if each is not None}


def _running(reader: ClusterReader) -> dict[str, NodeRecords]:
    pods, *_ = reader.agent_pods()
    answers = reader.together(lambda pod: _page(reader, pod, WHY_RUNNING), pods)
    return {each.node: each for each in answers if isinstance(each, NodeRecords)}


def _nothing(asked: WantedRecords, known: Known) -> str:
    where = f" in namespace {asked.namespace}" if asked.namespace else ""
    return f"no end of a pod{where} is recorded; {_kept(known)}"


def _missing(asked: WantedRecords, known: Known) -> str:
    near = get_close_matches(asked.owner or asked.pod, set(_names(known, asked)), n=1)
    hint = f"did you mean {printable(near[0])}?" if near else "-n names another namespace"
    rejected = "" if asked.owner else "; of a pod that was rejected `why deploy/NAME` shows why"
    return f"no end of {asked.shown} is recorded; {hint} {_kept(known)}{rejected}"


def _names(known: Known, asked: WantedRecords) -> Iterable[str]:
    for each in _chosen(known.nodes, WantedRecords(asked.namespace)):
        record = each.record
        yield from (record.owner, record.controller) if asked.owner else (record.name,)


def _kept(known: Known) -> str:
    """Say how long records are kept, and since when agents could write any."""
    since = min((each.since for each in known.nodes.values() if each.since), default="")
    runs = f", of agents that run since {printable(since)} at the earliest" if since else ""
    return f"(the last {MOST_RECORDS} evictions of each node are kept{runs})"
