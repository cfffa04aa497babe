"""What a client makes of each answer, seen over real sockets."""

import socket
import time
from dataclasses import replace

import pytest

from kube import (
    BadReplyError,
    Cause,
    Client,
    ClientSettings,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidRequestError,
    KubeError,
    NotFoundError,
    PatchType,
    ReplyError,
    ServerError,
    ThrottledError,
    UnreachableError,
    connect,
)
from tests.http.kube.builders import AT_ONCE_SECONDS, PODS, SETTINGS, client_of, pod, pods, status
from tests.support.servers import (
    PATIENCE_SECONDS,
    Answer,
    ApiServer,
    Exchange,
    cut,
    reply,
    watch,
)

POD = "/api/v1/namespaces/a/pods/p"
EVICTION = f"{POD}/eviction"


def test_unknown_fields_survive(server: ApiServer, client: Client) -> None:
    """A field that no model knows comes back as it was sent."""
    server.on(f"GET {POD}", reply(pod("p", spec={"fromTheFuture": [1, None, 2**70]})))

    assert {"fromTheFuture": [1, None, 2**70]} == client.get(POD)["spec"]


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", InvalidRequestError),
        (401, "Unauthorized", ForbiddenError),
        (403, "Forbidden", ForbiddenError),
        (404, "NotFound", NotFoundError),
        (405, "MethodNotAllowed", InvalidRequestError),
        (409, "Conflict", ConflictError),
        (410, "Expired", GoneError),
        (422, "Invalid", InvalidRequestError),
        (429, "TooManyRequests", ThrottledError),
        (500, "InternalError", ServerError),
        (503, "ServiceUnavailable", ServerError),
        (504, "Timeout", ServerError),
    ],
)
def test_each_refusal_has_the_class_of_its_reaction(
    server: ApiServer, client: Client, code: int, reason: str, expected: type[ReplyError]
) -> None:
    """The class follows from the HTTP status; the message has request, status and server's word."""
    server.on(f"GET {POD}", reply(status(code, reason, "pods are shy"), code))

    with pytest.raises(expected) as caught:
        client.get(POD)

    assert f"GET {POD}: {code} {reason}: pods are shy" == str(caught.value)


def test_disruption_budget_is_named_as_a_cause(server: ApiServer, client: Client) -> None:
    """A refused eviction tells its budget's cause, and how long to wait, in header or body."""
    cause = {"reason": "DisruptionBudget", "message": "The budget web needs 2 healthy pods"}
    server.on(
        f"POST {EVICTION}",
        reply(status(429, "TooManyRequests", causes=[cause, "junk"]), 429, {"Retry-After": "10"}),
    )

    with pytest.raises(ThrottledError) as caught:
        client.post(EVICTION, {"kind": "Eviction"})

    server.on(f"GET {POD}", reply(status(500, "ServerTimeout", retryAfterSeconds=3), 500))
    with pytest.raises(ServerError) as told:
        client.get(POD)

    expected = (Cause("DisruptionBudget", "The budget web needs 2 healthy pods"),)
    assert expected == caught.value.causes
    assert (429, 10) == (caught.value.status, caught.value.retry_after_seconds)
    assert 3 == told.value.retry_after_seconds


def test_created_twice_is_told_from_changed_meanwhile(server: ApiServer, client: Client) -> None:
    """The reason says whether an object was there before, or has changed."""
    server.on(f"POST {PODS}", reply(status(409, "AlreadyExists"), 409))
    server.on(f"PUT {POD}", reply(status(409, "Conflict"), 409))

    with pytest.raises(ConflictError) as first:
        client.post(PODS, {})
    with pytest.raises(ConflictError) as second:
        client.put(POD, {})

    assert ("AlreadyExists", "Conflict") == (first.value.reason, second.value.reason)


NO_API_SERVER = "is this the address of a Kubernetes API server"
INSIDE = status(500, "InternalError", "more than one budget matches")


