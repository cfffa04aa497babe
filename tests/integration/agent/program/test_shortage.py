"""Cards that are promised to several pods, of which one takes what the others do not hold yet."""

import time
from functools import partial

from gpufence import names
from kube import PatchType, core, group
from simulator.controlplane import ControlPlane
from tests.support.agent.node_site import (
    Ground,
    NodeSite,
    events,
    fenced_pod,
    is_gone,
    place,
    wait_until_gone,
)
from tests.support.observing import eventually

THEFT = "hold 13600Mi"
"""With contexts and what the driver keeps, this leaves some 1.2 GiB free: more than the floor."""

FILLING = "hold 12300Mi"
TOLERATED = "hold 2Gi"
IDLE = "hold 100Mi"
LONG_GRACE = {"GPUFENCE_GRACE_SECONDS": "600"}


def test_theft_of_an_idle_neighbours_promise_ends(site: NodeSite, namespace: str) -> None:
    """
    Where only those go who hurt somebody, who takes what a neighbour was promised goes while the
    neighbour has not asked for it, and in the grace.
    """
    ground = site.ground(namespace)
    place(ground, fenced_pod("idle", IDLE), fenced_pod("greedy", THEFT))
    with site.agent(GPUFENCE_EVICT_WHEN="short", **LONG_GRACE) as agent:
        wait_until_gone(ground, "greedy", agent)

    assert not is_gone(ground, "idle")


def test_a_budget_shields_no_theft(site: NodeSite, namespace: str) -> None:
    """A disruption budget that lets nobody go holds the thief for three refusals."""
    ground = site.ground(namespace)
    greedy = fenced_pod("greedy", THEFT)
    greedy["metadata"]["labels"] = {"app": "web"}
    _shield(ground)
    place(ground, fenced_pod("idle", IDLE), greedy)
    settings = {"GPUFENCE_REFUSED_BACKOFF_SECONDS": "0.2"}
    with site.agent(**settings, **LONG_GRACE) as agent:
        wait_until_gone(ground, "greedy", agent)
        told = eventually(lambda: bool(events(ground, names.EVICTION_BLOCKED)))

    assert told
    assert not is_gone(ground, "idle")


def test_a_tolerated_pod_pays_for_no_stranger(
    site: NodeSite, control_plane: ControlPlane, namespace: str
) -> None:
    """
    When a pod of an unlabelled namespace fills the card, a pod within the margin stays, and the
    Node's Event names the stranger.
    """
    ground = site.ground(namespace)
    with control_plane.fresh_namespace() as other:
        free = Ground(site.plane, other, site.node, site.admin)
        site.fenced.append(other)
        place(free, fenced_pod("stranger", FILLING))
        place(ground, fenced_pod("idle", IDLE), fenced_pod("innocent", TOLERATED))
        with site.agent(GPUFENCE_UNATTRIBUTED_HOLD_SECONDS="0.4", **LONG_GRACE):
            assert eventually(partial(_was_named, site, "stranger"))
            time.sleep(2)

        spared = not is_gone(ground, "innocent") and not is_gone(ground, "idle")
        site.clear()

    assert spared


def _was_named(site: NodeSite, name: str) -> bool:
    found = site.admin.get(core("namespaces", "default", "events"))["items"]
    return any(
        item["reason"] == names.SHORT
        and item["involvedObject"]["name"] == site.node.name
        and f"Pod {name} " in item["message"]
        for item in found
    )


def _shield(ground: Ground) -> None:
    """Make a disruption budget that lets nobody go, as its controller would keep it."""
    path = group("policy/v1", "namespaces", ground.namespace, "poddisruptionbudgets")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    made = ground.admin.post(path, {"metadata": {"name": "nobody"}, "spec": spec})
    said = {"observedGeneration": made["metadata"]["generation"], "disruptionsAllowed": 0}
    counts = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    ground.admin.patch(f"{path}/nobody/status", {"status": said | counts}, PatchType.MERGE)
