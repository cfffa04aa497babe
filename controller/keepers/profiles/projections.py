"""
PURE. What is remembered of the objects in which needs and profiles are: little, since there may be
thousands of both. The days of each owner stay packed until they are added up.
"""

from __future__ import annotations

import json
import zlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gpufence import names
from gpufence.errors import GpufenceError, InvalidError
from gpufence.need import (
    NeedDay,
    NeedKey,
    OwnerNeed,
    bounded,
    need_configmap,
    read_need,
)
from gpufence.need.profile import profile_name, read_profile
from gpufence.shape import as_object, as_text, as_texts, objects
from gpufence.text import printable
from kube.informers.interning import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpufence.need import CardNeed
    from gpufence.need.profile import MemoryProfile
    from kube.informers.interning import Interner
    from kube.replies import JsonObject

_DAY: Final = len("2026-11-19")
_MOST_CHARACTERS: Final = 300
_MOST_CONDITIONS: Final = 8
_MINOR: Final = frozenset({"lastTransitionTime", "message", "reasons", "heldSeconds", "lastDay"})
_NOTHING: Final[Mapping[NeedKey, bytes]] = MappingProxyType({})
_NO_AMOUNTS: Final[Mapping[str, int]] = MappingProxyType({})


class KeptNeed(NamedTuple):
    """
    What one node remembers; `trouble` says why it counts for nothing. `newest` is its last day, the
    day on which the object was made where it holds none.
    """

    name: str
    uid: str
    version: str
    newest: str
    trouble: str = ""
    cards: tuple[CardNeed, ...] = ()
    owners: Mapping[NeedKey, bytes] = _NOTHING


class ConditionTime(NamedTuple):
    """Since when a condition says what it says."""

    type: str
    status: str
    since: str


class KeptProfile(NamedTuple):
    """
    A profile without its figures, and without its name, which is its owner's. `whole` and `core`
    say what the status says, with the sentences and without; `conditions` have the type of each,
    whether it holds and since when.
    """

    profile: MemoryProfile
    uid: str
    version: str
    made_by_us: bool
    whole: bytes
    core: bytes
    conditions: tuple[ConditionTime, ...]


def keep_need(item: JsonObject, shared: Interner, today: Callable[[], str]) -> tuple[str, KeptNeed]:
    """Keep what a node remembers up to `today`, or why nobody can read that."""
    metadata = _part(item, "metadata")
    name, uid, version = (str(metadata.get(key, "")) for key in ("name", "uid", "resourceVersion"))
    newest = str(metadata.get("creationTimestamp", ""))[:_DAY]
    try:
        data = as_texts(item.get("data"), "data")
        need = bounded(read_need(as_text(data.get(names.NEED_KEY), names.NEED_KEY)), today())
    except GpufenceError as error:
        why = printable(str(error), _MOST_CHARACTERS)
        return name, KeptNeed(name, uid, version, newest, trouble=why)
    if need_configmap(need.node) != name:
        why = f"it is of node {printable(need.node, _MOST_CHARACTERS)}"
        return name, KeptNeed(name, uid, version, newest, trouble=why)
    days = [owner.last_day for owner in need.owners]
    owners = {shared.value(each.key): _packed(each) for each in need.owners}
    return name, KeptNeed(
        name,
        uid,
        version,
        max(days, default=newest),
        cards=tuple(map(shared.value, need.cards)),
        owners=owners,
    )


def unpacked(namespace: str, kind: str, name: str, packed: bytes) -> OwnerNeed:
    """Return the days of one owner as a node remembers them."""
    container, card, days = json.loads(zlib.decompress(packed))
    key = NeedKey(namespace, kind, name, container, card)
    return OwnerNeed(key, tuple(NeedDay(*day) for day in days))


def keep_profile(item: JsonObject, shared: Interner) -> tuple[str, KeptProfile | None]:
    """
    Keep a profile, by UID, whatever its status says; one whose spec nobody can read is none, nor is
    one that has not the name of its owner's.
    """
    metadata, status = _part(item, "metadata"), _part(item, "status")
    uid = str(metadata.get("uid", ""))
    try:
        profile, conditions = _read(item, status)
    except InvalidError:
        return uid, None
    if profile.name != profile_name(profile.kind, profile.owner):
        return uid, None
    return uid, KeptProfile(
        profile=profile._replace(
            namespace=shared.value(profile.namespace),
            name="",
            kind=shared.value(profile.kind),
            terms=shared.value(profile.terms),
            containers=(),
            applied=profile.applied or _NO_AMOUNTS,
        ),
        uid=uid,
        version=str(metadata.get("resourceVersion", "")),
        made_by_us=_part(metadata, "labels").get(names.MANAGED_BY) == names.CONTROLLER,
        whole=whole_digest(status),
        core=core_digest(status),
        conditions=tuple(shared.value(each) for each in conditions),
    )


def whole_digest(status: JsonObject) -> bytes:
    """Say in a few bytes what a status says, but for since when."""
    return digest(_without(status, frozenset({"lastTransitionTime"})))


def core_digest(status: JsonObject) -> bytes:
    """
    The same without what changes all the time and decides nothing: sentences, hours, and last days.
    """
    return digest(_without(status, _MINOR))


def _read(item: JsonObject, status: JsonObject) -> tuple[MemoryProfile, list[ConditionTime]]:
    try:
        profile = read_profile(item)
        listed = objects(status.get("conditions"), "status.conditions")
        conditions = [
            ConditionTime(*(str(each.get(key)) for key in ("type", "status", "lastTransitionTime")))
            for each in listed[:_MOST_CONDITIONS]
        ]
    except InvalidError:
        return read_profile({**item, "status": {}}), []
    return profile, conditions


def _packed(owner: OwnerNeed) -> bytes:
    said = json.dumps((owner.key.container, owner.key.card, owner.days), separators=(",", ":"))
    return zlib.compress(said.encode())


def _without(value: Any, keys: frozenset[str]) -> Any:  # noqa: ANN401 - JSON as it came
    if isinstance(value, dict):
        return {key: _without(each, keys) for key, each in value.items() if key not in keys}
    return [_without(each, keys) for each in value] if isinstance(value, list) else value


def _part(item: JsonObject, key: str) -> JsonObject:
    value = item.get(key)
    return dict(as_object(value, key)) if isinstance(value, dict) else {}
