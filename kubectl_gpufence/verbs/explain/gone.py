"""PURE. What is left of a pod, or of an owner's pods, once there is none: its Events."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from kubectl_gpufence.refusals import REFUSED, REMEDY
from kubectl_gpufence.view import chapter, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kubectl_gpufence.pods import SeenEvent
    from kubectl_gpufence.view import Display

_NAME_ENDS = 5  # characters that the API server adds to a generateName
_PLAIN = frozenset({"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"})
_ENDINGS = re.compile(r"(-(\d+|[bcdfghjklmnpqrstvwxz\d]{4,10})){1,3}")
"""
What those add to their names: numbers, hashes, and the API server's five characters, all without
vowels lest they make words; so `worker-eval` is another owner. Others add words, too.
"""
_MOST_NAMED = 5
_ENDS = frozenset({names.EVICTED, names.CAP_REACHED})


class Gone(NamedTuple):
    """
    What somebody asked for, as `pod NAME` or `Deployment NAME`, the Events about it, living pods
    that were made like it, the newest first, and what the controller says of an owner.
    """

    namespace: str
    called: str
    events: tuple[SeenEvent, ...] = ()
    successors: tuple[str, ...] = ()
    release: str = ""


def made_like(name: str, pods: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """
    Return the pods of one template with a pod that is gone, or of the Deployment's later one; each
    is a name with its generateName.
    """
    base = name[:-_NAME_ENDS] if len(name) > _NAME_ENDS else ""
    alike = [(each, template) for each, template in pods if template and base]
    same = tuple(each for each, template in alike if template == base)
    above = base.rstrip("-").rpartition("-")[0]
    later = [each for each, made in alike if above and made.rstrip("-").rpartition("-")[0] == above]
    return same or tuple(later)


def is_about(event: SeenEvent, kind: str, owner: str) -> bool:
    """Return whether an Event is about an owner, or about what that has made, by its name."""
    name = event.about.rpartition("/")[2]
    if name == owner or not name.startswith(f"{owner}-"):
        return name == owner
    return kind not in _PLAIN or _ENDINGS.fullmatch(name, len(owner)) is not None


def gone_lines(gone: Gone, display: Display) -> Iterator[str]:
    """Write it as chapters."""
    what = "it is gone" if gone.called.startswith("pod ") else "it has no pod at the moment"
    left = "Its Events are left." if gone.events else "No Event is left that says why."
    head = f"{gone.called} in namespace {gone.namespace}: {what}. {left}"
    yield from wrapped(head, "  ", display, first="")
    said = dict.fromkeys(item.sentence for item in gone.events)
    events = [line for sentence in said for line in _bullet(sentence, display)]
    if events:
        yield from chapter("EVENTS", events, display)
    to_do = [line for item in what_next(gone) for line in _bullet(item, display)]
    yield from chapter("WHAT TO DO", to_do, display)


def gone_document(gone: Gone) -> dict[str, object]:
    """Write the same for programs."""
    return {
        "v": 1,
        "namespace": gone.namespace,
        "name": gone.called.partition(" ")[2],
        "gone": True,
        "events": [
            {"at": item.at, "reason": item.reason, "times": item.times, "message": item.message}
            for item in gone.events
        ],
        "successors": list(gone.successors),
        "to_do": list(what_next(gone)),
    }


def what_next(gone: Gone) -> Sequence[str]:
    """Return what to type next."""
    if gone.release:
        return (gone.release,)
    if not gone.successors and not gone.events:
        return ("Create it again, and look at its Events within the hour that they are kept.",)
    if gone.events and gone.events[-1].reason == names.IDLE_RELEASED:
        return (f"`kubectl gpufence wake -n {gone.namespace} {_typed(gone)}` brings it back.",)
    why = [_why(gone)] if any(event.reason in _ENDS for event in gone.events) else []
    if any(event.reason == REFUSED for event in gone.events):
        return (*why, REMEDY)
    if not gone.successors:
        return (*why, "Its last Event says what to change, before it is created again.")
    first, *others = gone.successors[:_MOST_NAMED]
    also = f" (also {', '.join(others)})" if others else ""
    look = f"kubectl gpufence explain -n {gone.namespace} {first}"
    return (*why, f"A pod made like it is there: `{look}`{also}.")


def _why(gone: Gone) -> str:
    """Name the command that shows how it came to an end."""
    return f"`kubectl gpufence why -n {gone.namespace} {_typed(gone)}` shows how it came to that."


def _typed(gone: Gone) -> str:
    return gone.called.removeprefix("pod ").lower().replace(" ", "/")


def _bullet(sentence: str, display: Display) -> list[str]:
    return wrapped(sentence, "    ", display, first="  - ")
