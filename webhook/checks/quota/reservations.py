"""
PURE. Pods that were let in a moment ago and that a watch need not have brought yet: how they count,
and how they are written down for the other replicas.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

PENDING_SECONDS: Final = 15.0
"""
For so long an admission counts whose pod nobody has seen: something else may have refused it. Each
replica counts this from when it saw the reservation first, so that no two clocks are compared.
"""
MOST_RESERVED: Final = 4096
"""In the whole ledger, of which each takes some 50 bytes."""

_MOST_TICKET: Final = 64
_DIGEST: Final = 4


class Reservation(NamedTuple):
    """`again`: its pod was sent through the webhook a second time, as API servers do once."""

    ticket: str
    amount: int
    again: bool = False


Ledger: TypeAlias = "Mapping[str, Mapping[str, Reservation]]"
"""Reservations by namespace and ticket."""
NO_LEDGER: Final[Ledger] = MappingProxyType({})
_NONE: Final[Mapping[str, Reservation]] = MappingProxyType({})


class NewPod(NamedTuple):
    """
    A pod that is being created. `ticket` is the one it came with, `fresh` one that no pod has;
    `refusable` where it is refused if there is no room, and not only warned.
    """

    namespace: str
    name: str
    amount: int
    quota: int
    ticket: str
    fresh: str
    refusable: bool
    dry_run: bool = False


class InUse(NamedTuple):
    """What the live pods of a namespace use, and the tickets of all that were seen there."""

    used: int = 0
    pods: int = 0


class RoomVerdict(NamedTuple):
    """
    What was in use before, by how many pods; whether another fits; under which ticket it counts,
    empty where it does not. One is `doubtful` that may fit or not, by what others have let in.
    """

    used: int
    pods: int
    fits: bool
    ticket: str = ""
    doubtful: bool = False


def ticket_of(name: str, token: str) -> str:
    """Make the ticket of a pod by the name, or the beginning of one, that it is created with."""
    return f"{token}.{blake2b(name.encode(), digest_size=_DIGEST).hexdigest()}"


def settle(
    asked: Iterable[NewPod], counted: Mapping[str, InUse], seen: Collection[str], ledger: Ledger
) -> tuple[list[RoomVerdict], Ledger]:
    """
    Decide about pods one after the other; return what becomes of each, and the ledger with those
    that are let in. What a watch has brought no longer counts as reserved.
    """
    now = dict(ledger)
    verdicts = []
    for each in asked:
        there = now.get(each.namespace, _NONE)
        verdict, after = _settle(each, counted.get(each.namespace, InUse()), seen, there)
        verdicts.append(verdict)
        if after is not there:
            now[each.namespace] = after
    return verdicts, now


def _settle(
    asked: NewPod, counted: InUse, seen: Collection[str], there: Mapping[str, Reservation]
) -> tuple[RoomVerdict, Mapping[str, Reservation]]:
    own = _own(asked, seen, there)
    waiting = [
        each.amount for ticket, each in there.items() if ticket not in seen and each is not own
    ]
    used, pods = counted.used + sum(waiting), counted.pods + len(waiting)
    fits = used + asked.amount <= asked.quota
    if asked.dry_run:
        return RoomVerdict(used, pods, fits), there
    if own is not None:
        there = {ticket: each for ticket, each in there.items() if each is not own}
    if not fits and asked.refusable:
        return RoomVerdict(used, pods, fits), there
    ticket = asked.fresh if own is None else own.ticket
    reserved = Reservation(ticket, asked.amount, ticket != asked.fresh)
    return RoomVerdict(used, pods, fits, ticket), {**there, ticket: reserved}


def settle_alone(
    asked: Iterable[NewPod],
    counted: Mapping[str, InUse],
    seen: Collection[str],
    ledger: Ledger,
    unwritten: Collection[str],
) -> tuple[list[RoomVerdict], Ledger]:
    """
    Decide without the other replicas: of each namespace one pod at a time, the next once a watch
    has shown that. So no replica passes a quota by more than that one.
    """
    verdicts: list[RoomVerdict] = []
    alone = set(unwritten)
    for each in asked:
        (verdict,), after = settle([each], counted, seen, ledger)
        waiting = [ticket for ticket in ledger.get(each.namespace, ()) if ticket not in seen]
        if each.refusable and verdict.fits and not alone.isdisjoint(waiting):
            verdicts.append(verdict._replace(fits=False, ticket="", doubtful=True))
        else:
            ledger = after
            alone.add(verdict.ticket)
            verdicts.append(verdict)
    return verdicts, ledger


def _own(
    asked: NewPod, seen: Collection[str], there: Mapping[str, Reservation]
) -> Reservation | None:
    """
    Return what was reserved for a pod before, by a write whose answer was lost or by an earlier
    pass over it, once: a ticket that somebody copies from another pod is of another name, was used
    twice, or has been seen.
    """
    own = there.get(asked.fresh) or there.get(asked.ticket)
    if own is None or own.again or own.ticket in seen:
        return None
    token, _, _ = own.ticket.partition(".")
    return own if own.ticket == ticket_of(asked.name, token) else None


def without(ledger: Ledger, gone: Collection[str]) -> Ledger:
    """Return a ledger without some tickets; it is the same where it has none of them."""
    if not gone:
        return ledger
    left = {
        namespace: {ticket: each for ticket, each in there.items() if ticket not in gone}
        for namespace, there in ledger.items()
    }
    return {namespace: there for namespace, there in left.items() if there}


def merged(ledger: Ledger, more: Ledger) -> Ledger:
    """Return the reservations of two ledgers; those of the first count where both have one."""
    found = {namespace: {**more[namespace]} for namespace in more}
    for namespace, there in ledger.items():
        found.setdefault(namespace, {}).update(there)
    return found


def tickets_of(ledger: Ledger) -> list[str]:
    return [ticket for there in ledger.values() for ticket in there]


def read_ledger(data: Mapping[str, str]) -> Ledger:
    """Read the ConfigMap; what is no reservation of ours is left out, and written over later."""
    found = {name: {each.ticket: each for each in _read(text)} for name, text in data.items()}
    return {name: there for name, there in found.items() if there}


def write_changes(before: Mapping[str, str], ledger: Ledger) -> dict[str, str | None]:
    """Return the texts of a ConfigMap that have to change; None takes one away."""
    wanted = {name: _write(there) for name, there in ledger.items() if there}
    gone: dict[str, str | None] = dict.fromkeys(before.keys() - wanted.keys())
    return gone | {name: text for name, text in wanted.items() if before.get(name) != text}


def _write(there: Mapping[str, Reservation]) -> str:
    rows = [[each.ticket, each.amount, int(each.again)] for each in there.values()]
    return json.dumps(rows, separators=(",", ":"))


def _read(text: str) -> list[Reservation]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [each for row in _rows(rows) for each in _reservation(row)]


def _rows(rows: object) -> list[object]:
    return rows[:MOST_RESERVED] if isinstance(rows, list) else []


def _reservation(row: object) -> Iterator[Reservation]:
    match row:
        case [str(ticket), int(amount), int(again)] if len(ticket) <= _MOST_TICKET and amount >= 0:
            yield Reservation(ticket, amount, bool(again))
