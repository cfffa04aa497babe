"""Ends at the cap and evictions of owners, look by look: what is said, counted and forgotten."""

from dataclasses import replace
from typing import Any, cast

from agent.concerns.capped import CappedConcern
from agent.concerns.capped.model import CappedMemory
from agent.concerns.repeated import HOUR_SECONDS
from agent.events.episodes import NO_EPISODES, Damping, EventCreate, EventPatch, damped
from agent.metrics import page
from agent.model.pod import Cap, ContainerFailure, PodOnNode
from agent.model.state import TickResult
from agent.model.use import Observation
from gpufence.capped import Ending, Given
from gpufence.event_text import MOST_TEXT
from gpufence.quantity import GIB, MIB
from gpufence.snapshot import EndedRow
from gpufence.times import write_moment
from service.exposition import write_page
from tests.support.agent.builders import card_sample, controller, pod, process_of, uses
from tests.support.agent.node import ABOUT, ConcernedNode, Node, running

GIVEN = Given(3 * GIB, 2150 * MIB, 512 * MIB, auto_bytes=2560 * MIB)
OOM = "CUDA out of memory"
CAPS = {"main": Cap(2150 * MIB, 512 * MIB)}


class Watched:
    """The concern on a clock of its own, and the Events that its notices make."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.concern = self._agent()
        self.before: Observation | None = None
        self.episodes = NO_EPISODES
        self.written: list[EventCreate | EventPatch] = []

    def _agent(self) -> CappedConcern:
        return CappedConcern(lambda: write_moment(self.now))

    def restart(self) -> None:
        self.concern, self.before = self._agent(), None

    def look(
        self, *pods: PodOnNode, seconds: float = 1.0, held: int = 0, peak: int | None = None
    ) -> None:
        """Look at pods, of which the first holds so much, or has held by the driver's account."""
        self.now += seconds
        sample = card_sample(0, {1: held} if held else {}, at=self.now)
        sample = replace(sample, peaks={} if peak is None else {1: peak})
        owners = [process_of(pods[0])] if held else []
        seen = uses([sample], owners, pods, self.before, at=self.now)
        self.concern.look(TickResult(seen, cast("Any", None)))
        self.before = seen
        notices = self.concern.notices()
        writes, self.episodes = damped(self.episodes, notices, self.now, Damping())
        self.written += writes

    def failed(self, item: PodOnNode, words: str = OOM, **more: Any) -> PodOnNode:
        """Return the pod as its status is right after its container has failed."""
        told = {"at": write_moment(self.now), "waiting": "CrashLoopBackOff", **more}
        ending = Ending("main", 1, "Error", out_of_memory=words, silent=not words, **told)
        return replace(item, failures=(ContainerFailure(ending, GIVEN),))

    @property
    def names(self) -> list[str]:
        return [
            item.notice.regarding.name for item in self.written if isinstance(item, EventCreate)
        ]

    @property
    def rows(self) -> tuple[EndedRow, ...]:
        rows = self.concern.rows(self.now, current=True)
        return tuple(row for each in rows.values() for row in each.pod["ended"])

    @property
    def counted(self) -> float:
        (family,) = self.concern.families(None, self.now)
        return sum(float(line.rpartition(" ")[2]) for line in write_page([family]).splitlines()[2:])


def test_a_crash_loop_is_one_event() -> None:
    """However long it waits in between, each end counts in the Event there is."""
    watched, item = Watched(), pod(caps=CAPS, controller=controller())
    for number in range(5):
        item = watched.failed(item, restarts=number)
        for _ in range(31):
            watched.look(item, seconds=10.0)
    last = [write for write in watched.written if write.notice.regarding.name == "a"][-1]

    assert ["a", "web"] == sorted(watched.names)
    assert isinstance(last, EventPatch)
    assert 5 == last.count == watched.counted
    assert "4 restarts" in last.notice.message


def test_an_event_says_what_was_held() -> None:
    """What its words made certain has the most that was held; nothing seen is nothing said."""
    watched, item = Watched(), pod(caps=CAPS)
    watched.look(item, held=2300 * MIB)
    watched.look(watched.failed(item, restarts=2))
    watched.look(watched.failed(item, restarts=3))
    seen, unseen = (write.notice.message for write in watched.written)

    assert "main: exit code 1, 2 restarts, held up to 2300Mi. " in seen
    assert "main: exit code 1, 3 restarts. " in unseen


