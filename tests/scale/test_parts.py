"""The parts of which a cluster of thousands is made, without one."""

import asyncio
import json
from pathlib import Path

import pytest

from gpufence.snapshot import read_snapshot, write_snapshot
from tests.scale import size
from tests.scale.__main__ import read_size
from tests.scale.agents import PlayedAgents, snapshot
from tests.scale.objects import Template
from tests.scale.report import as_table
from tests.scale.size import Size
from tests.scale.stage import Audit

SMALL = Size(nodes=10, pods=95, silent=3)


def test_every_pod_is_on_one_node() -> None:
    """Programs that know the size agree on who is where."""
    everybody = [pod for node in range(SMALL.nodes) for pod in SMALL.pods_of_node(node)]

    assert list(range(SMALL.pods)) == sorted(everybody)
    assert SMALL.owners == 1 + size.owner_of(SMALL.pods - 1)


@pytest.mark.parametrize("silent", [0, 3, 10])
def test_as_many_agents_are_silent_as_were_asked_for(silent: int) -> None:
    """They are spread over all nodes."""
    wanted = Size(nodes=10, silent=silent)

    assert silent == sum(wanted.is_silent(node) for node in range(wanted.nodes))


def test_a_copy_has_its_own_numbers() -> None:
    """Texts of the same length take the place of the first object's, in key and value."""
    first = Template("/registry/pods/team-50/model-70750-x606060", b"on 80808, uid a-b-c", "a-b-c")

    assert ("/registry/pods/team-07/model-00007-x000071", b"on 00004, uid x-y-z") == first.copy(
        "x-y-z", 7, pod="000071", node="00004"
    )
    with pytest.raises(ValueError, match="not as long"):
        first.copy("x-y-z", node="4")


def test_a_played_agent_answers_as_agents_do() -> None:
    """The plugin reads its snapshot, with all pods of its node."""
    said = snapshot(4, SMALL)

    assert said == read_snapshot(write_snapshot(said))
    assert [size.uid("pod", pod) for pod in (4, 14, 24)] == [pod.uid for pod in said.pods][:3]


def test_the_program_answers_for_the_pod_that_was_meant() -> None:
    """The API server's proxy says whose page it wants; who is nobody's agent is not there."""

    async def asked(name: str) -> bytes:
        server = await asyncio.start_server(PlayedAgents(SMALL).answer, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        reader, writer = await asyncio.open_connection(host, port)
        path = f"/api/v1/namespaces/gpufence-system/pods/{name}:1/proxy/v1/snapshot"
        writer.write(f"GET / HTTP/1.1\r\nX-Forwarded-Uri: {path}\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        server.close()
        return answer

    body = asyncio.run(asked(size.agent_name(4))).partition(b"\r\n\r\n")[2]

    assert size.node_name(4) == read_snapshot(body.decode()).node
    assert asyncio.run(asked("gpufence-agent-99999")).startswith(b"HTTP/1.1 404")


def test_a_watch_is_one_request(tmp_path: Path) -> None:
    """The API server writes two lines of it, and lines of others beside them."""
    audit = Audit(tmp_path)
    event = {
        "verb": "watch",
        "stage": "ResponseStarted",
        "user": {
            "username": "system:serviceaccount:gpufence-system:gpufence-agent",
            "extra": {"authentication.kubernetes.io/pod-name": ["gpufence-agent-00000"]},
        },
        "requestURI": "/api/v1/pods?watch=true",
        "objectRef": {"resource": "pods"},
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": "2026-01-02T03:04:05.500000Z",
    }
    account = "system:serviceaccount:gpufence-system:gpufence-webhook"
    other = {**event, "user": {"username": account}}
    lines = [json.dumps(one) for one in (event, {**event, "stage": "ResponseComplete"}, other)]
    (tmp_path / "audit.log").write_text("\n".join([*lines, '{"half']))

    [asked] = audit.asked("gpufence-agent", 0.0, 2e9)

    assert ("watch pods", "gpufence-agent-00000", 200) == (asked.what, asked.pod, asked.code)
    assert 0.5 == asked.at % 1


def test_sizes_stand_beside_each_other() -> None:
    """A column for each, with the goal in the last one."""
    rows = [{"what": "top nodes", "said": "1 s", "goal": "< 5 s"}]
    results = {"1 / 10": {"rows": rows}, "2 / 20": {"rows": [{**rows[0], "said": "2 s"}]}}

    assert "| top nodes | 1 s | 2 s | < 5 s |" == as_table(results).splitlines()[-1]


@pytest.mark.parametrize(
    "arguments", [["--nodes", "0"], ["--nodes", "10", "--agents", "11"], ["--pods", "600000"]]
)
def test_a_size_that_cannot_be_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The error says which number."""
    with pytest.raises(SystemExit):
        read_size(arguments)

    assert arguments[0] in capsys.readouterr().err
