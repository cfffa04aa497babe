"""What becomes of a profile."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.keepers.profiles import figures
from controller.keepers.profiles.figures import (
    ProfileOwner,
    ProfileStep,
    RememberedNeeds,
    by_owner,
    change_of,
    first_day,
    needs_of,
    profiles_by_owner,
    terms_of,
    today_of,
)
from controller.keepers.profiles.projections import KeptNeed, KeptProfile, keep_need, keep_profile
from gpufence import names
from gpufence.need import CardNeed, NodeNeed, need_configmap, write_need
from gpufence.need.summary import NO_TERMS
from gpufence.quantity import GIB
from kube.informers.interning import Interner
from tests.support.needs import NEED_KEY, T4, need_summary, node_need, owner_need

OWNER = ProfileOwner("vision", "Deployment", "classifier")
NOW, LATER = "2026-11-09T12:00:00Z", "2026-11-09T13:00:00Z"
TODAY = NOW[:10]


def remembered(*needs: NodeNeed) -> list[KeptNeed]:
    items = [
        {
            "metadata": {"name": need_configmap(need.node)},
            "data": {names.NEED_KEY: write_need(need)},
        }
        for need in needs
    ]
    return [keep_need(item, Interner(), lambda: TODAY)[1] for item in items]


def there(status: Any, **spec: Any) -> KeptProfile:
    metadata = {"namespace": "vision", "name": "deployment-classifier", "generation": 4}
    item = {
        "metadata": {**metadata, "labels": {names.MANAGED_BY: names.CONTROLLER}},
        "spec": {"targetRef": {"kind": "Deployment", "name": "classifier"}, **spec},
        "status": status or {},
    }
    _, found = keep_profile(item, Interner())
    assert found is not None
    return found


def times(status: Any) -> dict[str, str]:
    return {item["type"]: item["lastTransitionTime"] for item in status["conditions"]}


def test_needs_of_all_nodes_come_together_by_owner() -> None:
    """With the cards that the owner ran on; a card that nobody tells of is left out."""
    other = NEED_KEY._replace(container="second", card="unknown")
    found = by_owner(
        remembered(node_need(owner_need()), node_need(owner_need(key=other), node="gpu-2"))
    )

    assert [OWNER] == list(found)
    assert (2, frozenset({T4})) == (len(found[OWNER].packed), found[OWNER].cards)


def test_profiles_are_found_by_their_owner() -> None:
    """Whose they are is in their spec."""
    profile = there(None)

    assert {OWNER: profile} == profiles_by_owner([profile])


def test_owners_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is found after that many gets no profile; who has one already goes on."""
    monkeypatch.setattr(figures, "MOST_OWNERS", 1)
    other = NEED_KEY._replace(name="zebra")
    needs = remembered(
        node_need(owner_need(), owner_need(key=other)), node_need(owner_need(), node="gpu-2")
    )

    assert {OWNER: 2} == {owner: len(item.packed) for owner, item in by_owner(needs).items()}


@pytest.mark.parametrize(("clock", "expected"), [("2026-12-24", TODAY), (TODAY, TODAY)])
def test_a_clock_that_is_ahead_makes_nothing_old(clock: str, expected: str) -> None:
    """The day is no later than any node says."""
    assert expected == today_of(remembered(node_need(owner_need())), clock)
    assert clock == today_of([], clock)


def test_fourteen_days_count() -> None:
    """Today and the thirteen before."""
    assert "2026-11-06" == first_day("2026-11-19")
    assert "2026-02-16" == first_day("2026-03-01")


def test_days_that_are_too_old_are_left_out() -> None:
    """A node that is gone counts as long as its days do."""
    needs = by_owner(remembered(node_need(owner_need())))[OWNER]

    assert [9] == [item.days for item in needs_of(OWNER, needs, NO_TERMS, TODAY)]
    assert [2] == [item.days for item in needs_of(OWNER, needs, NO_TERMS, "2026-11-21")]
    assert [] == needs_of(OWNER, needs, NO_TERMS, "2026-12-21")


