"""What becomes of a profile, and what is remembered of it and of needs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.keepers.profiles import figures
from controller.keepers.profiles.figures import (
    NeedProjection,
    ProfileOwner,
    ProfileProjection,
    ProfileStep,
    RememberedNeeds,
    by_owner,
    change_of,
    core_digest,
    first_day,
    needs_of,
    profiles_by_owner,
    project_need,
    project_profile,
    terms_of,
    today_of,
    unpacked,
    whole_digest,
)
from gpufence import names
from gpufence.need import CardNeed, NodeNeed, need_configmap, write_need
from gpufence.need.profile import Apply, write_status
from gpufence.need.summary import NO_TERMS
from gpufence.quantity import GIB
from kube.informers.views import Interner
from tests.support.builders import NEED_KEY, T4, need_summary, node_need, owner_need

OWNER = ProfileOwner("vision", "Deployment", "classifier")
NOW, LATER = "2026-11-09T12:00:00Z", "2026-11-09T13:00:00Z"
TODAY = NOW[:10]


def remembered(*needs: NodeNeed) -> list[NeedProjection]:
    items = [
        {
            "metadata": {"name": need_configmap(need.node)},
            "data": {names.NEED_KEY: write_need(need)},
        }
        for need in needs
    ]
    return [project_need(item, Interner(), lambda: TODAY)[1] for item in items]


def there(status: Any, **spec: Any) -> ProfileProjection:
    metadata = {"namespace": "vision", "name": "deployment-classifier", "generation": 4}
    item = {
        "metadata": {**metadata, "labels": {names.MANAGED_BY: names.CONTROLLER}},
        "spec": {"targetRef": {"kind": "Deployment", "name": "classifier"}, **spec},
        "status": status or {},
    }
    _, found = project_profile(item, Interner())
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


METADATA = {"name": need_configmap("gpu-1"), "uid": "u", "resourceVersion": "7"}
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Measured",
    "message": "",
    "lastTransitionTime": "2026-11-19T05:00:00Z",
}


def kept(text: object, **metadata: str) -> NeedProjection:
    item = {"metadata": METADATA | metadata, "data": {names.NEED_KEY: text}}
    return project_need(item, Interner(), lambda: "2026-11-09")[1]


def profile(status: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "namespace": "vision",
            "name": "deployment-classifier",
            "generation": 2,
            "uid": "u",
            "resourceVersion": "7",
            "labels": {"app.kubernetes.io/managed-by": names.CONTROLLER},
        },
        "spec": {"targetRef": {"kind": "Deployment", "name": "classifier"}, **spec},
        "status": status,
    }


def test_a_need_is_kept_packed() -> None:
    """The days come out as they went in; who has told them last is known without."""
    need = kept(write_need(node_need(owner_need())))

    assert owner_need() == unpacked(*NEED_KEY[:3], need.owners[NEED_KEY])
    assert ("2026-11-09", (T4,), "") == (need.newest, need.cards, need.trouble)


def test_days_to_come_do_not_count() -> None:
    """A node whose clock was wrong takes nobody's place."""
    assert "2026-11-09" == kept(write_need(node_need(owner_need(days=12)))).newest


def test_an_empty_need_is_as_old_as_its_object() -> None:
    """Nothing else says when it was written."""
    need = kept(write_need(node_need()), creationTimestamp="2026-10-01T00:00:00Z")

    assert "2026-10-01" == need.newest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "JSON"),
        ('{"v":9}', "version"),
        (write_need(node_need(owner_need(), node="other")), "it is of node other"),
        (7, "data"),
    ],
)
def test_what_no_agent_of_the_node_wrote_counts_for_nothing(text: object, expected: str) -> None:
    """It is kept why, and that is all."""
    need = kept(text)

    assert expected.lower() in need.trouble.lower()
    assert {} == need.owners


def test_a_profile_is_kept_without_its_figures() -> None:
    """What people say, what is applied, and since when conditions hold."""
    status = write_status([need_summary()], 2, {"server": 6 * GIB}) | {"conditions": [CONDITION]}
    uid, found = project_profile(profile(status, apply="AtCreate"), Interner())

    assert found is not None
    assert ("u", True, "") == (uid, found.made_by_us, found.profile.name)
    assert (Apply.AT_CREATE, {"server": 6 * GIB}, ()) == (
        found.profile.apply,
        found.profile.applied,
        found.profile.containers,
    )
    assert (("Ready", "True", "2026-11-19T05:00:00Z"),) == found.conditions


@pytest.mark.parametrize(
    "status",
    [{"containers": [{"name": "x", "card": "T4", "peak": "lots"}]}, {"conditions": 7}],
)
def test_a_forged_status_is_written_over(status: dict[str, Any]) -> None:
    """What somebody wrote there says nothing, and is another than any of ours."""
    _, found = project_profile(profile(status), Interner())

    assert found is not None
    assert ({}, ()) == (found.profile.applied, found.conditions)


def test_a_spec_that_nobody_can_read_is_none() -> None:
    """The schema lets none through; where it is missing, nothing is made of it."""
    assert ("u", None) == project_profile(profile({}, apply="Sometimes"), Interner())


def test_a_profile_with_another_name_than_its_owners_is_none() -> None:
    """There is one for each owner, which its name tells."""
    item = profile({})
    item["metadata"]["name"] = "mine"

    assert ("u", None) == project_profile(item, Interner())


def test_times_are_no_news_and_sentences_are_small_news() -> None:
    """What a status says is one thing, what it decides another."""
    status = write_status([need_summary()], 2) | {"conditions": [CONDITION]}
    later = {**status, "conditions": [{**CONDITION, "lastTransitionTime": "2027-01-01T00:00:00Z"}]}
    longer = write_status([need_summary(held_seconds=1e6)], 2) | {"conditions": [CONDITION]}
    more = write_status([need_summary(peak_bytes=5 * GIB)], 2) | {"conditions": [CONDITION]}

    assert whole_digest(status) == whole_digest(later)
    assert (False, True) == (
        whole_digest(status) == whole_digest(longer),
        core_digest(status) == core_digest(longer),
    )
    assert core_digest(status) != core_digest(more)


def test_an_object_without_anything_is_kept_too() -> None:
    """Nothing that stands in the system's namespace ends a watch."""
    assert "" == project_need({}, Interner(), lambda: "2026-11-09")[0]
    assert ("", None) == project_profile({"metadata": 7}, Interner())
