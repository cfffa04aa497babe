"""What becomes of a profile, and what is remembered of it and of needs."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.keepers.profiles import figures
from controller.keepers.profiles.figures import (
    NeedProjection,
    ProfileOwner,
    ProfileProjection,
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
from gpufence.need.profile import write_status
from gpufence.need.summary import NO_TERMS
from gpufence.quantity import GIB
from kube.informers.views import Interner
from tests.support.builders import NEED_KEY, T4, need_summary, node_need, owner_need
from tests.support.golden import assert_cases, leaves

FILES = Path(__file__).parent
OWNER = ProfileOwner("vision", "Deployment", "classifier")
NOW, LATER = "2026-11-09T12:00:00Z", "2026-11-09T13:00:00Z"
TODAY = NOW[:10]
HELD = {"type": "Ready", "status": "True", "reason": "Measured", "message": ""}
CONDITION = {**HELD, "lastTransitionTime": "2026-11-19T05:00:00Z"}


def remembered(*needs: NodeNeed) -> list[NeedProjection]:
    return [kept(write_need(need), name=need_configmap(need.node)) for need in needs]


def kept(text: object, **metadata: str) -> NeedProjection:
    about = {"name": need_configmap("gpu-1"), "uid": "u", "resourceVersion": "7", **metadata}
    item = {"metadata": about, "data": {names.NEED_KEY: text}}
    return project_need(item, Interner(), lambda: TODAY)[1]


def projected(
    status: Any, *, name: str = "deployment-classifier", **spec: Any
) -> ProfileProjection | None:
    about = {"namespace": "vision", "name": name, "generation": 4, "uid": "u"}
    labels = {names.MANAGED_BY: names.CONTROLLER}
    item = {
        "metadata": {**about, "resourceVersion": "7", "labels": labels},
        "spec": {"targetRef": {"kind": "Deployment", "name": "classifier"}, **spec},
        "status": status or {},
    }
    return project_profile(item, Interner())[1]


def there(status: Any, **spec: Any) -> ProfileProjection:
    found = projected(status, **spec)
    assert found is not None
    return found


SUMMARIES = [need_summary()]
AT_CAP = [need_summary(target_bytes=None, capped=True)]
FIRST = change_of(there(None), SUMMARIES, NO_TERMS, NOW)
APPLIED = change_of(there(None, apply="AtCreate"), SUMMARIES, NO_TERMS, NOW)
THEIRS = there(None)._replace(made_by_us=False)
CHANGES = {
    "none yet": change_of(None, SUMMARIES, NO_TERMS, NOW),
    "made, and not written": FIRST,
    "written": change_of(there(FIRST.status), SUMMARIES, NO_TERMS, LATER),
    "one that turned": change_of(there(FIRST.status), AT_CAP, NO_TERMS, LATER),
    "hours alone": change_of(there(FIRST.status), [need_summary(held_seconds=1e6)], NO_TERMS, NOW),
    "applied": APPLIED,
    "applied no longer": change_of(there(APPLIED.status), SUMMARIES, NO_TERMS, NOW),
    **{
        f"no days, {spec}": change_of(there(None, **spec), [], NO_TERMS, NOW)
        for spec in ({}, {"apply": "AtCreate"}, {"margin": "20%"}, {"max": "9Gi"})
    },
    "no days, and made by others": change_of(THEIRS, [], NO_TERMS, NOW),
    "no days, and none": change_of(None, [], NO_TERMS, NOW),
}


def test_changes_of_profiles_are_those_reviewed() -> None:
    """Made, written and then left alone; only what turned has a new time; people's words stay."""
    cases = {title: leaves(change) for title, change in CHANGES.items()}

    assert_cases(FILES / "profiles.txt", cases)


STATUS = write_status(SUMMARIES, 2, {"server": 6 * GIB}) | {"conditions": [CONDITION]}
LOTS = {"containers": [{"name": "x", "card": "T4", "peak": "lots"}]}
READ = {
    "applied": projected(STATUS, apply="AtCreate"),
    "a forged status": projected(LOTS),
    "forged conditions": projected({"conditions": 7}),
    "a spec that cannot be read": projected({}, apply="Sometimes"),
    "another name than its owner's": projected({}, name="mine"),
}


