"""What a pod does on all cards of its node together."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agent.concerns.activity.model import (
    Activity,
    ActivityMemory,
    CardTrack,
    Evidence,
    PodTrack,
    Track,
)
from agent.concerns.activity.pods import pods_watched
from agent.model.pod import pods_on_node
from agent.model.sample import Sample, Trouble
from agent.model.use import Observation
from gpufence.quantity import GIB
from tests.support.agent.builders import occupant, pod
from tests.support.agent.watching import POLICY, Watched

NOW = 1000.0
UID = "uid-a"
BUSY = Track(Activity.BUSY, Evidence.KERNELS, idle_since=NOW, share=1.0)
COMPUTES = BUSY._replace(evidence=Evidence.CPU)
IDLE = Track(Activity.IDLE, Evidence.NOTHING, idle_since=NOW - 60)
LONG_IDLE = IDLE._replace(idle_since=NOW - 999)
UNKNOWN = Track(why="the driver cannot tell")
CARD = CardTrack(NOW, since=NOW - 5, clear_since=NOW - 600)


def told(
    *tracks: Track,
    past: PodTrack | None = None,
    cards: tuple[CardTrack, ...] = (CARD, CARD),
    now: float = NOW,
    **claim: Any,
) -> PodTrack:
    """Return what follows of a pod from what it does on the first cards of a node."""
    known = {f"GPU-{index}": card for index, card in enumerate(cards)}
    held = {(UID, f"GPU-{index}"): track for index, track in enumerate(tracks)}
    observation = Observation(Sample(now, ()), pods_on_node([pod("a", **claim)]), {})
    memory = ActivityMemory(pods={} if past is None else {UID: past})
    return pods_watched(observation, memory, known, held, [], mean_seconds=60.0, now=now).pods[UID]


def state(track: PodTrack) -> tuple[str, str]:
    return str(track.activity), str(track.evidence)


@pytest.fixture
def card() -> Watched:
    """A card with a pod that has done nothing for a while beside one that holds no memory."""
    made = Watched()
    made.add("a", 1)
    made.claim("claims")
    made.settle()
    return made


@pytest.mark.parametrize(
    ("tracks", "expected"),
    [
        ([BUSY], ("busy", "Busy")),
        ([COMPUTES], ("busy", "CPUBusy")),
        ([IDLE], ("idle", "NoKernels")),
        ([UNKNOWN], ("unknown", "NotMeasurable")),
        ([IDLE, BUSY], ("busy", "Busy")),
        ([IDLE, UNKNOWN], ("unknown", "NotMeasurable")),
        ([UNKNOWN, COMPUTES], ("busy", "CPUBusy")),
    ],
)
def test_all_cards_count(tracks: list[Track], expected: tuple[str, str]) -> None:
    """Busy anywhere is busy, unknown anywhere else is unknown, and idle is idle everywhere."""
    assert expected == state(told(*tracks))


def test_idle_begins_with_the_last_work_anywhere() -> None:
    """The card on which a pod worked last decides, the one that it has left included."""
    past = PodTrack(idle_since=NOW - 500)

    assert 60.0 == told(LONG_IDLE, IDLE, past=past).idle_seconds(NOW)
    assert 500.0 == told(LONG_IDLE, past=past).idle_seconds(NOW)


def test_who_gives_a_card_back_is_busy() -> None:
    """Leaving one of two cards is a sign of life."""
    past = PodTrack(idle_since=NOW - 500, held=frozenset({"GPU-0", "GPU-1"}))
    left = told(LONG_IDLE, past=past)

    assert (("busy", "Loading"), NOW) == (state(left), left.idle_since)
    assert ("idle", "NoKernels") == state(told(LONG_IDLE, past=left))


def test_who_is_lost_on_any_card_begins_anew() -> None:
    """Of a pod that was idle and of which nobody knows on one card, no idle time is kept."""
    assert told(IDLE, UNKNOWN, past=PodTrack(idle_since=NOW - 60)).idle_since is None


def test_a_doubt_keeps_what_was_known() -> None:
    """What nobody knows at the moment alone, is not lost."""
    doubtful = UNKNOWN._replace(idle_since=NOW - 60)

    assert NOW - 60 == told(doubtful, past=PodTrack(idle_since=NOW - 60)).idle_since


def test_nothing_is_known_of_pods_that_claim_and_hold_nothing() -> None:
    """A pod without a GPU is none of these."""
    observation = Observation(Sample(NOW, ()), pods_on_node([pod("a")]), {})

    found = pods_watched(observation, ActivityMemory(), {}, {}, [], mean_seconds=60.0, now=NOW)

    assert {} == found.pods


def test_a_claim_without_memory_is_idle(card: Watched) -> None:
    """A pod that was given a GPU and never touched it is idle since it was first seen."""
    assert ("idle", "NoKernels") == state(card.whole("claims"))
    assert 2 * POLICY.interval_seconds == card.whole("claims").idle_seconds(card.now)


def test_a_claim_counts_from_when_it_is_seen(card: Watched) -> None:
    """However long the cards have been watched, a pod's own time begins with the pod."""
    card.claim("late")
    card.pass_()
    card.pass_()

    assert POLICY.interval_seconds == card.whole("late").idle_seconds(card.now)


