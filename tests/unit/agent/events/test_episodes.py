"""How often the same thing is said."""

from agent.events.episodes import (
    NO_EPISODES,
    Damping,
    Episodes,
    EventCreate,
    EventPatch,
    Notice,
    damped,
)
from gpufence import names
from kube.events import Regarding

POD = Regarding("v1", "Pod", "team-a", "a", "uid-a")
DAMPING = Damping(repeat_seconds=300, burst=2, refill_seconds=5)


def notice(reason: str = "Reason", message: str = "said", **more: str) -> Notice:
    return Notice(reason, POD, message, **more)


def written_at(*seconds: float, episodes: Episodes = NO_EPISODES) -> list[tuple[float, int]]:
    """Say the same at these seconds; return when it is written, and with what count."""
    written = []
    for now in seconds:
        writes, episodes = damped(episodes, [notice()], now, DAMPING)
        written += [(now, item.count if isinstance(item, EventPatch) else 1) for item in writes]
    return written


def test_once_and_then_a_count() -> None:
    """What goes on is written once, and then its count every five minutes."""
    assert [(0, 1), (300, 2), (600, 3)] == written_at(*range(700))


def test_new_episode_after_a_pause() -> None:
    """What comes back after five minutes of silence is new; what comes back before is not."""
    assert [(0, 1), (350, 2)] == written_at(0, 100, 350)
    assert [(0, 1), (400, 1)] == written_at(0, 100, 400)


def test_patch_says_what_is_true_now() -> None:
    """A count is written with the message of today, for the Event of the beginning."""
    _, episodes = damped(NO_EPISODES, [notice()], 0, DAMPING)
    _, episodes = damped(episodes, [notice()], 200, DAMPING)
    later = notice(message="more")

    assert (EventPatch(1, 2, later),) == damped(episodes, [later], 300, DAMPING)[0]


def test_other_reasons_objects_and_topics() -> None:
    """Another reason or another topic is another episode."""
    roomy = Damping(burst=9)
    writes, _ = damped(NO_EPISODES, [notice(), notice("Other"), notice(topic="x")], 0, roomy)

    assert [1, 2, 3] == [item.serial for item in writes]


def test_too_many_at_once() -> None:
    """
    Beyond the burst new Events are dropped and counted, and written later if their cause lasts.
    """
    many = [notice(f"Reason{number}") for number in range(4)]
    first, episodes = damped(NO_EPISODES, many, 0, DAMPING)
    second, episodes = damped(episodes, many, 5, DAMPING)

    assert [EventCreate(1, many[0]), EventCreate(2, many[1])] == list(first)
    assert [EventCreate(3, many[2])] == list(second)
    assert 3 == episodes.dropped


def test_allowance_is_bounded() -> None:
    """A long silence saves up no more than the burst."""
    _, episodes = damped(NO_EPISODES, [notice()], 0, DAMPING)
    _, episodes = damped(episodes, [], 100_000, DAMPING)

    assert {} == episodes.allowances
    assert {} == episodes.running


def test_clock_that_does_not_move() -> None:
    """A clock that stands still, or jumps back, gives no allowance."""
    _, episodes = damped(NO_EPISODES, [notice()], 10, DAMPING)
    _, episodes = damped(episodes, [], 5, DAMPING)

    assert {"team-a": 1.0} == episodes.allowances


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
    evicted = [notice(names.EVICTED, topic=f"{number}") for number in range(9)]
    writes, _ = damped(NO_EPISODES, [*evicted, *lasting], 0, DAMPING)
    later, _ = damped(NO_EPISODES, [*lasting, *evicted], 0, DAMPING)

    assert [*evicted, *lasting[:2]] == [item.notice for item in writes]
    assert [*lasting[:2], *evicted] == [item.notice for item in later]
