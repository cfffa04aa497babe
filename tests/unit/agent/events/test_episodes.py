"""How often the same is said, who is told what, and what is said of what cannot be read."""

from dataclasses import replace

import pytest

from agent.events.episodes import (
    MOST_HELD,
    NO_EPISODES,
    Damping,
    Episodes,
    EventCreate,
    EventPatch,
    Notice,
    damped,
)
from agent.events.notices import (
    NOTHING_ANNOUNCED,
    REPEAT_SECONDS,
    Announced,
    new_notices,
    unreadable,
)
from agent.events.sentences import card_unavailable, cards_unidentified, nvml_unavailable
from agent.model.decision import (
    Blame,
    CardFinding,
    ContainerExcess,
    Decision,
    Ineffective,
    Outcome,
    Shortage,
    Suspension,
)
from agent.model.sample import CardSample, Sample, Trouble, TroubleCode
from gpufence import names
from kube.events import Regarding
from tests.support.agent.builders import CARDS, card_sample, memory
from tests.unit.agent.events.test_sentences import card, verdict

POD = Regarding("v1", "Pod", "team-a", "a", "uid-a")
SLOW = Damping(repeat_seconds=300, burst=2, refill_seconds=100_000)
DAMPING = Damping(repeat_seconds=300, burst=2, refill_seconds=5)


def notice(reason: str = "Reason", message: str = "said", topic: str = "") -> Notice:
    return Notice(reason, POD, message, topic)


def written_at(*seconds: float, episodes: Episodes = NO_EPISODES) -> list[tuple[float, int]]:
    """Say the same at these seconds; return when it is written, and with what count."""
    written = []
    for now in seconds:
        writes, episodes = damped(episodes, [notice()], now, DAMPING)
        written += [(now, item.count if isinstance(item, EventPatch) else 1) for item in writes]
    return written


def test_once_and_then_a_count() -> None:
    """What goes on is written once, and then its count, each after twice as long up to 40 min."""
    counts = [0, 300, 900, 2100, 4500, 6900, 9300]

    assert [(at, count) for count, at in enumerate(counts, 1)] == written_at(*range(0, 9400, 10))


def test_new_episode_after_a_pause() -> None:
    """What comes back after five minutes of silence is new; what comes back before is not."""
    assert [(0, 1), (350, 2)] == written_at(0, 100, 350)
    assert [(0, 1), (400, 1)] == written_at(0, 100, 400)


def test_what_happened_and_lasts_is_renewed_as_what_lasts() -> None:
    """Each time that something happens counts at once; that it lasts counts after the pause."""
    happened = replace(notice(), urgent=True)
    _, episodes = damped(NO_EPISODES, [happened], 0, DAMPING)
    again, episodes = damped(episodes, [happened], 1, DAMPING)
    lasts, episodes = damped(episodes, [notice()], 10, DAMPING)
    later, _ = damped(episodes, [notice()], 601, DAMPING)

    assert (EventPatch(1, 2, happened),) == again
    assert () == lasts
    assert (EventPatch(1, 3, notice()),) == later


def test_patch_says_what_is_true_now() -> None:
    """A count has today's message for the Event of the beginning; other topics are other Events."""
    _, episodes = damped(NO_EPISODES, [notice()], 0, DAMPING)
    _, episodes = damped(episodes, [notice()], 200, DAMPING)
    later = notice(message="more")
    others = [notice(), notice("Other"), notice(topic="x")]

    assert (EventPatch(1, 2, later),) == damped(episodes, [later], 300, DAMPING)[0]
    assert [1, 2, 3] == [
        item.serial for item in damped(NO_EPISODES, others, 0, Damping(burst=9))[0]
    ]


def test_too_many_at_once() -> None:
    """
    Beyond the burst new Events are dropped and counted, and written later if their cause lasts.
    """
    many = [notice(f"Reason{number}") for number in range(4)]
    first, episodes = damped(NO_EPISODES, many, 0, DAMPING)
    second, episodes = damped(episodes, many, 5, DAMPING)

    assert [EventCreate(1, many[0]), EventCreate(2, many[1])] == list(first)
    assert [EventCreate(3, many[2])] == list(second)
    assert 2 == episodes.dropped


