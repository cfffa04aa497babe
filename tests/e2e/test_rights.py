"""What an agent may do with its token, and what nobody with that token may."""

import json
from collections.abc import Iterator
from subprocess import CompletedProcess

import pytest

from tests.e2e.site import SYSTEM, RealSite, pod
from tests.support.site import AGENT

pytestmark = pytest.mark.e2e

ELSEWHERE = "elsewhere"
NOWHERE = ""


@pytest.fixture
def elsewhere(site: RealSite) -> Iterator[str]:
    """Another node, of which only the API server knows."""
    site.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": ELSEWHERE}})
    yield ELSEWHERE
    site.cluster.kubectl("delete", "node", ELSEWHERE)


@pytest.fixture
def token(site: RealSite) -> str:
    """A token such as the running agent holds: bound to its pod, and thereby to its node."""
    (agent,) = site.pods(SYSTEM[1], AGENT)
    bound = ("--bound-object-kind=Pod", f"--bound-object-name={agent['metadata']['name']}")
    return site.system("create", "token", AGENT, *bound).strip()


def evict(site: RealSite, token: str, where: str, name: str, node: str) -> CompletedProcess[str]:
    """Ask for an eviction, all but carried out, with an agent's token and in the name of a node."""
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": where, "name": name},
        "deleteOptions": {"dryRun": ["All"]},
    }
    # Without a kubeconfig: its client certificate would outrank the token.
    server = json.loads(site.cluster.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    identity = (
        *("--kubeconfig=/dev/null", f"--server={server}", f"--token={token}"),
        f"--certificate-authority={site.cluster.folder}/plane/ca.crt",
        *((f"--as=system:node:{node}",) if node else ()),
    )
    path = f"/api/v1/namespaces/{where}/pods/{name}/eviction"
    return site.cluster.kubectl(
        *identity, "create", "--raw", path, "-f", "-", stdin=json.dumps(eviction), check=False
    )


def test_an_agent_evicts_as_its_own_node(site: RealSite, team: str, token: str) -> None:
    """In the name of the node on which its pod runs an agent may evict that node's pods."""
    site.apply(pod(team, "near"))
    site.pod_of(team, "near")

    done = evict(site, token, team, "near", site.cluster.node)

    assert 0 == done.returncode, done.stderr


@pytest.mark.parametrize("node", ["gpu-1", ELSEWHERE, NOWHERE], ids=["own", "other", "no-node"])
def test_an_agent_cannot_evict_elsewhere(
    site: RealSite, team: str, token: str, elsewhere: str, node: str
) -> None:
    """A pod of another node is out of an agent's reach, in whosever name it asks."""
    far = pod(team, "far")
    far["spec"] |= {"nodeName": elsewhere, "tolerations": [{"operator": "Exists"}]}
    site.apply(far)

    done = evict(site, token, team, "far", node)

    assert "forbidden" in done.stderr.lower()
    assert 0 != done.returncode


def test_an_agent_without_a_node_cannot_evict(site: RealSite, team: str, token: str) -> None:
    """As itself an agent may not even evict the pods of its own node."""
    site.apply(pod(team, "near"))
    site.pod_of(team, "near")

    assert "forbidden" in evict(site, token, team, "near", NOWHERE).stderr.lower()
