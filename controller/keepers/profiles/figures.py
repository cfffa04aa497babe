"""
PURE. What is remembered of the objects in which needs and profiles are, little, since there may be
thousands of both; and what becomes of an owner's profile: the status that follows from what all
nodes remember, and whether it is worth a write. The days of each owner stay packed until they are
added up.
"""

from __future__ import annotations

import json
import zlib
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gpufence import names
from gpufence.errors import GpufenceError, InvalidError
from gpufence.need import (
    CardNeed,
    NeedDay,
    NeedKey,
    NodeNeed,
    OwnerNeed,
    ProposalTerms,
    bounded,
    merged,
    need_configmap,
    read_need,
    summarise,
    with_room,
)
from gpufence.need.applied import applied_amounts
from gpufence.need.codec import MOST_DAYS
from gpufence.need.profile import Apply, conditions_of, profile_name, read_profile, write_status
from gpufence.need.summary import NO_TERMS
from gpufence.shape import as_object, as_text, as_texts, objects
from gpufence.text import printable
from gpufence.times import read_moment, write_moment
from kube.informers.views import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gpufence.need import NeedSummary
    from gpufence.need.profile import MemoryProfile
    from kube.informers.views import Interner
    from kube.replies import JsonObject


_DAY: Final = len("2026-11-19")
_MOST_CHARACTERS: Final = 300
_MOST_CONDITIONS: Final = 8
_MINOR: Final = frozenset({"lastTransitionTime", "message", "reasons", "heldSeconds", "lastDay"})
_NOTHING: Final[Mapping[NeedKey, bytes]] = MappingProxyType({})
_NO_AMOUNTS: Final[Mapping[str, int]] = MappingProxyType({})


class NeedProjection(NamedTuple):
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


class ProfileProjection(NamedTuple):
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


