"""
What one sender can do to the running webhook: it stays alive, small, and there for the others.

All floods meet the same webhook, one after the other, as they would in a cluster.
"""

import json
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from gpufence import names
from tests.support.authority import Authority, write_files
from tests.support.observing import cpu_seconds, memory_mib
from tests.support.processes import LOOPBACK
from tests.support.rewriting import binding_review, encoded, pod, review
from tests.support.servers import ApiServer, reply, watch
from tests.support.webhook_site import Webhook, ask
from webhook.endpoint import MOST_BODY_BYTES
from webhook.guard import HEAD_SECONDS

LIMIT_MIB = 176  # of the Deployment's 256
PATIENCE_SECONDS = HEAD_SECONDS
"""Whoever says nothing is gone after so long: an answer that came later would show nothing."""
EVICT = "/v1/pods/evict"
GPU = {"limits": {"aliyun.com/gpu-mem": "3"}}
HEAD = b"POST /v1/pods/cap HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"


@pytest.fixture(scope="module")
def webhook(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    folder = tmp_path_factory.mktemp("tls")
    write_files(folder, authority.leaf())
    with Webhook(folder, authority.client_context()) as running:
        yield running


def peak_mib(webhook: Webhook) -> float:
    return memory_mib(webhook.process.pid)[1]


def container(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", **more}


def fat_review() -> bytes:
    """
    Build a review of 278 KiB: 35,000 init containers, each beside 5,000 sidecars; nobody has asked
    for names and images before the webhook sees a pod.
    """
    early = [{"restartPolicy": "Always"}] * 5_000 + [{}] * 35_000
    item = pod()
    item["spec"] = {"initContainers": early, "containers": [container("main", resources=GPU)]}
    return encoded(review(object=item))


def small_review() -> bytes:
    item = pod()
    item["spec"] = {"containers": [container("main", resources=GPU)]}
    return encoded(review(object=item))


def answered_within(webhook: Webhook) -> float:
    """Return how long an ordinary review takes, connection and all."""
    began = time.monotonic()
    status, body = webhook.post(EVICT, small_review())
    assert (200, True) == (status, json.loads(body)["response"]["allowed"])
    return time.monotonic() - began


def opened(webhook: Webhook, sent: bytes) -> ssl.SSLSocket:
    plain = socket.create_connection((LOOPBACK, webhook.port))
    connection = webhook.trust.wrap_socket(plain, server_hostname=LOOPBACK)
    connection.settimeout(10)
    with suppress(OSError):  # it may be shown the door while it is still pushing
        connection.sendall(sent)
    return connection


def test_forty_pods_of_thousands_of_containers(webhook: Webhook) -> None:
    """Reviews that would take a gigabyte to read are refused in evict, and others are answered."""
    body = fat_review()
    with ThreadPoolExecutor(8) as senders:
        sent = [senders.submit(webhook.post, EVICT, body) for _ in range(40)]
        waits = [answered_within(webhook) for _ in range(10)]
        answers = [json.loads(each.result()[1])["response"] for each in sent]

    assert len(body) > 250 * 1024
    assert max(waits) < PATIENCE_SECONDS
    assert peak_mib(webhook) < LIMIT_MIB
    assert all("40001 containers" in each["status"]["message"] for each in answers)


def test_forty_bodies_that_never_end(webhook: Webhook) -> None:
    """Whoever begins bodies of 12 MiB and ends none has no more memory than all may have."""
    with ExitStack() as held:
        for _ in range(40):
            body = HEAD % MOST_BODY_BYTES + b" " * (MOST_BODY_BYTES - 1)
            held.enter_context(opened(webhook, body))
        waits = [answered_within(webhook) for _ in range(10)]

    assert max(waits) < PATIENCE_SECONDS
    assert peak_mib(webhook) < LIMIT_MIB


def test_a_head_that_never_ends(webhook: Webhook) -> None:
    """Headers are bounded like bodies."""
    with opened(webhook, b"POST /v1/pods/cap HTTP/1.1\r\n" + b"a: b\r\n" * 2**20) as connection:
        connection.settimeout(PATIENCE_SECONDS)
        with suppress(ConnectionError, ssl.SSLError):
            assert connection.recv(1) == b""

    assert peak_mib(webhook) < LIMIT_MIB


@pytest.mark.parametrize(
    "members", [b"[" + b"{}," * 2_500_000 + b"{}]", b"[" + b'"ab",' * 1_500_000 + b'""]']
)
def test_a_body_of_millions_of_members(webhook: Webhook, members: bytes) -> None:
    """
    What takes twenty times its length to read is not read: refused in evict, let in with a word
    else.
    """
    api_like = b'{"request": {"uid": "u-1", "x": ' + members + b"}}"
    with ThreadPoolExecutor(4) as senders:
        refused = list(senders.map(lambda _: webhook.post(EVICT, api_like), range(4)))
    warned = json.loads(webhook.post("/v1/pods/cap", api_like)[1])["response"]

    assert [False] * 4 == [json.loads(body)["response"]["allowed"] for _, body in refused]
    assert (True, "u-1") == (warned["allowed"], warned["uid"])
    assert "members" in warned["warnings"][0]
    assert peak_mib(webhook) < LIMIT_MIB


def test_connections_without_a_word(webhook: Webhook) -> None:
    """Connections that say nothing give way to one that does."""
    with ExitStack() as held:
        kept = webhook.connect()
        held.callback(kept.close)
        assert 200 == ask(kept, "POST", EVICT, small_review())[0]
        for _ in range(1200):
            held.enter_context(opened(webhook, b"P"))
        waits = [answered_within(webhook) for _ in range(3)]

        assert 200 == ask(kept, "POST", EVICT, small_review())[0]
    assert max(waits) < PATIENCE_SECONDS
    assert peak_mib(webhook) < LIMIT_MIB


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 400_000,
        HEAD % 2 + b"{}" + (HEAD % 2 + b"{}") * 100_000,
        b"POST /v1/pods/cap HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
        + b"a: b\r\n" * 2_000_000,
    ],
    ids=["no bodies", "bodies", "headers after the body"],
)
def test_more_than_one_question_at_a_time(webhook: Webhook, sent: bytes) -> None:
    """Who goes on before he has read the answer is not listened to."""
    with ExitStack() as held:
        for _ in range(4):
            held.enter_context(opened(webhook, sent))
        waits = [answered_within(webhook) for _ in range(5)]

    assert max(waits) < PATIENCE_SECONDS
    assert peak_mib(webhook) < LIMIT_MIB