def test_work_without_memory_is_work(card: Watched) -> None:
    """A process that works and is on no list yet makes its pod busy."""
    card.start("claims", 7)
    card.pass_([7])

    assert ("busy", "Busy") == state(card.whole("claims"))
    assert 0.0 == card.whole("claims").idle_seconds(card.now)


def test_a_claim_that_begins_to_hold_memory_is_followed(card: Watched) -> None:
    """Its first process on a card ends its idle time."""
    card.start("claims", 7)
    card.holds[7] = GIB
    card.settle(3)

    assert ("idle", "NoKernels") == state(card.whole("claims"))
    assert 10.0 == card.whole("claims").idle_seconds(card.now)


def test_a_claim_that_gives_all_back_begins_anew(card: Watched) -> None:
    """
    A pod whose last process on the card has gone was busy a moment ago, and is idle after that.
    """
    del card.holds[1]
    card.pods["a"] = replace(card.pods["a"], claims=True)
    card.index = pods_on_node(card.pods.values())
    card.pass_()
    then = state(card.whole("a"))
    card.pass_()

    assert (("busy", "Loading"), ("idle", "NoKernels")) == (then, state(card.whole("a")))
    assert 5.0 == card.whole("a").idle_seconds(card.now)


SPOILED: dict[str, Callable[[Watched], None]] = {
    "an unreadable card": lambda card: setattr(card, "listed", False),
    "a driver that does not tell": lambda card: setattr(card, "answers", False),
    "MPS": lambda card: card.mps.add(1),
}


@pytest.mark.parametrize("trouble", SPOILED)
def test_a_card_that_is_not_watched_hides_claims(card: Watched, trouble: str) -> None:
    """Where any card does not tell, nobody who holds nothing is idle, and his time begins anew."""
    SPOILED[trouble](card)
    card.pass_()

    assert ("unknown", "NotMeasurable") == state(card.whole("claims"))
    assert card.whole("claims").why
    assert card.whole("claims").idle_since is None
    assert card.whole("claims").busy_share is None


def test_a_worker_that_has_ended_may_be_a_claim(card: Watched) -> None:
    """A process that came, worked and went may have been that of a pod that holds nothing."""
    card.pass_([7])
    during = card.whole("claims")
    card.settle(2)

    assert "process 7" in during.why
    assert 10.0 == card.whole("claims").idle_seconds(card.now)


def test_a_process_that_nobody_knows_may_be_a_claims(card: Watched) -> None:
    """
    While a process on the card cannot be looked up, nobody who holds nothing is known to be idle.
    """
    card.holds[9] = GIB
    card.pass_()

    assert "process 9 is there, which cannot be attributed" == card.whole("claims").why


def test_a_process_of_the_node_is_no_claims(card: Watched) -> None:
    """One that is known to be of no pod leaves claims idle."""
    card.living[9] = occupant(9, None, None)
    card.holds[9] = GIB
    card.pass_([9], percent=50)

    assert ("idle", "NoKernels") == state(card.whole("claims"))


def test_a_neighbour_that_works_is_no_claims(card: Watched) -> None:
    """Load that is known to be another pod's leaves claims idle."""
    card.pass_([1], percent=50)

    assert 15.0 == card.whole("claims").idle_seconds(card.now)


def test_work_on_an_instance_that_nobody_holds_is_anybodys() -> None:
    """Where nobody tells processes apart and no pod holds memory, work may be that of a claim."""
    card = Watched()
    card.claim("claims")
    card.settle()
    card.pass_(None, percent=1)

    assert "work there cannot be attributed" == card.whole("claims").why