@pytest.mark.parametrize(
    ("answer", "expected", "words"),
    [
        *(
            (reply(body), BadReplyError, NO_API_SERVER)
            for body in (b"<html>Log in</html>", b"", b"[1]", b"{", b"\xff" * 9000)
        ),
        (reply(INSIDE, 201), ServerError, "more than one budget matches"),
        (
            reply(b"<h1>Bad\n gateway</h1>\x00", 502),
            *(ServerError, rf"^GET {POD}: 502 Bad Gateway: <h1>Bad gateway</h1>\?$"),
        ),
        (
            reply(b"", 302, {"Location": "https://login.example/"}),
            *(BadReplyError, r"a redirect to https://login\.example/"),
        ),
        (watch(b'{"kind":"Pod"}', then="cut"), UnreachableError, "the connection broke off"),
    ],
    ids=["a login page", "nothing", "a list", "a brace", "bytes", "failure", "502", "302", "half"],
)
def test_what_is_no_object_is_an_error(
    server: ApiServer, client: Client, answer: Answer, expected: type[KubeError], words: str
) -> None:
    """
    A 200 from something that is no API server, or half an answer, is no data; a failure inside a
    success is one; a page is quoted in one line; a redirect never carries our token elsewhere.
    """
    server.on(f"GET {POD}", answer)

    with pytest.raises(expected, match=words):
        client.get(POD)