@given(
    truth=st.fixed_dictionaries({"processes": st.integers(1, 4), "shares": st.integers(1, 4)}),
    lie=st.fixed_dictionaries(
        {
            "peak_bytes": st.integers(1, 20 * GIB),
            "process_bytes": st.integers(0, 20 * GIB),
            "processes": st.integers(0, 100),
            "shares": st.integers(0, 8),
            "evicted_bytes": st.integers(0, 20 * GIB),
        }
    ),
    days=st.integers(1, 10),
    memory=st.integers(1, 90 * GIB),
    reserve=st.integers(0, 9 * GIB),
)
def test_no_single_node_brings_a_target_down(
    truth: dict[str, Any], lie: dict[str, Any], days: int, memory: int, reserve: int
) -> None:
    """Whatever it says of needs and cards, nobody's target is smaller for it."""
    honest = node_need(owner_need(process_bytes=3 * GIB, **truth))
    liar = node_need(owner_need(days, **lie), node="liar")
    lied = liar._replace(cards=(CardNeed(T4.model, memory, reserve),))
    alone, both = (
        needs_of(OWNER, by_owner(remembered(*nodes))[OWNER], NO_TERMS, TODAY)[0]
        for nodes in ([honest], [honest, lied])
    )

    assert alone.target_bytes is not None
    assert both.target_bytes is None or both.target_bytes >= alone.target_bytes


@pytest.mark.parametrize(
    ("said", "ceiling", "expected"),
    [({}, None, None), ({"max": "5Gi"}, 3 * GIB, 3 * GIB), ({"max": "5Gi"}, None, 5 * GIB)],
)
def test_the_smaller_bound_holds(
    said: dict[str, str], ceiling: int | None, expected: int | None
) -> None:
    """An owner may bound his targets, never above what his namespace may have."""
    assert expected == terms_of(there(None, **said), ceiling).most_bytes
    assert ceiling == terms_of(None, ceiling).most_bytes


def test_a_profile_is_made_written_and_then_left_alone() -> None:
    """As long as nothing changes; its conditions began when they did."""
    summaries = [need_summary()]
    made = change_of(None, summaries, NO_TERMS, NOW)
    again = change_of(there(None), summaries, NO_TERMS, NOW)
    still = change_of(there(again.status), summaries, NO_TERMS, LATER)

    assert [ProfileStep.CREATE, ProfileStep.STATUS, ProfileStep.NOTHING] == [
        made.step,
        again.step,
        still.step,
    ]
    assert again.status is not None
    assert 4 == again.status["observedGeneration"]
    assert {NOW} == set(times(again.status).values())


def test_only_what_turned_has_a_new_time() -> None:
    """A condition that holds as before began before."""
    first = change_of(there(None), [need_summary()], NO_TERMS, NOW)
    capped = need_summary(target_bytes=None, capped=True)
    second = change_of(there(first.status), [capped], NO_TERMS, LATER)

    assert (ProfileStep.STATUS, False) == (second.step, second.minor)
    assert {"Ready": LATER, "AtCap": LATER, "LowConfidence": NOW} == times(second.status)


def test_hours_and_sentences_are_a_minor_change() -> None:
    """They may wait, since they decide nothing."""
    first = change_of(there(None), [need_summary()], NO_TERMS, NOW)
    second = change_of(there(first.status), [need_summary(held_seconds=1e6)], NO_TERMS, NOW)

    assert (ProfileStep.STATUS, True) == (second.step, second.minor)


def test_what_is_applied_is_so_by_the_spec_alone() -> None:
    """AtCreate begins it, Never ends it."""
    summaries = [need_summary()]
    applied = change_of(there(None, apply="AtCreate"), summaries, NO_TERMS, NOW)
    ended = change_of(there(applied.status), summaries, NO_TERMS, NOW)

    assert applied.status is not None
    assert [{"name": "server", "memory": "6144Mi"}] == applied.status["applied"]
    assert ended.status is not None
    assert "applied" not in ended.status


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ProfileStep.DELETE),
        ({"apply": "AtCreate"}, ProfileStep.NOTHING),
        ({"margin": "20%"}, ProfileStep.NOTHING),
        ({"max": "9Gi"}, ProfileStep.NOTHING),
    ],
)
def test_a_profile_without_days_goes_unless_it_says_something(
    spec: dict[str, str], expected: ProfileStep
) -> None:
    """What people said is theirs."""
    assert expected == change_of(there(None, **spec), [], NO_TERMS, NOW).step


def test_what_others_made_is_never_deleted() -> None:
    """Nor is anything made of nothing."""
    theirs = there(None)._replace(made_by_us=False)

    assert ProfileStep.NOTHING == change_of(theirs, [], NO_TERMS, NOW).step
    assert ProfileStep.NOTHING == change_of(None, [], NO_TERMS, NOW).step


def test_nobody_remembers_is_an_empty_need() -> None:
    """Adding up nothing gives nothing."""
    assert [] == needs_of(OWNER, RememberedNeeds(), NO_TERMS, TODAY)
