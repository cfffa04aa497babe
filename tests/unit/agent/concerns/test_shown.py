"""What pods say of their memory: when, how often, and what is taken back."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from agent.concern import Concern
from agent.concerns.shown.concern import ShownConcern, ShownPolicy
from agent.concerns.shown.condition import (
    MOST_AT_ONCE,
    MOST_PAUSE_SECONDS,
    UNKNOWN_SECONDS,
    Words,
    due,
    words_of,
)
from agent.model.decision import Outcome, Verdict
from agent.model.pod import ContainerFailure, PodCondition, PodLimit, PodOnNode, pods_on_node
from agent.model.policy import EvictionPolicy
from gpufence.capped import Ending, Given
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, on_card, pod
from tests.support.agent.node import QUICK, Node, running

TENTH = LIMIT // 10
OBSERVED = pod(mode=Mode.OBSERVE)


class Telling(Node):
    """An API server that shows at the next tick what it was asked to write."""

    def __init__(self, policy: EvictionPolicy = QUICK, *, on: bool = True) -> None:
        self.on = on
        super().__init__(policy)

    def shelves(self) -> Sequence[Concern]:
        return (ShownConcern(ShownPolicy(on=self.on)),)

    def say(self, item: PodOnNode = OBSERVED, used: int | None = GIB) -> None:
        self.add(item, used, 1)

    def told(self, looks: int = 1, seconds: float = 1.0) -> list[PodCondition]:
        """Return what was said at so many looks, a second after each other."""
        before = len(self.api.said)
        for _ in range(looks):
            seen = len(self.api.said)
            self.tick(seconds=seconds)
            for said in self.api.said[seen:]:
                if said.uid in self.api.known.by_uid:
                    shown = self.api.known.by_uid[said.uid]
                    self.claim(replace(shown, memory_said=said.status))
        return self.api.said[before:]

    def words(self, looks: int = 1) -> list[tuple[str, str, str]]:
        return [(item.status, item.reason, item.message) for item in self.told(looks)]


def test_a_pod_says_what_it_holds_of_its_limit() -> None:
    """It says so at once, and then nothing while nothing changes."""
    node = Telling()
    node.say(used=2150 * MIB)

    assert [("True", "WithinLimit", "holds 2150 of 3072 MiB on card 0")] == node.words()
    assert [] == node.told(30, 10)


def test_less_than_a_tenth_is_not_worth_a_word() -> None:
    """Another tenth of the limit is, a minute after the last word."""
    node = Telling()
    node.say()
    node.told(62)
    node.cards.held[0][1] = GIB + TENTH - MIB

    assert [] == node.told(62)
    node.cards.held[0][1] = GIB + TENTH + MIB

    assert ["holds 1333 of 3072 MiB on card 0"] == [each[2] for each in node.words(62)]
    node.claim(replace(OBSERVED, memory_said="True", limits={CARDS[0].uuid: PodLimit(4 * GIB)}))

    assert ["holds 1333 of 4096 MiB on card 0"] == [each[2] for each in node.words(200)]


def test_a_pod_that_swings_all_day_says_so_less_and_less_often() -> None:
    """Every minute at first, every ten minutes in the end, and every minute after a quiet while."""
    node = Telling()
    node.say()
    at = []
    for look in range(200):
        node.cards.held[0][1] = GIB if look % 2 else 2 * GIB
        at += [20 * look for _ in node.told(1, 20)]
    pauses = [later - one for one, later in pairwise(at)]

    assert [60, 140, 260] == pauses[:3]
    assert MOST_PAUSE_SECONDS <= pauses[-1] <= MOST_PAUSE_SECONDS + 20
    node.told(200, 20)
    node.cards.held[0][1] = LIMIT // 2

    assert 1 == len(node.told(2, 20))
    node.cards.held[0][1] = 0

    assert 1 == len(node.told(4, 20))


def test_another_outcome_is_said_within_a_minute() -> None:
    """A pod over its limit says so, however often it has written amounts."""
    node = Telling()
    node.say()
    node.told(61)
    node.cards.held[0][1] = LIMIT + 300 * MIB

    assert [("False", "OverLimit", "over its limit: 3372 of 3072 MiB on card 0")] == node.words(2)


def test_the_last_word_of_a_pod_is_its_eviction() -> None:
    """It waits for no minute, and nothing comes after it."""
    node = Telling()
    with running(node=node):
        node.add(pod("greedy"), LIMIT + 300 * MIB, 1)
        reasons = [item.reason for item in node.told(10)]

        assert ["OverLimit", "BeingEvicted"] == reasons
        greedy = node.api.known.by_uid["uid-greedy"]
        node.claim(replace(greedy, terminating=True))

        assert [] == node.told(70)


@pytest.mark.parametrize("holds", [True, False])
def test_a_pod_that_waits_after_an_end_at_its_cap_says_so(*, holds: bool) -> None:
    """By its container's own words, whether another one holds memory or none does."""
    ending = Ending("main", 1, waiting="CrashLoopBackOff", out_of_memory="CUDA out of memory")
    failed = pod(failures=(ContainerFailure(ending, Given(LIMIT, 2 * GIB)),))
    node = Telling()
    node.claim(failed)
    if holds:
        node.add(failed, GIB, 1)
    ((status, reason, message),) = node.words()

    assert ("False", "CapReached") == (status, reason)
    assert message.startswith("ended at its cap:")


