"""A ledger of need on a fake clock: evictions, and containers whose memory was not enough."""

from dataclasses import replace

import pytest

from agent.concerns.need.container_usage import key_of
from agent.concerns.need.ledger import MOST_DAYS, entered, evicted, need_of, restored
from agent.concerns.need.model import NO_NEED, NeedLook, StoredNeed
from agent.model.decision import ContainerExcess, Outcome, Verdict
from agent.model.pod import ContainerFailure, PodLimit, PodOnNode
from agent.model.use import Observation
from gpufence.capped import Ending
from gpufence.need import NeedDay, NeedKey, NodeNeed
from gpufence.quantity import GIB
from tests.support.agent.builders import CARDS, LIMIT, card_sample, on_card, pod, process_of, uses
from tests.support.builders import card

TODAY = "2026-11-19"
TOMORROW = "2026-11-20"
NODE = "n1"


class Book:
    """Every pod has one process, whose PID goes by the pod's name."""

    def __init__(self, stored: StoredNeed | None = None) -> None:
        self.ledger = NO_NEED if stored is None else restored(NO_NEED, stored)
        self.now = 1000.0
        self.day = TODAY
        self.before: Observation | None = None
        self._pids: dict[tuple[str, str], int] = {}

    def pid(self, pod: str, container: str = "main") -> int:
        return self._pids.setdefault((pod, container), 10 + len(self._pids))

    def look(
        self,
        held: dict[str, int | None],
        *pods: PodOnNode,
        seconds: float = 1.0,
        peaks: dict[str, int] | None = None,
        mps: tuple[str, ...] = (),
    ) -> Observation:
        """Enter what pods hold, or `pod/container`s, on the first card."""
        self.now += seconds
        owners, amounts = [], {}
        for name, amount in held.items():
            pod, _, container = name.partition("/")
            item = next((each for each in pods if each.name == pod), None)
            pid = self.pid(pod, container or "main")
            amounts[pid] = amount
            if item is not None:
                owners.append(process_of(item, pid, container or "main"))
        sample = card_sample(0, amounts, at=self.now, mps=[self.pid(name) for name in mps])
        most = {self.pid(*name.split("/")): amount for name, amount in (peaks or {}).items()}
        seen = uses([replace(sample, peaks=most)], owners, pods, self.before, at=self.now)
        return self.enter(seen)

    def enter(self, seen: Observation) -> Observation:
        look = NeedLook(seen, self.before, self.now, self.day, 3.0)
        self.ledger = entered(self.ledger, look)
        self.before = seen
        return seen

    @property
    def need(self) -> NodeNeed:
        return need_of(self.ledger, NODE)

    @property
    def keys(self) -> list[NeedKey]:
        return [owner.key for owner in self.need.owners]

    @property
    def days(self) -> tuple[NeedDay, ...]:
        (owner,) = self.need.owners
        return owner.days

    @property
    def only(self) -> NeedDay:
        (row,) = self.days
        return row


def key(pod: PodOnNode, container: str = "main") -> NeedKey:
    return key_of(pod, container, CARDS[0])


PARTS = {CARDS[0].uuid: PodLimit(LIMIT, {"main": GIB, "aside": 2 * GIB})}


def failed(day: str, container: str = "main") -> tuple[ContainerFailure, ...]:
    return (
        ContainerFailure(Ending(container, 1, at=day, out_of_memory="CUDA out of memory"), None),
    )


def verdict(item: PodOnNode, used: int, **containers: int) -> Verdict:
    use = on_card(item, used)._replace(containers=containers or {"main": used})
    return Verdict(item, Outcome.EVICT, use)


def test_an_eviction_is_kept_with_use_and_limit() -> None:
    """Evictions add up, and use and limit are those at the largest limit."""
    book = Book()
    book.look({"a": GIB}, pod())
    for used, limit in ((4 * GIB, LIMIT), (2 * GIB, GIB), (5 * GIB, LIMIT)):
        book.ledger = evicted(book.ledger, verdict(pod(limit=limit), used), TODAY)

    row = book.only
    assert (3, 5 * GIB, LIMIT) == (row.evictions, row.evicted_bytes, row.evicted_limit_bytes)


def test_only_containers_over_their_parts_are_to_blame() -> None:
    """Where some container is over its part, the others did not cause the eviction."""
    item = pod("a", "main", "aside", limits=PARTS)
    gone = verdict(item, 5 * GIB, main=4 * GIB, aside=GIB)
    book = Book()
    book.ledger = evicted(NO_NEED, gone, TODAY)
    all_of_them = book.keys
    over = gone._replace(containers_over=(ContainerExcess("main", 4 * GIB, GIB),))
    book.ledger = evicted(NO_NEED, over, TODAY)

    assert [key(item, "aside"), key(item, "main")] == all_of_them
    assert [key(item, "main")] == book.keys
    assert (4 * GIB, GIB) == (book.only.evicted_bytes, book.only.evicted_limit_bytes)


