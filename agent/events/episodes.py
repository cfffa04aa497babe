"""
PURE. One thing to say about a pod, its owner or the node, and how often the same is said: once, and
then a count while it lasts, each after twice as long.

Kubernetes' own recorders damp in the client, and Python has none. What is kept is small, bounded
and a value: damping is a function of what was said before, what is to say now, and the time.

An owner with all its pods has an allowance of Events, a part of which is for evictions alone; when
it is used up, the Event on the owner counts on and is written later. So has each namespace one of
new Events, so that much to say in one silences no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from gpufence.event_text import Anchor
from gpufence.settings import setting
from gpufence.text import printable
from kube.events import Regarding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent.model.pod import PodOnNode

K = TypeVar("K")
EpisodeKey: TypeAlias = tuple[str, str, str, str]
Lineage: TypeAlias = tuple[str, str, str]

MOST_CHARACTERS: Final = 1023
"""An Event's message may hold 1,024."""
EVENT_SECONDS: Final = 3600.0
"""How long API servers keep an Event that is not renewed."""
MOST_HELD: Final = 1024
"""Events held back that are remembered, to be counted once each."""
MOST_DOUBLINGS: Final = 3
"""Of the time between two counts; with the default it grows to 40 minutes."""
OWNERS_BURST: Final = 10
OWNERS_REFILL_SECONDS: Final = 360.0
"""What is written of an owner and its pods: at most 10 and 10 an hour, so 20 in any hour."""
_FOR_EVICTIONS: Final = 5
_FOR_THE_OWNER: Final = 3


@dataclass(frozen=True, slots=True)
class Notice:
    """
    Two notices of the same reason, object and topic belong to one episode, whatever they say.
    Every notice is an Event of type Warning. Its `anchor` is the part of the page it links to.

    One that is `urgent` happens rather than lasts, such as an eviction: each counts. It takes of
    the allowance of its `lineage`, unless it is about the node.
    """

    reason: str
    regarding: Regarding
    message: str
    topic: str = ""
    anchor: Anchor | None = None
    lineage: Lineage | None = None
    urgent: bool = False

    @property
    def key(self) -> EpisodeKey:
        return self.reason, self.regarding.kind, self.regarding.uid, self.topic

    @property
    def waits(self) -> bool:
        """Return whether it is written later where there is no allowance: the owner's own."""
        return self.urgent and self.regarding.kind != "Pod"


@dataclass(frozen=True, slots=True, kw_only=True)
class Damping:
    # An episode ends after as long without cause.
    repeat_seconds: float = field(
        default=300.0,
        metadata=setting(
            "GPUFENCE_EVENT_REPEAT_SECONDS",
            "from an Event to its first count while its cause lasts; to each next one twice as "
            "long, eight times at most",
            least=1,
        ),
    )
    # The pods of one namespace and their owners, most of them.
    burst: int = field(
        default=50,
        metadata=setting(
            "GPUFENCE_EVENT_BURST",
            "new Events of one namespace that may be written at once; evictions do not count",
            least=1,
            most=10_000,
        ),
    )
    # More are dropped, not queued.
    refill_seconds: float = field(
        default=5.0,
        metadata=setting(
            "GPUFENCE_EVENT_REFILL_SECONDS",
            "one more new Event of a namespace may be written after so long",
            least=0.01,
        ),
    )


@dataclass(frozen=True, slots=True)
class Episode:
    """`serial` names the Event to be patched, `count` what it says by now."""

    serial: int
    count: int
    said_at: float
    seen_at: float
    urgent: bool = False

    def is_over(self, now: float, damping: Damping) -> bool:
        return now - self.seen_at >= (EVENT_SECONDS if self.urgent else damping.repeat_seconds)

    def is_due(self, now: float, damping: Damping) -> bool:
        pause = damping.repeat_seconds * (1 << min(self.count - 1, MOST_DOUBLINGS))
        return now - self.said_at >= pause


@dataclass(frozen=True, slots=True)
class Episodes:
    """
    All running episodes, the next serial, and how much may be written for each namespace and each
    owner; one that is not named has its whole burst. `waiting` is what owners are to hear yet, and
    `held` the episodes that began with an Event that could not be written.
    """

    running: Mapping[EpisodeKey, Episode] = field(default_factory=dict)
    next_serial: int = 1
    allowances: Mapping[str, float] = field(default_factory=dict)
    at: float = 0.0
    dropped: int = 0
    owners: Mapping[Lineage, float] = field(default_factory=dict)
    waiting: Mapping[EpisodeKey, Notice] = field(default_factory=dict)
    held: Mapping[EpisodeKey, Episode] = field(default_factory=dict)


NO_EPISODES = Episodes()


@dataclass(frozen=True, slots=True)
class EventCreate:
    """Write a new Event with a count of one."""

    serial: int
    notice: Notice


@dataclass(frozen=True, slots=True)
class EventPatch:
    """Set the count, message and last time of the Event that `serial` was created for."""

    serial: int
    count: int
    notice: Notice


def about_pod(pod: PodOnNode) -> tuple[Regarding, ...]:
    """Return the pod and the controller that made it, where people look once the pod is gone."""
    itself = Regarding("v1", "Pod", pod.namespace, pod.name, pod.uid)
    owner = pod.controller
    if owner is None:
        return (itself,)
    made_by = Regarding(owner.api_version, owner.kind, pod.namespace, owner.name, owner.uid)
    return (itself, made_by)