def test_nothing_measured_for_a_while_is_said() -> None:
    """A look that fails is not; what is known again is."""
    node = Telling()
    node.say()
    node.told(61)
    node.cards.held[0][1] = None

    assert [] == node.told(int(UNKNOWN_SECONDS))
    assert [("Unknown", "NotMeasured", "not measured: ? of 3072 MiB on card 0")] == node.words(2)
    node.cards.held[0][1] = GIB

    assert ["WithinLimit"] == [item.reason for item in node.told(62)]


def test_a_pod_without_memory_on_any_card_says_so() -> None:
    """So one that was never seen and one that holds nothing are distinguished."""
    node = Telling()
    node.claim(pod(limits={CARDS[0].uuid: PodLimit(LIMIT), CARDS[1].uuid: PodLimit(GIB)}))

    assert ["holds 0 of 1024 MiB on any card"] == [item.message for item in node.told()]


@pytest.mark.parametrize(
    "silent",
    [
        pod(limit=None),
        pod(mode=None),
        pod(ended=True),
        pod(terminating=True),
        pod(unasked=True, limits={CARDS[0].uuid: PodLimit(1)}),
    ],
    ids=["no limit", "no mode", "ended", "terminating", "asks for nothing"],
)
def test_some_pods_say_nothing(silent: PodOnNode) -> None:
    """Those without a limit, and those that are gone or going."""
    node = Telling()
    node.claim(silent)

    assert [] == node.told(70)


def test_a_pod_whose_limit_is_unknown_on_the_card_it_holds_says_nothing() -> None:
    """Nothing there could be compared."""
    node = Telling()
    node.say(pod(limits={CARDS[1].uuid: PodLimit(LIMIT)}))

    assert [] == node.told(70)


@pytest.mark.parametrize(("on", "mode"), [(True, None), (False, Mode.CAP)])
def test_what_holds_no_longer_is_taken_back(mode: Mode | None, *, on: bool) -> None:
    """A condition that its agent would not write now does not stay."""
    node = Telling(on=on)
    node.say(pod(mode=mode, memory_said="True"))

    assert [("Unknown", "NotMeasured")] == [each[:2] for each in node.words(100)]


def test_what_was_not_written_is_said_again() -> None:
    """A minute later, as long as the API server does not show it."""
    node = Telling()
    node.say()
    node.tick(130)

    assert 3 == len(node.api.said)


