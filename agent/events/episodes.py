"""
PURE. One thing to say about a pod, its owner or the node, and how often the same is said: once, and
then a count every five minutes while it lasts.

Kubernetes' own recorders damp in the client, and Python has none. What is kept is small, bounded
and a value: damping is a function of what was said before, what is to say now, and the time.

Each namespace has an allowance of its own, so that who gives cause for many words silences nobody
else. Evictions are told in any case; their number has limits of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from gpufence import names
from gpufence.event_text import Anchor
from gpufence.settings import setting
from gpufence.text import printable
from kube.events import Regarding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent.model.pod import PodOnNode

EpisodeKey: TypeAlias = tuple[str, str, str, str]

MOST_CHARACTERS: Final = 1023
"""An Event's message may hold 1,024."""


@dataclass(frozen=True, slots=True)
class Notice:
    """
    Two notices of the same reason, object and topic belong to one episode, whatever they say.
    Every notice is an Event of type Warning. Its `anchor` is the part of the page it links to.
    """

    reason: str
    regarding: Regarding
    message: str
    topic: str = ""
    anchor: Anchor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Damping:
    # An episode ends after as long without cause.
    repeat_seconds: float = field(
        default=300.0,
        metadata=setting(
            "GPUFENCE_EVENT_REPEAT_SECONDS",
            "from one count of a lasting Event to the next",
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


@dataclass(frozen=True, slots=True)
class Episodes:
    """
    All running episodes, the next serial, and how many new Events may be written for each
    namespace; one that is not named has its whole burst.
    """

    running: Mapping[EpisodeKey, Episode] = field(default_factory=dict)
    next_serial: int = 1
    allowances: Mapping[str, float] = field(default_factory=dict)
    at: float = 0.0
    dropped: int = 0


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
    anchor: Anchor = Anchor.EVICTED,
    owner_too: bool = False,
) -> tuple[Notice, ...]:
    """Say something of a pod; its owner hears of what ends pods only, all of them in one Event."""
    itself, *owners = about_pod(pod)
    text = one_line(message)
    return (
        Notice(reason, itself, text, topic, anchor),
        *(Notice(reason, owner, text, "", anchor) for owner in owners if owner_too),
    )


def about_node(name: str) -> Regarding:
    """Return a node as kubelets write it: by its name in place of its UID."""
    return Regarding("v1", "Node", "", name, name)


def one_line(text: str) -> str:
    """Make a message printable, one line and short enough, whatever names went into it."""
    plain = printable(text)
    if len(plain) <= MOST_CHARACTERS:
        return plain
    return f"{plain[: MOST_CHARACTERS - 3]}..."


def damped(
    episodes: Episodes, notices: Iterable[Notice], now: float, damping: Damping
) -> tuple[tuple[EventCreate | EventPatch, ...], Episodes]:
    """
    Turn notices into what is to be written, and remember it.

    A notice dropped for want of allowance has begun no episode: it is written later if it lasts.
    """
    running = {
        key: item
        for key, item in episodes.running.items()
        if now - item.seen_at < damping.repeat_seconds
    }
    serial, dropped = episodes.next_serial, episodes.dropped
    allowances = _refilled(episodes, now, damping)
    writes: list[EventCreate | EventPatch] = []
    for notice in notices:
        about = notice.regarding
        key = notice.reason, about.kind, about.uid, notice.topic
        episode = running.get(key)
        if episode is not None:
            running[key], patch = _continued(episode, notice, now, damping)
            writes += patch
        elif _is_allowed(notice, allowances, damping):
            running[key] = Episode(serial, 1, now, now)
            writes.append(EventCreate(serial, notice))
            serial += 1
        else:
            dropped += 1
    return tuple(writes), Episodes(running, serial, allowances, now, dropped)


def is_urgent(notice: Notice) -> bool:
    """Return whether a notice may wait for no other: that a pod was evicted."""
    return notice.reason == names.EVICTED


def _continued(
    episode: Episode, notice: Notice, now: float, damping: Damping
) -> tuple[Episode, list[EventPatch]]:
    if now - episode.said_at < damping.repeat_seconds:
        return Episode(episode.serial, episode.count, episode.said_at, now), []
    count = episode.count + 1
    return Episode(episode.serial, count, now, now), [EventPatch(episode.serial, count, notice)]


def _refilled(episodes: Episodes, now: float, damping: Damping) -> dict[str, float]:
    """Return what is left to those that have not got all of it back."""
    gained = max(now - episodes.at, 0.0) / damping.refill_seconds
    refilled = ((name, left + gained) for name, left in episodes.allowances.items())
    return {name: left for name, left in refilled if left < damping.burst}


def _is_allowed(notice: Notice, allowances: dict[str, float], damping: Damping) -> bool:
    """Take one new Event off its namespace's allowance, if there is any left."""
    if is_urgent(notice):
        return True
    namespace = notice.regarding.namespace
    left = allowances.get(namespace, float(damping.burst))
    if left < 1.0:
        return False
    allowances[namespace] = left - 1.0
    return True