def pod_notices(
    reason: str,
    pod: PodOnNode,
    message: str,
    *,
    topic: str = "",
    anchor: Anchor | None = Anchor.EVICTED,
    owner_too: bool = False,
) -> tuple[Notice, ...]:
    """Say something of a pod; its owner hears of what ends pods only, all of them in one Event."""
    itself, *owners = about_pod(pod)
    text, lineage = one_line(message), pod.lineage
    return (
        *(
            Notice(reason, item, text, "", anchor, lineage, urgent=True)
            for item in owners
            if owner_too
        ),
        Notice(reason, itself, text, topic, anchor, lineage, urgent=owner_too),
    )


def about_node(name: str) -> Regarding:
    """Return a node as kubelets write it: by its name in place of its UID."""
    return Regarding("v1", "Node", "", name, name)


def one_line(text: str) -> str:
    """Make a message printable, one line and short enough, whatever names went into it."""
    return printable(text)[:MOST_CHARACTERS]


def damped(
    episodes: Episodes, notices: Iterable[Notice], now: float, damping: Damping
) -> tuple[tuple[EventCreate | EventPatch, ...], Episodes]:
    """
    Turn notices into what is to be written, and remember it.

    A notice dropped for want of allowance has begun no episode: it is written later if it lasts.
    """
    books = _Books(episodes, now, damping)
    writes = [*books.late(), *(item for each in notices for item in books.said(each))]
    return tuple(writes), books.closed()


class _Books:
    """What is remembered, while it is written on."""

    def __init__(self, episodes: Episodes, now: float, damping: Damping) -> None:
        self._now, self._damping = now, damping
        self._running, self._held = (
            {key: item for key, item in kept.items() if not item.is_over(now, damping)}
            for kept in (episodes.running, episodes.held)
        )
        self._waiting = dict(episodes.waiting)
        self._serial, self._dropped = episodes.next_serial, episodes.dropped
        passed = max(now - episodes.at, 0.0)
        self._allowances = _refilled(
            episodes.allowances, passed / damping.refill_seconds, damping.burst
        )
        self._owners = _refilled(episodes.owners, passed / OWNERS_REFILL_SECONDS, OWNERS_BURST)

    def closed(self) -> Episodes:
        return Episodes(
            self._running,
            self._serial,
            self._allowances,
            self._now,
            self._dropped,
            self._owners,
            self._waiting,
            self._held,
        )

    def late(self) -> Iterator[EventCreate | EventPatch]:
        """Write what has waited for its owner's allowance."""
        for key, notice in list(self._waiting.items()):
            episode = self._running.get(key)
            if episode is None:
                del self._waiting[key]
            elif self._may_write(notice, new=False):
                del self._waiting[key]
                self._running[key] = replace(episode, said_at=self._now)
                yield EventPatch(episode.serial, episode.count, notice)

    def said(self, notice: Notice) -> Iterator[EventCreate | EventPatch]:
        """Begin an episode, or go on with one."""
        episode = self._running.get(notice.key)
        if episode is not None:
            yield from self._continued(episode, notice)
        elif self._may_write(notice, new=True):
            yield EventCreate(self._begun(notice), notice)
        elif notice.waits:
            self._begun(notice)
            self._waiting[notice.key] = notice
        else:
            self._hold(notice)

    def _hold(self, notice: Notice) -> None:
        """Count an Event that is not written, once for as long as its cause is seen."""
        known = notice.key in self._held
        self._dropped += not known
        if known or len(self._held) < MOST_HELD:
            self._held[notice.key] = Episode(0, 0, self._now, self._now, notice.urgent)

    def _begun(self, notice: Notice) -> int:
        serial, now = self._serial, self._now
        self._serial += 1
        self._held.pop(notice.key, None)
        self._running[notice.key] = Episode(serial, 1, now, now, notice.urgent)
        return serial

    def _continued(self, episode: Episode, notice: Notice) -> Iterator[EventPatch]:
        due = notice.urgent or episode.is_due(self._now, self._damping)
        written = due and self._may_write(notice, new=False)
        count = episode.count + (written or notice.urgent)
        said_at = self._now if written else episode.said_at
        self._running[notice.key] = replace(
            episode, count=count, said_at=said_at, seen_at=self._now
        )
        if written:
            self._waiting.pop(notice.key, None)
            yield EventPatch(episode.serial, count, notice)
        elif notice.urgent:
            self._waiting[notice.key] = notice

    def _may_write(self, notice: Notice, *, new: bool) -> bool:
        """Take one Event off the allowances of its owner and, if it is new, of its namespace."""
        counts = new and not notice.urgent
        namespace, owner = notice.regarding.namespace, notice.lineage
        left = self._allowances.get(namespace, float(self._damping.burst))
        owners = self._owners.get(owner, float(OWNERS_BURST)) if owner else float(OWNERS_BURST)
        if (counts and left < 1.0) or owners < 1.0 + _reserved(notice):
            return False
        if counts:
            self._allowances[namespace] = left - 1.0
        if owner:
            self._owners[owner] = owners - 1.0
        return True


def _reserved(notice: Notice) -> int:
    """Return what of its owner's allowance is not for this notice."""
    if notice.waits:
        return 0
    return _FOR_THE_OWNER if notice.urgent else _FOR_EVICTIONS


def _refilled(left: Mapping[K, float], gained: float, burst: int) -> dict[K, float]:
    """Return what is left to those that have not got all of it back."""
    refilled = ((key, amount + gained) for key, amount in left.items())
    return {key: amount for key, amount in refilled if amount < burst}
