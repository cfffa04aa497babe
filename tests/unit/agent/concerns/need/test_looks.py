"""What becomes of a look: peaks, processes, limits, time and pods of each container."""

from dataclasses import replace
from typing import TypeAlias

import pytest

from agent.concerns.need.container_usage import models_of
from agent.concerns.need.ledger import MOST_DAYS, MOST_KEYS, entered
from agent.concerns.need.model import NO_NEED, NeedLook
from agent.model.pod import Cap, PodLimit, PodOnNode, pods_on_node
from agent.model.use import Observation
from gpufence.need import CardNeed, NeedDay, NeedKey
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, controller, pod, uses
from tests.support.builders import T4_BYTES, card
from tests.unit.agent.concerns.need.test_ends import TODAY, TOMORROW, Book, key

HASHED = {"pod-template-hash": "6664c96cd5"}


CAPPED = {"main": Cap(2 * GIB, 512 * MIB)}
Look: TypeAlias = tuple[int | None, int | None]


@pytest.mark.parametrize(
    ("item", "looks", "expected"),
    [
        (
            pod(),
            [(2 * GIB, None), (GIB, None)],
            {"day": TODAY, "peak_bytes": 2 * GIB, "process_bytes": 2 * GIB, "processes": 1}
            | {"limit_bytes": LIMIT, "driver_peak": False},
        ),
        (
            pod(caps=CAPPED, shares=3),
            [(GIB, None)],
            {"told_bytes": 2 * GIB, "shares": 3, "capped": False},
        ),
        (pod(caps=CAPPED), [(2483 * MIB, None)], {"capped": False}),
        (pod(caps=CAPPED), [(2484 * MIB, None)], {"capped": True}),
        (pod(), [(GIB, GIB)], {"peak_bytes": GIB, "driver_peak": False}),
        (
            pod(),
            [(GIB, GIB), (GIB, 5 * GIB), (2 * GIB, None)],
            {"peak_bytes": 5 * GIB, "driver_peak": True, "process_bytes": 5 * GIB},
        ),
        (
            pod(),
            [(GIB, 2 * GIB), (3 * GIB, None)],
            {"peak_bytes": 3 * GIB, "driver_peak": False},
        ),
    ],
    ids=[
        *("the most", "what was configured", "under 97 % of allowance and context", "from there"),
        *("the driver agrees", "the driver has seen more", "more was measured than it says"),
    ],
)
def test_what_a_day_keeps(item: PodOnNode, looks: list[Look], expected: dict[str, object]) -> None:
    """The most of each figure, by the driver's own account where that is more."""
    book = Book()
    for held, peak in looks:
        book.look({"a": held}, item, peaks=None if peak is None else {"a": peak})

    assert expected == {name: getattr(book.only, name) for name in expected}


def test_pods_of_a_deployment_are_one_owner() -> None:
    """Pods of what stays when they are replaced add up, once a day; a bare pod is its own."""
    old = controller(name="web-6664c96cd5")
    pods = [pod(name, controller=old, labels=HASHED) for name in ("a", "b")]
    book = Book()
    book.look({"a": GIB}, *pods)
    book.look({}, *pods)
    book.look({"a": GIB, "b": 2 * GIB}, *pods)

    bare = Book()
    bare.look({"a": GIB}, pod())

    assert [NeedKey("team-a", "Pod", "a", "main", "Tesla T4")] == bare.keys
    assert [NeedKey("team-a", "Deployment", "web", "main", "Tesla T4")] == book.keys
    assert (2, 2, 2 * GIB) == (book.only.pods, book.only.started, book.only.peak_bytes)


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


def test_a_day_says_for_how_long_how_much_was_held() -> None:
    """By the pod that holds the most at a time; levels are an eighth or less apart."""
    pods = [pod(name, controller=controller()) for name in ("a", "b")]
    book = Book()
    for seconds, first, second in ((1.0, 900, 100), (9.0, 1000, 1024), (5.0, 100, 3000)):
        book.look({"a": first * MIB, "b": second * MIB}, *pods, seconds=seconds)
    book.look({"a": 900 * MIB}, *pods, seconds=2.0)
    book.look({}, *pods, seconds=3.0)

    assert ((960 * MIB, 12.0), (GIB, 5.0), (3 * GIB, 2.0)) == book.only.levels


def test_of_many_levels_the_shortest_count_as_those_above() -> None:
    """Four are kept of a day, and the largest is always one of them."""
    book = Book()
    for seconds, amount in ((0, 9), (8.0, 1), (7.0, 2), (1.0, 3), (6.0, 4), (2.0, 5), (5.0, 6)):
        book.look({"a": amount * GIB}, pod(), seconds=seconds)
    book.look({}, pod())

    kept = ((GIB, 7.0), (3 * GIB, 7.0), (5 * GIB, 7.0), (9 * GIB, 9.0))
    assert kept == book.only.levels


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


@pytest.mark.parametrize(
    ("item", "held", "peaks"),
    [
        (pod(mode=None), {"a": GIB}, {"a": GIB}),
        (pod(limit=None, mode=None), {"a": GIB}, {"a": GIB}),
        (pod(), {"a": None}, {}),
        (pod(), {"a": 0}, {}),
        (pod(), {"stranger": GIB}, {}),
        (pod(), {}, {"stranger": GIB}),
    ],
    ids=["no fence", "nor a limit", "unknown", "nothing", "of no pod", "of no list"],
)
def test_what_leaves_no_trace(
    item: PodOnNode, held: dict[str, int | None], peaks: dict[str, int]
) -> None:
    """Namespaces that never asked for anything, and what no one can attribute, are not entered."""
    book = Book()
    book.look(held, item, peaks=peaks)
    book.look({}, item, peaks=peaks)
    rows = book.ledger.rows
    book.look({}, item, seconds=100.0)

    assert [] == book.keys
    assert rows is book.ledger.rows  # so that it is not stored again


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


def test_a_card_that_is_seen_for_the_first_time_has_no_peaks() -> None:
    """What the driver says of processes that were on no list before is not entered."""
    book = Book()
    seen = book.look({}, pod())
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
