"""The whole way, on a real node: from a label on a namespace to an explained eviction."""

import pytest

from gpufence import names
from tests.e2e.site import SYSTEM, RealSite, deployment, notes, pod, restarts
from tests.support.site import AGENT, WEBHOOK

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

EVICTED = names.EVICTED
# 3 GiB of a T4 with 15360 MiB: 0.7 of the limit, which leaves more than the context's 512 MiB.
ALLOWANCE = 3 * 2**30 * 7 // 10
FRACTION = "0.140000"


def test_values_are_exact_in_the_environment(site: RealSite, team: str) -> None:
    """A container starts with the values for the card of the node that its pod was bound to."""
    site.apply(deployment(team, "trainer"))

    found = site.environment(site.pod_of(team, "trainer"))

    assert {
        "PYTORCH_ALLOC_CONF": f"per_process_memory_fraction:{FRACTION}",
        "XLA_PYTHON_CLIENT_MEM_FRACTION": FRACTION,
        "XLA_CLIENT_MEM_FRACTION": "",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "CUPY_GPU_MEMORY_LIMIT": str(ALLOWANCE),
        "FLAGS_gpu_memory_limit_mb": str(ALLOWANCE // 2**20),
        "JULIA_CUDA_HARD_MEMORY_LIMIT": f"{ALLOWANCE // 2**20}MiB",
        "GPUFENCE_MEMORY_LIMIT_BYTES": str(ALLOWANCE),
        "GPUFENCE_MEMORY_FRACTION": FRACTION,
    }.items() <= found.items()


def test_a_framework_stays_within_its_limit(site: RealSite, team: str) -> None:
    """A PyTorch that wants more than its pod may have runs out of memory at its own cap."""
    site.apply(pod(team, "torch", "--framework=torch", "hold 2Gi; grow 512Mi/s to 6Gi"))
    where = ("--namespace", team, "torch")

    site.until(
        lambda: "OutOfMemoryError" in site.cluster.kubectl("logs", *where, check=False).stdout,
        "PyTorch ran out of memory",
    )

    assert [] == site.events(team, EVICTED)


def test_a_violator_is_evicted_and_replaced(site: RealSite, team: str) -> None:
    """A pod over its limit is evicted, with the reason; its successor gets the same limit."""
    site.apply(
        deployment(team, "modest", "hold 2Gi"),
        deployment(team, "greedy", "hold 1Gi; after 2s grow 1Gi/s to 5Gi"),
    )
    modest, greedy = site.pod_of(team, "modest"), site.pod_of(team, "greedy")

    site.until(lambda: bool(site.events(team, EVICTED)), "somebody was evicted")
    successor = site.pod_of(team, "greedy")

    (event,) = site.events(team, EVICTED)
    assert greedy["metadata"]["uid"] == event["involvedObject"]["uid"]
    assert "trainer" in event["message"]
    assert "3072 MiB" in event["message"]
    assert greedy["metadata"]["uid"] != successor["metadata"]["uid"]
    assert "yes" == notes(successor)[names.INJECTED]
    assert FRACTION == site.environment(successor)["GPUFENCE_MEMORY_FRACTION"]
    assert modest["metadata"]["uid"] == site.pod_of(team, "modest")["metadata"]["uid"]


def test_the_owner_is_told_of_an_eviction(site: RealSite, team: str) -> None:
    """The event can be read at the ReplicaSet, which is still there when the pod is not."""
    site.apply(deployment(team, "greedy", "hold 5Gi"))

    site.until(lambda: bool(site.events(team, EVICTED, "ReplicaSet")), "the owner was told")

    (event,) = site.events(team, EVICTED, "ReplicaSet")
    assert event["involvedObject"]["name"].startswith("greedy-")


def test_nobody_is_touched_without_a_label(site: RealSite) -> None:
    """A pod in a namespace without a mode keeps its environment, and its memory, however much."""
    with site.namespace("observe") as name:
        site.cluster.kubectl("label", "namespace", name, f"{names.MODE}-")
        site.apply(deployment(name, "stranger", "hold 5Gi"))
        stranger = site.pod_of(name, "stranger")

        assert "PYTORCH_ALLOC_CONF" not in site.environment(stranger)
        assert {} == notes(stranger)


def test_pods_are_made_while_the_webhook_is_away(site: RealSite, team: str) -> None:
    """Without a webhook pods start all the same, and say by what they lack that nobody saw them."""
    site.system("scale", f"deployment/{WEBHOOK}", "--replicas=0")
    site.until(lambda: not site.pods(SYSTEM[1], WEBHOOK, running=False), "the webhook was away")
    try:
        site.apply(deployment(team, "early"))

        assert names.INJECTED not in notes(site.pod_of(team, "early"))
    finally:
        site.system("scale", f"deployment/{WEBHOOK}", "--replicas=2")
        site.system("rollout", "status", f"deployment/{WEBHOOK}", "--timeout=100s")


def test_a_killed_webhook_heals(site: RealSite, team: str) -> None:
    """Both replicas are killed, start again by themselves, and write limits as before."""
    before = site.pods(SYSTEM[1], WEBHOOK)
    for one in before:
        site.kill(one)

    site.until(
        lambda: (
            [restarts(one) + 1 for one in before]
            == [restarts(one) for one in site.pods(SYSTEM[1], WEBHOOK)]
        ),
        "both replicas were back",
    )

    assert "yes" == notes(site.admitted(pod(team, "late")))[names.INJECTED]


def test_a_killed_agent_heals(site: RealSite, team: str) -> None:
    """The agent is killed, starts again by itself, and evicts whoever takes too much."""
    site.apply(deployment(team, "modest", "hold 2Gi"))
    modest = site.pod_of(team, "modest")
    (before,) = site.pods(SYSTEM[1], AGENT)
    site.kill(before)

    site.until(
        lambda: [restarts(before) + 1] == [restarts(one) for one in site.pods(SYSTEM[1], AGENT)],
        "the agent was back",
    )
    site.apply(deployment(team, "greedy", "hold 5Gi"))
    site.until(lambda: bool(site.events(team, EVICTED)), "the violator was evicted")

    assert modest["metadata"]["uid"] == site.pod_of(team, "modest")["metadata"]["uid"]
