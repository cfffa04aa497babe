"""
The envelope: an AdmissionReview of admission.k8s.io/v1 in, its answer out; and what became of one
request, of which log line, metric and answer are all made.

Only the API server should ever call, but anybody in the cluster's network can: whatever is no
review is told apart here, by a word for the metrics and a sentence that repeats nothing of it.
A name that stands twice in one object counts by its last value, as it does to the API server.
JSON is read and written by orjson, whose strictness is what is wanted here and which takes a third
of the standard library's time for half of what an admission costs (docs/adr).
"""

from __future__ import annotations

import re
from base64 import b64encode
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import orjson

from gpufence.errors import GpufenceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ReviewResult(StrEnum):
    """The kinds of ends a request can come to; a label of the metrics, so few and stable."""

    REWRITTEN = "rewritten"  # the pod got a patch
    UNCHANGED = "unchanged"  # the pod needs none
    REFUSED = "refused"  # the pod's creator was told why not
    EXACT = "exact"  # the binding got the values of its node
    CAREFUL = "careful"  # its node does not state its cards: the values of the largest there is
    SKIPPED = "skipped"  # the binding was let through without values
    REJECTED = "rejected"  # not a review that we answer: HTTP 4xx
    FAILED = "failed"  # our own bug: HTTP 500


class Subject(NamedTuple):
    """Whom a request was about, as far as it could be read."""

    uid: str = ""
    namespace: str = ""
    name: str = ""
    dry_run: bool = False


NOBODY = Subject()


class ReviewOutcome(NamedTuple):
    """
    The end of one request.

    `reason` is one of a few fixed words and a label of the metrics; `detail` is for the log alone.
    """

    result: ReviewResult
    subject: Subject = NOBODY
    reason: str = ""
    detail: str = ""
    operations: int = 0
    warnings: int = 0


class Reply(NamedTuple):
    """What to send, and what to say about it."""

    status: int
    body: bytes
    outcome: ReviewOutcome


JsonObject: TypeAlias = dict[str, Any]

VERSION = "admission.k8s.io/v1"
_DEEPEST = 254  # levels; a pod has about 20, and showing one takes several frames for each
_LONGEST_UID = 256
_MOST_MEMBERS = 2**18  # brackets and commas; each member of JSON takes up to 150 bytes
_BEGINNING = 4096
_UID = re.compile(rb'"request":\s*\{\s*"uid":\s*"([-A-Za-z0-9]{1,256})"')
_HEAD = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":'


class BadReviewError(GpufenceError):
    """
    Raised for a body that is no review of the expected kind; `sentence` may be shown to anybody.
    """

    def __init__(self, reason: str, sentence: str, uid: str = "") -> None:
        super().__init__(sentence)
        self.reason = reason
        self.sentence = sentence
        self.uid = uid


class TooMuchError(BadReviewError):
    """Raised for a review that would take more memory to read than there is, before it is read."""


class Expected(NamedTuple):
    """What a path answers reviews of."""

    kind: str
    resources: frozenset[tuple[str, str]]


PODS = Expected("Pod", frozenset({("pods", "")}))
BINDINGS = Expected("Binding", frozenset({("pods", "binding"), ("bindings", "")}))


class Review(NamedTuple):
    """One question of the API server; `object` is as it came, unknown fields and all."""

    subject: Subject
    object: JsonObject


def read_review(body: bytes, expected: Expected) -> Review:
    """
    Read a review.

    Raises:
        BadReviewError: the body is anything else; whoever sent it is not the API server, or the
            webhook configuration sends what this path is not for.

    """
    review = _parsed(body)
    if review.get("apiVersion") != VERSION or review.get("kind") != "AdmissionReview":
        _refuse("wrong-version", f"the body is not an AdmissionReview of {VERSION}")
    request = review.get("request")
    if not isinstance(request, dict):
        _refuse("no-request", "the review has no request")
    uid = request.get("uid")
    if not isinstance(uid, str) or not 0 < len(uid) <= _LONGEST_UID:
        _refuse("no-uid", "request.uid is missing or no text")
    _check_subject(request, expected, uid)
    item = request.get("object")
    if not isinstance(item, dict):
        _refuse("no-object", "request.object is missing", uid)
    subject = Subject(
        uid,
        _text(request, "namespace", uid),
        _text(request, "name", uid) or _name_of(item),
        request.get("dryRun") is True,
    )
    return Review(subject, item)


