"""What becomes of a look: peaks, processes, limits, time and pods of each container."""

from dataclasses import replace

import pytest

from agent.concerns.need.container_usage import models_of
from agent.concerns.need.ledger import MOST_DAYS, MOST_KEYS, entered
from agent.concerns.need.model import NO_NEED, NeedLook
from agent.model.pod import Cap, PodLimit, PodOnNode, pods_on_node
from agent.model.use import Observation
from gpufence.need import CardNeed, NeedDay, NeedKey
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, card_sample, controller, pod, uses
from tests.support.builders import T4_BYTES, card
from tests.unit.agent.concerns.need.book import TODAY, TOMORROW, Book, key

HASHED = {"pod-template-hash": "6664c96cd5"}


def test_a_day_keeps_the_most() -> None:
    """
    A peak stays when use falls, and the day says how many processes and which limit there were.
    """
    book = Book()
    book.look({"a": 2 * GIB}, pod())
    book.look({"a": GIB}, pod())

    row = book.only
    assert (TODAY, 2 * GIB, 2 * GIB, 1, LIMIT) == (
        row.day,
        row.peak_bytes,
        row.process_bytes,
        row.processes,
        row.limit_bytes,
    )


def test_pods_of_a_deployment_are_one_owner() -> None:
    """Different pods of what stays when they are replaced add up, each once a day."""
    old = controller(name="web-6664c96cd5")
    pods = [pod(name, controller=old, labels=HASHED) for name in ("a", "b")]
    book = Book()
    book.look({"a": GIB}, *pods)
    book.look({}, *pods)
    book.look({"a": GIB, "b": 2 * GIB}, *pods)

    assert [NeedKey("team-a", "Deployment", "web", "main", "Tesla T4")] == book.keys
    assert (2, 2, 2 * GIB) == (book.only.pods, book.only.started, book.only.peak_bytes)


def test_a_pod_without_a_controller_is_its_own_owner() -> None:
    """A bare pod's need is remembered under its name."""
    book = Book()
    book.look({"a": GIB}, pod())

    assert [NeedKey("team-a", "Pod", "a", "main", "Tesla T4")] == book.keys


def test_the_next_day_counts_its_pods_anew() -> None:
    """A pod that is still there is one of the new day's pods, and none that started on it."""
    book = Book()
    book.look({"a": GIB}, pod())
    book.day = TOMORROW
    book.look({"a": GIB}, pod(), seconds=10.0)

    first, second = book.days
    assert (TODAY, 1, 1, 10.0) == (first.day, first.pods, first.started, first.held_seconds)
    assert (TOMORROW, 1, 0, 0.0) == (second.day, second.pods, second.started, second.held_seconds)


@pytest.mark.parametrize(("seconds", "expected"), [(1.0, 4.0), (6.0, 19.0), (100.0, 55.0)])
def test_time_counts_while_somebody_holds_memory(seconds: float, expected: float) -> None:
    """
    Time by the clock counts once for all pods of an owner, and never more than anybody looked.
    """
    pods = [pod(name, controller=controller()) for name in ("a", "b")]
    book = Book()
    for amount in (GIB, 2 * GIB, 3 * GIB, 4 * GIB):
        book.look({"a": amount, "b": amount}, *pods, seconds=seconds)
    book.look({}, *pods)
    book.look({}, *pods, seconds=50.0)

    assert expected == book.only.held_seconds


def test_while_nothing_changes_little_is_done() -> None:
    """A look that shows what the last one showed is entered every 15 seconds alone."""
    book = Book()
    same = book.look({"a": GIB}, pod())
    first = book.ledger
    book.now += 14.0
    book.enter(same)
    second = book.ledger
    book.now += 1.0
    book.enter(same)

    assert first is second
    assert 15.0 == book.only.held_seconds


def test_a_look_without_news_changes_no_row() -> None:
    """What is the same after a look is the very same, so that nobody stores it again."""
    book = Book()
    book.look({}, pod())
    before = book.ledger.rows
    book.look({}, pod(), seconds=100.0)

    assert before is book.ledger.rows


def test_containers_are_told_apart() -> None:
    """
    Each container has its own need, its part for a limit or else the pod's, and its own processes.
    """
    parts = {CARDS[0].uuid: PodLimit(LIMIT, {"main": GIB})}
    both = pod("a", "main", "aside", limits=parts)
    book = Book()
    book.look({"a": GIB, "a/aside": 2 * GIB}, both)

    rows = {owner.key.container: owner.days[0] for owner in book.need.owners}
    assert {"main": (GIB, GIB), "aside": (2 * GIB, LIMIT)} == {
        name: (row.peak_bytes, row.limit_bytes) for name, row in rows.items()
    }


