"""A hostile tenant against the running agent, fifteen times as fast: known schemes, a search."""

import os
import sys
from collections.abc import Iterator

import pytest

from gpufence.quantity import GIB
from simulator.progress import Progress
from tests.adversary import tricks
from tests.adversary.live import LiveStage, staged
from tests.adversary.live_play import LivePlay
from tests.adversary.search import Finding, Search, told

SEED = 20261
SECONDS = 210
PLAYS = "GPUFENCE_ADVERSARY_PLAYS"
LONG_PLAYS = 30

KNOWN = {
    "takes all, whenever it is back": '[["hold",2,0,900,16000,40,75]]',
    "a third of the time, behind decoys, a budget and contradicting words": (
        '[["sawtooth",1,10,900,5000,30,33],["decoys",0,0,900,90,35,5],["shield",0,0,900,0,1,1],'
        '["words",0,0,900,0,1,1]]'
    ),
    "lists are slow, and pods are given as many labels as they can hold": (
        '[["hold",0,0,900,5000,1,100],["labels",0,0,900,0,1,1],["slow",0,0,900,0,8,1],'
        '["grow",1,0,900,260,1,1]]'
    ),
    "the first thread ends, pods are fat, processes come and go": (
        '[["hold",0,0,900,5000,1,100],["leave",0,0,900,0,1,1],["fat",0,0,900,0,1,1],'
        '["hold",1,0,900,5000,1,100],["churn",1,0,900,0,15,1]]'
    ),
}


@pytest.fixture(scope="module")
def stage() -> Iterator[LiveStage]:
    with staged() as ready:
        yield ready


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", KNOWN.values(), ids=KNOWN)
def test_known_schemes_stay_below_the_bound(stage: LiveStage, scheme: str) -> None:
    """What did best once takes no more than the policy allows, and has nobody else evicted."""
    found = tricks.read(scheme)
    haul = LivePlay(stage, found, SECONDS).run()

    assert not haul.broke_a_promise, told(Finding(haul, found))
    assert haul.stolen > 0, told(Finding(haul, found))


@pytest.mark.nightly
def test_where_the_driver_holds_nothing_is_taken() -> None:
    """With fence `driver` the same schemes take nothing, and have nobody else evicted."""
    with staged(driver=True) as stage:
        hauls = [LivePlay(stage, tricks.read(item), SECONDS).run() for item in KNOWN.values()]

    assert [(0, False)] * len(KNOWN) == [(each.stolen, each.broke_a_promise) for each in hauls]


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_search_against_the_running_agent(
    stage: LiveStage, capsys: pytest.CaptureFixture[str]
) -> None:
    """A search through running schemes finds none that takes more than the policy allows."""
    known = [tricks.read(scheme) for scheme in KNOWN.values()]
    search = Search(
        SEED, SECONDS, lambda scheme, seconds: LivePlay(stage, scheme, seconds).run(), known
    )
    search.go_on(int(os.environ.get(PLAYS, LONG_PLAYS)))
    with capsys.disabled():
        said = Progress(sys.stderr).say
        said(f"{search.plays} schemes, seed {search.seed}:")
        for item in search.worst:
            said(told(item))

    assert [] == [told(item) for item in search.broken]
    assert any(item.haul.stolen > GIB for item in search.worst), "it never took anything"
