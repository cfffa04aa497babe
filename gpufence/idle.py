"""
GPUs that are claimed and not used: what people say about their release, and the note it leaves.

Moments are seconds since the epoch, as everywhere in the controller.
"""

from __future__ import annotations

import json
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from gpufence import names
from gpufence.errors import InvalidError, Problem, annotation_problem
from gpufence.shape import (
    COUNT,
    FLAG,
    TEXT,
    FieldKind,
    RowKind,
    as_integer,
    as_list,
    as_object,
    as_text,
    or_null,
    read_versioned,
    several,
    texts,
)
from gpufence.text import printable
from gpufence.times import read_length, read_moment, write_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpufence.shape import Object


T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

NOTE_VERSION: Final = 1
MOST_REPLICAS: Final = 2**31 - 1
_MOST_CHARACTERS: Final = 400
_MOST_CONTESTED: Final = 16


class IdleRung(IntEnum):
    """How far the controller may go in a namespace, each doing all that those below it do."""

    REPORT = 1  # shown, and nothing said on objects
    WARN = 2  # Events with the deadline, and nothing done at it
    RELEASE = 3

    def __str__(self) -> str:
        return self.name.lower()


RUNGS: Final = tuple(str(rung) for rung in IdleRung)


class WakeBy(StrEnum):
    """Who brings back what was released."""

    MANUAL = "manual"  # a person, or whatever scales it up
    WHEN_FREE = "when-free"  # the controller too, once nobody waits and it fits


class WithoutGpu(StrEnum):
    """What pods that work without a GPU mean for the owner whose other pods are idle."""

    KEEP = "keep"  # nobody measures what they do, so it is not released
    IGNORE = "ignore"  # it is released with them


class IdleWords(NamedTuple):
    """
    What holds for one owner, from its own annotations and its namespace's. An owner may shorten the
    times of its namespace, and never lengthen them beyond it.

    `problems` are words nobody can read: they release nothing, and are shown.
    """

    after_seconds: float
    contended_seconds: float
    keep_until: float | None = None
    wake: WakeBy = WakeBy.MANUAL
    without_gpu: WithoutGpu = WithoutGpu.KEEP
    problems: tuple[Problem, ...] = ()


class ReleasePhase(StrEnum):
    """
    Where an owner is between having its replicas, having none, and having them again. The phases
    that end in -ing are written before the replicas change, so that what comes after a crash
    knows what was meant.
    """

    RELEASING = "releasing"
    RELEASED = "released"
    WAKING = "waking"
    WOKEN = "woken"  # back, whoever did it; kept for what follows from earlier releases


class ReleaseNote(NamedTuple):
    """
    The annotation `gpufence.io/released` of an owner: JSON with `v: 1`, times in RFC 3339.

    `at` is when it was released, `replicas` what it had (1 for what is stopped and started as a
    whole). `woken_at` and `woken_by` (a word: `kubectl`, `when-free`, or empty for whoever scaled
    it up) are of the last wake. `contested` are the times at which somebody brought it back soon
    after a release, `left_alone_until` follows from two of them.
    """

    phase: ReleasePhase
    at: float
    replicas: int
    why: str
    woken_at: float | None = None
    woken_by: str = ""
    contested: tuple[float, ...] = ()
    left_alone_until: float | None = None


