"""The commands that people run on a node, and the agent on a machine without a cluster."""

import http.client
import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent.__main__ import main
from agent.cluster.cluster import REMEDY
from gpufence.snapshot import read_snapshot
from simulator.nvml.build import environment
from simulator.nvml.faults import Fault, NvmlCode
from simulator.nvml.state import State
from tests.support.agent.node_site import WITHIN, AgentProcess, NodeSite, fenced_pod, place
from tests.support.observing import eventually
from tests.support.processes import LOOPBACK, PATIENCE_SECONDS, inherited

Done = subprocess.CompletedProcess[str]


def run(*arguments: str, **settings: str) -> Done:
    return subprocess.run(
        [sys.executable, "-m", "agent", *arguments],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **inherited(), **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def states(done: Done) -> dict[str, str]:
    said: dict[str, Any] = json.loads(done.stdout)
    return {item["subject"]: item["state"] for item in said["checks"]}


def test_check_finds_all_that_the_agent_needs(site: NodeSite, namespace: str) -> None:
    """
    With the shipped rights, cards and a running pod, every check that a simulated node can pass
    passes.
    """
    ground = site.ground(namespace)
    place(ground, fenced_pod("good", WITHIN))
    ground.wait_for_start("good", "main")
    assert eventually(lambda: len(site.node.pids(namespace, "good")) > 0)
    found = states(run("check", "-o", "json", **site.environment()))
    # Where these tests run is nobody's to choose.
    del found["PID namespace"], found["clock"]

    wrong = {subject: state for subject, state in found.items() if state != "ok"}
    assert {"driver limits": "warning"} == wrong  # its driver is older, and so are its cgroups
    assert {"evictions", "deletions", "Events", "NVML", "card 7", "identity"} <= set(found)


def test_check_names_what_is_missing(site: NodeSite) -> None:
    """An account without rights is told what it cannot read, with the remedy."""
    site.plane.kubectl("create", "serviceaccount", "nobody", "-n", site.system)
    token = site.plane.service_account_token(site.system, "nobody")
    kubeconfig = site.plane.token_kubeconfig("nobody", token)
    done = run("check", **site.environment() | {"KUBECONFIG": str(kubeconfig)})

    assert 1 == done.returncode
    assert "kill switch          missing" in done.stdout
    assert "pods of this node    missing" in done.stdout
    assert REMEDY in done.stdout
    assert done.stdout.endswith("\nThis node cannot be enforced.\n")


def test_check_tells_a_lowered_kill_switch(site: NodeSite) -> None:
    """A kill switch below evict is a warning; rights on another node are missing."""
    site.set_policy("cap")
    other = {"GPUFENCE_IMPERSONATION": "on", "GPUFENCE_NODE": "another"}
    try:
        found = states(run("check", "-o", "json", **site.environment() | other))
    finally:
        site.set_policy("evict")

    assert "warning" == found["kill switch"]
    assert {"missing"} == {found[name] for name in ("pods of this node", "Node", "evictions")}


def test_check_without_a_cluster_says_so(site: NodeSite, tmp_path: Path) -> None:
    """No kubeconfig, and one of a server that is not there, are both told with a remedy."""
    alone = site.environment()
    del alone["KUBECONFIG"]
    nowhere = tmp_path / "config"
    nowhere.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:9'}}]\n"
        "users: [{name: a, user: {}}]\n"
    )

    assert "set KUBECONFIG" in run("check", **alone).stdout
    assert "check the network" in run("check", **alone, KUBECONFIG=str(nowhere)).stdout


def test_snapshot_shows_cards_and_whose_processes_they_serve(
    site: NodeSite, namespace: str, tmp_path: Path
) -> None:
    """
    Without a cluster, a process belongs to its pod by UID, or by name where the kubelet left it.
    """
    ground = site.ground(namespace)
    place(ground, fenced_pod("good", WITHIN))
    ground.wait_for_log("good", "hold")
    found = ground.get("good")
    assert found is not None
    uid = found["metadata"]["uid"]
    (tmp_path / f"{namespace}_good_{uid}").mkdir()
    alone = site.environment()
    del alone["KUBECONFIG"], alone["GPUFENCE_NODE"]

    bare = read_snapshot(run("snapshot", **alone).stdout)
    named = read_snapshot(run("snapshot", "--pod-logs", str(tmp_path), **alone).stdout)

    assert [(uid, "", "")] == [(pod.uid, pod.namespace, pod.name) for pod in bare.pods]
    assert 8 == len(bare.cards)
    assert [(uid, namespace, "good")] == [(pod.uid, pod.namespace, pod.name) for pod in named.pods]


def test_snapshot_without_nvml_fails_with_its_reason(site: NodeSite) -> None:
    """A driver that does not answer is told, with exit code 1."""
    site.node.state.faults.add(Fault.code(NvmlCode.DRIVER_NOT_LOADED))
    try:
        done = run("snapshot", **site.environment())
    finally:
        site.node.state.faults.clear()

    assert 1 == done.returncode
    assert "driver" in read_snapshot(done.stdout).trouble


def test_every_command_has_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--help of the program and of each command ends well and names what can be set."""
    shown = {}
    for words in ("--help", "run --help", "snapshot -h", "check -h"):
        assert 0 == call(monkeypatch, *words.split())
        shown[words] = capsys.readouterr().out

    assert "GPUFENCE_HOLD_SECONDS" in shown["--help"]
    assert "GPUFENCE_HOLD_SECONDS" in shown["run --help"]
    assert "--pod-logs" in shown["snapshot -h"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("evict", "invalid choice: 'evict'"),
        ("run now", "now"),
        ("", "GPUFENCE_NODE"),
        ("check", "GPUFENCE_NODE"),
    ],
)
def test_wrong_calls_end_with_code_2(
    words: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown command, a stray argument and a missing node are told before anything begins."""
    assert 2 == call(monkeypatch, *words.split())
    assert said in capsys.readouterr().err


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> object:
    """Call the program in this process, and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["gpufence-agent", *words])
    try:
        return main()
    except SystemExit as ended:
        return ended.code


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