@pytest.mark.parametrize(
    "item",
    [
        Verdict(pod(), Outcome.EVICT),
        Verdict(pod(), Outcome.EVICT, on_card(pod(), None)),
        verdict(pod(mode=None), GIB),
    ],
)
def test_what_tells_nothing_is_not_kept(item: Verdict) -> None:
    """An eviction without a use, or of a pod without a fence, leaves no trace."""
    assert NO_NEED is evicted(NO_NEED, item, TODAY)


@pytest.mark.parametrize(("limit", "kept"), [(LIMIT, LIMIT), (None, 0)])
def test_an_owner_that_was_never_seen_is_kept_too(limit: int | None, kept: int) -> None:
    """An eviction on a day without a look makes the day; a limit that is not known is zero."""
    book = Book()
    book.ledger = evicted(NO_NEED, verdict(pod(limit=limit), 4 * GIB), TODAY)

    row = book.only
    assert (1, kept, 0, 0) == (row.evictions, row.evicted_limit_bytes, row.peak_bytes, row.pods)


def test_out_of_memory_is_kept_on_the_day_it_happened() -> None:
    """
    A container that ended so has the limit it had on that day, entered once however often its pod
    is looked at.
    """
    ended = failed("2026-11-18")
    book = Book()
    book.look({"a": GIB}, pod())
    for amount in (GIB, 2 * GIB):
        book.look({"a": amount}, pod(failures=ended))
    book.day = TOMORROW
    book.look({"a": GIB}, pod(failures=ended, injected=False), seconds=9.0)

    assert [LIMIT, 0, 0] == [row.out_of_memory_limit_bytes for row in book.days]
    assert "2026-11-18" == book.days[0].day


@pytest.mark.parametrize("ended", ["2026-12-24", ""])
def test_a_day_that_cannot_be_is_today(ended: str) -> None:
    """An end that has no date, or one to come, was today."""
    book = Book()
    book.look({}, pod(assigned=frozenset({CARDS[0].uuid}), failures=failed(ended)))

    assert (TODAY, LIMIT) == (book.only.day, book.only.out_of_memory_limit_bytes)


def test_without_a_limit_the_most_held_stands_for_it() -> None:
    """
    Where no limit is known, what a container held that day was too little; where that is not known
    either, nothing is.
    """
    item = pod(limit=None)
    book = Book()
    book.look({"a": 5 * GIB}, item)
    book.look({}, replace(item, failures=(*failed(TODAY), *failed(TODAY, "aside"))))

    assert 5 * GIB == book.only.out_of_memory_limit_bytes


def test_the_card_is_the_one_it_was_seen_on_or_given() -> None:
    """
    Of several models the one counts on which the container was seen, else the one it was given;
    where neither is known, nothing is kept.
    """
    other = card(1, model="A10", memory_bytes=24 * GIB)
    item = pod(limits={CARDS[0].uuid: PodLimit(GIB), other.uuid: PodLimit(2 * GIB)})
    found = []
    held: tuple[dict[str, int | None], ...] = ({"a": GIB}, {}, {})
    for seen, given in zip(held, (other, other, None), strict=True):
        uuids = frozenset({given.uuid} if given else ())
        book = Book()
        before = book.look(seen, item)
        ended = replace(item, failures=failed(TODAY), assigned=uuids)
        after = book.look({}, ended)
        sample = after.sample.cards[0]
        both = replace(after.sample, cards=(sample, replace(sample, card=other)))
        book = Book()
        book.enter(before)
        book.enter(replace(after, sample=both))
        found += [
            (owner.key.card, row.out_of_memory_limit_bytes)
            for owner in book.need.owners
            for row in owner.days
        ]

    assert [("Tesla T4", GIB), ("A10", 2 * GIB)] == found


def test_an_end_long_ago_pushes_nothing_out() -> None:
    """A day older than all that are kept is not kept."""
    book = Book()
    for number in range(1, MOST_DAYS + 1):
        book.day = f"2026-11-{number:02}"
        book.look({"a": GIB}, pod(), seconds=9.0)
    book.look({"a": 2 * GIB}, pod(failures=failed("2026-10-31")))

    assert ("2026-11-01", MOST_DAYS) == (book.days[0].day, len(book.days))


def test_an_unknown_look_is_no_end() -> None:
    """The same pods are not read again for their ends."""
    book = Book()
    seen = book.look({"a": GIB}, pod(failures=failed(TODAY)))
    book.ledger = replace(book.ledger, rows={}, met={})
    book.now += 20.0
    book.enter(seen)

    assert 0 == book.only.out_of_memory_limit_bytes
