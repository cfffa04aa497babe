"""A pod that works is never idle, whatever happens to those who watch it."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from agent.concerns.activity.model import Activity
from tests.support.agent.watching import POLICY
from tests.support.agent.world import Fault, ScriptedCard, Work
from tests.support.running import examples

WITH_MEMORY = ("a", "b")
NAMES = (*WITH_MEMORY, "claims")
REST = (Work.REST, Work.REST)


@dataclass(frozen=True)
class Interval:
    doing: tuple[Work, Work, Work]
    fault: Fault
    node_works: bool


mostly_rest = st.sampled_from([Work.REST] * 6 + list(Work))
without_memory = st.sampled_from([Work.REST] * 6 + [Work.CHILD, Work.PASSING, Work.SILENT])
mostly_well = st.sampled_from(
    [Fault.NONE] * 8 + [each for each in Fault if each is not Fault.SILENT]
)
intervals = st.builds(
    Interval,
    st.tuples(mostly_rest, mostly_rest, without_memory),
    mostly_well,
    st.booleans(),
)


class Trace:
    """
    A card, and when its pods truly did something, though not in silence; one of them was given the
    card and holds nothing at first.
    """

    def __init__(self) -> None:
        self._scripted = ScriptedCard(server="b")
        for name in WITH_MEMORY:
            self._scripted.start(name)
        self._scripted.claim("claims")
        self.card = self._scripted.watched
        self.active = dict.fromkeys(NAMES, self.card.now)

    def pass_(self, interval: Interval) -> None:
        doing = dict(zip(NAMES, interval.doing, strict=True))
        self._scripted.look(doing, interval.fault, node_works=interval.node_works)
        for name, work in doing.items():
            if work not in {Work.REST, Work.SILENT}:
                self.active[name] = self.card.now


@examples(150)
@given(st.lists(intervals, min_size=4, max_size=40))
def test_who_works_is_never_idle(trace: list[Interval]) -> None:
    """
    A pod is idle only if it did nothing since, by kernels, memory, CPU or processes, seen or not.
    """
    told = Trace()
    for interval in trace:
        told.pass_(interval)
        for name in NAMES:
            track = told.card.memory.tracks.get((told.card.pods[name].uid, "GPU-0"))
            if track is None or track.activity is not Activity.IDLE:
                continue

            assert track.idle_since is not None
            assert told.active[name] <= track.idle_since


@examples(150)
@given(st.lists(intervals, min_size=4, max_size=40))
def test_who_works_without_memory_is_never_idle_either(trace: list[Interval]) -> None:
    """
    A pod on all its cards together is idle only if it did nothing since, also where it was given
    the card and holds no memory of it.
    """
    told = Trace()
    for interval in trace:
        told.pass_(interval)
        for name in NAMES:
            track = told.card.whole(name) if told.card.has(name) else None
            if track is None or track.activity is not Activity.IDLE:
                continue

            assert track.idle_since is not None
            assert told.active[name] <= track.idle_since


@given(st.lists(intervals, min_size=4, max_size=30))
def test_a_busy_share_is_one_of_a_minute(trace: list[Interval]) -> None:
    """
    A share is between none and all of the time, unknown where the pod is, and never remembers more
    than a minute's answers.
    """
    told = Trace()
    for interval in trace:
        told.pass_(interval)
        for track in told.card.memory.pods.values():
            assert (track.activity is Activity.UNKNOWN) is (track.busy_share is None)
            assert 0.0 <= (track.busy_share or 0.0) <= 1.0
            assert 14 > len(track.used)


@examples(80)
@given(st.lists(intervals, max_size=10), st.integers(1, 12))
def test_silent_work_alone_is_never_idle(trace: list[Interval], times: int) -> None:
    """While a card is busy and the driver names nobody, nobody there is idle."""
    told = Trace()
    for interval in trace:
        told.pass_(interval)
    for _ in range(times):
        told.pass_(Interval((Work.SILENT, *REST), Fault.NONE, node_works=False))

        assert Activity.IDLE not in {item.activity for item in told.card.memory.tracks.values()}
    for _ in range(3):
        told.pass_(Interval((Work.REST, *REST), Fault.NONE, node_works=False))
    idle = [item.idle_seconds(told.card.now) for item in told.card.memory.tracks.values()]

    assert times * POLICY.interval_seconds < POLICY.hidden_seconds + 5 or all(
        seconds is not None and seconds <= 15.0 for seconds in idle
    )


@given(st.lists(intervals, max_size=30))
def test_who_rests_is_idle_soon(trace: list[Interval]) -> None:
    """Whatever was before, a pod that does nothing is idle after two quiet looks."""
    told = Trace()
    for interval in trace:
        told.pass_(interval)
    for _ in range(4):
        told.pass_(Interval((Work.REST, *REST), Fault.NONE, node_works=True))

    assert {Activity.IDLE} == {item.activity for item in told.card.memory.tracks.values()}
    assert {Activity.IDLE} == {item.activity for item in told.card.memory.pods.values()}