def test_answers_that_nobody_reads(webhook: Webhook) -> None:
    """Large answers are made once, and do not wait for ever for their readers."""
    doubles = [{"name": "CUPY_GPU_MEMORY_LIMIT", "value": "1"}] * 600
    env = [*doubles, {"name": "LARGE", "value": "x" * 1_000_000}]
    item = pod()
    item["spec"] = {"containers": [container("main", resources=GPU, env=env)]}
    body = encoded(review(object=item))
    with ExitStack() as held:
        for _ in range(150):
            held.enter_context(opened(webhook, HEAD % len(body) + body))
        waits = [answered_within(webhook) for _ in range(5)]
    status, answer = webhook.post("/v1/pods/cap", body)

    assert (200, True) == (status, json.loads(answer)["response"]["allowed"])
    assert len(answer) > 1_000_000
    assert max(waits) < PATIENCE_SECONDS
    assert peak_mib(webhook) < LIMIT_MIB


def test_connections_that_never_speak_tls(webhook: Webhook) -> None:
    """Whoever only connects is counted, too."""
    with ExitStack() as held:
        for _ in range(6000):
            held.enter_context(socket.create_connection((LOOPBACK, webhook.port)))
        waits = [answered_within(webhook) for _ in range(5)]

    assert max(waits) < PATIENCE_SECONDS
    assert peak_mib(webhook) < LIMIT_MIB


def test_connections_that_have_asked_once_lock_nobody_out(webhook: Webhook) -> None:
    """However many stay after large questions of theirs, the newest is answered."""
    body = b"x" * 250_000
    with ExitStack() as held:
        for _ in range(600):
            asked = held.enter_context(opened(webhook, HEAD % len(body) + body))
            assert asked.recv(12).startswith(b"HTTP/1.1 400")
        waits = [answered_within(webhook) for _ in range(5)]

    assert max(waits) < PATIENCE_SECONDS
    assert peak_mib(webhook) < LIMIT_MIB


def test_connections_that_are_reset_leave_nothing(webhook: Webhook) -> None:
    """A connection's buffers go with it, however it ends, and not when the next question is due."""
    body = b"x" * 250_000
    before = memory_mib(webhook.process.pid)[0]
    for _ in range(400):
        with opened(webhook, HEAD % len(body) + body) as asked:
            assert asked.recv(12).startswith(b"HTTP/1.1 400")
            asked.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    assert memory_mib(webhook.process.pid)[0] < before + 32


