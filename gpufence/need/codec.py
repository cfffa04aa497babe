"""
A node's need as JSON, within the bounds of the object that keeps it: amounts as quantities, times
as whole seconds, and nothing that says what it says by default.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.errors import InvalidError, Problem
from gpufence.names import NEED_PREFIX
from gpufence.need.levels import LEVELS
from gpufence.need.rows import CardNeed, NeedDay, NeedKey, NodeNeed, OwnerNeed, with_room
from gpufence.nodes import configmap_name
from gpufence.shape import (
    BYTES,
    COUNT,
    FLAG,
    MAYBE_BYTES,
    TEXT,
    WHOLE_SECONDS,
    FieldKind,
    Object,
    RowKind,
    as_text,
    list_of,
    read_versioned,
    several,
)
from gpufence.times import read_moment

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION: Final = 1
MOST_DAYS: Final = 14
MOST_OWNERS: Final = 512
MOST_BYTES: Final = 1_000_000
"""The API server takes 1 MiB in one ConfigMap, keys and all."""

_NAME = "need"
_SEPARATORS = (",", ":")
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def write_need(need: NodeNeed) -> str:
    """Write one line of JSON, keys in a fixed order."""
    whole = {"v": VERSION, **_NODE.write(need)}
    return json.dumps(whole, separators=_SEPARATORS, allow_nan=False)


def read_need(text: str) -> NodeNeed:
    """
    Read what an agent wrote, or what somebody wrote in its place.

    Raises:
        UnknownVersionError: a newer agent wrote it.
        InvalidError: it is not what an agent writes.
    """
    return _NODE.read(read_versioned(text, _NAME, VERSION), _NAME)


def bounded(need: NodeNeed, today: str) -> NodeNeed:
    """Return as much of it as is kept."""
    return _fitted(need, today)[0]


def write_bounded(need: NodeNeed, today: str) -> str:
    """Write as much of it as is kept."""
    return _fitted(need, today)[1]


def _fitted(need: NodeNeed, today: str) -> tuple[NodeNeed, str]:
    """
    Return as much of it as is kept: the newest days up to `today`, of those owners that were there
    last, as long as they fit into one object. The oldest day goes first of the namespace that takes
    the most bytes, and owners that have been away longest of the namespaces that have the most; a
    day that has not begun comes of a clock that was wrong. Where most have not begun, the clock is
    wrong now, and takes nothing away.
    """
    known = {day.day for owner in need.owners for day in owner.days}
    ahead = {day for day in known if day > today}
    if 2 * len(ahead) > len(known):
        ahead = set()
    past = [
        owner._replace(days=tuple([day for day in owner.days if day.day not in ahead]))
        for owner in need.owners
    ]
    fitting = need._replace(owners=_newest(past, MOST_DAYS))
    text = write_need(fitting)
    if len(text) > MOST_BYTES:
        room = MOST_BYTES - len(write_need(need._replace(owners=())))
        fitting = need._replace(owners=_with_room_in_bytes(fitting.owners, room))
        text = write_need(fitting)
    return fitting, text


def need_configmap(node: str) -> str:
    """Return the name of the object that keeps a node's need."""
    return configmap_name(NEED_PREFIX, node)


def _newest(owners: Iterable[OwnerNeed], most: int) -> tuple[OwnerNeed, ...]:
    """
    Return the owners' newest days, `most` of those on which anybody was there, in order of the key.
    """
    listed = [owner for owner in owners if owner.days]
    since = sorted({day.day for owner in listed for day in owner.days})[-most:][:1]
    shorter = [
        OwnerNeed(owner.key, tuple(day for day in owner.days if [day.day] >= since))
        for owner in listed
    ]
    present = sorted((owner for owner in shorter if owner.days), key=_by_absence)
    return tuple(sorted(with_room(present, MOST_OWNERS), key=lambda owner: owner.key))


class _Weighed(NamedTuple):
    """An owner, and the bytes of what is written of it: of each day, and beside its days."""

    owner: OwnerNeed
    beside: int
    days: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return self.beside + sum(self.days)

    def without(self, day: str) -> _Weighed:
        """Return it without its oldest day, if that is the one."""
        first, *rest = self.owner.days
        return (
            self
            if first.day != day
            else _Weighed(self.owner._replace(days=tuple(rest)), self.beside, self.days[1:])
        )