def read_idle_words(
    namespace: Mapping[str, str], owner: Mapping[str, str], *, after: float, least: float
) -> IdleWords:
    """
    Read the annotations. `after` holds where nobody says anything; `least` is the shortest time
    that anybody may write.
    """
    reader = _Reader(namespace, owner)

    def length(text: str, field: str) -> float:
        return read_length(text, field, least=least)

    usual = reader.all(names.IDLE_AFTER, length)
    contended = reader.all(names.IDLE_AFTER_CONTENDED, length)
    kept = reader.all(names.KEEP_UNTIL, read_moment)
    wake = reader.all(names.WAKE, _choice_of(WakeBy))
    without_gpu = reader.all(names.PODS_WITHOUT_GPU, _choice_of(WithoutGpu))
    ceiling = usual[0] if names.IDLE_AFTER in namespace and usual else after
    after_seconds = min([ceiling, *usual])
    return IdleWords(
        after_seconds=after_seconds,
        contended_seconds=min([after_seconds, *contended]),
        keep_until=max(kept, default=None),
        wake=wake[-1] if wake else WakeBy.MANUAL,
        without_gpu=without_gpu[-1] if without_gpu else WithoutGpu.KEEP,
        problems=tuple(reader.problems),
    )


def idle_rung(labels: Mapping[str, str]) -> IdleRung | None:
    """Return what a namespace's label says; None where it says nothing or nothing readable."""
    text = labels.get(names.IDLE)
    return IdleRung[text.upper()] if text in RUNGS and text is not None else None


def highest_rung(data: Mapping[str, str] | None) -> IdleRung:
    """
    Return how far the kill switch lets the controller go.

    None stands for a ConfigMap that is absent or cannot be read: then nothing is said on objects
    and nobody is released. So does a value nobody can read; a ConfigMap without the key leaves the
    namespaces their way.
    """
    if data is None:
        return IdleRung.REPORT
    return idle_rung({names.IDLE: data.get(names.POLICY_MAX_IDLE, "release")}) or IdleRung.REPORT


def read_note(text: str) -> ReleaseNote:
    """
    Read what a release left; a caller that cannot read it leaves the owner alone.

    Raises:
        UnknownVersionError: a newer gpufence wrote it.
        InvalidError: it is not what gpufence writes.
    """
    field = f"metadata.annotations[{names.RELEASED}]"
    written = read_versioned(text, field, NOTE_VERSION)
    contested = as_list(written.get("contested"), f"{field}.contested")
    return ReleaseNote(
        phase=_phase(as_text(written.get("phase"), f"{field}.phase"), f"{field}.phase"),
        at=_moment(written, "at", field),
        replicas=as_integer(
            written.get("replicas"), f"{field}.replicas", least=1, most=MOST_REPLICAS
        ),
        why=printable(as_text(written.get("why"), f"{field}.why"), _MOST_CHARACTERS),
        woken_at=_moment_or_none(written, "wokenAt", field),
        woken_by=printable(as_text(written.get("wokenBy"), f"{field}.wokenBy"), _MOST_CHARACTERS),
        contested=tuple(
            read_moment(as_text(item, f"{field}.contested"), f"{field}.contested")
            for item in contested[-_MOST_CONTESTED:]
        ),
        left_alone_until=_moment_or_none(written, "leftAloneUntil", field),
    )


def write_note(note: ReleaseNote) -> str:
    """Write a note on one line, without what there is nothing to say about."""
    written: dict[str, object] = {
        "v": NOTE_VERSION,
        "phase": str(note.phase),
        "at": write_moment(note.at),
        "replicas": note.replicas,
        "why": note.why,
    }
    if note.woken_at is not None:
        written |= {"wokenAt": write_moment(note.woken_at), "wokenBy": note.woken_by}
    if note.contested:
        written["contested"] = [write_moment(item) for item in note.contested[-_MOST_CONTESTED:]]
    if note.left_alone_until is not None:
        written["leftAloneUntil"] = write_moment(note.left_alone_until)
    return json.dumps(written, separators=(",", ":"))


class _Reader:
    """Reads the annotations of a namespace and of an owner in it, and keeps what is wrong."""

    def __init__(self, namespace: Mapping[str, str], owner: Mapping[str, str]) -> None:
        self._sources = (namespace, owner)
        self.problems: list[Problem] = []

    def all(self, key: str, read: Callable[[str, str], T]) -> list[T]:
        """Return what can be read under a key, the owner's word last."""
        found = []
        for source in self._sources:
            text = source.get(key)
            if text:
                try:
                    found.append(read(text, key))
                except InvalidError as error:
                    problem = error.problem
                    self.problems.append(
                        annotation_problem(key, problem.value, problem.reason, problem.remedy)
                    )
        return found


