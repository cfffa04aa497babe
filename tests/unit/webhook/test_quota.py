"""How pods that were let in a moment ago count, and how replicas tell each other."""

from collections.abc import Mapping
from typing import Any

import pytest

from webhook.checks.quota.reservations import (
    NO_LEDGER,
    InUse,
    Ledger,
    NewPod,
    Reservation,
    merged,
    read_ledger,
    settle,
    settle_alone,
    ticket_of,
    tickets_of,
    without,
    write_changes,
)

TICKET = ticket_of("a", "t0")
OTHER = ticket_of("b", "t1")


def asking(amount: int = 4, **more: Any) -> NewPod:
    usual: dict[str, Any] = {"namespace": "team", "name": "a", "quota": 10} | more
    usual = {"ticket": "", "refusable": True, **usual}
    return NewPod(amount=amount, fresh=ticket_of("a", f"f{amount}"), **usual)


def ledger(*reservations: Reservation) -> Ledger:
    return {"team": {each.ticket: each for each in reservations}}


def counted(used: int = 0, pods: int = 0) -> Mapping[str, InUse]:
    return {"team": InUse(used, pods)}


def test_pods_are_let_in_one_after_the_other() -> None:
    """Each counts for the next; one that does not fit leaves its room to a smaller one."""
    verdicts, after = settle([asking(6), asking(5), asking(4)], {}, (), NO_LEDGER)

    assert [(0, True), (6, False), (6, True)] == [(each.used, each.fits) for each in verdicts]
    assert [6, 4] == [each.amount for each in after["team"].values()]


def test_what_is_seen_counts_once() -> None:
    """A pod that the watch has brought is no longer reserved for, gone or not."""
    reserved = ledger(Reservation(TICKET, 6), Reservation(OTHER, 2))
    (verdict,), _ = settle([asking(3)], counted(6, 1), {TICKET}, reserved)

    assert (8, 2, False) == verdict[:3]


def test_below_evict_a_pod_counts_that_does_not_fit() -> None:
    """It is made all the same."""
    (verdict,), after = settle([asking(12, refusable=False)], {}, (), NO_LEDGER)

    assert not verdict.fits
    assert [verdict.ticket] == tickets_of(after)


def test_a_dry_run_counts_nothing() -> None:
    """It is answered by what is in use."""
    reserved = ledger(Reservation(TICKET, 8))
    (verdict,), after = settle([asking(4, dry_run=True)], {}, (), reserved)

    assert (8, False, "") == (verdict.used, verdict.fits, verdict.ticket)
    assert reserved == after


def test_a_second_pass_takes_the_place_of_the_first() -> None:
    """Under its ticket, with what the pod asks for by now; where that is too much, with nothing."""
    reserved = ledger(Reservation(TICKET, 8))
    (again,), after = settle([asking(9, ticket=TICKET)], {}, (), reserved)
    (more,), less = settle([asking(11, ticket=TICKET)], {}, (), reserved)

    assert again.fits
    assert ledger(Reservation(TICKET, 9, again=True)) == after
    assert not more.fits
    assert {"team": {}} == less


@pytest.mark.parametrize(
    ("reserved", "seen"),
    [
        pytest.param(Reservation(TICKET, 8, again=True), (), id="used twice"),
        pytest.param(Reservation(OTHER, 8), (), id="of another name"),
        pytest.param(Reservation(TICKET, 8), (TICKET,), id="of a pod that is there"),
    ],
)
def test_a_copied_ticket_is_worth_nothing(reserved: Reservation, seen: tuple[str, ...]) -> None:
    """The pod counts beside what the ticket was given for."""
    used = counted(8 if seen else 0)
    (verdict,), _ = settle([asking(4, ticket=reserved.ticket)], used, seen, ledger(reserved))

    assert not verdict.fits


def test_a_write_whose_answer_was_lost_is_found_again() -> None:
    """What is asked once more counts once."""
    asked = asking(8)
    (verdict,), after = settle([asked], {}, (), ledger(Reservation(asked.fresh, 8)))

    assert verdict.fits
    assert ledger(Reservation(asked.fresh, 8)) == after


def test_alone_a_replica_lets_in_one_at_a_time() -> None:
    """What does not fit anyway is refused for that, and below evict all come in."""
    pods = [asking(2), asking(3), asking(11), asking(4, refusable=False)]
    verdicts, after = settle_alone(pods, {}, (), NO_LEDGER, ())

    assert [(True, False), (False, True), (False, False), (True, False)] == [
        (each.fits, each.doubtful) for each in verdicts
    ]
    assert [2, 4] == [each.amount for each in after["team"].values()]


def test_alone_the_next_comes_in_once_the_last_was_seen() -> None:
    """What other replicas have written does not delay it."""
    reserved = ledger(Reservation(TICKET, 2))
    (early,), _ = settle_alone([asking(5)], {}, (), reserved, [TICKET])
    (later,), _ = settle_alone([asking(5)], counted(2, 1), [TICKET], reserved, [TICKET])
    (others,), _ = settle_alone([asking(5)], {}, (), reserved, [])

    assert (True, "") == (early.doubtful, early.ticket)
    assert [(2, True)] * 2 == [(each.used, each.fits) for each in (later, others)]


def test_a_ledger_is_read_as_it_was_written() -> None:
    """Of a namespace without reservations nothing stays."""
    known = ledger(
        Reservation(TICKET, 6), Reservation("t" * 64, 0), Reservation(OTHER, 2, again=True)
    )
    texts = write_changes({}, known)

    assert known == read_ledger({name: str(text) for name, text in texts.items()})
    assert {} == write_changes({"team": str(texts["team"])}, known)
    assert {"team": None} == write_changes({"team": "[]"}, {"team": {}})


@pytest.mark.parametrize(
    "text", ["", "{}", '[1,["t"],["t",-1,0],["t","1",0],[null,1,0]]', f'[["{"t" * 65}",1,0]]']
)
def test_what_is_no_reservation_is_left_out(text: str) -> None:
    """Whoever may write the ConfigMap stops no pod."""
    assert {} == read_ledger({"team": text})


def test_two_ledgers_are_one() -> None:
    """And lose what is over."""
    one, other = ledger(Reservation(TICKET, 6)), ledger(Reservation(OTHER, 2))
    both = merged(one, {**other, "more": {"t": Reservation("t", 1)}})

    assert {TICKET, OTHER, "t"} == set(tickets_of(both))
    assert both is without(both, ())
    assert one == without(both, {OTHER, "t"})
