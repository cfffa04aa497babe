"""
A pod that works is never idle, whatever happens to those who watch it.
"""

from dataclasses import dataclass
from enum import Enum, auto

from hypothesis import given
from hypothesis import strategies as st

from agent.model.activity import Activity
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import occupant
from tests.support.agent.watching import POLICY, Watched
from tests.support.examples import examples

NAMES = ("a", "b", "claims")
PIDS = {"a": 1, "b": 2}
STRANGER = 9


class Doing(Enum):
    """
    What a pod truly does in one interval.
    """

    NOTHING = auto()
    KERNELS = auto()
    LOADING = auto()
    COMPUTING = auto()
    CHILD = auto()  # a new process of it works, and stays
    PASSING = auto()  # a process of it comes, works and goes
    SILENT = auto()  # kernels of which the driver tells no process


class Wrong(Enum):
    """
    What happens to those who watch.
    """

    NOTHING = auto()
    HOLE = auto()
    NO_ANSWER = auto()
    UNLISTED = auto()
    SLOW_LIST = auto()
    ZOMBIES = auto()
    MPS = auto()
    RESTART = auto()
    LONG_GAP = auto()


LOSES = frozenset({Wrong.HOLE, Wrong.RESTART, Wrong.ZOMBIES})
"""
The answer does not name those who worked.
"""


REST = (Doing.NOTHING, Doing.NOTHING)


@dataclass(frozen=True)
class Interval:
    doing: tuple[Doing, Doing, Doing]
    wrong: Wrong
    node_works: bool


mostly_nothing = st.sampled_from([Doing.NOTHING] * 6 + list(Doing))
without_memory = st.sampled_from([Doing.NOTHING] * 6 + [Doing.CHILD, Doing.PASSING, Doing.SILENT])
mostly_well = st.sampled_from([Wrong.NOTHING] * 8 + list(Wrong))
intervals = st.builds(
    Interval,
    st.tuples(mostly_nothing, mostly_nothing, without_memory),
    mostly_well,
    st.booleans(),
)


class Trace:
    """
    A card, and what its pods truly did; one of them was given the card and holds nothing at first.
    """

    def __init__(self) -> None:
        self.card = Watched()
        for name, pid in PIDS.items():
            self.card.add(name, pid)
        self.card.claim("claims")
        self.card.living[STRANGER] = occupant(STRANGER, None, None)
        self.card.holds[STRANGER] = MIB
        self.last_pid = 100
        self.active = dict.fromkeys(NAMES, self.card.now)
        self.silent_since: dict[str, float] = {}

    def pass_(self, interval: Interval) -> None:
        began = self.card.now
        workers: set[int] = {STRANGER} if interval.node_works else set()
        for name, doing in zip(NAMES, interval.doing, strict=True):
            workers |= self._do(name, doing)
        silent = Doing.SILENT in interval.doing
        percent = 80.0 if workers or silent else 0.0
        self._look(interval.wrong, workers, percent)
        for name, doing in zip(NAMES, interval.doing, strict=True):
            if doing is Doing.SILENT:
                self.silent_since.setdefault(name, began)
            else:
                self.silent_since.pop(name, None)
                if doing is not Doing.NOTHING:
                    self.active[name] = self.card.now

    def _do(self, name: str, doing: Doing) -> set[int]:
        card = self.card
        if doing is Doing.KERNELS:
            return {PIDS[name]}
        if doing is Doing.LOADING:
            held = card.holds[PIDS[name]] or 0
            card.holds[PIDS[name]] = held + (64 * MIB if held < 2 * GIB else -64 * MIB)
        elif doing is Doing.COMPUTING:
            card.cpu[PIDS[name]] = card.cpu.get(PIDS[name], 0.0) + 1.5
        elif doing in {Doing.CHILD, Doing.PASSING}:
            self.last_pid += 1
            if doing is Doing.CHILD:
                card.start(name, self.last_pid)
                card.holds[self.last_pid] = MIB
            return {self.last_pid}
        return set()

    def _look(self, wrong: Wrong, workers: set[int], percent: float) -> None:
        card = self.card
        if wrong is Wrong.RESTART:
            card.restart_agent()
        card.answers = wrong is not Wrong.NO_ANSWER
        card.listed = wrong is not Wrong.UNLISTED
        card.slow = wrong is Wrong.SLOW_LIST
        card.mps = {PIDS["b"]} if wrong is Wrong.MPS else set()
        if wrong is Wrong.MPS:
            workers = {PIDS["b"]} if workers else set()  # the server, whoever it works for
        if wrong in LOSES:
            workers = set()
        seconds = 30.0 if wrong is Wrong.LONG_GAP else POLICY.interval_seconds
        card.pass_(
            workers,
            percent=percent,
            seconds=seconds,
            garbled=wrong is Wrong.ZOMBIES,
            hole=wrong is Wrong.HOLE,
        )


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
    """
    While a card is busy and the driver names nobody, nobody there is idle.
    """
    told = Trace()
    for interval in trace:
        told.pass_(interval)
    for _ in range(times):
        told.pass_(Interval((Doing.SILENT, *REST), Wrong.NOTHING, node_works=False))

        assert Activity.IDLE not in {item.activity for item in told.card.memory.tracks.values()}
    for _ in range(3):
        told.pass_(Interval((Doing.NOTHING, *REST), Wrong.NOTHING, node_works=False))
    idle = [item.idle_seconds(told.card.now) for item in told.card.memory.tracks.values()]

    assert times * POLICY.interval_seconds < POLICY.hidden_seconds + 5 or all(
        seconds is not None and seconds <= 15.0 for seconds in idle
    )


@given(st.lists(intervals, max_size=30))
def test_who_rests_is_idle_soon(trace: list[Interval]) -> None:
    """
    Whatever was before, a pod that does nothing is idle after two quiet looks.
    """
    told = Trace()
    for interval in trace:
        told.pass_(interval)
    for _ in range(4):
        told.pass_(Interval((Doing.NOTHING, *REST), Wrong.NOTHING, node_works=True))

    assert {Activity.IDLE} == {item.activity for item in told.card.memory.tracks.values()}
    assert {Activity.IDLE} == {item.activity for item in told.card.memory.pods.values()}
