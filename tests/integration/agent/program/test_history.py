"""How pods ended, recorded by a real agent, and there when pod and agent are gone."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpufence import names
from gpufence.nodes import configmap_name
from gpufence.quantity import GIB, MIB
from gpufence.records import NodeRecords, read_records
from kube import ConflictError, NotFoundError, core
from tests.support.agent.node_site import (
    AgentProcess,
    NodeSite,
    fenced_pod,
    place,
    wait_until_gone,
)
from tests.support.observing import wait_until


def stored(site: NodeSite) -> tuple[NodeRecords, list[tuple[str, str]]]:
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
        each for each in known(agent, "?only=running").records if each.namespace == namespace
    ]
    return [moment.used for record in records for moment in record.course[-2:]]


def known(agent: AgentProcess, query: str = "") -> NodeRecords:
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
        wait_until(lambda: "greedy" in of(known(agent), namespace), agent.lines[-5:])
    with site.agent() as agent:
        wait_until(lambda: "greedy" in of(known(agent), namespace), agent.lines[-5:])
    with in_place(site):
        said = site.plugin("why", "-n", namespace, "greedy")
    records, goes_with = stored(site)
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
