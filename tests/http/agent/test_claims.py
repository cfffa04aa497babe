"""Resource claims and objects of the cluster, and how answers of the API server are read."""

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from agent.cluster.acts import (
    MOST_READING,
    Acts,
    Clients,
    deletion,
    eviction,
    is_unsure,
    read_refusal,
)
from agent.cluster.claims import ClaimReader
from agent.cluster.settings import COMPONENT, ClusterSettings
from agent.fence import NO_CLAIMS, PodContext
from agent.model.decision import Action, ActResult, Answer, Outcome, Verdict
from gpufence import names
from gpufence.dialects import Units
from gpufence.mode import Mode
from gpufence.shape import Object
from kube import ClientSettings, JsonObject, connect, core, group
from kube.errors import BadReplyError, Failure, KubeError, UnreachableError, error_for
from tests.support import builders
from tests.support.agent.builders import pod as fenced
from tests.support.builders import container, pod
from tests.support.observing import wait_until
from tests.support.servers import PATIENCE_SECONDS, ApiServer, Exchange, reply

CLAIMS = group(names.RESOURCE_GROUP, "namespaces", "team-a", "resourceclaims")
SLICES = group(names.RESOURCE_GROUP, "resourceslices")
GIVEN = builders.allocated(builders.claim("c"), builders.result(memory="2Gi"))
NOWHERE = reply({"kind": "Status", "reason": "NotFound", "message": "gone"}, 404)


def claiming(uid: str = "uid-1", **status: Any) -> JsonObject:
    raw = pod(builders.claiming(container(), gpu=""), resourceClaims=[builders.by_name("gpu", "c")])
    raw["metadata"]["uid"] = uid
    return raw | {"status": status}


def published() -> Object:
    device = {
        "name": "gpu-0",
        "attributes": {"uuid": {"string": "GPU-0"}},
        "capacity": {"memory": {"value": "15Gi"}},
    }
    pool = {"name": "node-1", "generation": 1}
    spec = {"driver": names.DRA_DRIVER, "nodeName": "node-1", "pool": pool, "devices": [device]}
    return {"metadata": {"name": "s"}, "spec": spec}


@contextmanager
def reading(server: ApiServer, pods: dict[str, JsonObject]) -> Iterator[ClaimReader]:
    client = connect(ClientSettings(server=server.url))
    reader = ClaimReader(ClusterSettings(node="node-1"), lambda: pods)
    reader.start(client)
    try:
        reader.wake()
        yield reader
    finally:
        reader.stop()
        client.close()


def asked(server: ApiServer) -> tuple[int, int]:
    """Count the questions for the claim and for the cards of the node."""
    return len(server.seen(f"GET {CLAIMS}/c")), len(server.seen(f"GET {SLICES}"))


def test_a_claim_that_is_known_is_asked_for_once() -> None:
    """What a pod has got does not change, so that a node at rest asks nothing."""
    pods = {"uid-1": claiming()}
    with ApiServer() as server:
        server.on(f"GET {CLAIMS}/c", reply(GIVEN))
        server.on(f"GET {SLICES}", reply({"items": [published()]}))
        with reading(server, pods) as reader:
            wait_until(lambda: reader.of_pod("uid-1").cards)
            pods["uid-1"] = claiming(phase="Running")
            pods["uid-2"] = pod(container())
            reader.wake()
            wait_until(lambda: asked(server) == (1, 1))

    assert {"gpu": GIVEN} == reader.of_pod("uid-1").found


def test_where_only_the_card_is_missing_the_claim_is_not_asked_for_again() -> None:
    """A node whose driver has published nothing yet costs a question for its slices."""
    nothing, all_of_it = reply({"items": []}), reply({"items": [published()]})
    with ApiServer() as server:
        server.on(f"GET {CLAIMS}/c", reply(GIVEN))
        server.on(f"GET {SLICES}", nothing, nothing, all_of_it)
        with reading(server, {"uid-1": claiming()}) as reader:
            wait_until(lambda: reader.of_pod("uid-1").cards)

        assert (1, 3) == asked(server)


def test_what_is_in_doubt_is_asked_for_again() -> None:
    """A claim that the API server does not show yet is there a moment later."""
    with ApiServer() as server:
        server.on(f"GET {CLAIMS}/c", NOWHERE, reply({}, 500), reply(GIVEN))
        server.on(f"GET {SLICES}", reply({"items": [published()]}))
        with reading(server, {"uid-1": claiming()}) as reader:
            wait_until(lambda: reader.of_pod("uid-1").cards)

    assert {"gpu": GIVEN} == reader.of_pod("uid-1").found


def test_a_pod_in_doubt_is_not_asked_about_for_the_changes_of_others() -> None:
    """However often those change, its own turn comes by the clock."""
    pods = {"uid-1": claiming()}
    with ApiServer() as server:
        server.on(f"GET {CLAIMS}/c", NOWHERE)
        with reading(server, pods) as reader:
            wait_until(lambda: reader.of_pod("uid-1").found)
            for number in range(20):
                pods["uid-2"] = pod(container(f"c{number}"))
                reader.wake()
            pods["uid-3"] = claiming("uid-3", phase="Succeeded")
            reader.wake()
            wait_until(lambda: "uid-3" in reader.known)

        assert (1, 0) == asked(server)