@pytest.fixture
def api_server() -> Iterator[ApiServer]:
    """Lend an API server with only a pod as large as etcd takes it, of things that are small."""
    fat = pod(uid="pod-uid", namespace="team-a", annotations={names.PLAN: "x"})
    fat["spec"]["tolerations"] = [{"operator": "Exists"}] * 100_000
    with ApiServer() as server:
        for kind in ("nodes", "namespaces"):
            listing = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []}
            server.on(f"GET /api/v1/{kind}", reply(listing))
            server.on(f"WATCH /api/v1/{kind}", watch(then="hang"))
        server.on("GET /api/v1/namespaces/team-a/pods/trainer", reply(fat))
        yield server


def test_bindings_of_fat_pods(authority: Authority, tls_dir: Path, api_server: ApiServer) -> None:
    """What is read of pods that are being bound is bounded, and the binding passes as it is."""
    kubeconfig = tls_dir / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": api_server.url}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "t"}}
    said = {"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "c"}
    kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **said}))
    settings = {"GPUFENCE_CLUSTER": "auto", "KUBECONFIG": str(kubeconfig)}
    body = encoded(binding_review())
    with (
        Webhook(tls_dir, authority.client_context(), **settings) as webhook,
        ThreadPoolExecutor(16) as senders,
    ):
        sent = [senders.submit(webhook.post, "/v1/bindings", body) for _ in range(48)]
        answers = [json.loads(each.result()[1])["response"] for each in sent]
        assert peak_mib(webhook) < LIMIT_MIB

    assert all(each["allowed"] and "patch" not in each for each in answers)


def test_a_thousand_different_pods_are_forgotten(webhook: Webhook) -> None:
    """Nothing of a tenant's text is remembered once his pod is answered."""
    connection = webhook.connect()
    before = 0.0
    for number in range(1000):
        item = pod(name=f"p{number}")
        env = [{"name": "XLA_PYTHON_CLIENT_MEM_FRACTION", "value": f"0.{number}" + "1" * 40_000}]
        item["spec"] = {"containers": [container("main", resources=GPU, env=env)]}
        assert 200 == ask(connection, "POST", EVICT, encoded(review(object=item)))[0]
        if number == 100:
            before = peak_mib(webhook)
    connection.close()

    assert peak_mib(webhook) < before + 16


def nested() -> dict[str, Any]:
    """Scripts within scripts, of which each is read again wherever it is named."""
    command = ["sh", "-c", "sh -c \"$A\"''\n" * 300]
    env = [
        {"name": "A", "value": "sh -c \"$B\"''\n" * 300},
        {"name": "B", "value": "vllm serve $C\n" * 300},
    ]
    return {"containers": [container("main", resources=GPU, command=command, env=env)]}


def referring() -> dict[str, Any]:
    """An argument that stands for 32 MB, and takes four times that."""
    env = [{"name": "A", "value": "x" * 4096}]
    item = container("main", resources=GPU, env=env, args=["vllm", "$(A)" * 8000 + "\U0001f600"])
    return {"containers": [item]}


def crowded() -> dict[str, Any]:
    """As many containers as are read, with as much text as etcd takes."""
    script = "vllm serve m; " * 350
    return {
        "containers": [
            container(f"c{n}", resources=GPU, image="vllm/x", command=["sh", "-c", script])
            for n in range(255)
        ]
    }


@pytest.mark.parametrize("mode", ["cap", "observe", "evict"])
def test_the_worst_pods_keep_no_other_tenant_out(webhook: Webhook, mode: str) -> None:
    """
    While one tenant sends the most expensive pods five times a second, another's are answered
    before the webhook has computed for a second, each with its cap.
    """
    bodies = []
    for spec in (nested(), referring(), crowded()):
        item = pod()
        item["spec"] = spec
        bodies.append(encoded(review(object=item)))
    waits = []
    with ThreadPoolExecutor(8) as senders:
        sent = []
        for number in range(15):
            sent.append(senders.submit(webhook.post, f"/v1/pods/{mode}", bodies[number % 3]))
            began, computed = time.monotonic(), cpu_seconds(webhook.process.pid)
            answer = json.loads(webhook.post("/v1/pods/cap", small_review())[1])["response"]
            waits.append(cpu_seconds(webhook.process.pid) - computed)
            assert "patch" in answer
            time.sleep(max(0.2 + began - time.monotonic(), 0))
        answers = [json.loads(each.result()[1])["response"]["allowed"] for each in sent]

    assert max(waits) < 1
    assert {mode != "evict"} == set(answers)
    assert peak_mib(webhook) < LIMIT_MIB
