"""What the doctor finds of tenants' words and pods, and what it calls young."""

from dataclasses import replace
from typing import Any

import pytest

from gpufence import names
from gpufence.errors import Level
from gpufence.mode import Mode
from gpufence.times import read_moment
from kubectl_gpufence.pods import SeenEvent
from kubectl_gpufence.verbs.doctor import examine
from kubectl_gpufence.verbs.doctor.installation import (
    LabelledNamespace,
    MaybeHidden,
    read_labelled,
    read_quota,
)
from kubectl_gpufence.verbs.doctor.starting import is_rolling
from tests.support import verb_cases
from tests.support.plugin import seen_pod

FINE = verb_cases.healthy()


def rolled(at: str) -> dict[str, Any]:
    """Build a Deployment of long ago that had its last progress then."""
    going = {"type": "Progressing", "status": "True", "lastUpdateTime": at}
    made = {"creationTimestamp": "2025-01-01T00:00:00Z"}
    return {"metadata": made, "status": {"conditions": [going]}}


def texts(**changes: Any) -> str:
    return " ".join(item.text for item in examine(replace(FINE, **changes)))


def test_what_tenants_wrote_wrongly_is_listed_with_its_remedy() -> None:
    """A word on a namespace is listed once, one on pods with the names of those that have it."""
    words = {names.MEMORY: "6GB", names.UNDECLARED_USE: "evcit"}
    labels = {names.MODE: "cap", names.IDLE: "relase"}
    space = read_labelled({"metadata": {"name": "team-a", "labels": labels, "annotations": words}})
    own = seen_pod(mode=Mode.CAP, annotations={names.HEADROOM: "much"}, namespace=words)
    found = examine(
        replace(FINE, namespaces=MaybeHidden([space]), pods=MaybeHidden([own])),
    )
    said = {item.text: item.remedy for item in found if item.level in (Level.WRONG, Level.LOOK)}

    assert [
        'team-a has gpufence.io/idle: "relase", which counts as none at all',
        'team-a has gpufence.io/undeclared: "evcit", which is not a choice',
        'team-a has gpufence.io/memory: "6GB", which',
        '1 pod with gpufence.io/headroom: "much", which is not a choice: team-a/trainer-0',
    ] == [text[:43] if "6GB" in text else text for text in said]
    assert "write one of report, evict" in said[[*said][1]]


def test_what_comes_to_the_same_end_again_is_named() -> None:
    """An owner whose pods were evicted more than once, by the Events on it."""
    owner = SeenEvent("", names.EVICTED, 3, "evicted", "team-a/ReplicaSet/greedy")
    pod_and_other = (owner._replace(about="team-a/Pod/greedy-1"), owner._replace(times=1))
    once = pod_and_other[1]._replace(about="team-a/ReplicaSet/once")
    told = texts(events=MaybeHidden([owner, *pod_and_other, once]))

    assert "1 owner evicted again and again: team-a/ReplicaSet/greedy (4 times)" in told
    assert "again" not in texts(events=MaybeHidden([once]))


@pytest.mark.parametrize(
    ("deployment", "young"),
    [
        ({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}, True),
        ({"metadata": {"creationTimestamp": "2025-12-31T23:00:00Z"}}, False),
        (rolled("2026-01-01T00:00:30Z"), True),
        (rolled("2025-12-31T23:00:00Z"), False),
        (rolled("yesterday"), False),
        ({}, False),
    ],
)
def test_a_rollout_is_young_for_two_minutes(deployment: dict[str, Any], *, young: bool) -> None:
    """By when the Deployment was made or went on last."""
    assert young == is_rolling(read_moment("2026-01-01T00:01:40Z", "now"), deployment)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([], [(Level.OK, "2 fenced namespaces without a quota on GPU memory: team-a, team-b")]),
        (
            ["cpu"],
            [(Level.OK, "2 fenced namespaces without a quota on GPU memory: team-a, team-b")],
        ),
        (
            ["cpu", "requests.aliyun.com/gpu-mem"],
            [(Level.LOOK, "1 fenced namespace without a quota on GPU memory: team-b")],
        ),
        (
            ["gpu.deviceclass.resource.k8s.io/devices"],
            [(Level.LOOK, "1 fenced namespace without a quota on GPU memory: team-b")],
        ),
    ],
)
def test_a_namespace_without_a_quota_is_named(
    counts: list[str], expected: list[tuple[Level, str]]
) -> None:
    """It is worth a look where another one has a quota, and nobody's mistake where none has."""
    hard = dict.fromkeys(counts, "8")
    quota = {"metadata": {"namespace": "team-a"}, "spec": {"hard": hard}}
    teams = MaybeHidden([LabelledNamespace(name, "evict") for name in ("team-a", "team-b")])
    found = examine(
        replace(FINE, namespaces=teams, quotas=MaybeHidden([read_quota(quota)])),
    )

    assert expected == [(item.level, item.text) for item in found if item.subject == "quotas"]


def test_quotas_that_may_not_be_seen_are_not_missed() -> None:
    """Without the right to list them nothing is said."""
    teams = MaybeHidden([LabelledNamespace("team-a", "evict")])
    changed = replace(FINE, namespaces=teams, quotas=MaybeHidden(hidden="you may not see quotas"))

    assert "quotas" not in {item.subject for item in examine(changed)}
