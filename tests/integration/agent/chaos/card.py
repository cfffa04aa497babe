"""What docs/isolation.md makes of one card at one moment: how it stands, and who has to go."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from gpufence.quantity import MIB

SHORT_FLOOR = 512 * MIB
SHORT_MARGIN = REPORT_MARGIN = 64 * MIB
EVICT_MARGIN = 256 * MIB
EVICT_PERCENT = 3
SLACK = 96 * MIB
"""
How much may come and go between the observer's look and the agent's without anybody's being wrong.
"""


@dataclass(frozen=True, slots=True)
class Words:
    """
    What a pod says of itself, and its namespace of it, all fixed when it is made.

    Only a `fenced` pod may ever be evicted: its namespace says `evict`, and it declares a limit.
    One that is `watched` declares one in a namespace of any mode, and is promised it, on `card`
    from the beginning where its scheduler noted one. One that no webhook saw is not `injected`; a
    disruption budget `shields` what it covers. One with a `request` is promised only that and
    borrows what it holds between that and its limit. One that `works` keeps its card busy.
    """

    name: str
    limit: int
    request: int | None = None
    works: bool = False
    namespace: str = ""
    watched: bool = True
    fenced: bool = True
    injected: bool = True
    shielded: bool = False
    card: int | None = None

    @property
    def thresholds(self) -> tuple[int, int]:
        """Return the bytes above which the pod is over its limit, and pressing on a short card."""
        return _with_margin(self.limit), self.limit + SHORT_MARGIN

    @property
    def promise(self) -> int:
        return self.limit if self.request is None else self.request

    def borrows(self, used: int) -> bool:
        """Tell whether the pod may be asked to give back."""
        return self.request is not None and used > _with_margin(self.request)

    def loan(self, used: int) -> int:
        return max(min(used, self.limit) - self.promise, 0)


def _with_margin(amount: int) -> int:
    return amount + max(EVICT_MARGIN, amount * EVICT_PERCENT // 100)


class Moment(NamedTuple):
    """
    One card at one look: what each pod there holds, by uid, and how much is `free` of what can be
    promised (`total`). `nobodys` is what no pod holds, `going` are the pods on their way out.
    """

    held: Mapping[str, int]
    free: int
    total: int
    nobodys: int = 0
    going: Collection[str] = ()


class Stand(NamedTuple):
    """
    How a card stands at one look. `owing`: less is free than is owed; `hardly_any` is free below
    the floor. `curing` are those who end the shortage, `barely` those who may do so, if what is
    seen here is not quite what the agent saw.

    `misses`: pods that are surely not idle lack what is reserved for them, `may_miss`: pods that
    are not surely idle may. `recalled` give that back, `may_recall` may do so.
    """

    owing: bool = False
    hardly_any: bool = False
    curing: frozenset[str] = frozenset()
    barely: frozenset[str] = frozenset()
    misses: bool = False
    may_miss: bool = False
    recalled: frozenset[str] = frozenset()
    may_recall: frozenset[str] = frozenset()


class Want(NamedTuple):
    """
    What pods over their limits are to end, what of it is missed of loans, and all loans; the card
    may be nearly `full`.
    """

    missing: int
    missed: int
    loans: int
    full: bool


def stand_of(
    moment: Moment,
    place: int,
    people: Mapping[str, Words],
    asleep: Collection[str] = (),
    awake: Collection[str] | None = None,
) -> Stand:
    """Keep the card's ledger: which pods its shortage evicts, and which give back a loan."""
    there = {uid: words for uid, words in people.items() if uid in moment.held}
    promised = {
        uid: words.promise
        for uid, words in people.items()
        if words.watched and uid not in moment.going and (uid in there or words.card == place)
    }
    within = sum(min(moment.held.get(uid, 0), promise) for uid, promise in promised.items())
    room = max(moment.total - within, 0)
    left = {uid: max(promise - moment.held.get(uid, 0), 0) for uid, promise in promised.items()}
    owed = min(sum(left.values()), room)
    hardly_any = moment.free < SHORT_FLOOR and (len(moment.held) > 1 or owed > 0)
    floor = SHORT_FLOOR - moment.free if hardly_any else 0
    missing = max(owed - moment.free, floor)
    if missing <= 0:
        return Stand(hardly_any=hardly_any)
    wanted = [
        sum(amount for uid, amount in left.items() if awake is None or uid in awake),
        sum(amount for uid, amount in left.items() if uid not in asleep),
    ]
    short = [min(amount, room) - moment.free for amount in wanted]
    least, most = (max(amount, floor) if hardly_any else amount for amount in short)
    loans = sum(there[uid].loan(moment.held[uid]) for uid in promised if uid in there)
    ways = [
        _going(moment, there, Want(missing - loans + more, missed + more, loans, hardly_any))
        for missed in (least, most)
        for more in (0, -SLACK, SLACK)
    ]
    curing, recalled = zip(*ways, strict=True)
    return Stand(
        owing=owed > moment.free,
        hardly_any=hardly_any,
        curing=frozenset.intersection(*curing),
        barely=frozenset.union(*curing),
        misses=least > SLACK,
        may_miss=most + SLACK > 0,
        recalled=frozenset.intersection(*recalled),
        may_recall=frozenset.union(*recalled),
    )


