"""What happens between HTTP and a hook when either goes wrong."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.rewriting import encoded, review
from webhook.endpoint import LARGE_BODY_BYTES, MOST_BODY_BYTES, Bodies, BodyError, Endpoint
from webhook.metrics import Account, Metrics, RequestLog
from webhook.review import PODS, Reply, Review, ReviewOutcome, ReviewResult, Subject

if TYPE_CHECKING:
    from webhook.endpoint import Message

SECRET = "the innermost secret"


class Fine:
    """Answers everything."""

    expected = PODS

    async def answer(self, review: Review) -> Reply:
        return Reply(200, b"{}", ReviewOutcome(ReviewResult.UNCHANGED, review.subject))

    def unread(self, uid: str, why: str) -> Reply:
        return Reply(200, why.encode(), ReviewOutcome(ReviewResult.UNCHANGED, Subject(uid)))


class Broken:
    """Has a bug."""

    expected = PODS

    async def answer(self, review: Review) -> Reply:
        raise KeyError(SECRET, review.subject.uid)

    def unread(self, uid: str, why: str) -> Reply:
        raise KeyError(SECRET, uid, why)


class Stage:
    """An endpoint with both hooks, and all that it sends and logs."""

    def __init__(self, *, draining: bool = False) -> None:
        self.log = io.BytesIO()
        self.elsewhere: list[str] = []
        self.endpoint = Endpoint(
            self._other,
            {"/fine": ("fine", Fine()), "/broken": ("broken", Broken())},
            Account(Metrics(("fine", "broken")), RequestLog(logging.DEBUG, self.log)),
            is_draining=lambda: draining,
            body_seconds=0.05,
        )

    def post(
        self, path: str, *messages: Message, **scope: Any
    ) -> tuple[int, dict[str, str], bytes]:
        """Send messages of one request; what comes after the last one never comes."""
        waiting = list(messages)
        sent: list[Message] = []

        async def receive() -> Message:
            if not waiting:
                await asyncio.Event().wait()
            return waiting.pop(0)

        async def send(message: Message) -> None:
            sent.append(message)

        whole = {"type": "http", "path": path, "method": "POST", "headers": [], **scope}
        asyncio.run(self.endpoint(whole, receive, send))
        if not sent:
            return 0, {}, b""
        start, body = sent
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return start["status"], headers, body["body"]

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    async def _other(self, scope: Message, _receive: object, _send: object) -> None:
        self.elsewhere.append(scope["type"])


def whole(body: bytes) -> Message:
    return {"type": "http.request", "body": body, "more_body": False}


def part(body: bytes) -> Message:
    return {"type": "http.request", "body": body, "more_body": True}


def test_a_bug_of_ours_is_a_500_that_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The caller gets no trace; the log has it, under the uid of the request."""
    stage = Stage()
    status, _, body = stage.post("/broken", whole(encoded(review(uid="u-1"))))
    (record,) = [each for each in caplog.records if each.exc_info]

    assert 500 == status
    assert SECRET.encode() not in body
    assert {"uid": "u-1"} == record.__dict__["fields"]
    assert SECRET in caplog.text
    assert [("failed", "u-1", "error")] == [
        (line["result"], line["uid"], line["level"]) for line in stage.lines
    ]


def test_a_body_in_pieces_is_put_together() -> None:
    """However it comes, it is one body."""
    body = encoded(review())
    status, headers, _ = Stage().post("/fine", part(body[:100]), part(b""), whole(body[100:]))

    assert (200, "application/json") == (status, headers["content-type"])


@pytest.mark.parametrize(
    ("status", "reason", "messages"),
    [
        (408, "slow-body", [part(b"{")]),
        (400, "gone", [part(b"{"), {"type": "http.disconnect"}]),
        (413, "too-large", [part(b"x" * MOST_BODY_BYTES), part(b"x")]),
        (400, "not-json", [whole(b"")]),
    ],
)
def test_a_body_that_never_becomes_one_is_accounted_for(
    status: int, reason: str, messages: list[Message]
) -> None:
    """Slow, cut off, too large or empty: an answer, a count and a line for each."""
    stage = Stage()

    assert status == stage.post("/fine", *messages)[0]
    assert [("rejected", reason)] == [(line["result"], line["reason"]) for line in stage.lines]


