"""What the controller remembers of needs and profiles."""

from typing import Any

import pytest

from controller.keepers.profiles.projections import (
    KeptNeed,
    core_digest,
    keep_need,
    keep_profile,
    unpacked,
    whole_digest,
)
from gpufence import names
from gpufence.need import need_configmap, write_need
from gpufence.need.profile import Apply, write_status
from gpufence.quantity import GIB
from kube.informers.interning import Interner
from tests.support.needs import NEED_KEY, T4, need_summary, node_need, owner_need

METADATA = {"name": need_configmap("gpu-1"), "uid": "u", "resourceVersion": "7"}
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Measured",
    "message": "",
    "lastTransitionTime": "2026-11-19T05:00:00Z",
}


def kept(text: object, **metadata: str) -> KeptNeed:
    item = {"metadata": METADATA | metadata, "data": {names.NEED_KEY: text}}
    return keep_need(item, Interner(), lambda: "2026-11-09")[1]


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
    uid, found = keep_profile(profile(status, apply="AtCreate"), Interner())

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
    _, found = keep_profile(profile(status), Interner())

    assert found is not None
    assert ({}, ()) == (found.profile.applied, found.conditions)


def test_a_spec_that_nobody_can_read_is_none() -> None:
    """The schema lets none through; where it is missing, nothing is made of it."""
    assert ("u", None) == keep_profile(profile({}, apply="Sometimes"), Interner())


def test_a_profile_with_another_name_than_its_owners_is_none() -> None:
    """There is one for each owner, which its name tells."""
    item = profile({})
    item["metadata"]["name"] = "mine"

    assert ("u", None) == keep_profile(item, Interner())


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
    assert "" == keep_need({}, Interner(), lambda: "2026-11-09")[0]
    assert ("", None) == keep_profile({"metadata": 7}, Interner())
