"""What models need and how pods ended, remembered by real agents that come and go."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gpufence import names
from gpufence.need import NeedDay, NodeNeed, need_configmap, read_need
from gpufence.nodes import configmap_name
from gpufence.quantity import GIB, MIB
from gpufence.records import NodeRecords, read_records
from kube import ConflictError, NotFoundError, core
from tests.support.agent.node_site import (
    GPU,
    WITHIN,
    AgentProcess,
    NodeSite,
    fenced_pod,
    place,
    wait_until_gone,
    workload,
)
from tests.support.agent.node_site import pod as pod_of
from tests.support.observing import wait_until

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


def kept(site: NodeSite) -> tuple[NodeRecords, list[tuple[str, str]]]:
    """Return what is in the node's ConfigMap, and the kinds and UIDs with which that goes."""
    name = configmap_name(names.WHY_PREFIX, site.node.name)
    try:
        raw = site.admin.get(core("namespaces", site.system, "configmaps", name))
    except NotFoundError:
        return NodeRecords(""), []
    owners = [(each["kind"], each["uid"]) for each in raw["metadata"]["ownerReferences"]]
    return read_records(raw["data"][names.WHY_KEY]), owners


@contextmanager
def in_place(site: NodeSite) -> Iterator[None]:
    """Have what the agent wrote stand where a person's plugin looks for it."""
    name = configmap_name(names.WHY_PREFIX, site.node.name)
    written = site.admin.get(core("namespaces", site.system, "configmaps", name))
    kept = {key: written["metadata"][key] for key in ("name", "labels")}
    with suppress(ConflictError):
        site.admin.post(core("namespaces"), {"metadata": {"name": names.SYSTEM_NAMESPACE}})
    beside = core("namespaces", names.SYSTEM_NAMESPACE, "configmaps")
    site.admin.post(beside, {**written, "metadata": kept})
    try:
        yield
    finally:
        site.admin.delete(f"{beside}/{name}")


def of(known: NodeRecords, namespace: str) -> list[str]:
    return [record.name for record in known.records if record.namespace == namespace]


def holds(agent: AgentProcess, namespace: str) -> list[int | None]:
    """Return what the one pod of a namespace held at its last two moments."""
    records = [
        each for each in shown(agent, "?only=running").records if each.namespace == namespace
    ]
    return [moment.used for record in records for moment in record.course[-2:]]


def shown(agent: AgentProcess, query: str = "") -> NodeRecords:
    return read_records(agent.get(f"/v1/why{query}")[1])


def test_an_evicted_pod_is_explained_when_pod_and_agent_are_gone(
    site: NodeSite, namespace: str, tmp_path: Path
) -> None:
    """
    The agent stores how a pod ended for as long as its Node is there, its successor has it too, and
    without any agent the plugin reads it from the ConfigMap.
    """
    ground = site.ground(namespace)
    grow = tmp_path / "grow"
    place(ground, fenced_pod("greedy", f"hold 1Gi; await {grow}; hold 3Gi"))
    with site.agent() as agent:
        wait_until(lambda: holds(agent, namespace) == [1124, 1124], agent.lines[-5:])
        grow.touch()
        wait_until_gone(ground, "greedy", agent)
        wait_until(lambda: "greedy" in of(shown(agent), namespace), agent.lines[-5:])
    with site.agent() as agent:
        wait_until(lambda: "greedy" in of(shown(agent), namespace), agent.lines[-5:])
    with in_place(site):
        said = site.plugin("why", "-n", namespace, "greedy")
    records, goes_with = kept(site)
    (record,) = [each for each in records.records if each.namespace == namespace]
    node = site.admin.get(core("nodes", site.node.name))

    assert [("Node", node["metadata"]["uid"])] == goes_with
    assert (0, "") == (said.returncode, said.stderr)
    assert "it passed its limit of 2048Mi" in said.stdout
    assert "it held 3172Mi and was evicted" in said.stdout
    assert ("evicted", 3 * GIB + 100 * MIB, 2 * GIB) == (
        record.kind,
        record.peak_bytes,
        record.limit_bytes,
    )
    assert (record.enough_bytes or 0) > 3 * GIB
