"""What models need, remembered by real agents that come and go."""

import signal
from pathlib import Path
from typing import Any

from gpufence import names
from gpufence.need import NeedDay, NodeNeed, need_configmap, read_need
from gpufence.quantity import GIB, MIB
from kube import NotFoundError, core
from tests.support.agent.node_site import (
    GPU,
    WITHIN,
    AgentProcess,
    NodeSite,
    fenced_pod,
    place,
    workload,
)
from tests.support.agent.node_site import pod as pod_of
from tests.support.observing import wait_until

SOON = {"GPUFENCE_NEED_SECONDS": "0.5"}
HELD = GIB + 100 * MIB


def known(agent: AgentProcess) -> NodeNeed:
    return read_need(agent.get("/v1/need")[1])


def stored(site: NodeSite) -> NodeNeed | None:
    """Return what is in the node's ConfigMap; None where there is none."""
    path = core("namespaces", site.system, "configmaps", need_configmap(site.node.name))
    try:
        return read_need(site.admin.get(path)["data"][names.NEED_KEY])
    except NotFoundError:
        return None


def days(need: NodeNeed | None, namespace: str) -> dict[str, NeedDay]:
    """Return the newest day of each owner of a namespace, by its name."""
    return {
        owner.key.name: owner.days[-1]
        for owner in (need.owners if need else ())
        if owner.key.namespace == namespace
    }


def row_of(agent: AgentProcess, namespace: str, name: str) -> NeedDay:
    return days(known(agent), namespace).get(name, NeedDay("", 0))


def wait_for_peak(agent: AgentProcess, namespace: str, name: str, least: int) -> NeedDay:
    wait_until(
        lambda: row_of(agent, namespace, name).peak_bytes >= least,
        f"{agent.get('/v1/need')} {agent.lines[-5:]}",
    )
    return row_of(agent, namespace, name)


def owned(item: dict[str, Any], name: str) -> dict[str, Any]:
    """Have a pod made by a ReplicaSet of a Deployment."""
    item["metadata"]["labels"] = {"pod-template-hash": "6664c96cd5"}
    item["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": f"{name}-6664c96cd5",
            "uid": "3f0f6cf2-7a64-4c6c-9c0e-6a41a8b8a1a1",
            "controller": True,
        }
    ]
    return item


def test_restarts_forget_nothing(site: NodeSite, namespace: str, tmp_path: Path) -> None:
    """
    What one agent has measured is stored when it ends, and the next one goes on from there: with
    the peak, and without counting the pod again.
    """
    ground = site.ground(namespace)
    measured = tmp_path / "measured"
    place(ground, owned(fenced_pod("web-1", f"{WITHIN}; await {measured}; hold 500Mi"), "web"))
    with site.agent() as agent:
        first = wait_for_peak(agent, namespace, "web", HELD)
        measured.touch()
    at_end = days(stored(site), namespace)["web"]
    with site.agent() as agent:
        second = wait_for_peak(agent, namespace, "web", HELD)

    assert (HELD, 1, 1) == (first.peak_bytes, first.pods, first.started)
    assert (HELD, 1, 1) == (at_end.peak_bytes, at_end.pods, at_end.started)
    assert (HELD, 1, 1) == (second.peak_bytes, second.pods, second.started)
    assert second.held_seconds >= at_end.held_seconds


def test_it_is_stored_at_its_pace(site: NodeSite, namespace: str) -> None:
    """An agent that is killed without a word has lost no more than its pace."""
    ground = site.ground(namespace)
    place(ground, fenced_pod("model", WITHIN))
    with site.agent(**SOON) as agent:
        wait_for_peak(agent, namespace, "model", HELD)
        wait_until(lambda: "model" in days(stored(site), namespace), str(agent.lines[-5:]))
        agent.process.send_signal(signal.SIGKILL)
        agent.process.wait()
    row = days(stored(site), namespace)["model"]

    assert (HELD, 2 * GIB) == (row.peak_bytes, row.limit_bytes)


def test_out_of_memory_is_remembered(site: NodeSite, namespace: str, tmp_path: Path) -> None:
    """
    A PyTorch that its cap refuses memory ends, and its limit is remembered as one that was too
    little.
    """
    cap = {"name": names.PYTORCH_CONF, "value": "per_process_memory_fraction:0.093"}
    measured = tmp_path / "measured"
    script = f"hold 1Gi; await {measured}; hold 1900Mi"
    container = workload(script, "--framework", "torch", resources=GPU, env=[cap])
    item = pod_of("small", container, annotations={names.GPUSHARE_CARD_INDEX: "0"})
    ground = site.ground(namespace)
    place(ground, item)
    with site.agent() as agent:
        wait_for_peak(agent, namespace, "small", GIB)
        measured.touch()
        wait_until(
            lambda: row_of(agent, namespace, "small").out_of_memory_limit_bytes == 2 * GIB,
            f"{agent.get('/v1/need')} {ground.get('small')}",
        )
        row = row_of(agent, namespace, "small")

    assert (GIB, 0) == (row.peak_bytes, row.evictions)


def test_the_drivers_high_water_mark_sees_what_no_look_did(
    site: NodeSite, namespace: str, tmp_path: Path
) -> None:
    """Where the driver accounts, memory that came and went between two lists is the peak."""
    card = site.node.state.cards[1]
    card.accounting = True
    ground = site.ground(namespace)
    try:
        # The list that shows it at its start is made again when memory has moved, which it has not.
        seen = tmp_path / "seen"
        script = f"{WITHIN}; await {seen}; hold 1800Mi; hold 1Gi"
        place(ground, fenced_pod("spiky", script, card=1))
        with site.agent(GPUFENCE_LIST_MOVED="4Gi") as agent:
            wait_for_peak(agent, namespace, "spiky", HELD)
            seen.touch()
            row = wait_for_peak(agent, namespace, "spiky", 1800 * MIB)
    finally:
        card.accounting = False

    assert row.driver_peak
