"""
PURE. What becomes of an owner's profile: the status that follows from what all nodes remember, and
whether it is worth a write.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.keepers.profiles.projections import core_digest, unpacked, whole_digest
from gpufence.need import CardNeed, NodeNeed, ProposalTerms, merged, summarise, with_room
from gpufence.need.applied import applied_amounts
from gpufence.need.codec import MOST_DAYS
from gpufence.need.profile import Apply, conditions_of, write_status
from gpufence.need.summary import NO_TERMS
from gpufence.times import read_moment, write_moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from controller.keepers.profiles.projections import KeptNeed, KeptProfile
    from gpufence.need import NeedSummary

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


def by_owner(needs: Iterable[KeptNeed]) -> dict[ProfileOwner, RememberedNeeds]:
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


def profiles_by_owner(profiles: Iterable[KeptProfile]) -> dict[ProfileOwner, KeptProfile]:
    """Return the one of each owner."""
    return {
        ProfileOwner(each.profile.namespace, each.profile.kind, each.profile.owner): each
        for each in profiles
    }


def today_of(needs: Iterable[KeptNeed], clock_day: str) -> str:
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


def terms_of(before: KeptProfile | None, ceiling_bytes: int | None) -> ProposalTerms:
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
    before: KeptProfile | None,
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
    before: KeptProfile | None,
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


def _is_touched(before: KeptProfile) -> bool:
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
