"""The agent on a machine without a cluster: it measures and shows."""

import http.client
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from gpufence.snapshot import read_snapshot
from simulator.nvml.build import environment
from simulator.nvml.state import State
from tests.support.agent.node_site import AgentProcess
from tests.support.observing import eventually
from tests.support.processes import LOOPBACK


def test_without_a_cluster_memory_is_nobodys(tmp_path: Path) -> None:
    """Cards and processes are shown; nobody is judged, and the unknown is absent from the pages."""
    path = tmp_path / "cards"
    state = State.create(path, "T4,A100-40")
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    state.processes.put(state.find("0"), sleeper.pid, 2 << 30)
    settings = {**environment(path), "GPUFENCE_CLUSTER": "none", "GPUFENCE_NODE": "desk"}
    with AgentProcess(**settings, GPUFENCE_MISSPELT="1") as agent:
        assert eventually(lambda: len(agent.snapshot().nobody) == 1)
        said, metrics = agent.snapshot(), agent.metrics()
        cards = read_snapshot(agent.get("/v1/snapshot?only=cards")[1])
        agent.wait_for("GPUFENCE_MISSPELT is no setting")
        with closing(http.client.HTTPConnection(LOOPBACK, agent.port, timeout=20)) as client:
            client.request("DELETE", "/v1/snapshot")
            status = client.getresponse().status
    sleeper.communicate()

    assert (sleeper.pid, 2 << 30) == (said.nobody[0].process.pid, said.nobody[0].process.used_bytes)
    assert ["Tesla T4", "NVIDIA A100-SXM4-40GB"] == [card.model for card in said.cards]
    assert ((), len(said.cards)) == (cards.nobody, len(cards.cards))
    assert (False, "", "") == (said.fresh, said.highest, said.trouble)
    assert [] == [name for name in metrics if "cluster" in name]
    assert 405 == status


def test_a_taken_address_ends_the_start(tmp_path: Path) -> None:
    """
    Where somebody listens already, the agent does not begin, and says which setting to change.
    """
    path = tmp_path / "cards"
    State.create(path, "T4")
    settings = {**environment(path), "GPUFENCE_CLUSTER": "none", "GPUFENCE_NODE": "desk"}
    with AgentProcess(**settings) as first:
        taken = f"{LOOPBACK}:{first.port}"
        second = AgentProcess(**settings, GPUFENCE_STATUS_LISTEN=taken)
        code = second.process.wait(60)
        line = second.wait_for("gpufence-agent: GPUFENCE_STATUS_LISTEN")
        second.kill()

    assert 2 == code
    assert taken in str(line["message"])
