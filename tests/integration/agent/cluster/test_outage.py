"""The API server goes away and comes back."""

from agent.events.episodes import EventCreate, Notice, about_node
from agent.model.decision import Answer
from gpufence import names
from kube import core
from tests.integration.agent.cluster.site import ClusterSite, known, verdict, wait_for


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
