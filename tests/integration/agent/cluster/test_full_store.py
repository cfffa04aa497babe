"""Etcd's disk is full, and the API server refuses to write."""

from agent.events.episodes import EventCreate, Notice, about_node
from agent.model.decision import Answer
from gpufence import names
from gpufence.mode import Mode
from tests.integration.agent.cluster.site import ClusterSite, known, verdict, wait_for
from tests.support.etcd import full


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
