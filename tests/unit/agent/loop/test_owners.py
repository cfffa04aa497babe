"""What is kept of each owner since the start."""

from dataclasses import replace

from agent.judge import judge
from agent.loop.owners import MOST_OWNERS, entered, evicted
from agent.model.memory import Memory
from agent.model.pod import PodOnNode, pods_on_node
from agent.model.policy import EvictionPolicy
from agent.model.state import NO_LEDGER, Ledger, OwnerTally
from agent.model.use import Observation
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import LIMIT, card_sample, controller, pod, process_of, uses

OVER = LIMIT + 300 * MIB


class Book:
    """Enters ticks a second apart."""

    def __init__(self, most_seconds: float = 3.0) -> None:
        self.ledger = NO_LEDGER
        self.memory = Memory(-100.0)
        self.now = 0.0
        self.most_seconds = most_seconds
        self.before: Observation | None = None

    def enter(self, held: dict[str, int], *pods: PodOnNode, seconds: float = 1.0) -> None:
        self.now += seconds
        owners = [process_of(item, 10 + number) for number, item in enumerate(pods)]
        amounts = {10 + n: held[item.name] for n, item in enumerate(pods) if item.name in held}
        use = uses([card_sample(0, amounts, at=self.now)], owners, pods, self.before, at=self.now)
        decision, self.memory = judge(use, self.memory, EvictionPolicy(), self.now)
        self.ledger = entered(self.ledger, use, self.before, decision, self.most_seconds)
        self.before = use

    @property
    def only(self) -> OwnerTally:
        (found,) = self.ledger.owners.values()
        return found


def test_peak_and_limit_and_processes_are_kept() -> None:
    """The peak stays when use falls, and the limit is the latest."""
    book = Book()
    book.enter({"a": 2 * GIB}, pod())
    book.enter({"a": GIB}, pod(limit=2 * GIB))

    kept = (book.only.peak_bytes, book.only.limit_bytes, book.only.processes)
    assert (2 * GIB, 2 * GIB, 1) == kept


def test_pods_of_one_controller_are_one_owner() -> None:
    """Each pod of a controller counts once, however often it lets go of its memory."""
    first, second = (pod(name, controller=controller()) for name in ("a", "b"))
    book = Book()
    book.enter({"a": GIB}, first, second)
    book.enter({}, first, second)
    book.enter({"a": GIB, "b": GIB}, first, second)

    assert ("ReplicaSet", "web", 2) == (book.only.kind, book.only.name, book.only.pods)


def test_time_over_counts_between_looks() -> None:
    """Time over is the time between looks, never more than anybody looked."""
    book = Book()
    for seconds in (1.0, 1.0, 1.0, 100.0):
        book.enter({"a": OVER}, pod(), seconds=seconds)

    assert 5.0 == book.only.over_seconds


def test_who_was_never_injected_is_marked() -> None:
    """The latest pod says whether the webhook saw it."""
    book = Book()
    book.enter({"a": GIB}, pod(injected=False))

    assert not book.only.injected


def test_an_owner_seen_again_is_renewed_by_the_minute() -> None:
    """When an owner was last seen is kept to a minute."""
    book = Book()
    book.enter({"a": GIB}, pod())
    book.enter({"a": GIB}, pod())
    early = book.only.seen_at
    book.enter({"a": GIB}, pod(), seconds=100.0)

    assert (1.0, 102.0) == (early, book.only.seen_at)


def test_pods_without_a_limit_or_memory_leave_no_trace() -> None:
    """A fenced pod that never held memory has no owner's row."""
    book = Book()
    book.enter({}, pod())

    assert {} == book.ledger.owners


def test_processes_of_strangers_leave_no_trace() -> None:
    """A pod that the API server does not know any more is entered nowhere."""
    book = Book()
    book.enter({"a": GIB}, pod())
    use = book.before
    assert use is not None
    use = replace(use, pods=pods_on_node([]))
    decision, _ = judge(use, book.memory, EvictionPolicy(), 2.0)

    assert {} == entered(NO_LEDGER, use, None, decision, 3.0).owners


def test_an_eviction_is_entered_with_its_owner() -> None:
    """Evictions add up; those of owners nobody has seen are not kept."""
    book = Book()
    book.enter({"a": GIB}, pod())
    once = evicted(book.ledger, pod())

    assert [1] == [item.evictions for item in once.owners.values()]
    assert NO_LEDGER == evicted(NO_LEDGER, pod())


def test_owners_are_forgotten_in_the_order_they_left() -> None:
    """No more owners are kept than promised, and the one gone for longest goes first."""
    old = {
        ("n", "Pod", f"p{number}"): OwnerTally("n", "Pod", f"p{number}", seen_at=number - 1000.0)
        for number in range(MOST_OWNERS)
    }
    book = Book()
    book.ledger = Ledger(old)
    book.enter({"a": GIB}, pod())

    assert MOST_OWNERS == len(book.ledger.owners)
    assert ("n", "Pod", "p0") not in book.ledger.owners
    assert pod().lineage in book.ledger.owners


def test_a_verdict_without_an_owner_is_no_harm() -> None:
    """A limit of a pod that is on no card is not kept."""
    book = Book()
    book.enter({"a": GIB}, pod())
    use = book.before
    assert use is not None
    decision, _ = judge(use, book.memory, EvictionPolicy(), 2.0)
    empty = replace(use, cards={})

    assert {} == entered(NO_LEDGER, empty, None, decision, 3.0).owners