def test_refused_connection_says_what_to_check() -> None:
    """Nobody listening is told apart from everything else."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"

    with pytest.raises(UnreachableError) as caught:
        connect(replace(SETTINGS, server=url)).get(POD)

    expected = f"GET {POD} at {url}: Connection refused; is the server up, and the address right?"
    assert expected == str(caught.value)


def test_unknown_name_says_so() -> None:
    """A name without an address is a matter of DNS."""
    with pytest.raises(UnreachableError, match="name cannot be resolved"):
        connect(replace(SETTINGS, server="http://kubernetes.invalid")).get(POD)


@pytest.mark.parametrize("trickling", [False, True])
def test_silence_ends_with_the_timeout(
    server: ApiServer, client: Client, *, trickling: bool
) -> None:
    """A server that never answers, or only with bytes that keep coming, is given up in time."""

    def answer(exchange: Exchange) -> None:
        if trickling:
            exchange.send_head(200, {"Transfer-Encoding": "chunked"})
        while not server.over.wait(0.01):
            if trickling:
                exchange.send_chunk(b" ")

    server.on(f"POST {PODS}", answer)
    began = time.monotonic()

    with pytest.raises(UnreachableError, match="no answer in time"):
        client.post(PODS, {}, timeout_seconds=0.05)

    assert time.monotonic() - began < AT_ONCE_SECONDS


def test_a_get_survives_one_broken_connection(server: ApiServer, client: Client) -> None:
    """A read is sent once more when its connection breaks."""
    server.on(f"GET {POD}", cut(), reply(pod("p")))

    assert pod("p") == client.get(POD)


def test_a_write_is_never_sent_twice(server: ApiServer, client: Client) -> None:
    """A write whose connection breaks may have been done, so it is reported."""
    server.on(f"POST {PODS}", cut(), reply(pod("p")))

    with pytest.raises(UnreachableError, match="the connection broke off"):
        client.post(PODS, {})

    assert len(server.seen(f"POST {PODS}")) == 1


def test_verbs_send_body_type_and_query(server: ApiServer, client: Client) -> None:
    """Patches carry their content type, and options travel in the query."""
    for verb in ("PATCH", "DELETE", "PUT"):
        server.on(f"{verb} {POD}", reply(pod("p")))

    operations = [{"op": "add", "path": "/metadata/annotations/a~1b", "value": "ü"}]
    client.patch(POD, operations, query={"dryRun": "All"})
    client.patch(POD, {"metadata": {}}, PatchType.MERGE)
    client.delete(POD, {"preconditions": {"uid": "u"}})
    client.put(POD, pod("p"))

    first, second = server.seen(f"PATCH {POD}")
    [delete] = server.seen(f"DELETE {POD}")
    assert (operations, {"dryRun": "All"}) == (first.json, first.query)
    assert "application/json-patch+json" == first.headers["content-type"]
    assert "application/merge-patch+json" == second.headers["content-type"]
    assert {"preconditions": {"uid": "u"}} == delete.json


def test_impersonation_sends_the_user_alone(server: ApiServer, client: Client) -> None:
    """Exactly one Impersonate header goes out, and errors say as whom."""
    server.on(f"GET {POD}", reply(status(403, "Forbidden", "not yours"), 403))
    node = client.impersonating("system:node:a")

    with pytest.raises(ForbiddenError) as caught:
        node.get(POD)

    [seen] = server.seen(f"GET {POD}")
    sent = {k: v for k, v in seen.headers.items() if k.startswith("impersonate")}
    assert {"impersonate-user": "system:node:a"} == sent
    assert f"GET {POD} (as system:node:a): 403 Forbidden: not yours" == str(caught.value)

    server.on(f"GET {POD}", reply(pod("p")))
    client.get(POD)
    assert "impersonate-user" not in server.seen(f"GET {POD}")[-1].headers


def test_the_program_introduces_itself(server: ApiServer) -> None:
    """The audit log can tell our programs apart by user agent."""
    server.on(f"GET {POD}", reply(pod("p")))
    with client_of(server, replace(SETTINGS, user_agent="gpufence-agent/1")) as client:
        client.get(POD)

    assert "gpufence-agent/1" == server.seen(f"GET {POD}")[0].headers["user-agent"]


def test_a_server_below_a_path_keeps_it(server: ApiServer) -> None:
    """Servers behind a gateway, with a path in their address, are reached there."""
    server.on(f"GET /k8s/clusters/c1{POD}", reply(pod("p")))

    with connect(ClientSettings(server=f"{server.url}/k8s/clusters/c1/")) as client:
        assert pod("p") == client.get(POD)


def test_an_endless_refusal_is_read_only_so_far(server: ApiServer, client: Client) -> None:
    """A refused watch whose body never ends still comes back as a refusal."""

    def endless(exchange: Exchange) -> None:
        exchange.send_head(503, {"Transfer-Encoding": "chunked"})
        while not server.over.is_set():
            exchange.send_chunk(b"overloaded " * 10_000)

    server.on(f"WATCH {PODS}", endless)

    with pytest.raises(ServerError, match="503 Service Unavailable: overloaded"):
        client.stream(PODS, {"watch": "true"}, silence_seconds=5)


def test_a_watch_answered_by_no_watch_is_a_bad_reply(server: ApiServer, client: Client) -> None:
    """A success without a stream is not waited upon."""
    server.on(f"WATCH {PODS}", reply(pods(), 202))

    with pytest.raises(BadReplyError, match="status 202 is no answer to a watch"):
        client.stream(PODS, {"watch": "true"}, silence_seconds=5)


@pytest.mark.parametrize("ahead", [-3600.0, 0.0, 3600.0])
def test_how_far_the_clock_is_from_the_servers_is_known(
    server: ApiServer, client: Client, ahead: float
) -> None:
    """By the date of its last answer, whichever way that was read; one that is none is unknown."""
    server.clock_ahead_seconds = -ahead
    server.on(f"GET {POD}", reply(pod("p")))
    before = client.clock_ahead_seconds
    found = []
    for _ in range(2):
        client.get(POD)
        found.append(client.clock_ahead_seconds)

    server.on(f"GET {PODS}", reply(pods(), 200, {"Date": "yesterday"}))
    client.get(PODS)

    assert None is before
    assert None is client.clock_ahead_seconds
    assert all(each is not None and abs(each - ahead) < PATIENCE_SECONDS for each in found)
