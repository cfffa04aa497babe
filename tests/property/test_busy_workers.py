"""A worker that is busy is never released, whatever happens to those who watch it."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controller.model import ReleaseRules
from gpufence.idle import IdleWords
from tests.support.agent.world import Fault, Work
from tests.support.release import NOW
from tests.support.release_site import MeasuredNode, Site, Worker, busy
from tests.support.running import examples

HASTY = ReleaseRules(
    least_seconds=1, notice_seconds=20, warm_up_seconds=30, peace_seconds=30, suspend_pods=100
)


@dataclass(frozen=True)
class Stretch:
    """
    What each owner does for some looks, what goes wrong on each node, and whether somebody waits.
    """

    looks: int
    doing: tuple[Work, Work, Work]
    faults: tuple[Fault, Fault]
    job: bool
    crash: bool


mostly_rest = st.sampled_from([Work.REST] * 6 + [each for each in Work if each is not Work.SILENT])
mostly_well = st.sampled_from([Fault.NONE] * 8 + list(Fault))
stretches = st.builds(
    Stretch,
    st.integers(1, 30),
    st.tuples(mostly_rest, mostly_rest, mostly_rest),
    st.tuples(mostly_well, mostly_well),
    st.booleans(),
    st.sampled_from([False] * 6 + [True]),
)


def played(history: list[Stretch]) -> Site:
    """Play a history on two nodes with three owners of two pods each, and a job that may wait."""
    doing = dict.fromkeys("abc", Work.REST)

    def worker(name: str, after: float) -> Worker:
        return Worker(name, 2, lambda _: doing[name], IdleWords(after, 60.0))

    job = Worker("job", 0, lambda _: Work.KERNELS, slots=4)
    nodes = [MeasuredNode("node-1", 4), MeasuredNode("node-2", 4)]
    site = Site(nodes, [worker("a", 90.0), worker("b", 120.0), worker("c", 300.0), job], HASTY)
    for stretch in history:
        doing.update(zip("abc", stretch.doing, strict=True))
        faults = dict(zip(("node-1", "node-2"), stretch.faults, strict=True))
        site.api.scale_by_hand(job.key, int(stretch.job))
        for name in "abc":
            if doing[name] is not Work.REST:
                site.api.scale_by_hand(worker(name, 0.0).key, 2)
        if stretch.crash:
            site.leader.forget()
        for _ in range(stretch.looks):
            site.look(faults)
            site.decide()
    return site


def of_the_first(looks: int, work: Work) -> Stretch:
    """Build a stretch in which the first owner alone does something, and all is well."""
    doing, well = (work, Work.REST, Work.REST), (Fault.NONE, Fault.NONE)
    return Stretch(looks, doing, well, job=False, crash=False)


LITTLE_MORE = [
    of_the_first(17, Work.LOADING),
    of_the_first(4, Work.REST),
    of_the_first(1, Work.CHILD),
    of_the_first(18, Work.LOADING),
]
"""A child of 1 MiB, and then memory goes down and up by what counts as moved, and back again."""
UNSEEN = Stretch(
    1, (Work.REST, Work.REST, Work.PASSING), (Fault.NONE, Fault.SILENT), job=False, crash=False
)
PASSING_UNSEEN = [
    of_the_first(6, Work.REST),
    UNSEEN,
    replace(of_the_first(15, Work.REST), job=True),
]
"""A process comes, works and goes, while the driver tells of none for less than half a minute."""

AWAY = replace(of_the_first(6, Work.REST), faults=(Fault.LONG_GAP, Fault.NONE))
BEGUN = replace(AWAY, looks=1, doing=(Work.REST, Work.KERNELS, Work.REST))
BEGUN_SINCE = [of_the_first(2, Work.REST), of_the_first(19, Work.REST), AWAY, BEGUN]
"""A pod works again five seconds after the last look of its agent, which looks no more for long."""


@examples(25)
@given(st.lists(stretches, min_size=3, max_size=10))
@example(LITTLE_MORE)
@example(PASSING_UNSEEN)
@example(BEGUN_SINCE)
def test_who_is_busy_is_never_released(history: list[Stretch]) -> None:
    """All pods of a released owner have truly done nothing for its time."""
    assert [] == busy(played(history).released)


@pytest.mark.parametrize("fault", list(Fault))
def test_agents_and_people_have_one_clock(fault: Fault) -> None:
    """However an agent looks, no more time passes for it than for everybody else."""
    node = MeasuredNode("node-1", 4)
    site, began = Site([node], [], HASTY), node.card.now
    for _ in range(40):
        site.look({"node-1": fault})

    assert 30.0 > (site.now - NOW) - (node.card.now - began) >= 0.0
