"""PURE. Read what the API server answers: an object, or the error it means."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias

from gpufence.text import printable
from kube.errors import BadReplyError, Failure, ReplyError, error_for

if TYPE_CHECKING:
    from collections.abc import Mapping

JsonObject: TypeAlias = dict[str, Any]
"""JSON as it came: Kubernetes objects stay plain dicts, so that fields we do not know survive."""

_EXCERPT_CHARACTERS = 200
_OK = range(200, 300)
_REDIRECTS = range(300, 400)


@dataclass(frozen=True, slots=True)
class RawReply:
    """What came over the wire, complete."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def read_reply(request: str, reply: RawReply) -> JsonObject:
    """
    Read the answer's object; `request` is the request line that errors quote.

    Raises a ReplyError where the server refused, in the status line or in a Status body (an
    eviction may answer so), and BadReplyError where this is no answer of an API server.
    """
    if reply.status in _REDIRECTS:
        raise BadReplyError(
            f"{request}: {reply.status}, a redirect to {_excerpt(reply.headers.get('location'))}; "
            "an API server never redirects: check the server's address"
        )
    content = _parse(reply.body)
    if reply.status not in _OK:
        raise refusal(request, reply, content)
    if not isinstance(content, dict):
        raise BadReplyError(
            f"{request}: {reply.status}, but the body is no JSON object: {_excerpt(reply.body)}; "
            "is this the address of a Kubernetes API server?"
        )
    if content.get("kind") == "Status" and content.get("status") == "Failure":
        raise status_error(request, content)
    return content


def refusal(request: str, reply: RawReply, content: object) -> ReplyError:
    """Make the error of an HTTP status that is not 2xx, whatever the body may be."""
    failure = _failure(request, content if isinstance(content, dict) else {}, reply.status)
    message = failure.message or _excerpt(reply.body) or "the body is empty"
    wait = _seconds(reply.headers.get("retry-after"))
    return error_for(
        Failure(
            request=request,
            status=reply.status,
            reason=failure.reason,
            message=message,
            retry_after_seconds=failure.retry_after_seconds if wait is None else wait,
            details=failure.details,
        )
    )


def status_error(request: str, status: JsonObject) -> ReplyError:
    """
    Make the error of a Status object that arrived on its own, as an ERROR event of a watch does.
    """
    code = status.get("code")
    if not isinstance(code, int) or code in _OK:
        code = HTTPStatus.INTERNAL_SERVER_ERROR.value
    return error_for(_failure(request, status, code))


def _failure(request: str, status: JsonObject, code: int) -> Failure:
    details = status.get("details")
    details = details if isinstance(details, dict) else {}
    return Failure(
        request=request,
        status=code,
        reason=str(status.get("reason") or _phrase(code)),
        message=_excerpt(status.get("message"), limit=2000),
        retry_after_seconds=_seconds(details.get("retryAfterSeconds")),
        details=details,
    )


def _parse(body: bytes) -> Any:  # noqa: ANN401 (whatever a stranger sends; callers check)
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _seconds(value: object) -> float | None:
    # Retry-After may also be a date; no API server sends one, so it counts as absent.
    text = str(value)
    return float(text[:6]) if text.isascii() and text.isdigit() and text != "0" else None


def _excerpt(value: object, limit: int = _EXCERPT_CHARACTERS) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")
    line = " ".join(text[: 2 * limit].split())
    return printable(line, limit)


def part_of(item: JsonObject, key: str) -> JsonObject:
    """
    Return a part of an object that anybody may have written: what is no object counts as absent.
    """
    value = item.get(key)
    return value if isinstance(value, dict) else {}


def objects_of(item: JsonObject, key: str) -> list[JsonObject]:
    """The same of a list of objects."""
    listed = item.get(key)
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def texts_of(item: JsonObject, key: str) -> dict[str, str]:
    """The same of an object whose values are texts, as labels are."""
    return only_texts(part_of(item, key))


def only_texts(item: Mapping[str, Any]) -> dict[str, str]:
    return {key: text for key, text in item.items() if isinstance(text, str)}
