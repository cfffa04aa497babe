"""
What the controller says of each owner of GPU pods: `/v1/owners`, for the plugin and for people.

Moments are seconds since the epoch here, and RFC 3339 as JSON.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from gpufence.fields import COUNT, FLAG, TEXT, FieldKind, RowKind, or_null, several
from gpufence.idle import ReleaseNote, read_note, write_note
from gpufence.shape import as_object, as_text, read_versioned, texts
from gpufence.times import read_moment, write_moment

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
