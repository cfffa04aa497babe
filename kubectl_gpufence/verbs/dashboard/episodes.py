"""
PURE. Events as episodes: all of one reason about an owner, its pods and itself, are one episode.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.owners import topmost

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kubectl_gpufence.pod_lines import PodLine
    from kubectl_gpufence.pods import SeenEvent

MOST_EPISODES: Final = 100

_NAMES_PODS: Final = frozenset({"ReplicaSet", "DaemonSet", "StatefulSet", "Job", "Deployment"})


class EventSubject(NamedTuple):
    """What an Event is about; a Node has no namespace."""

    namespace: str
    kind: str
    name: str


class EventEpisode(NamedTuple):
    """From `since` to `at`, `times` in all, about so many pods, in the words of the newest one."""

    group: str
    about: EventSubject
    reason: str
    warning: bool
    since: str
    at: str
    times: int
    pods: int
    message: str


class PodGroups:
    """The owners whose pods are shown, or that Events are about, by those pods and by names."""

    def __init__(self, lines: Iterable[PodLine]) -> None:
        self._of_pods: dict[tuple[str, str], str] = {}
        self._owners: dict[tuple[str, str], EventSubject] = {}
        for line in lines:
            self._of_pods[line.namespace, line.name] = group_of(line)
            if line.owner:
                kind, _, name = line.owner.partition("/")
                self.take_in(EventSubject(line.namespace, kind, name))

    def take_in(self, owner: EventSubject) -> None:
        self._owners.setdefault((owner.namespace, owner.name), owner)

    def of(self, about: EventSubject) -> str:
        """Return the group of a pod, also of one that is gone, or of its owner."""
        if about.kind == "Pod" and (known := self._of_pods.get((about.namespace, about.name))):
            return known
        found = self._owner_of(about) if about.kind == "Pod" else None
        return _group(found or about)

    def _owner_of(self, pod: EventSubject) -> EventSubject | None:
        """Find what a pod that is gone was named after: one part is added, by some kinds more."""
        name = direct = pod.name.rpartition("-")[0]
        while name:
            owner = self._owners.get((pod.namespace, name))
            if owner and (name == direct or owner.kind not in _NAMES_PODS):
                return owner
            name = name.rpartition("-")[0]
        return None


def group_of(line: PodLine) -> str:
    """
    Return what the pods of one topmost owner have in common; a pod without an owner stands alone.
    """
    return f"{line.namespace}/{topmost(line.owner or f'Pod/{line.name}')}"


def _group(about: EventSubject) -> str:
    owner = topmost(f"{about.kind}/{about.name}")
    return f"{about.namespace}/{owner}" if about.namespace else owner


def episodes(events: Iterable[SeenEvent], lines: Iterable[PodLine]) -> list[EventEpisode]:
    """Put Events together, the newest first."""
    told = [(subject_of(event), event) for event in events]
    groups = PodGroups(lines)
    for about, _ in told:
        if about.kind not in ("Pod", "Node"):
            groups.take_in(about)
    found: dict[tuple[str, str], list[tuple[EventSubject, SeenEvent]]] = defaultdict(list)
    for about, event in told:
        found[groups.of(about), event.reason].append((about, event))
    made = [_episode(group, items) for (group, _), items in found.items()]
    return sorted(made, key=lambda item: item.at, reverse=True)[:MOST_EPISODES]


def subject_of(event: SeenEvent) -> EventSubject:
    first, _, rest = event.about.partition("/")
    second, _, name = rest.partition("/")
    return EventSubject(first, second, name) if name else EventSubject("", first, rest)


def _episode(group: str, items: list[tuple[EventSubject, SeenEvent]]) -> EventEpisode:
    """Count what pods have got, and what their owner has got where that is all there is."""
    own = [item for item in items if item[0].kind == "Pod"] or items
    about, newest = max(own, key=lambda item: item[1].at)
    return EventEpisode(
        group=group,
        about=about,
        reason=newest.reason,
        warning=newest.warning,
        since=min(event.since or event.at for _, event in own),
        at=newest.at,
        times=sum(event.times for _, event in own),
        pods=len({about for about, _ in own if about.kind == "Pod"}),
        message=newest.message,
    )