def test_few_pods_of_a_node_say_something_in_a_second() -> None:
    """Those of an agent that has just started take turns, the worst first."""
    node = Telling()
    for number in range(2 * MOST_AT_ONCE + 1):
        used = LIMIT + 300 * MIB if number == MOST_AT_ONCE else GIB
        node.add(pod(f"p{number}", mode=Mode.OBSERVE), used, number + 1)

    assert [MOST_AT_ONCE, MOST_AT_ONCE, 1, 0] == [len(node.told()) for _ in range(4)]
    assert "OverLimit" == node.api.said[0].reason


def test_pods_that_swing_for_an_hour_write_less_than_one_condition_in_four_seconds() -> None:
    """On a node of 110 pods, of which each moves by a third of its limit all the time."""
    node = Telling()
    for number in range(110):
        node.add(pod(f"p{number}", mode=Mode.OBSERVE), GIB, number + 1)
    node.told(110 // MOST_AT_ONCE)
    said = 0
    for look in range(180):
        node.cards.held[0].update(dict.fromkeys(range(1, 111), (1 + look % 2) * GIB))
        said += len(node.told(1, 20))

    assert 110 < said < 3600 / 4


def test_a_pod_that_is_gone_is_forgotten() -> None:
    """Its successor begins with a word of its own."""
    node = Telling()
    node.say()
    node.told()
    node.api.known = pods_on_node(())
    node.told()
    node.claim(OBSERVED)

    assert 1 == len(node.told())


def test_only_a_status_that_is_new_has_turned() -> None:
    """Another amount is no transition."""
    node = Telling()
    node.say()
    (first,) = node.told(61)
    node.cards.held[0][1] = 2 * GIB
    (second,) = node.told(10)

    assert (True, False) == (first.turned, second.turned)


BURSTING = replace(OBSERVED, limits={CARDS[0].uuid: PodLimit(LIMIT, share_bytes=GIB)})


def of_loan(outcome: Outcome, used: int = 2 * GIB) -> dict[str, Words]:
    asked = outcome in (Outcome.RECALLED, Outcome.WOULD_EVICT)
    return words_of([Verdict(BURSTING, outcome, on_card(BURSTING, used), recalled=asked)])


@pytest.mark.parametrize(
    ("outcome", "used", "expected"),
    [
        (Outcome.WITHIN, GIB, ("True", "holds 1024")),
        (Outcome.BORROWING, 2 * GIB, ("True", "borrows above its request: 2048")),
        (
            Outcome.RECALLED,
            2 * GIB,
            ("False", "to give back what it borrows, which another pod needs: 2048"),
        ),
        (
            Outcome.WOULD_EVICT,
            2 * GIB,
            ("False", "to give back what it borrows, which another pod needs: 2048"),
        ),
    ],
)
def test_a_pod_that_may_borrow_says_its_request(
    outcome: Outcome, used: int, expected: tuple[str, str]
) -> None:
    """It is right while it borrows, and wrong once it is asked for that."""
    (said,), _ = due(pods_on_node([BURSTING]), of_loan(outcome, used), {}, 0.0)

    status, beginning = expected
    assert (status, f"{beginning} of 3072 MiB on card 0 (request 1024)") == (
        said.status,
        said.message,
    )


def test_that_a_pod_is_asked_for_a_loan_is_said_at_once() -> None:
    """It has seconds to give it back; that it has done so can wait for a minute."""
    pods = pods_on_node([BURSTING])
    _, said = due(pods, of_loan(Outcome.BORROWING), {}, 0.0)
    asked, said = due(pods, of_loan(Outcome.RECALLED), said, 1.0)
    given, said = due(pods, of_loan(Outcome.WITHIN, GIB), said, 2.0)
    later, _ = due(pods, of_loan(Outcome.WITHIN, GIB), said, 62.0)

    assert [["Recalled"], [], ["WithinLimit"]] == [
        [item.reason for item in each] for each in (asked, given, later)
    ]


def test_a_pod_above_its_request_says_that_it_borrows() -> None:
    """As long as no other pod misses that."""
    node = Telling()
    node.say(BURSTING, 2 * GIB)

    (said,) = node.words()
    assert ("True", "Borrowing") == said[:2]