def test_a_silent_end_is_judged_by_what_was_held() -> None:
    """The most that was held before an end counts, and nothing of an earlier life."""
    watched, item = Watched(), pod(caps=CAPS)
    watched.look(item, held=2400 * MIB)
    watched.look(item, held=GIB)
    item = watched.failed(item, "")
    watched.look(item)
    (row,) = watched.rows
    watched.now += 30.0
    watched.look(watched.failed(item, ""))

    assert (False, 2400 * MIB) == (row.certain, row.peak_bytes)
    assert ["a"] == watched.names
    assert () == watched.rows


def test_what_the_driver_saw_counts() -> None:
    """What a process took last is known by the driver's account, once it has ended, too."""
    watched, item = Watched(), pod(caps=CAPS)
    for held, peak in ((GIB, GIB), (0, 2300 * MIB)):
        watched.look(item, held=held, peak=peak)
    watched.look(watched.failed(item, ""))

    assert [2300 * MIB] == [row.peak_bytes for row in watched.rows]


def test_a_look_that_shows_nothing_new_changes_nothing() -> None:
    """While pods and processes are the same there is nothing to be said."""
    watched = Watched()
    watched.look(watched.failed(pod()))
    known, before = watched.concern.memory, watched.before
    assert before is not None
    watched.concern.look(TickResult(before, cast("Any", None)))

    assert known == watched.concern.memory
    assert () == watched.concern.notices()


def test_what_is_shown_and_is_no_event() -> None:
    """
    An end of more than ten minutes ago, while the pod waits; a pod that runs well is shown for ten
    minutes after its last end.
    """
    started, well = Watched(), Watched()
    item = started.failed(pod())
    started.now += 3600.0
    started.look(item)
    runs = well.failed(pod(), waiting="")
    well.look(runs)
    shown = len(well.rows)
    well.look(runs, seconds=601.0)

    assert ([], 1) == (started.names, len(started.rows))
    assert (1, ()) == (shown, well.rows)


def test_nothing_is_kept_of_pods_that_are_gone() -> None:
    """Peaks and ends go with their pods."""
    watched, item = Watched(), pod(caps=CAPS)
    watched.look(item, held=GIB)
    watched.look(watched.failed(item))
    watched.look()

    assert CappedMemory() == watched.concern.memory


def test_hostile_names_and_words_draw_nothing() -> None:
    """An Event is one short line, whatever a tenant has called things."""
    watched = Watched()
    ending = Ending("x" * 63, 1, out_of_memory=OOM + "\x1b[2J" * 99, at="\x1b[31m", restarts=9)
    item = pod("p" * 253, failures=(ContainerFailure(ending, GIVEN),), controller=controller())
    watched.look(item)

    for write in watched.written:
        assert write.notice.message.isprintable()
        assert MOST_TEXT >= len(write.notice.message)
    assert 2 == len(watched.written)


def test_an_end_of_another_kind_is_no_end_at_the_cap() -> None:
    """A full card is shown; an evicted pod, one without a fence and a likely end of one are not."""
    watched = Watched()
    full = f"{OOM}. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 14.58 GiB of which "
    watched.look(watched.failed(pod(), f"{full}31.81 MiB is free"))
    shown = [row.reason for row in watched.rows]
    for item in (watched.failed(pod(mode=None)), pod(terminating=True, caps=CAPS)):
        watched.look(item, held=3 * GIB)
        watched.look(watched.failed(item, "") if item.terminating else item)

    assert ["card full"] == shown
    assert [] == watched.names
    assert () == watched.rows


OVER = 4 * GIB


def counted(node: Node, later: float = 0.0) -> list[str]:
    state = node.loop.state
    more = node.concerns.families(state.last, state.at + later)
    lines = page(state, ABOUT, state.at, more).splitlines()
    return [line for line in lines if line.startswith("gpufence_owner_evicted_pods")]


def test_evicted_pods_of_an_owner_count_for_an_hour() -> None:
    """Each pod that is evicted is one of its owner's, until an hour later."""
    with running(node=ConcernedNode()) as node:
        for card in range(2):
            item = pod(f"web-{card}", uid=f"uid-{card}", controller=controller())
            node.add(item, OVER, card + 1, card=card)
        node.tick_until_acted(2)
        node.tick()
        node.tick()

        labels = '{namespace="team-a",owner="ReplicaSet/web",node="gpu-1"}'
        assert [f"gpufence_owner_evicted_pods{labels} 2"] == counted(node)
        assert [] == counted(node, HOUR_SECONDS + 600.0)
