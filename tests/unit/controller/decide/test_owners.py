"""Since when all pods of an owner have been idle, and what stands against its release."""

from typing import Any

import pytest

from controller.decide import decide
from controller.model import OwnerState, PodState, ReleaseMemory, ReleaseRules, Standing, Way
from gpufence import names
from gpufence.errors import annotation_problem
from gpufence.idle import IdleRung, ReleaseNote, ReleasePhase, WakeBy, WithoutGpu
from gpufence.pods import ClaimUse
from tests.support.release import NOW, WORDS, cluster, idle_pod, owner_state, pod_state, waiting_pod

RULES = ReleaseRules()
BUSY = pod_state("busy", idle="False", idle_at=NOW - 60)
IDLE_SINCE = "all its pods have been idle since 2027-01-15T07:30:00Z"
NOTE = ReleaseNote(ReleasePhase.WOKEN, NOW - 7200, 1, "idle", woken_at=NOW - 3600)


def standing(owner: OwnerState, *others: PodState) -> Standing:
    return decide(cluster(owner, pods=others), ReleaseMemory(), RULES).standings[owner.key]


def found(*pods: PodState) -> tuple[str, str]:
    item = standing(owner_state(*pods, replicas=max(len(pods), 1)))
    return item.state, item.why


def test_an_owner_is_idle_since_the_last_of_its_pods_is() -> None:
    """The condition came a minute after the pod's last work."""
    owner = owner_state(idle_pod("a", minutes=40), idle_pod("b", minutes=10))
    item = standing(owner)
    expected = "all its pods have been idle since 2027-01-15T07:50:00Z"

    assert ("idle", expected, NOW - 600) == (item.state, item.why, item.idle_since)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([idle_pod("a"), BUSY], ("busy", "pod busy uses its GPU")),
        ([pod_state("b", idle="Unknown"), BUSY], ("busy", "pod busy uses its GPU")),
        (
            [idle_pod("a"), pod_state("b", idle="Unknown")],
            ("unknown", "pod b cannot be measured, as its condition says"),
        ),
        (
            [idle_pod("a"), pod_state("b")],
            ("unknown", "pod b has not been idle for long enough to be called so"),
        ),
        (
            [pod_state("b", idle="True")],
            ("unknown", "pod b has not been idle for long enough to be called so"),
        ),
        ([], ("unknown", "none of its pods has a GPU yet")),
        ([waiting_pod("a")], ("unknown", "none of its pods has a GPU yet")),
        ([idle_pod("a", terminating=True)], ("unknown", "none of its pods has a GPU yet")),
    ],
)
def test_what_nobody_can_tell_is_never_idle(
    pods: list[PodState], expected: tuple[str, str]
) -> None:
    """One pod that works makes its owner busy, one that is unknown makes it unknown."""
    assert expected == found(*pods)


def test_pods_that_end_say_nothing() -> None:
    """Idle is what holds of those that stay."""
    ending = pod_state("ending", idle="False", terminating=True)
    leader = pod_state("leader", gpu=None, terminating=True)

    assert "idle" == found(idle_pod(), ending, leader)[0]


SETUP = [{"name": "setup", "resources": {"limits": {names.NVIDIA_GPU: "1"}}}]
UNMEASURED = {
    "elsewhere": (pod_state("cpu", gpu=None, node="cpu-node"), "asks for no GPU"),
    "unscheduled": (pod_state("cpu", gpu=None, node="", waiting_since=NOW - 60), "asks for no GPU"),
    "init-only": (
        idle_pod("setup", limits={}, spec={"initContainers": SETUP}),
        "asks for a GPU in its init containers only",
    ),
    "initializing": (idle_pod("loader", initializing=True), "has not finished its init containers"),
}


@pytest.mark.parametrize(("pod", "expected"), UNMEASURED.values(), ids=UNMEASURED)
def test_a_pod_that_works_without_a_gpu_makes_its_owner_unknown(
    pod: PodState, expected: str
) -> None:
    """Nobody measures what it does."""
    state, why = found(idle_pod("a"), pod)

    assert "unknown" == state
    assert why.startswith(f"pod {pod.name} {expected}")
    assert names.PODS_WITHOUT_GPU in why


@pytest.mark.parametrize(("pod", "unused"), UNMEASURED.values(), ids=UNMEASURED)
def test_an_operator_may_have_pods_without_gpus_ignored(pod: PodState, unused: str) -> None:
    """Then those with a GPU decide; a pod that uses one makes its owner busy as ever."""
    del unused
    words = WORDS._replace(without_gpu=WithoutGpu.IGNORE)
    owner = owner_state(idle_pod("a"), pod, words=words)
    working = owner_state(BUSY, pod, words=words)

    assert "idle" == standing(owner).state
    assert "busy" == standing(working).state


def test_an_init_container_that_stays_is_no_end_of_the_gpu() -> None:
    """A sidecar runs for as long as its pod."""
    sidecar = [{**SETUP[0], "restartPolicy": "Always"}]

    assert "idle" == found(idle_pod("a", limits={}, spec={"initContainers": sidecar}))[0]