def test_a_card_that_is_busy_alone_has_somebody(card: Watched) -> None:
    """
    Load without a worker makes claims unknown at once, and after half a minute their time begins
    anew.
    """
    card.pass_(percent=90)
    card.pass_()
    forgiven = card.whole("claims").idle_seconds(card.now)
    for _ in range(7):
        card.pass_(percent=90)
    card.settle(2)

    assert (20.0, 10.0) == (forgiven, card.whole("claims").idle_seconds(card.now))


def test_a_hole_begins_claims_anew(card: Watched) -> None:
    """After an answer that does not follow the one before, a claim's time begins anew."""
    card.pass_(hole=True)
    during = state(card.whole("claims"))
    card.pass_()

    assert ("unknown", "NotMeasurable") == during
    assert 5.0 == card.whole("claims").idle_seconds(card.now)


def test_without_a_card_claims_are_unknown() -> None:
    """On a node that shows no card nobody is idle."""
    assert "no card of the node can be read" == told(cards=(), claims=True).why


def test_a_card_that_is_not_identified_hides_claims() -> None:
    """Who holds nothing may work on a card that has never said which one it is."""
    sample = Sample(NOW, (), unidentified=(Trouble("index 3: no access"),))
    observation = Observation(sample, pods_on_node([pod("a", claims=True)]), {})
    found = pods_watched(
        observation, ActivityMemory(), {"GPU-0": CARD}, {}, [], mean_seconds=60.0, now=NOW
    )

    assert "a card of the node has never said which one it is" == found.pods[UID].why


def test_a_quiet_tick_costs_nothing(card: Watched) -> None:
    """Between two answers nothing is worked out anew."""
    assert card.observation is not None
    before = card.memory
    card.now += 1.0
    card.look(card.observation.sample.cards[0].work)

    assert before is card.memory


def test_who_is_touched_by_nothing_stays_as_he_is() -> None:
    """A new answer of one card works out nobody anew who holds memory of another one alone."""
    other = "uid-b"
    index = pods_on_node([pod("a"), pod("b")])
    tracks = {(UID, "GPU-0"): BUSY, (other, "GPU-1"): IDLE}
    cards = {"GPU-0": CARD, "GPU-1": CARD}

    def after(past: ActivityMemory, now: float) -> ActivityMemory:
        known = cards | {"GPU-0": CARD._replace(until=now)}
        observation = Observation(Sample(now, ()), index, {})
        return pods_watched(observation, past, known, tracks, [], mean_seconds=60.0, now=now)

    first = after(ActivityMemory(), NOW)
    second = after(first, NOW + 5)

    assert first.pods[other] is second.pods[other]
    assert first.pods[UID] is not second.pods[UID]


def test_who_rests_on_is_not_worked_out_anew(card: Watched) -> None:
    """Answers that show no work change nothing about a pod that did none before."""
    before = card.whole("a")
    card.pass_()

    assert before is card.whole("a")
    assert 15.0 == card.whole("a").idle_seconds(card.now)


def test_who_gave_all_back_is_not_busy_for_ever(card: Watched) -> None:
    """What a pod did when it was last seen to do something ends with the next answer."""
    del card.holds[1]
    card.pods["a"] = replace(card.pods["a"], claims=True)
    card.index = pods_on_node(card.pods.values())
    card.settle(4)

    assert ("idle", "NoKernels") == state(card.whole("a"))
    assert 15.0 == card.whole("a").idle_seconds(card.now)


def test_work_on_two_cards_at_once_counts_once() -> None:
    """A pod that uses two cards at the same time is busy for that time, not twice."""
    cards = (CARD._replace(working={UID: 1.0}),) * 2
    past = PodTrack(idle_since=NOW - 20, known_since=NOW - 20)

    assert 0.25 == told(BUSY, BUSY, past=past, cards=cards).busy_share


def test_the_share_ends_with_the_card_that_was_heard_of_last() -> None:
    """Of two cards that answer one after the other, the time that both have told of counts."""
    cards = (CARD._replace(until=NOW - 2), CARD)
    past = PodTrack(idle_since=NOW - 20, known_since=NOW - 12)

    assert 0.3 == told(IDLE, BUSY, past=past, cards=cards).busy_share


def test_work_on_a_card_where_it_holds_nothing_counts() -> None:
    """Who works before a list names it is at work all the same."""
    cards = (CARD, CARD._replace(working={UID: 0.5}))
    past = PodTrack(idle_since=NOW - 20, known_since=NOW - 20)

    assert 0.125 == told(IDLE, past=past, cards=cards).busy_share