def test_what_processes_share_and_were_told_is_kept() -> None:
    """Allowance of one process and how many share a part are the pod's own."""
    book = Book()
    book.look({"a": GIB}, pod(caps={"main": Cap(2 * GIB, 512 * MIB)}, shares=3))

    assert (2 * GIB, 3, False) == (book.only.told_bytes, book.only.shares, book.only.capped)


@pytest.mark.parametrize(("held", "expected"), [(2483 * MIB, False), (2484 * MIB, True)])
def test_who_takes_all_he_was_told_is_capped(held: int, *, expected: bool) -> None:
    """From 97 % of its allowance and context on, a process shows its cap and not its need."""
    book = Book()
    book.look({"a": held}, pod(caps={"main": Cap(2 * GIB, 512 * MIB)}))

    assert expected is book.only.capped


@pytest.mark.parametrize(
    "item",
    [
        pod(mode=None),
        pod(limit=None, mode=None),
    ],
)
def test_who_is_not_fenced_is_not_remembered(item: PodOnNode) -> None:
    """Namespaces that never asked for anything leave no trace."""
    book = Book()
    book.look({"a": GIB}, item, peaks={"a": GIB})
    book.look({}, item, peaks={"a": GIB})

    assert [] == book.keys


def test_what_nobody_can_tell_is_not_entered() -> None:
    """A pod whose use is unknown, or that of clients of the node's MPS server, has no need."""
    book = Book()
    book.look({"a": None}, pod())
    book.look({"a": 0}, pod())
    server = uses([card_sample(0, {1: GIB}, at=9.0)], [], [pod()])
    book.enter(server)

    assert [] == book.keys


def test_clients_of_the_nodes_mps_server_are_left_out() -> None:
    """Nobody knows for certain whose memory those hold, before and after they end."""
    book = Book()
    seen = book.look({"a": GIB}, pod())
    uuid = CARDS[0].uuid
    (use,) = seen.cards[uuid].pods.values()
    marked = replace(seen.cards[uuid], pods={use.pod.uid: use._replace(mps=True)})
    of_mps = replace(seen, cards={uuid: marked})
    sample = replace(seen.sample.cards[0], peaks={book.pid("a"): 5 * GIB})
    asked = replace(of_mps, sample=replace(seen.sample, cards=(sample,)))
    empty = Book()
    empty.before = of_mps
    empty.enter(asked)

    assert [] == empty.keys


def test_a_processes_pid_that_changed_hands_is_not_certain() -> None:
    """What a list shows under the PID of another counts from the next list on."""
    book = Book()
    first, second = pod("a"), pod("b")
    book.look({"a": GIB}, first, second)
    book._pids["b", "main"] = book.pid("a")
    book.look({"b": 2 * GIB}, first, second)
    early = book.keys
    book.look({"b": 2 * GIB}, first, second)

    assert [key(first)] == early
    assert [key(first), key(second)] == book.keys


def test_the_drivers_own_figure_counts_where_it_is_more() -> None:
    """What a process held between two looks is its peak, and is marked as the driver's."""
    book = Book()
    book.look({"a": GIB}, pod(), peaks={"a": GIB})
    measured = book.only
    book.look({"a": GIB}, pod(), peaks={"a": 5 * GIB})
    book.look({"a": 2 * GIB}, pod())

    assert (GIB, False) == (measured.peak_bytes, measured.driver_peak)
    assert (5 * GIB, True, 5 * GIB) == (
        book.only.peak_bytes,
        book.only.driver_peak,
        book.only.process_bytes,
    )


def test_what_is_measured_takes_the_mark_away_when_it_is_more() -> None:
    """A larger measured peak is a measured one."""
    book = Book()
    book.look({"a": GIB}, pod(), peaks={"a": 2 * GIB})
    book.look({"a": 3 * GIB}, pod())

    assert (3 * GIB, False) == (book.only.peak_bytes, book.only.driver_peak)