def test_an_event_that_is_held_back_counts_once() -> None:
    """However often its cause is looked at, until it is written or its cause has ended."""
    many = [notice(f"Reason{number}") for number in range(3)]
    dropped, episodes = [], NO_EPISODES
    for now in (0, 1, 2, 300, 599.5, 600, 1000):
        said = [] if now == 300 else many[2:] if now == 1000 else many
        _, episodes = damped(replace(episodes, allowances={"team-a": 0.5}), said, now, SLOW)
        dropped.append(episodes.dropped)

    assert [3, 3, 3, 3, 6, 6, 7] == dropped


def test_what_is_remembered_of_events_held_back_is_bounded() -> None:
    """Of more the first are remembered, and the rest counts at each attempt."""
    many = [notice(f"Reason{number}") for number in range(MOST_HELD + 9)]
    _, episodes = damped(replace(NO_EPISODES, allowances={"team-a": 0.5}), many, 0, SLOW)
    _, episodes = damped(episodes, many, 0, SLOW)

    assert MOST_HELD + 2 * 9 == episodes.dropped
    assert MOST_HELD == len(episodes.held)


@pytest.mark.parametrize(
    ("later", "allowances"), [(100_000, {}), (5, {"team-a": 1.0})], ids=["long", "back"]
)
def test_allowance_is_bounded(later: float, allowances: dict[str, float]) -> None:
    """A long silence saves up no more than the burst, and a clock that jumps back nothing."""
    _, episodes = damped(NO_EPISODES, [notice()], 10, DAMPING)
    _, episodes = damped(episodes, [], later, DAMPING)

    assert allowances == episodes.allowances


def test_many_notices_of_one_namespace_hide_nobodys() -> None:
    """A namespace without any allowance left leaves the others theirs, and the node its own."""
    lasting = [notice(f"Reason{number}") for number in range(400)]
    other = Notice("Reason", Regarding("v1", "Pod", "team-b", "b", "uid-b"), "said")
    node = Notice("Reason", Regarding("v1", "Node", "", "n1", "n1"), "said")
    writes, episodes = damped(NO_EPISODES, [*lasting, other, node], 0, DAMPING)

    assert [*lasting[:2], other, node] == [item.notice for item in writes]
    assert 398 == episodes.dropped


def test_evictions_are_told_whatever_else_there_was_to_say() -> None:
    """An eviction is written though its namespace has no allowance left, and takes none away."""
    lasting = [notice(f"Reason{number}") for number in range(400)]
    evicted = [replace(notice(names.EVICTED, topic=f"{n}"), urgent=True) for n in range(9)]
    writes, _ = damped(NO_EPISODES, [*evicted, *lasting], 0, DAMPING)
    later, _ = damped(NO_EPISODES, [*lasting, *evicted], 0, DAMPING)

    assert [*evicted, *lasting[:2]] == [item.notice for item in writes]
    assert [*lasting[:2], *evicted] == [item.notice for item in later]


def test_what_an_owner_is_to_hear_waits_for_its_allowance() -> None:
    """It is written as soon as there is some, and forgotten with its episode."""
    lineage = ("apps/v1", "ReplicaSet", "uid-rs")
    about = Regarding("apps/v1", "ReplicaSet", "team-a", "rs", "uid-rs")
    owner = Notice(names.EVICTED, about, "said", lineage=lineage, urgent=True)
    none = replace(NO_EPISODES, owners={lineage: 0.0})
    at_once, waiting = damped(none, [owner], 0, SLOW)
    too_early, waiting = damped(waiting, [owner], 10, SLOW)
    later, _ = damped(waiting, [], 400, SLOW)
    too_late, forgotten = damped(waiting, [], 4000, SLOW)

    assert [(), (), (EventPatch(1, 2, owner),), ()] == [at_once, too_early, later, too_late]
    assert ([owner], {}) == ([*waiting.waiting.values()], forgotten.waiting)


FINE = Sample(0.0, (card_sample(0, {}), card_sample(1, {})))


def messages(sample: Sample, *, seconds: float = 20.0) -> list[str]:
    """Return what is told of a sample that has been the same for so long."""
    since, early = unreadable({}, sample, 100.0, "n1", 15.0)
    assert () == early
    _, found = unreadable(since, sample, 100.0 + seconds, "n1", 15.0)
    assert {names.NVML_UNAVAILABLE, names.UNFENCED} >= {item.reason for item in found}
    return [item.message for item in found]