def project_need(
    item: JsonObject, shared: Interner, today: Callable[[], str]
) -> tuple[str, NeedProjection]:
    """Keep what a node remembers up to `today`, or why nobody can read that."""
    metadata = _part(item, "metadata")
    name, uid, version = (str(metadata.get(key, "")) for key in ("name", "uid", "resourceVersion"))
    newest = str(metadata.get("creationTimestamp", ""))[:_DAY]
    try:
        data = as_texts(item.get("data"), "data")
        need = bounded(read_need(as_text(data.get(names.NEED_KEY), names.NEED_KEY)), today())
    except GpufenceError as error:
        why = printable(str(error), _MOST_CHARACTERS)
        return name, NeedProjection(name, uid, version, newest, trouble=why)
    if need_configmap(need.node) != name:
        why = f"it is of node {printable(need.node, _MOST_CHARACTERS)}"
        return name, NeedProjection(name, uid, version, newest, trouble=why)
    days = [owner.last_day for owner in need.owners]
    owners = {shared.value(each.key): _packed(each) for each in need.owners}
    return name, NeedProjection(
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
    return OwnerNeed(key, tuple(map(_day, days)))


def _day(values: list[Any]) -> NeedDay:
    day = NeedDay(*values)
    return day._replace(levels=tuple([(level, seconds) for level, seconds in day.levels]))


def project_profile(item: JsonObject, shared: Interner) -> tuple[str, ProfileProjection | None]:
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
    return uid, ProfileProjection(
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


MOST_OWNERS: Final = 10_000
"""Owners that get a profile; of more, those of the namespaces with the most get none."""

_DAY_SECONDS: Final = 86_400


class ProfileOwner(NamedTuple):
    """Whose needs are one profile."""

    namespace: str
    kind: str
    name: str


class RememberedNeeds(NamedTuple):
    """What all nodes remember of one owner, packed, and of the cards it ran on."""

    packed: tuple[bytes, ...] = ()
    cards: frozenset[CardNeed] = frozenset()


class ProfileStep(StrEnum):
    """What is to be done about a profile."""

    NOTHING = "nothing"
    CREATE = "create"
    STATUS = "status"
    DELETE = "delete"


class ProfileChange(NamedTuple):
    """`minor` is a change of what decides nothing, which may wait."""

    step: ProfileStep
    status: Mapping[str, object] | None = None
    minor: bool = False


_NO_CARD: Final = (None,)
_NO_CHANGE: Final = ProfileChange(ProfileStep.NOTHING)


def by_owner(needs: Iterable[NeedProjection]) -> dict[ProfileOwner, RememberedNeeds]:
    """Put together by owner what the nodes remember."""
    found: dict[ProfileOwner, tuple[list[bytes], set[CardNeed]]] = {}
    for need in needs:
        cards = {card.model: card for card in need.cards}
        for key, packed in need.owners.items():
            owner = ProfileOwner(key.namespace, key.kind, key.name)
            blobs, models = found.setdefault(owner, ([], set()))
            blobs.append(packed)
            if key.card in cards:
                models.add(cards[key.card])
    alike: dict[frozenset[CardNeed], frozenset[CardNeed]] = {}
    known = {
        owner: RememberedNeeds(tuple(blobs), alike.setdefault(frozenset(models), frozenset(models)))
        for owner, (blobs, models) in found.items()
    }
    return {owner: known[owner] for owner in with_room(sorted(known, reverse=True), MOST_OWNERS)}


def profiles_by_owner(
    profiles: Iterable[ProfileProjection],
) -> dict[ProfileOwner, ProfileProjection]:
    """Return the one of each owner."""
    return {
        ProfileOwner(each.profile.namespace, each.profile.kind, each.profile.owner): each
        for each in profiles
    }


def today_of(needs: Iterable[NeedProjection], clock_day: str) -> str:
    """
    Return the day that it is: by our clock, but no later than any node says, since by a clock that
    is ahead everything would be old.
    """
    newest = [need.newest for need in needs if not need.trouble and need.newest <= clock_day]
    return max(newest, default=clock_day)


def first_day(today: str) -> str:
    """Return the first of the days that count."""
    midnight = read_moment(f"{today}T00:00:00Z", "today")
    return write_moment(midnight - (MOST_DAYS - 1) * _DAY_SECONDS)[: len(today)]


def terms_of(before: ProfileProjection | None, ceiling_bytes: int | None) -> ProposalTerms:
    """Return what an owner's profile and its namespace say about targets."""
    terms = NO_TERMS if before is None else before.profile.terms
    bounds = [each for each in (terms.most_bytes, ceiling_bytes) if each is not None]
    return terms._replace(most_bytes=min(bounds, default=None))


def needs_of(
    whose: ProfileOwner, remembered: RememberedNeeds, terms: ProposalTerms, today: str
) -> list[NeedSummary]:
    """
    Add up what is remembered of an owner's last days. Of its cards the most memory that any node
    says counts, and of their reserves whichever makes the larger target: so no single node brings
    one down.
    """
    since = first_day(today)
    nodes = []
    for packed in remembered.packed:
        owner = unpacked(*whose, packed)
        days = tuple(day for day in owner.days if since <= day.day <= today)
        nodes.append(NodeNeed("", (owner._replace(days=days),)))
    cards = _cards(remembered.cards)
    found = []
    for owner in merged(nodes):
        each = [summarise(owner, card, terms) for card in cards.get(owner.key.card, _NO_CARD)]
        said = [item for item in each if item is not None]
        found += sorted(said, key=lambda item: item.target_bytes or 0)[-1:]
    return found


def change_of(
    before: ProfileProjection | None,
    summaries: Sequence[NeedSummary],
    terms: ProposalTerms,
    now: str,
) -> ProfileChange:
    """Decide about one profile, `before` being what there is of it, at the time `now`."""
    if not summaries:
        gone = before is not None and before.made_by_us and not _is_touched(before)
        return ProfileChange(ProfileStep.DELETE) if gone else _NO_CHANGE
    status = _status(before, summaries, terms, now)
    if before is None:
        return ProfileChange(ProfileStep.CREATE, status)
    if before.whole == whole_digest(status):
        return _NO_CHANGE
    return ProfileChange(ProfileStep.STATUS, status, before.core == core_digest(status))


def _status(
    before: ProfileProjection | None,
    summaries: Sequence[NeedSummary],
    terms: ProposalTerms,
    now: str,
) -> dict[str, object]:
    generation = 1 if before is None else before.profile.generation
    applied: Mapping[str, int] = {}
    if before is not None and before.profile.apply is Apply.AT_CREATE:
        applied = applied_amounts(before.profile.applied, summaries, terms.most_bytes)
    since = {} if before is None else {item.type: item[1:] for item in before.conditions}
    conditions = []
    for item in conditions_of(summaries):
        word = str(item.holds)
        was, at = since.get(item.type, ("", ""))
        conditions.append(
            {
                "type": item.type,
                "status": word,
                "reason": item.reason,
                "message": item.message,
                "lastTransitionTime": at if was == word else now,
                "observedGeneration": generation,
            }
        )
    return {**write_status(summaries, generation, applied), "conditions": conditions}


def _is_touched(before: ProfileProjection) -> bool:
    """Return whether somebody has said anything in a profile's spec."""
    profile = before.profile
    return profile.apply is not Apply.NEVER or profile.terms != NO_TERMS


def _cards(cards: Iterable[CardNeed]) -> dict[str, list[CardNeed]]:
    """Return each model with the most memory, once for each reserve that any node tells."""
    found: dict[str, list[CardNeed]] = {}
    for card in sorted(cards):
        found.setdefault(card.model, []).append(card)
    return {
        model: [
            each._replace(memory_bytes=max(item.memory_bytes for item in alike)) for each in alike
        ]
        for model, alike in found.items()
    }