def test_who_has_just_ended_is_heard_of_once_more() -> None:
    """
    A process that took much between its last look and its end has that as its peak, and a pod that
    is gone holds no time.
    """
    book = Book()
    book.look({"a": GIB}, pod())
    book.look({}, peaks={"a": 6 * GIB})
    book.look({}, seconds=10.0)

    assert (6 * GIB, 1.0, 1) == (book.only.peak_bytes, book.only.held_seconds, book.only.pods)


def test_a_figure_of_nobody_we_know_is_nothing() -> None:
    """
    Peaks of processes that were on no list, and of a card seen for the first time, are not entered.
    """
    book = Book()
    book.look({}, pod(), peaks={"stranger": GIB})
    seen = book.look({}, pod(), peaks={"stranger": GIB})
    other = replace(seen.sample.cards[0], card=CARDS[1], peaks={99: GIB})
    cards = {CARDS[1].uuid: replace(seen.cards[CARDS[0].uuid], card=CARDS[1])}
    book.enter(Observation(replace(seen.sample, cards=(other,)), seen.pods, cards))

    assert [] == book.keys


def test_models_are_named_as_drivers_do() -> None:
    """A MIG instance is a model of its own, with its own memory."""
    part = card(1, memory_bytes=5 * GIB, model="A100", profile="1g.5gb", compute_capability=(8, 0))

    assert "A100 MIG 1g.5gb" == part.full_model
    assert {
        "Tesla T4": CardNeed("Tesla T4", T4_BYTES, 512 * MIB),
        "A100 MIG 1g.5gb": CardNeed("A100 MIG 1g.5gb", 5 * GIB, 640 * MIB),
    } == models_of([CARDS[0], CARDS[1], part])


def test_only_models_that_somebody_used_are_told() -> None:
    """A node's need says what cards its rows are about."""
    book = Book()
    book.look({}, pod())
    before = book.need.cards
    book.look({"a": GIB}, pod())

    assert () == before
    assert (CardNeed("Tesla T4", T4_BYTES, 512 * MIB),) == book.need.cards


def test_a_clock_that_goes_to_and_fro_loses_nothing() -> None:
    """
    Days that a wrong clock has named stand beside the others, and a day that comes back goes on.
    """
    book = Book()
    for day, amount in ((TODAY, 1), ("1970-01-01", 3), ("2038-01-19", 2), (TODAY, 1)):
        book.day = day
        book.look({"a": amount * GIB}, pod(), seconds=10.0)

    assert {TODAY: 1, "1970-01-01": 3, "2038-01-19": 2} == {
        row.day: row.peak_bytes // GIB for row in book.days
    }
    assert [10.0, 10.0, 10.0] == [row.held_seconds for row in book.days]


def test_the_oldest_days_are_forgotten() -> None:
    """Of each key so many days are kept, the newest."""
    book = Book()
    for number in range(1, MOST_DAYS + 3):
        book.day = f"2026-10-{number:02}"
        book.look({"a": GIB}, pod(), seconds=20.0)

    assert MOST_DAYS == len(book.days)
    assert "2026-10-03" == book.days[0].day


def test_who_has_been_away_for_longest_is_forgotten_first() -> None:
    """
    No more keys are kept than promised: those of the newest day, and of these who was there last.
    """
    old = {
        NeedKey("n", "Pod", f"p{number:03}", "main", "T4"): {TODAY: NeedDay(TODAY, GIB)}
        for number in range(MOST_KEYS)
    }
    away, *_, last = old
    book = Book()
    book.ledger = replace(NO_NEED, rows=old, seen={away: 5.0})
    book.look({"a": GIB}, pod())

    assert MOST_KEYS == len(book.keys)
    assert {away, last, key(pod())} <= set(book.keys)
    assert NeedKey("n", "Pod", "p001", "main", "T4") not in book.keys
    assert away in book.ledger.seen


def test_what_is_known_of_pods_goes_with_them() -> None:
    """Pods that have left the node leave nothing but their rows."""
    book = Book()
    book.look({"a": GIB, "b": GIB}, pod("a"), pod("b"))
    book.look({"b": GIB}, pod("b"))

    assert {"uid-b"} == {uid for uid, _ in book.ledger.known}
    assert 2 == len(book.keys)


def test_the_first_look_is_entered_without_one_before() -> None:
    """A new ledger has no time to count."""
    seen = Observation(uses([], [], []).sample, pods_on_node(()), {})
    ledger = entered(NO_NEED, NeedLook(seen, None, 5.0, TODAY, 3.0))

    assert (5.0, TODAY, {}) == (ledger.at, ledger.day, ledger.rows)
