"""What the agents say just before a release."""

from typing import Any

import pytest

from controller.decide import last_look, why_not
from controller.model import LastLook
from gpufence.snapshot import PodActivityRow, PodRow, Snapshot
from tests.support.release import idle_pod, owner_state, pod_state, waiting_pod

IDLE = PodActivityRow("idle", 1200.0, "NoKernels")


def pod_row(name: str = "worker-0", **changes: Any) -> PodRow:
    return PodRow(f"uid-of-{name}", "team-a", name, activity=IDLE)._replace(**changes)


def snapshot(*pods: PodRow, **changes: Any) -> Snapshot:
    at = "2027-01-15T08:00:00Z"
    whole = Snapshot("node-1", "1", at, at, fresh=True, stale_seconds=1.0, pods=pods)
    return whole._replace(**changes)


def test_all_agents_must_say_idle() -> None:
    """The least idle of the pods counts; pods that end or have no GPU are not asked about."""
    owner = owner_state(
        idle_pod("a"),
        idle_pod("b", node="node-2"),
        waiting_pod("c"),
        idle_pod("d", terminating=True),
        pod_state("e", gpu=None),
    )
    snapshots = {
        "node-1": snapshot(pod_row("a")),
        "node-2": snapshot(pod_row("b", activity=IDLE._replace(idle_seconds=900.0)), node="node-2"),
    }

    assert LastLook(900.0) == last_look(owner, snapshots)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "the agent of node node-1 does not answer"),
        (
            snapshot(pod_row(), node="node-9"),
            "who answers for node node-1 is the agent of node-9",
        ),
        (
            snapshot(pod_row(), fresh=False),
            "the agent of node node-1 cannot tell: it does not hear from the API server",
        ),
        (
            snapshot(pod_row(), trouble="NVML hangs"),
            "the agent of node node-1 cannot tell: NVML hangs",
        ),
        (
            snapshot(pod_row(), stale_seconds=10.5),
            "what the agent of node node-1 knows is too old",
        ),
        (
            snapshot(pod_row(), stale_seconds=None),
            "what the agent of node node-1 knows is too old",
        ),
        (snapshot(), "the agent of node node-1 does not tell what pod worker-0 does"),
        (
            snapshot(pod_row(uid="another")),
            "the agent of node node-1 does not tell what pod worker-0 does",
        ),
        (
            snapshot(pod_row(activity=None)),
            "the agent of node node-1 does not tell what pod worker-0 does",
        ),
        (
            snapshot(pod_row(activity=PodActivityRow("busy", 0.0, "Busy"))),
            "pod worker-0 is busy",
        ),
        (
            snapshot(pod_row(activity=PodActivityRow("unknown", None, "x", "MPS is there"))),
            "pod worker-0 is unknown (MPS is there)",
        ),
        (
            snapshot(pod_row(activity=IDLE._replace(idle_seconds=None))),
            "nobody can tell since when pod worker-0 has been idle",
        ),
    ],
)
def test_whoever_does_not_say_idle_speaks_against_it(answer: Snapshot | None, why: str) -> None:
    """Silence, old news, another pod and anything but idle end a release."""
    look = last_look(owner_state(idle_pod()), {"node-1": answer})

    assert LastLook(None, why) == look
    assert why == why_not(look, 60)


def test_an_owner_without_pods_is_not_looked_at() -> None:
    """Where there is nobody, nobody is idle."""
    assert LastLook(None, "it has no pod on any node") == last_look(owner_state(), {})


def test_idle_must_have_been_long_enough() -> None:
    """Whoever worked after the condition was written is found out."""
    assert "" == why_not(LastLook(900.0), 900)
    assert "one of its pods has been idle for 14 min 59 s only" == why_not(LastLook(899.0), 900)
    assert "nobody can tell" == why_not(LastLook(None), 900)