def test_a_length_over_the_limit_is_not_waited_for() -> None:
    """The header is enough to refuse, and the connection is not used again."""
    headers = [(b"content-length", str(MOST_BODY_BYTES + 1).encode())]
    status, answer, _ = Stage().post("/fine", headers=headers)

    assert (413, "close") == (status, answer["connection"])


def test_a_draining_server_asks_its_callers_to_leave() -> None:
    """Each answer then closes its connection."""
    headers = Stage(draining=True).post("/fine", whole(encoded(review())))[1]

    assert "close" == headers["connection"]


@pytest.mark.parametrize("scope", [{"path": "/other"}, {"type": "websocket"}, {"type": "lifespan"}])
def test_whatever_is_no_admission_goes_to_the_application(scope: dict[str, str]) -> None:
    """Other paths and other protocols are not the endpoint's."""
    stage = Stage()
    stage.post(**{"path": "/fine", **scope})

    assert [scope.get("type", "http")] == stage.elsewhere


def test_more_members_than_any_review_has_are_not_read() -> None:
    """The hook answers under the uid that the body begins with, without having read it."""
    members = b"[" + b"{}," * 2**18 + b"{}]"
    body = b'{"request": {"uid": "u-1", "object": ' + members + b"}}"
    status, _, answer = Stage().post("/fine", whole(body))

    assert 200 == status
    assert b"members" in answer


def test_members_without_a_uid_are_no_review() -> None:
    """Where nobody can be answered, it is a bad request like any other."""
    stage = Stage()

    assert 400 == stage.post("/fine", whole(b"," * (2**18 + 1)))[0]
    assert ["too-many"] == [line["reason"] for line in stage.lines]


async def _read_two(first: bytes, second: bytes) -> tuple[str, bytes]:
    """Keep one body unfinished while another comes whole; return what became of both."""
    now = 0.0
    bodies = Bodies(seconds=5.0, most_bytes=100, monotonic=lambda: now)
    gate = asyncio.Event()
    slow = [part(first), whole(b"!")]

    async def slowly() -> Message:
        if len(slow) == 1:
            await gate.wait()
        return slow.pop(0)

    async def at_once() -> Message:
        return whole(second)

    async def reading() -> str:
        with bodies.begun() as body:
            try:
                await bodies.read(body, {"headers": []}, slowly)
            except BodyError as error:
                return error.reason
        return "whole"

    waiting = asyncio.create_task(reading())
    await asyncio.sleep(0)
    now = 1.0
    with bodies.begun() as body:
        content = await bodies.read(body, {"headers": []}, at_once)
    gate.set()
    became = await waiting
    assert 0 == bodies.in_flight
    return became, content


@pytest.mark.parametrize(("size", "became"), [(60, "crowded"), (20, "whole")])
def test_who_keeps_the_most_for_the_longest_gives_way(size: int, became: str) -> None:
    """A body that comes whole finds room, at the cost of one that does not."""
    assert (became, b"x" * 70) == asyncio.run(_read_two(b"y" * size, b"x" * 70))


class Slow(Fine):
    """Takes a few turns of the loop, and notes whose answer begins and ends."""

    def __init__(self) -> None:
        self.order: list[str] = []

    async def answer(self, review: Review) -> Reply:
        for _ in range(3):
            self.order.append(review.subject.uid)
            await asyncio.sleep(0)
        return await super().answer(review)


def test_of_large_bodies_one_is_answered_at_a_time() -> None:
    """Small ones do not wait for them."""
    hook, stage = Slow(), Stage()
    account = Account(Metrics(("slow",)), RequestLog(logging.DEBUG, stage.log))
    endpoint = Endpoint(stage._other, {"/slow": ("slow", hook)}, account, lambda: False)
    padding = b" " * LARGE_BODY_BYTES

    async def post(uid: str, more: bytes) -> None:
        async def receive() -> Message:
            return whole(encoded(review(uid=uid)) + more)

        async def send(_: Message) -> None:
            return

        scope = {"type": "http", "path": "/slow", "method": "POST", "headers": []}
        await endpoint(scope, receive, send)

    async def all_at_once() -> None:
        await asyncio.gather(post("large-1", padding), post("large-2", padding), post("small", b""))

    asyncio.run(all_at_once())

    large = [uid for uid in hook.order if uid != "small"]
    assert ["large-1"] * 3 + ["large-2"] * 3 == large
    assert hook.order.index("small") < hook.order.index("large-2")