def test_profiles_are_kept_as_reviewed() -> None:
    """Without figures; a forged status is another than any of ours, a wrong spec is none."""

    def shown(found: ProfileProjection | None) -> list[str]:
        if found is None:
            return ["  none"]
        said = found.profile
        words = (
            said.apply,
            dict(said.applied),
            said.containers,
            found.conditions,
            found.made_by_us,
        )
        return [f"  {word}" for word in words]

    assert_cases(FILES / "kept.txt", {title: shown(found) for title, found in READ.items()})


def test_times_are_no_news_and_sentences_are_small_news() -> None:
    """What a status says is one thing, what it decides another."""

    def status(at: str = NOW, **changes: Any) -> dict[str, Any]:
        said = [{**HELD, "lastTransitionTime": at}]
        return write_status([need_summary(**changes)], 2) | {"conditions": said}

    longer, more = status(held_seconds=1e6), status(peak_bytes=5 * GIB)

    assert whole_digest(status()) == whole_digest(status(LATER)) != whole_digest(longer)
    assert core_digest(status()) == core_digest(longer) != core_digest(more)


def test_a_need_is_kept_packed() -> None:
    """Days come out as they went in; those to come do not count, an empty one is as its object."""
    owner = owner_need(levels=((GIB, 80_000.0), (4 * GIB, 6_400.0)))
    need = kept(write_need(node_need(owner)))
    ahead = kept(write_need(node_need(owner_need(days=12))))
    empty = kept(write_need(node_need()), creationTimestamp="2026-10-01T00:00:00Z")

    assert owner == unpacked(*NEED_KEY[:3], need.owners[NEED_KEY])
    assert (TODAY, (T4,), "") == (need.newest, need.cards, need.trouble)
    assert (TODAY, "2026-10-01") == (ahead.newest, empty.newest)
    assert "" == project_need({}, Interner(), lambda: TODAY)[0]
    assert ("", None) == project_profile({"metadata": 7}, Interner())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "json"),
        ('{"v":9}', "version"),
        (write_need(node_need(owner_need(), node="other")), "it is of node other"),
        (7, "data"),
    ],
)
def test_what_no_agent_of_the_node_wrote_counts_for_nothing(text: object, expected: str) -> None:
    """It is kept why, and that is all."""
    need = kept(text)

    assert ({}, True) == (need.owners, expected in need.trouble.lower())


def test_needs_of_all_nodes_come_together_by_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the cards it ran on, unknown ones left out; later owners than the bound get none."""
    second = NEED_KEY._replace(container="second", card="unknown")
    zebra = owner_need(key=NEED_KEY._replace(name="zebra"))
    one, two = node_need(owner_need()), node_need(owner_need(key=second), node="gpu-2")
    found = by_owner(remembered(one, two))
    monkeypatch.setattr(figures, "MOST_OWNERS", 1)
    bounded = by_owner(remembered(node_need(owner_need(), zebra), one._replace(node="gpu-2")))

    assert {OWNER: (2, frozenset({T4}))} == {
        owner: (len(item.packed), item.cards) for owner, item in found.items()
    }
    assert {OWNER: 2} == {owner: len(item.packed) for owner, item in bounded.items()}
    assert {OWNER: there(None)} == profiles_by_owner([there(None)])


def test_fourteen_days_count() -> None:
    """Today, by no clock that is ahead of all nodes, and the thirteen before; then nothing."""
    needs = by_owner(remembered(node_need(owner_need())))[OWNER]

    def days(today: str) -> list[int]:
        return [item.days for item in needs_of(OWNER, needs, NO_TERMS, today)]

    assert ["2026-11-06", "2026-02-16"] == [first_day(x) for x in ("2026-11-19", "2026-03-01")]
    assert [TODAY] * 2 == [
        today_of(remembered(node_need(owner_need())), clock) for clock in ("2026-12-24", TODAY)
    ]
    assert "2026-12-24" == today_of([], "2026-12-24")
    assert [[9], [2], []] == [days(x) for x in (TODAY, "2026-11-21", "2026-12-21")]
    assert [] == needs_of(OWNER, RememberedNeeds(), NO_TERMS, TODAY)


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
    """Whatever it says of needs and cards, no target is smaller for it."""
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
    """An owner may bound its targets, never above what its namespace may have."""
    assert expected == terms_of(there(None, **said), ceiling).most_bytes
    assert ceiling == terms_of(None, ceiling).most_bytes