def test_a_claim_or_an_annotation_is_a_gpu_as_well() -> None:
    """An init container that asks for one besides changes nothing."""
    shared = {"gpu-fraction": "0.5"}
    annotated = idle_pod("a", limits={}, annotations=shared, spec={"initContainers": SETUP})
    claiming = idle_pod("b", limits={}, spec={"initContainers": SETUP})
    assert claiming.gpu is not None
    (early, regular) = claiming.gpu.containers
    claimed = claiming.gpu._replace(containers=(early, regular._replace(claims=(ClaimUse("gpu"),))))

    assert "idle" == found(annotated, claiming._replace(gpu=claimed))[0]


def test_a_pod_that_no_node_takes_does_nothing() -> None:
    """Its time begins when it began to wait."""
    owner = owner_state(idle_pod("a", minutes=60), waiting_pod("b", seconds=120))

    assert NOW - 120 == standing(owner).idle_since


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"way": Way.NEVER, "why_not": "HorizontalPodAutoscaler web scales it"},
            "HorizontalPodAutoscaler web scales it",
        ),
        ({"way": Way.NEVER}, "nothing that gpufence may scale owns its pods"),
        (
            {"rung": None},
            (
                "its namespace has no label gpufence.io/idle of report, warn or release: "
                "it is only measured"
            ),
        ),
        ({"rung": IdleRung.REPORT}, "gpufence.io/idle is only report here"),
        ({"words": None}, "its annotations or its replicas cannot be read"),
        ({"replicas": None}, "its annotations or its replicas cannot be read"),
        (
            {
                "words": WORDS._replace(
                    problems=(annotation_problem("k", "v", "is bad", "mend it"),)
                )
            },
            'metadata.annotations[k]: "v" is bad; mend it',
        ),
        (
            {"budget": 1},
            "a release takes all its 2 pods at once, and their PodDisruptionBudget lets 1 go",
        ),
        (
            {"words": WORDS._replace(wake=WakeBy.WHEN_FREE)},
            "it comes back when its place is free, so it is released only for a waiting pod",
        ),
        ({"budget": 2}, IDLE_SINCE),
        (
            {"rung": IdleRung.WARN},
            f"{IDLE_SINCE}; nothing is done at it, since gpufence.io/idle is warn",
        ),
        ({}, IDLE_SINCE),
    ],
)
def test_what_stands_against_a_release_is_said(changes: dict[str, Any], sentence: str) -> None:
    """A person reads why an idle owner stays."""
    owner = owner_state(idle_pod("a"), idle_pod("b"))._replace(**changes)

    assert sentence == standing(owner).why


def test_who_comes_back_by_himself_goes_for_others() -> None:
    """Contention is what an owner that wakes when free gives way to."""
    owner = owner_state(idle_pod(), words=WORDS._replace(wake=WakeBy.WHEN_FREE))

    item = standing(owner, waiting_pod(requests={names.NVIDIA_GPU: 2}))

    assert (IDLE_SINCE, NOW + 30) == (item.why, item.deadline)


def hold(owner: OwnerState) -> tuple[float | None, str, str]:
    item = standing(owner)
    return item.deadline, item.why, item.state


def test_nothing_holds_an_owner_that_has_run_for_long() -> None:
    """What is over holds nobody."""
    words = WORDS._replace(keep_until=NOW - 1)
    note = NOTE._replace(left_alone_until=NOW - 1)
    free = NOW + 300, IDLE_SINCE, "idle"

    assert free == hold(owner_state(idle_pod(), words=words, note=note))
    assert free == hold(owner_state(idle_pod(), note=NOTE._replace(woken_at=None)))
    assert NOW + 780 == hold(owner_state(idle_pod("a"), waiting_pod("b")))[0]


def test_an_owner_warms_up() -> None:
    """The youngest pod counts from when it was ready, one that never was from when it was idle."""
    why = "its youngest pod was ready less than 15 min 0 s ago"
    ready = owner_state(idle_pod("a"), idle_pod("b", ready_at=NOW - 600))
    never = owner_state(idle_pod("a", ready_at=None, minutes=10))

    assert (NOW + 300, why, "idle") == hold(ready)
    assert (NOW - 540 + 900, why, "idle") == hold(never)


def test_a_word_keeps() -> None:
    """What is to be kept is shown as kept."""
    owner = owner_state(idle_pod(), words=WORDS._replace(keep_until=NOW + 3600))

    assert (NOW + 3600, "it is to be kept until 2027-01-15T09:00:00Z", "kept") == hold(owner)


def test_what_came_back_has_its_peace() -> None:
    """For half an hour after a wake nobody takes it again."""
    owner = owner_state(idle_pod(), note=NOTE._replace(woken_at=NOW - 600))

    assert (NOW + 1200, "it came back less than 30 min 0 s ago", "idle") == hold(owner)


def test_what_was_contested_is_left_alone() -> None:
    """The latest of all that holds is what is said."""
    note = NOTE._replace(woken_at=NOW - 600, left_alone_until=NOW + 7200)
    why = "its release was contested, so it is left alone until 2027-01-15T10:00:00Z"

    assert (NOW + 7200, why, "kept") == hold(owner_state(idle_pod(), note=note))