def test_a_pod_that_has_changed_is_asked_about_at_once() -> None:
    """Its claim may have been made by now."""
    pods = {"uid-1": claiming()}
    with ApiServer() as server:
        server.on(f"GET {CLAIMS}/c", NOWHERE, reply(GIVEN))
        server.on(f"GET {SLICES}", reply({"items": [published()]}))
        with reading(server, pods) as reader:
            wait_until(lambda: reader.of_pod("uid-1").found)
            pods["uid-1"] = claiming(phase="Running")
            reader.wake()
            wait_until(lambda: reader.of_pod("uid-1").cards, seconds=5.0)

    assert {"gpu": GIVEN} == reader.of_pod("uid-1").found


PODS = core("namespaces", "team-a", "pods")
NAMES = [f"p{number}" for number in range(8)]


def act(acts: Acts, server: ApiServer, name: str) -> ActResult:
    client = connect(ClientSettings(server=server.url))
    verdict = Verdict(fenced(name), Outcome.EVICT, action=Action.EVICT)
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


@pytest.mark.parametrize(("own", "expected"), [(1000, 30), (7, 7), (0, 1), (-1, 1)])
def test_grace(own: int, expected: int) -> None:
    """A pod gets the grace it asks for, at most ours and at least a second."""
    options = eviction(fenced(grace_seconds=own), 30)["deleteOptions"]

    assert expected == options["gracePeriodSeconds"]
    assert options == {
        key: value
        for key, value in deletion(fenced(grace_seconds=own), 30).items()
        if key not in {"apiVersion", "kind"}
    }


def test_nobody_else_is_meant() -> None:
    """Evictions and deletions name the pod's UID."""
    said = str(eviction(fenced("a"), 30)) + str(deletion(fenced("a"), 30))

    assert 2 == len(re.findall(r"'preconditions': {'uid': 'uid-a'}", said))


def test_who_asks_for_an_eviction_and_why() -> None:
    """Admission hooks and audit logs can tell who asked for an eviction, and for what reason."""
    expected = {"reason": names.EVICTED, "requested-by": COMPONENT}

    assert expected == eviction(fenced("a"), 30)["metadata"]["annotations"]


BUDGET: dict[str, Any] = {
    "causes": [{"reason": "DisruptionBudget", "message": "budget all has 0 left"}]
}
SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction does not support."

TOO_LARGE = "etcdserver: request is too large"
TOO_LONG = "trying to send message larger than max (2097153 vs. 2097152)"
FULL = "etcdserver: mvcc: database space exceeded"


def failure(
    status: int, message: str = "no", after: float | None = None, **details: Any
) -> KubeError:
    return error_for(Failure("POST eviction", status, "Reason", message, after, details))


@pytest.mark.parametrize(
    ("error", "answer", "after"),
    [
        pytest.param(failure(429, **BUDGET), Answer.BLOCKED, 0.0, id="budget"),
        pytest.param(failure(429, after=10.0, **BUDGET), Answer.BLOCKED, 10.0, id="budget-later"),
        pytest.param(failure(429, after=1.0), Answer.FAILED, 1.0, id="rate limit"),
        pytest.param(failure(500, SEVERAL), Answer.BLOCKED, 0.0, id="several budgets"),
        pytest.param(failure(500, "etcd is gone"), Answer.FAILED, 0.0, id="server error"),
        pytest.param(failure(500, TOO_LARGE), Answer.TOO_LARGE, 0.0, id="too large for etcd"),
        pytest.param(failure(500, TOO_LONG), Answer.TOO_LARGE, 0.0, id="too large for gRPC"),
        pytest.param(failure(500, FULL), Answer.FAILED, 0.0, id="etcd's disk is full"),
        pytest.param(failure(403, **BUDGET), Answer.BLOCKED, 0.0, id="negative allowance"),
        pytest.param(
            failure(403, kind="poddisruptionbudgets"), Answer.BLOCKED, 0.0, id="before 1.37"
        ),
        pytest.param(failure(403, kind="pods"), Answer.FAILED, 0.0, id="no rights"),
        pytest.param(failure(504, after=10.0), Answer.FAILED, 10.0, id="budget conflicts"),
        pytest.param(failure(404), Answer.GONE, 0.0, id="gone"),
        pytest.param(failure(400), Answer.FAILED, 0.0, id="our mistake"),
        pytest.param(BadReplyError("a proxy's page"), Answer.FAILED, 0.0, id="proxy"),
        pytest.param(UnreachableError("away"), Answer.FAILED, 0.0, id="away"),
    ],
)
def test_refusals(error: KubeError, answer: Answer, after: float) -> None:
    """Only a budget's own word blocks; all else fails, and says why."""
    result = read_refusal(error)

    assert (answer, after) == (result.answer, result.after_seconds)
    assert result.detail


def test_the_budget_is_named() -> None:
    """The cause below the message names the budget."""
    assert "no budget all has 0 left" == read_refusal(failure(429, **BUDGET)).detail


def test_a_second_look() -> None:
    """A conflict and a broken connection leave open what happened."""
    unsure = [is_unsure(item) for item in (failure(409), UnreachableError("away"), failure(500))]

    assert [True, True, False] == unsure
