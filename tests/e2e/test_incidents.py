"""
What goes wrong for a tenant, and that its cause and remedy stand where a person looks first:
`kubectl describe`, `kubectl get events`, `kubectl gpufence explain` and `why`, and the page; `-s`
prints it all.
"""

import pytest

from gpufence import names
from tests.e2e.desk import Desk
from tests.e2e.site import RealSite, deployment, pod
from tests.support.browser import Tab
from tests.support.site import AGENT, WEBHOOK

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

TORCH = ("--framework=torch", "--context=300Mi", "hold 1Gi; after 1s grow 1Gi/s to 6Gi")
GREEDY = "hold 1Gi; after 2s grow 1Gi/s to 5Gi"


@pytest.fixture
def desk(site: RealSite, team: str, tab: Tab) -> Desk:
    return Desk(site, team, tab)


def test_a_refused_pod(desk: Desk, team: str) -> None:
    """The refusal names field, value and remedy."""
    made = pod(team, "small")
    made["metadata"]["annotations"] = {names.MEMORY: "6GB5"}

    said = desk.create(made)

    assert names.MEMORY in said
    assert "6GB5" in said


def test_a_refused_deployment(site: RealSite, desk: Desk, team: str) -> None:
    """A Deployment without pods is explained by what its pods were refused for."""
    made = deployment(team, "small")
    made["spec"]["template"]["metadata"]["annotations"] = {names.MEMORY: "200Mi"}
    site.apply(made)
    site.until(
        lambda: bool(site.events(team, "FailedCreate", "ReplicaSet")), "the refusal was noted"
    )
    desk.events()

    said = desk.explain("deploy/small")

    desk.describe("deploy/small")
    assert "200Mi" in said
    assert "In the pod's template, change what the refusal names" in desk.why("deploy/small")
    assert "gpufence refuses this pod: " in desk.page()


def test_out_of_memory_at_its_cap(site: RealSite, desk: Desk, team: str) -> None:
    """A pod that ends at its cap hears what it asked for, what it may use, and what gives more."""
    site.apply(deployment(team, "torch", *TORCH))
    site.until(lambda: bool(site.events(team, "GPUMemoryCapReached")), "the end was explained")
    desk.events()

    said = desk.explain("deploy/torch")

    desk.describe("pods")
    desk.ask("top")
    assert "GPUMemoryCapReached" in desk.page()
    assert "of 3072Mi asked for it may allocate 2150Mi" in desk.why("deploy/torch")
    assert "would do" in said


def test_an_evicted_pod(site: RealSite, desk: Desk, team: str) -> None:
    """Of a pod that is gone it can be read why, and what its successor has to ask for."""
    site.apply(deployment(team, "greedy", GREEDY))
    first = site.pod_of(team, "greedy")["metadata"]["name"]
    site.until(lambda: bool(site.events(team, names.EVICTED)), "it was evicted")
    site.until(lambda: first not in str(site.pods(team, "greedy", running=False)), "it was gone")

    desk.events()
    assert "Evicted: 5120 of 3072 MiB" in desk.explain(first)
    assert "lost a pod by eviction" in desk.explain("deploy/greedy")
    said = desk.why(first)

    assert "GPUMemoryEvicted" in desk.page()
    assert "it held 5120Mi and was evicted" in said
    assert "would do" in said


def test_an_evicted_pod_of_a_deleted_owner(site: RealSite, desk: Desk, team: str) -> None:
    """With owner and pods gone, the record is left."""
    site.apply(deployment(team, "greedy", GREEDY))
    first = site.pod_of(team, "greedy")["metadata"]["name"]
    site.until(lambda: bool(site.events(team, names.EVICTED)), "it was evicted")
    site.cluster.kubectl("delete", "deployment", "greedy", "--namespace", team)

    desk.explain(first)
    desk.page()
    assert "was evicted" in desk.why(first)
    assert "limit of 3072Mi" in desk.why("deploy/greedy")


def test_a_crash_loop(site: RealSite, desk: Desk, team: str) -> None:
    """A program that ends for a reason of its own is not blamed on its memory."""
    site.apply(deployment(team, "broken", "hold 1Gi; after 1s exit 3"))
    site.until(lambda: bool(site.events(team, "BackOff")), "it crashed again and again")

    said = desk.explain("deploy/broken")

    desk.events()
    desk.describe("pods")
    desk.ask("top")
    desk.page()
    assert "ended with exit code 3" in said
    assert "its cap" not in said


def test_the_agent_is_away(site: RealSite, desk: Desk, team: str) -> None:
    """What is not measured is not said to be well."""
    site.apply(deployment(team, "modest"))
    site.pod_of(team, "modest")
    nowhere = '{"spec":{"template":{"spec":{"nodeSelector":{"gpufence.io/nowhere":"yes"}}}}}'
    back = '[{"op":"remove","path":"/spec/template/spec/nodeSelector/gpufence.io~1nowhere"}]'
    site.system("patch", "daemonset", AGENT, "--patch", nowhere)
    site.until(lambda: not site.pods(names.SYSTEM_NAMESPACE, AGENT, running=False), "it was away")
    try:
        said = desk.explain("deploy/modest")
        desk.ask("top")
        desk.ask("doctor")
        desk.page()
    finally:
        site.system("patch", "daemonset", AGENT, "--type=json", "--patch", back)
        site.system("rollout", "status", f"daemonset/{AGENT}", "--timeout=100s")

    assert "not measured" in said


def test_the_webhook_was_away(site: RealSite, desk: Desk, team: str) -> None:
    """A pod that was created without the webhook says so, and what to do."""
    site.system("scale", f"deployment/{WEBHOOK}", "--replicas=0")
    site.until(lambda: not site.pods(names.SYSTEM_NAMESPACE, WEBHOOK, running=False), "it was away")
    try:
        site.apply(deployment(team, "early"))
        site.pod_of(team, "early")
        desk.ask("doctor")
    finally:
        site.system("scale", f"deployment/{WEBHOOK}", "--replicas=2")
        site.system("rollout", "status", f"deployment/{WEBHOOK}", "--timeout=100s")
    said = desk.explain("deploy/early")
    desk.page()

    assert "webhook" in said


def test_an_unreadable_annotation_of_a_namespace(site: RealSite, tab: Tab) -> None:
    """A namespace's annotation that cannot be read is named with its value and the remedy."""
    with site.namespace("evict", **{names.MAX_MEMORY: "6GB5"}) as name:
        desk = Desk(site, name, tab)
        site.apply(deployment(name, "trainer"))
        desk.events()
        desk.explain("deploy/trainer")
        desk.page()
        said = desk.ask("doctor")

    assert "6GB5" in said
