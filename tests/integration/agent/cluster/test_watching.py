"""What the agent hears of its cluster, over outages and a store that is full."""

import time

from agent.cluster import AgentCluster
from agent.events.episodes import EventCreate, Notice, about_node
from agent.model.decision import Answer
from gpufence import names
from gpufence.cards import read_cards
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from kube import JsonObject, PatchType, core
from tests.integration.agent.cluster.site import CARDS, ClusterSite, known, verdict, wait_for
from tests.support.builders import T4_BYTES, container
from tests.support.etcd import full

KILL_SWITCH_SECONDS = 2.0


def said(site: ClusterSite) -> str:
    node = site.admin.get(core("nodes", site.node))
    return str(node["metadata"].get("annotations", {}).get(names.CARDS, ""))


def wait_for_mode(cluster: AgentCluster, uid: str, mode: Mode) -> None:
    wait_for(lambda: cluster.pods().by_uid[uid].mode is mode or None, cluster)


def test_a_pod_is_known_with_its_limit(
    site: ClusterSite, cluster: AgentCluster, fenced: str
) -> None:
    """A pod that starts is known with its containers, its mode and its limit on each card."""
    made = site.add_pod(fenced)
    pod = known(cluster, made["metadata"]["uid"])

    assert Mode.EVICT is pod.mode
    assert {"GPU-0": 3 * GIB, "GPU-1": 3 * GIB} == {
        uuid: limit.limit_bytes for uuid, limit in pod.limits.items()
    }
    assert {"a": "main"} == pod.containers


def test_nothing_new_is_nothing_new(site: ClusterSite, cluster: AgentCluster, fenced: str) -> None:
    """The very same pods are handed out while nothing has changed that matters."""
    made = site.add_pod(fenced)
    known(cluster, made["metadata"]["uid"])
    before = cluster.pods()
    probe = {"status": {"message": "a new word that decides nothing"}}
    site.admin.patch(core("namespaces", fenced, "pods", "a", "status"), probe, PatchType.MERGE)
    made = site.add_pod(fenced, "b")
    known(cluster, made["metadata"]["uid"])
    after = cluster.pods()

    assert after is cluster.pods()
    assert after is not before
    assert all(after.by_uid[uid] is pod for uid, pod in before.by_uid.items())


def test_kill_switch(site: ClusterSite, cluster: AgentCluster, fenced: str) -> None:
    """The kill switch works within two seconds (best of six), and so does its loss."""
    uid = site.add_pod(fenced)["metadata"]["uid"]
    known(cluster, uid)
    delays = []
    for said_mode, expected in (
        ("observe", Mode.OBSERVE),
        ("evict", Mode.EVICT),
        (None, Mode.CAP),
        ("evict", Mode.EVICT),
        ("nonsense", Mode.CAP),
        ("evict", Mode.EVICT),
    ):
        site.set_policy(said_mode)
        begin = time.monotonic()
        wait_for_mode(cluster, uid, expected)
        delays.append(time.monotonic() - begin)

    assert KILL_SWITCH_SECONDS > min(delays)
    assert Mode.EVICT is cluster.status().highest


def test_the_node_says_its_cards(site: ClusterSite, cluster: AgentCluster) -> None:
    """The Node says which cards it has and what its resources count in."""
    wait_for(lambda: cluster.status().published or None, cluster)
    found = read_cards(said(site))

    assert CARDS.cards == found.cards
    assert ((names.GPUSHARE_MEMORY, "GiB"),) == found.units


def test_an_edited_annotation(site: ClusterSite, cluster: AgentCluster) -> None:
    """Whoever edits what the Node says of its cards finds it put right."""
    wait_for(lambda: cluster.status().published or None, cluster)
    right = said(site)
    wrong = {"metadata": {"annotations": {names.CARDS: right.replace('"GiB"', '"MiB"')}}}
    site.admin.patch(core("nodes", site.node), wrong, PatchType.MERGE)

    assert wait_for(lambda: said(site) == right or None, cluster)


def test_a_mebibyte_node(site: ClusterSite, cluster: AgentCluster, fenced: str) -> None:
    """Limits follow when the node begins to count in MiB, and when it stops to tell."""
    status = core("nodes", site.node, "status")

    def offer(units: str | None) -> None:
        offered: JsonObject = {names.GPUSHARE_MEMORY: units, names.GPUSHARE_COUNT: "2"}
        body = {"status": {"capacity": offered, "allocatable": offered}}
        site.admin.patch(status, body, PatchType.MERGE)

    asked = container(**{names.GPUSHARE_MEMORY: "3000"})
    uid = site.add_pod(fenced, containers=[asked])["metadata"]["uid"]
    limits = []
    for units in (str(2 * T4_BYTES // MIB), None):
        offer(units)
        wait_for(lambda: '"MiB"' in said(site) or None, cluster)
        wait_for(lambda: cluster.pods().by_uid[uid].limits or None, cluster)
        limits.append(cluster.pods().by_uid[uid].limits["GPU-0"].limit_bytes)
    offer("30")
    wait_for(lambda: '"GiB"' in said(site) or None, cluster)

    assert [3000 * MIB, 3000 * MIB] == limits


def test_a_full_store(site: ClusterSite, fenced: str) -> None:
    """
    While nothing can be written the agent keeps what it knows, says why nobody goes, and goes on
    with all of it once there is room.
    """
    uid = site.add_pod(fenced)["metadata"]["uid"]
    with site.cluster() as agent:
        pod = known(agent, uid)
        with full(site.plane.folder):
            refused = agent.carry_out(verdict(pod))
            about = about_node(site.node)
            agent.write([EventCreate(1, Notice(names.UNATTRIBUTED, about, "the store was full"))])
            during = agent.pods()
        wait_for(lambda: agent.status().events_written or None, agent)
        result = agent.carry_out(verdict(pod))

    assert (Answer.FAILED, True) == (refused.answer, "space exceeded" in refused.detail)
    assert (True, Mode.EVICT) == (during.fresh, during.by_uid[uid].mode)
    assert Answer.ACCEPTED is result.answer


def test_outage(site: ClusterSite, fenced: str) -> None:
    """While the API server is away nobody is evicted, and afterwards everything is as before."""
    uid = site.add_pod(fenced)["metadata"]["uid"]
    with site.cluster() as agent:
        pod = known(agent, uid)
        site.plane.stop_api_server()
        try:
            wait_for(lambda: True if not agent.pods().fresh else None, agent)
            during, status = agent.pods(), agent.status()
            refused = agent.carry_out(verdict(pod))
            about = about_node(site.node)
            agent.write([EventCreate(1, Notice(names.UNATTRIBUTED, about, "during the outage"))])
        finally:
            site.plane.start_api_server()
        wait_for(lambda: agent.pods().fresh or None, agent)
        wait_for(lambda: agent.status().events_written or None, agent)
        result = agent.carry_out(verdict(agent.pods().by_uid[uid]))

    assert pod == during.by_uid[uid]
    assert status.trouble
    assert Answer.FAILED is refused.answer
    assert Answer.ACCEPTED is result.answer
    listed = site.admin.list(core("namespaces", "default", "events")).items
    assert 1 == sum(item["message"] == "during the outage" for item in listed)