def _with_room_in_bytes(owners: Iterable[OwnerNeed], most: int) -> tuple[OwnerNeed, ...]:
    """
    Return what fits into so many bytes: nobody's long names take the place of others' days. Of the
    namespace that takes the most the oldest day goes, and of its last day the largest owner.
    """
    of_namespace: dict[str, list[_Weighed]] = defaultdict(list)
    for owner in owners:
        of_namespace[owner.key.namespace].append(_weighed(owner))
    bytes_of = {name: _bytes_of(items) for name, items in of_namespace.items()}
    while sum(bytes_of.values()) > most:
        name = max(bytes_of, key=lambda each: (bytes_of[each], each))
        of_namespace[name] = _lighter(of_namespace[name])
        bytes_of[name] = _bytes_of(of_namespace[name])
    left = [item.owner for items in of_namespace.values() for item in items]
    return tuple(sorted(left, key=lambda owner: owner.key))


def _weighed(owner: OwnerNeed) -> _Weighed:
    days = tuple([_length(_NEED_DAY.write(day)) for day in owner.days])
    return _Weighed(owner, _length(_write_owner(owner._replace(days=()))), days)


def _lighter(items: list[_Weighed]) -> list[_Weighed]:
    """Return what is left of a namespace that takes too much."""
    days = {item.owner.days[0].day for item in items} | {item.owner.last_day for item in items}
    if len(days) == 1:
        largest = max(items, key=lambda item: (item.bytes, item.owner.key))
        return [item for item in items if item is not largest]
    shorter = [item.without(min(days)) for item in items]
    return [item for item in shorter if item.days]


def _bytes_of(items: Iterable[_Weighed]) -> int:
    return sum(item.bytes for item in items)


def _length(written: object) -> int:
    """Return the bytes of what is written, with the comma that divides it from the next."""
    return len(json.dumps(written, separators=_SEPARATORS)) + 1


def _by_absence(owner: OwnerNeed) -> tuple[str, NeedKey]:
    return owner.last_day, owner.key


def _read_day(value: object, path: str) -> str:
    text = as_text(value, path)
    if _DAY.fullmatch(text):
        with suppress(InvalidError):  # the shape of a day, and no such one
            read_moment(f"{text}T00:00:00Z", path)
            return text
    raise InvalidError(Problem(path, text, "is no day", "write one such as 2026-11-19"))


DAY: Final = FieldKind(str, _read_day)


def _write_owner(owner: OwnerNeed) -> dict[str, object]:
    return {**_KEY.write(owner.key), "days": [_NEED_DAY.write(day) for day in owner.days]}


def _read_owner(written: Object, path: str) -> OwnerNeed:
    days = _NEED_DAY.read_all(written.get("days"), f"{path}.days")
    return OwnerNeed(_KEY.read(written, path), tuple(sorted(days, key=lambda day: day.day)))


_KEY: Final = RowKind(
    NeedKey,
    (("namespace", TEXT), ("kind", TEXT), ("name", TEXT), ("container", TEXT), ("card", TEXT)),
)

_NEVER_LEFT_OUT = (("day", DAY), ("peak", BYTES))
_LEFT_OUT = (
    ("pods", COUNT),
    ("processes", COUNT),
    ("held", WHOLE_SECONDS),
    ("capped", FLAG),
    ("told", MAYBE_BYTES),
    ("limit", MAYBE_BYTES),
    ("evicted", BYTES),
    ("evicted_limit", BYTES),
    ("evictions", COUNT),
    ("out_of_memory_limit", BYTES),
    ("driver_peak", FLAG),
    ("process", BYTES),
    ("started", COUNT),
    ("shares", COUNT),
    ("at", LEVELS),
)
_NEED_DAY: Final = RowKind(
    NeedDay,
    _NEVER_LEFT_OUT + _LEFT_OUT,
    dict(zip([key for key, _ in _LEFT_OUT], NeedDay._field_defaults.values(), strict=True)),
)

_CARD: Final = RowKind(CardNeed, (("model", TEXT), ("memory", BYTES), ("reserve", BYTES)))

_NODE: Final = RowKind(
    NodeNeed,
    (("node", TEXT), ("owners", list_of(_write_owner, _read_owner)), ("cards", several(_CARD))),
)
