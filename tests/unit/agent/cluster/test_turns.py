"""How many pods are read at once when several are to go."""

import threading
from concurrent.futures import ThreadPoolExecutor

from agent.cluster.acts import MOST_READING, Acts, Clients
from agent.cluster.settings import ClusterSettings
from agent.fence import NO_CLAIMS, PodContext
from agent.model.decision import Action, ActResult, Answer, Outcome, Verdict
from gpufence.dialects import Units
from gpufence.mode import Mode
from kube import ClientSettings, connect, core
from tests.support.agent.builders import pod
from tests.support.api_server import ApiServer, reply
from tests.support.http_server import PATIENCE_SECONDS, Exchange
from tests.support.observing import wait_until

PODS = core("namespaces", "team-a", "pods")
NAMES = [f"p{number}" for number in range(8)]


def act(acts: Acts, server: ApiServer, name: str) -> ActResult:
    client = connect(ClientSettings(server=server.url))
    verdict = Verdict(pod(name), Outcome.EVICT, action=Action.EVICT)
    return acts.carry_out(verdict, Clients(client, client))


def evict_all(server: ApiServer, settings: ClusterSettings) -> list[ActResult]:
    acts = Acts(
        settings, lambda *_: PodContext({}, {}, Mode.EVICT, (), Units()), lambda _: NO_CLAIMS
    )
    with ThreadPoolExecutor(len(NAMES)) as threads:
        return list(threads.map(lambda name: act(acts, server, name), NAMES))


def test_a_few_pods_are_read_at_once() -> None:
    """
    However many pods are to go, only so many of them are read at a time: each may be as large as
    the API server takes it.
    """
    open_gate = threading.Event()
    most: list[int] = []
    now = [0]
    lock = threading.Lock()

    def answer(exchange: Exchange) -> None:
        with lock:
            now[0] += 1
            most.append(now[0])
        open_gate.wait(PATIENCE_SECONDS)
        with lock:
            now[0] -= 1
        exchange.answer(404, b"{}", None)

    with ApiServer() as server:
        for name in NAMES:
            server.on(f"GET {PODS}/{name}", answer)
        server.on(f"GET {PODS}", reply({"kind": "PodList", "items": []}))
        with ThreadPoolExecutor(1) as thread:
            results = thread.submit(evict_all, server, ClusterSettings(node="n1"))
            wait_until(lambda: len(most) == MOST_READING)
            open_gate.set()
            answers = [item.answer for item in results.result(PATIENCE_SECONDS)]

    assert [Answer.GONE] * len(NAMES) == answers
    assert MOST_READING >= max(most)


def test_a_turn_is_not_waited_for_without_end() -> None:
    """An act whose turn does not come within its time fails, and is tried again like any other."""
    gate = threading.Event()

    def hang(exchange: Exchange) -> None:
        gate.wait(PATIENCE_SECONDS)
        exchange.answer(404, b"{}", None)

    with ApiServer() as server:
        for name in NAMES:
            server.on(f"GET {PODS}/{name}", hang)
        results = evict_all(server, ClusterSettings(node="n1", act_seconds=0.5, request_seconds=9))
        gate.set()

    assert {Answer.FAILED} == {item.answer for item in results}
