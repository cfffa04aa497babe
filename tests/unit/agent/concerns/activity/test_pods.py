"""What a pod does on all cards of its node together."""

from collections.abc import Callable
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
from tests.support.agent.builders import pod
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
    return Watched().add("a", 1).claim("claims").settle()


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


IDLE_STATE, BUSY_STATE = ("idle", "NoKernels"), ("busy", "Busy")
UNKNOWN_STATE = ("unknown", "NotMeasurable")


@pytest.mark.parametrize(
    ("happens", "expected", "seconds"),
    [
        (lambda card: card, IDLE_STATE, 10.0),
        (lambda card: card.start("claims", 7).pass_([7]), BUSY_STATE, 0.0),
        (lambda card: card.start("claims", 7).hold(7, GIB).settle(3), IDLE_STATE, 10.0),
        (lambda card: card.pass_([7]).settle(2), IDLE_STATE, 10.0),
        (lambda card: card.stranger(9, GIB).pass_([9], percent=50), IDLE_STATE, 15.0),
        (lambda card: card.pass_([1], percent=50), IDLE_STATE, 15.0),
        (lambda card: card.settle(1, percent=90).settle(1), IDLE_STATE, 20.0),
        (lambda card: card.settle(7, percent=90).settle(2), IDLE_STATE, 10.0),
        (lambda card: card.pass_(hole=True), UNKNOWN_STATE, None),
        (lambda card: card.pass_(hole=True).pass_(), IDLE_STATE, 5.0),
        (lambda card: card.set(listed=False).pass_(), UNKNOWN_STATE, None),
        (lambda card: card.set(answers=False).pass_(), UNKNOWN_STATE, None),
        (lambda card: card.set(mps={1}).pass_(), UNKNOWN_STATE, None),
    ],
    ids=[
        *("never touched it", "works before a list names it", "begins to hold memory"),
        *("a worker has ended", "a process of the node", "a neighbour works"),
        *("a moment of load of no process", "half a minute of it", "a hole", "after a hole"),
        *("an unreadable card", "a driver that does not tell", "MPS"),
    ],
)
def test_a_claim_without_memory(
    card: Watched,
    happens: Callable[[Watched], Watched],
    expected: tuple[str, str],
    seconds: float | None,
) -> None:
    """
    A pod that was given a GPU and holds nothing is idle while every card is watched and all work
    there is known to be of others.
    """
    happens(card)
    whole = card.whole("claims")

    assert (expected, seconds) == (state(whole), whole.idle_seconds(card.now))
    assert (expected == UNKNOWN_STATE) == bool(whole.why) == (whole.busy_share is None)


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (lambda card: card.pass_([7]), "process 7"),
        (
            lambda card: card.hold(9, GIB).pass_(),
            "process 9 is there, which cannot be attributed",
        ),
        (
            lambda card: card.let_go("a", 1).settle().pass_(None, percent=1),
            "work there cannot be attributed",
        ),
    ],
    ids=["a worker that has ended", "a process that no one knows", "an instance at work"],
)
def test_work_that_may_be_a_claims(
    card: Watched, happens: Callable[[Watched], Watched], why: str
) -> None:
    """What cannot be attributed may be of a pod that holds nothing."""
    assert why in happens(card).whole("claims").why


def test_a_claim_counts_from_when_it_is_seen(card: Watched) -> None:
    """However long the cards have been watched, a pod's own time begins with the pod."""
    card.claim("late").settle(2)

    assert POLICY.interval_seconds == card.whole("late").idle_seconds(card.now)


def test_a_claim_that_gives_all_back_begins_anew(card: Watched) -> None:
    """A pod whose last process has left the card was busy a moment ago, and is idle after that."""
    then = state(card.let_go("a", 1).pass_().whole("a"))
    seconds = [card.pass_().whole("a").idle_seconds(card.now) for _ in range(3)]

    assert (("busy", "Loading"), IDLE_STATE) == (then, state(card.whole("a")))
    assert [5.0, 10.0, 15.0] == seconds


def test_cards_that_are_not_there_hide_claims() -> None:
    """Where no card, or one that never said which it is, can be read, no claim is idle."""
    sample = Sample(NOW, (), unidentified=(Trouble("index 3: no access"),))
    observation = Observation(sample, pods_on_node([pod("a", claims=True)]), {})
    found = pods_watched(
        observation, ActivityMemory(), {"GPU-0": CARD}, {}, [], mean_seconds=60.0, now=NOW
    )

    assert "no card of the node can be read" == told(cards=(), claims=True).why
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


@pytest.mark.parametrize(
    ("cards", "past", "tracks", "expected"),
    [
        ((CARD._replace(working={UID: 1.0}),) * 2, NOW - 20, (BUSY, BUSY), 0.25),
        ((CARD._replace(until=NOW - 2), CARD), NOW - 12, (IDLE, BUSY), 0.3),
        ((CARD, CARD._replace(working={UID: 0.5})), NOW - 20, (IDLE,), 0.125),
    ],
    ids=["two at once count once", "until the card heard of last", "where it holds nothing"],
)
def test_the_share_of_work_on_several_cards(
    cards: tuple[CardTrack, ...], past: float, tracks: tuple[Track, ...], expected: float
) -> None:
    """A pod is busy for the time in which it used any of them, as far as all have told."""
    track = PodTrack(idle_since=NOW - 20, known_since=past)

    assert expected == told(*tracks, past=track, cards=cards).busy_share