def write_allowed(
    uid: str,
    operations: Sequence[Mapping[str, Any]] = (),
    warnings: Sequence[str] = (),
    audit: Mapping[str, str] | None = None,
) -> bytes:
    """
    Let the object through, changed by the operations if there are any.

    The API server refuses a patch type without a patch, so both stand or neither.
    """
    parts = [_HEAD, orjson.dumps(uid), b',"allowed":true']
    if operations:
        patch = b64encode(orjson.dumps(operations))
        parts += (b',"patchType":"JSONPatch","patch":"', patch, b'"')
    return b"".join((*parts, *_remarks(warnings, audit), b"}}"))


def write_denied(
    uid: str, message: str, warnings: Sequence[str] = (), audit: Mapping[str, str] | None = None
) -> bytes:
    """Refuse the object; kubectl shows the message to the person who asked."""
    status = {"code": 403, "reason": "Forbidden", "message": message}
    parts = (_HEAD, orjson.dumps(uid), b',"allowed":false,"status":', orjson.dumps(status))
    return b"".join((*parts, *_remarks(warnings, audit), b"}}"))


def _remarks(warnings: Sequence[str], audit: Mapping[str, str] | None) -> list[bytes]:
    parts = []
    if warnings:
        parts += [b',"warnings":', orjson.dumps(warnings)]
    if audit:
        parts += [b',"auditAnnotations":', orjson.dumps(audit)]
    return parts


def _parsed(body: bytes) -> JsonObject:
    brackets = body.count(b"{") + body.count(b"[")
    if brackets + body.count(b",") > _MOST_MEMBERS:
        _refuse_members(body)
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError:
        _refuse("not-json", "the body is not JSON in UTF-8")
    if not isinstance(review, dict):
        _refuse("not-object", "the body is not a JSON object")
    try:
        # Brackets bound the depth from above; where they are many, orjson writes just so deep.
        if brackets > _DEEPEST:
            orjson.dumps(review)
    except orjson.JSONEncodeError:
        _refuse("too-deep", f"the body is nested deeper than {_DEEPEST} levels")
    return review


def _refuse_members(body: bytes) -> NoReturn:
    """Refuse a body that nobody shall read, under the uid that an API server begins it with."""
    sentence = f"the review has more than {_MOST_MEMBERS} members; make the object smaller"
    match = _UID.search(body[:_BEGINNING])
    if match is None:
        _refuse("too-many", sentence)
    raise TooMuchError("too-many", sentence, match[1].decode())


def _check_subject(request: JsonObject, expected: Expected, uid: str) -> None:
    if request.get("operation") != "CREATE":
        _refuse("wrong-operation", "request.operation is not CREATE", uid)
    kind = request.get("kind")
    if (
        not isinstance(kind, dict)
        or kind.get("group", "") != ""
        or kind.get("version") != "v1"
        or kind.get("kind") != expected.kind
    ):
        _refuse("wrong-kind", f"request.kind is not v1 {expected.kind}", uid)
    resource = request.get("resource")
    found = resource.get("resource") if isinstance(resource, dict) else None
    part = request.get("subResource") or ""
    if not isinstance(found, str) or not isinstance(part, str):
        _refuse("wrong-resource", "request.resource is missing", uid)
    if (found, part) not in expected.resources:
        _refuse("wrong-resource", "request.resource is not what this path is for", uid)


def _text(request: JsonObject, field: str, uid: str) -> str:
    value = request.get(field, "")
    if not isinstance(value, str):
        _refuse("no-text", f"request.{field} is no text", uid)
    return value


def _name_of(item: JsonObject) -> str:
    """Return a name for the log: before the API server has made one of generateName, that."""
    metadata = item.get("metadata")
    name = (
        metadata.get("name") or metadata.get("generateName") if isinstance(metadata, dict) else ""
    )
    return name if isinstance(name, str) else ""


def _refuse(reason: str, sentence: str, uid: str = "") -> NoReturn:
    raise BadReviewError(reason, sentence, uid)