BLIND = tuple(replace(item, memory=None, processes=None) for item in FINE.cards)
LOST = CardSample(CARDS[1], None, None, trouble=Trouble("it fell off the bus"))
NAMELESS = Trouble("index 3: no access")
UNFENCED = Trouble("card 0: it has no memory of its own", TroubleCode.UNIFIED)
SILENT = "it does not say how much memory is used"
NAMELESS_SAID = cards_unidentified("n1", "index 3: no access", 20.0).message


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (FINE, []),
        (
            Sample(0.0, BLIND, trouble=Trouble("driver not loaded")),
            [nvml_unavailable("n1", "driver not loaded", 20.0).message],
        ),
        (
            Sample(0.0, (FINE.cards[0], LOST)),
            [card_unavailable("n1", CARDS[1], "it fell off the bus", 20.0).message],
        ),
        (
            Sample(0.0, (CardSample(CARDS[0], memory(), None),)),
            [card_unavailable("n1", CARDS[0], SILENT, 20.0).message],
        ),
        (replace(FINE, unidentified=(NAMELESS,)), [NAMELESS_SAID]),
        (replace(FINE, unidentified=(NAMELESS, UNFENCED)), [NAMELESS_SAID, UNFENCED.text]),
    ],
    ids=["well", "no driver, once for all", "one lost", "no reason", "nameless", "unfenced"],
)
def test_what_cannot_be_read_is_told(sample: Sample, expected: list[str]) -> None:
    """Of all cards at once, of a card by name, or of cards that never said which they are."""
    assert expected == messages(sample)


def test_what_is_over_is_forgotten() -> None:
    """A card that could be read in between begins anew."""
    lost = Sample(0.0, (CardSample(CARDS[0], None, None),))
    since, _ = unreadable({}, lost, 0.0, "n1", 15.0)
    since, _ = unreadable(since, FINE, 10.0, "n1", 15.0)
    since, found = unreadable(since, lost, 20.0, "n1", 15.0)

    assert () == found
    assert {"GPU-0": 20.0} == since


FINDINGS = {"GPU-0": CardFinding(card(), 1, overcommitted=False)}
OVER = Decision(100.0, (verdict(),), (), None, frozenset(), FINDINGS)


def after(decision: Decision, before: Announced | None = None) -> tuple[Announced, list[str]]:
    if before is None:
        before, _ = new_notices(NOTHING_ANNOUNCED, OVER, "n1")
    before, found = new_notices(before, decision, "n1")
    return before, [item.reason for item in found]


def test_the_same_is_no_news_until_the_damping_has_to_know() -> None:
    """A cause is said at once, and again after a while, whatever its figures are by then."""
    before, soon = after(replace(OVER, at=101.0, verdicts=(verdict(over_seconds=40.0),)))
    _, later = after(replace(OVER, at=100.0 + REPEAT_SECONDS), before)

    assert [names.LIMIT_EXCEEDED] == after(OVER, NOTHING_ANNOUNCED)[1] == later
    assert [] == soon


def test_every_change_of_a_cause_is_news() -> None:
    """Another outcome, suspension, finding, container or process is said at once."""
    soon = replace(OVER, at=101.0)
    blamed = Shortage(1, frozenset(), Blame(1, hidden=True))
    excess, found = ContainerExcess("aside", 2, 1), Ineffective("main", 7, 2, 1)
    changed = [
        replace(soon, verdicts=(verdict(Outcome.WOULD_EVICT),)),
        replace(soon, verdicts=(verdict(containers_over=(excess,)),)),
        replace(soon, verdicts=(verdict(ineffective=(found,)),)),
        replace(soon, verdicts=(verdict(), verdict(Outcome.UNDECLARED))),
        replace(soon, suspensions=(Suspension("hami", 3, 4),)),
        replace(soon, findings={"GPU-0": replace(OVER.findings["GPU-0"], overcommitted=True)}),
        replace(soon, findings={"GPU-0": replace(OVER.findings["GPU-0"], shortage=blamed)}),
    ]

    assert [True] * 7 == [bool(after(decision)[1]) for decision in changed]