def _choice_of(choices: type[E]) -> Callable[[str, str], E]:
    def read(text: str, field: str) -> E:
        if text in tuple(choices):
            return choices(text)
        remedy = f"write one of {', '.join(choices)}"
        raise InvalidError(Problem(field, text, "is not a choice", remedy))

    return read


def _phase(text: str, field: str) -> ReleasePhase:
    if text in tuple(ReleasePhase):
        return ReleasePhase(text)
    remedy = "let gpufence write this annotation"
    raise InvalidError(Problem(field, text, "is no phase of a release", remedy))


def _moment(written: Object, key: str, field: str) -> float:
    return read_moment(as_text(written.get(key), f"{field}.{key}"), f"{field}.{key}")


def _moment_or_none(written: Object, key: str, field: str) -> float | None:
    return None if written.get(key) is None else _moment(written, key, field)


VERSION: Final = 1

_NAME = "owners"


class OwnerRelease(NamedTuple):
    """
    One owner. `way`, `state` and `step` are words of `controller.model`; `why` says in a sentence
    what stands against a release, or what it is for.

    `pods` counts those that live; `rung` is empty where its namespace says nothing. None is what
    nobody knows, or there is none of, such as a `note` that a release has left.
    """

    namespace: str
    api_version: str
    kind: str
    name: str
    way: str = ""
    state: str = ""
    step: str = ""
    why: str = ""
    idle_since: float | None = None
    deadline: float | None = None
    contended: bool = False
    waiters: tuple[str, ...] = ()
    replicas: int | None = None
    rung: str = ""
    pods: int = 0
    note: ReleaseNote | None = None


class OwnerReleases(NamedTuple):
    """
    All of them at a moment. A controller that is not the `leader` sees and does nothing; `brake`
    says why nobody is released at all.
    """

    leader: bool
    at: float
    brake: str = ""
    owners: tuple[OwnerRelease, ...] = ()


_MOMENT: Final = FieldKind(
    write_moment, lambda value, path: read_moment(as_text(value, path), path)
)
_NOTE: Final = FieldKind(
    lambda note: json.loads(write_note(note)),
    lambda value, path: read_note(json.dumps(as_object(value, path))),
)
_OWNER: Final = RowKind(
    OwnerRelease,
    (
        ("namespace", TEXT),
        ("apiVersion", TEXT),
        ("kind", TEXT),
        ("name", TEXT),
        ("way", TEXT),
        ("state", TEXT),
        ("step", TEXT),
        ("why", TEXT),
        ("idleSince", or_null(_MOMENT)),
        ("deadline", or_null(_MOMENT)),
        ("contended", FLAG),
        ("waiters", FieldKind(list, texts)),
        ("replicas", or_null(COUNT)),
        ("rung", TEXT),
        ("pods", COUNT),
        ("note", or_null(_NOTE)),
    ),
)
_OWNERS: Final = RowKind(
    OwnerReleases,
    (("leader", FLAG), ("at", _MOMENT), ("brake", TEXT), ("owners", several(_OWNER))),
)


def write_owners(owners: OwnerReleases) -> str:
    """Write one line of JSON, keys in a fixed order."""
    whole = {"v": VERSION, **_OWNERS.write(owners)}
    return json.dumps(whole, separators=(",", ":"), allow_nan=False)


def read_owners(text: str) -> OwnerReleases:
    """
    Read what `/v1/owners` answers.

    Raises:
        UnknownVersionError: a newer controller wrote it.
        InvalidError: it is not what a controller writes.
    """
    return _OWNERS.read(read_versioned(text, _NAME, VERSION), _NAME)
