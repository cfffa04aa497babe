"""
What an agent keeps of a pod's use up to its end, in values, and as JSON within the bounds of one
ConfigMap: the answer to why it ended, when the pod is gone.

Of neighbours there are amounts and never names: tenants read this.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.errors import InvalidError, Problem, described
from gpufence.shape import (
    BYTES,
    COUNT,
    FLAG,
    MAYBE_BYTES,
    MAYBE_SECONDS,
    SECONDS,
    TEXT,
    FieldKind,
    RowKind,
    as_integer,
    as_list,
    read_versioned,
    several,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION: Final = 1
MOST_BYTES: Final = 252 * 1024
"""With the object around it no more than 256 KiB."""

MOST_RECORDS: Final = 128
MOST_MOMENTS: Final = 120
MOST_NEIGHBOURS: Final = 8
EVICTED: Final = "evicted"
CAPPED: Final = "capped"
RUNNING: Final = "running"  # not ended: what has happened so far

_NAME = "records"
_SEPARATORS = (",", ":")
_LONGEST_AGE: Final = 10**6


class Moment(NamedTuple):
    """
    A pod on its card, so many whole seconds before the record's time, in whole MiB: what is held
    rounded up, the limit and what is free of the card rounded down.
    """

    age: int
    used: int | None
    limit: int | None
    free: int | None


class Threshold(NamedTuple):
    """
    What must not be passed: `limit`, or `evict`, above which time counts. `passed_seconds` is how
    long before the record's time it was passed for good, None where it was not passed at the end.
    """

    name: str
    bytes: int
    passed_seconds: float | None = None


class Neighbour(NamedTuple):
    """Another pod on the card: what it held, and what is promised to it."""

    used_bytes: int | None
    promised_bytes: int | None


class Record(NamedTuple):
    """
    How a pod ended on a card. `owner` is `Kind/name` of the topmost owner that is certain from the
    pod alone, `controller` that of the direct one; both are empty where it has none.

    `shortage` says that memory pressure on the card decided, else `over_seconds` of use above the
    threshold did, of which `hold_seconds` are allowed. `owed_bytes` is what the card's pods were
    promised and did not hold yet, `free_bytes` what was free for that. `enough_bytes` is the limit
    that would do. Of a container that ended at its cap, `given_bytes` is what its framework may
    allocate, and it is `certain` where its own words say so. `request_bytes` is None where that is
    the limit.
    """

    kind: str
    at: str
    uid: str
    namespace: str
    name: str
    owner: str = ""
    controller: str = ""
    card: str = ""
    index: int = 0  # type: ignore[assignment]  # hides tuple.index, which nobody needs of a record
    model: str = ""
    total_bytes: int = 0
    used_bytes: int | None = None
    peak_bytes: int | None = None
    limit_bytes: int | None = None
    enough_bytes: int | None = None
    shortage: bool = False
    over_seconds: float = 0.0
    hold_seconds: float = 0.0
    free_bytes: int | None = None
    owed_bytes: int = 0
    neighbours: tuple[Neighbour, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    course: tuple[Moment, ...] = ()
    container: str = ""
    given_bytes: int | None = None
    asked_bytes: int | None = None
    certain: bool = False
    request_bytes: int | None = None

    @property
    def recalled(self) -> bool:
        """Return whether it was evicted for what it borrowed, within its limit."""
        within = (self.used_bytes or 0) <= (self.limit_bytes or 0)
        return self.kind == EVICTED and self.request_bytes is not None and within

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """Return what one end has and no other."""
        return self.at, self.kind, self.uid, self.card, self.container

    @property
    def end(self) -> tuple[str, str, str, str, str]:
        """Return the same, alike for all ends of a container at its cap: the last one is kept."""
        at, kind, uid, card, container = self.key
        return (
            ("", kind, uid, "", container) if kind == CAPPED else (at, kind, uid, card, container)
        )


class NodeRecords(NamedTuple):
    """What one node remembers, the oldest first; `since` is when its agent started, RFC 3339."""

    node: str
    since: str = ""
    records: tuple[Record, ...] = ()


def write_records(known: NodeRecords) -> str:
    """Write one line of JSON, keys in a fixed order."""
    whole = {"v": VERSION, **_NODE.write(known)}
    return json.dumps(whole, separators=_SEPARATORS, allow_nan=False)


def read_records(text: str) -> NodeRecords:
    """
    Read what an agent wrote, or what somebody wrote in its place.

    Raises:
        UnknownVersionError: a newer agent wrote it.
        InvalidError: it is not what an agent writes.
    """
    return _NODE.read(read_versioned(text, _NAME, VERSION), _NAME)


def record_object(record: Record) -> dict[str, object]:
    """Return a record as it is written, with all its fields, the request where there is one."""
    return _RECORD._replace(defaults={"request": None}).write(record)


def together(one: Iterable[Record], other: Iterable[Record]) -> tuple[Record, ...]:
    """Put together what two agents of a node remember, the oldest first."""
    known: dict[tuple[str, ...], Record] = {}
    for record in (*one, *other):
        past = known.setdefault(record.end, record)
        known[record.end] = max(past, record, key=lambda each: (each.at, len(each.course)))
    return tuple(sorted(known.values(), key=lambda record: record.key))


def bounded(known: NodeRecords) -> NodeRecords:
    """
    Return as much of it as is kept. The oldest record goes first, of the namespace that takes the
    most: an owner that is evicted all day pushes out no other tenant's record.
    """
    of_namespace: dict[str, list[tuple[int, Record]]] = {}
    for record in known.records:
        size = len(json.dumps(_RECORD.write(record), separators=_SEPARATORS)) + 1
        of_namespace.setdefault(record.namespace, []).append((size, record))
    bytes_of = {name: sum(size for size, _ in each) for name, each in of_namespace.items()}
    count = len(known.records)
    room = MOST_BYTES - len(write_records(known._replace(records=())))
    while sum(bytes_of.values()) > room or count > MOST_RECORDS:
        name = max(bytes_of, key=lambda each: (bytes_of[each], each))
        bytes_of[name] -= of_namespace[name].pop(0)[0]
        count -= 1
    left = (record for each in of_namespace.values() for _, record in each)
    return known._replace(records=tuple(sorted(left, key=lambda record: record.key)))


def _write_moment(moment: Moment) -> list[int | None]:
    return [*moment]


def _read_moment(value: object, path: str) -> Moment:
    written = as_list(value, path)
    if len(written) != len(Moment._fields):
        remedy = "write seconds, use, limit and free memory"
        raise InvalidError(Problem(path, described(value), "is no moment", remedy))
    age, *amounts = written
    known = (None if item is None else as_integer(item, path) for item in amounts)
    return Moment(as_integer(age, path, most=_LONGEST_AGE), *known)


_COURSE: Final = FieldKind(
    lambda course: [_write_moment(moment) for moment in course],
    lambda value, path: tuple(_read_moment(each, path) for each in as_list(value, path)),
)
_NEIGHBOUR: Final = RowKind(Neighbour, (("used", MAYBE_BYTES), ("promised", MAYBE_BYTES)))
_THRESHOLD: Final = RowKind(
    Threshold, (("name", TEXT), ("at", BYTES), ("passed", MAYBE_SECONDS)), {"passed": None}
)
_NEVER_LEFT_OUT = (("kind", TEXT), ("at", TEXT), ("uid", TEXT), ("namespace", TEXT), ("name", TEXT))
_LEFT_OUT = (
    ("owner", TEXT),
    ("controller", TEXT),
    ("card", TEXT),
    ("index", COUNT),
    ("model", TEXT),
    ("total", BYTES),
    ("used", MAYBE_BYTES),
    ("peak", MAYBE_BYTES),
    ("limit", MAYBE_BYTES),
    ("enough", MAYBE_BYTES),
    ("shortage", FLAG),
    ("over", SECONDS),
    ("hold", SECONDS),
    ("free", MAYBE_BYTES),
    ("owed", BYTES),
    ("neighbours", several(_NEIGHBOUR)),
    ("thresholds", several(_THRESHOLD)),
    ("course", _COURSE),
    ("container", TEXT),
    ("given", MAYBE_BYTES),
    ("asked", MAYBE_BYTES),
    ("certain", FLAG),
    ("request", MAYBE_BYTES),
)
_RECORD: Final = RowKind(
    Record,
    _NEVER_LEFT_OUT + _LEFT_OUT,
    dict(zip([key for key, _ in _LEFT_OUT], Record._field_defaults.values(), strict=True)),
)
_NODE: Final = RowKind(
    NodeRecords, (("node", TEXT), ("since", TEXT), ("records", several(_RECORD)))
)