def _going(
    moment: Moment, there: Mapping[str, Words], want: Want
) -> tuple[frozenset[str], frozenset[str]]:
    """Choose the pods that are evicted for the shortage, and those for that or for their loans."""
    able = {uid for uid, words in there.items() if words.fenced and uid not in moment.going}
    curing = _curing(moment, there, able, want)
    missed = want.missed - sum(_gives(there[uid], moment.held[uid]) for uid in curing)
    loans = {uid: words.loan(moment.held[uid]) for uid, words in there.items()}
    asked = [uid for uid in able - curing if there[uid].borrows(moment.held[uid])]
    if 2 * sum(loans[uid] for uid in asked) < missed:
        return curing, curing
    recalled = set(curing)
    for uid in sorted(asked, key=lambda uid: (-loans[uid], uid)):
        if missed > 0:
            recalled.add(uid)
            missed -= loans[uid]
    return curing, frozenset(recalled)


def _gives(words: Words, used: int) -> int:
    """Return what a pod over its limit gives back: that, and what it borrows."""
    return used - words.limit + words.loan(used)


def _curing(
    moment: Moment, there: Mapping[str, Words], able: Collection[str], want: Want
) -> frozenset[str]:
    """
    Choose the pods to evict: the largest excess first, no more than give back what is missing; all
    that are over their limits if that is at least half of it; tolerated pods only where no more is
    held by pods that stay, or is lent.
    """
    excess = {uid: moment.held[uid] - words.limit for uid, words in there.items()}
    over = {uid for uid in able if moment.held[uid] > there[uid].thresholds[0]}
    beyond = moment.nobodys + want.loans
    for uid, used in moment.held.items():
        if uid not in able:
            stays = uid in there and there[uid].watched and uid not in moment.going
            beyond += max(excess[uid], 0) if stays else used
    tolerated = {
        uid
        for uid in set(able) - over
        if want.full and moment.held[uid] > there[uid].thresholds[1] and beyond <= excess[uid]
    }
    going = sorted(over | tolerated, key=lambda uid: -excess[uid])
    if sum(excess[uid] for uid in going) < want.missing:
        going = [uid for uid in going if uid in over and there[uid].injected]
        if 2 * sum(excess[uid] for uid in going) < want.missing:
            return frozenset()
    chosen: set[str] = set()
    missing = max(want.missing, want.missed)
    for uid in going:
        if missing > 0:
            chosen.add(uid)
            missing -= _gives(there[uid], moment.held[uid])
    return frozenset(chosen)
