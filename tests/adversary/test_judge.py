"""
A hostile tenant against the agent's deciding half: whatever he tries, he takes no more than the
policy says, and nobody else goes for it.

`python -m tests.adversary` searches for as long as one likes, and plays what is printed here again.
"""

import sys
from functools import partial

import pytest

from agent.model.policy import EvictionPolicy, EvictWhen
from gpufence.quantity import GIB
from simulator.progress import Progress
from tests.adversary import tricks
from tests.adversary.search import Search, told
from tests.adversary.stage import played
from tests.adversary.tricks import Kind, Trick
from tests.support.agent.world import Act

SEED = 20261
SECONDS = 900
SHORT_PLAYS, LONG_PLAYS = 10, 1200
POLICIES = [EvictionPolicy(evict_when=when) for when in EvictWhen]
NOTHING = Trick(Kind.HOLD, 0, SECONDS, 1, 0, 1, 100)
TAKES = NOTHING._replace(at=0, seconds=SECONDS, mebibytes=16000)


def searched(policy: EvictionPolicy, seed: int, plays: int) -> Search:
    search = Search(seed, SECONDS, partial(played, policy=policy))
    search.go_on(plays)
    return search


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: str(policy.evict_when))
def test_no_scheme_beats_the_bound(policy: EvictionPolicy) -> None:
    """
    No scheme of a short search takes more than the policy allows, or has somebody else evicted.
    """
    search = searched(policy, SEED, SHORT_PLAYS)

    assert [] == [told(item) for item in search.broken]
    assert any(item.haul.stolen > GIB for item in search.worst), "it never took anything"
    assert any(item.haul.evictions for item in search.worst), "nobody was ever caught"


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: str(policy.evict_when))
def test_no_scheme_of_a_million_seconds_beats_the_bound(
    policy: EvictionPolicy, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither does any scheme of a search through a million seconds."""
    search = searched(policy, SEED + 1, LONG_PLAYS)
    with capsys.disabled():
        said = Progress(sys.stderr).say
        said(f"evict when {policy.evict_when}, {search.plays} schemes, seed {search.seed}:")
        for item in search.worst:
            said(told(item))

    assert [] == [told(item) for item in search.broken]


def test_who_takes_nothing_has_taken_nothing() -> None:
    """A tenant who stays within his limits takes nothing, and none of his pods goes."""
    haul = played((NOTHING,), SECONDS, EvictionPolicy())

    assert 0 == haul.stolen == haul.evictions
    assert not haul.broke_a_promise


def test_who_takes_all_is_seen_to() -> None:
    """What a pod takes from a neighbour who was promised it is counted for as long as it does."""
    never = EvictionPolicy(hold_seconds=80_000, short_hold_seconds=80_000)
    haul = played((TAKES,), 100, never)

    assert 0 == haul.evictions
    assert 4 * GIB * 100 == haul.stolen


def test_an_eviction_of_somebody_else_breaks_a_promise() -> None:
    """
    A pod that was evicted without ever being over its limit is told, as is a haul above the bound.
    """
    haul = played((TAKES,), 100, EvictionPolicy())

    assert not haul.broke_a_promise
    assert haul._replace(stolen=haul.allowed + 1).broke_a_promise
    assert haul._replace(false=(Act(7, "victim"),)).broke_a_promise


def test_a_scheme_can_be_written_and_read() -> None:
    """A scheme that was printed plays as the one that was found."""
    search = searched(EvictionPolicy(), SEED, 5)
    found = search.worst[0]

    assert found.scheme == tricks.read(tricks.written(found.scheme))
    assert found.haul == played(found.scheme, SECONDS, EvictionPolicy())


def test_a_seed_names_a_search() -> None:
    """The same seed tries the same schemes."""
    assert searched(EvictionPolicy(), 7, 6).worst == searched(EvictionPolicy(), 7, 6).worst
