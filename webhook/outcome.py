"""PURE. What became of one request, as a value: log line, metric and answer are all made of it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class ReviewResult(StrEnum):
    """The kinds of ends a request can come to; a label of the metrics, so few and stable."""

    REWRITTEN = "rewritten"  # the pod got a patch
    UNCHANGED = "unchanged"  # the pod needs none
    REFUSED = "refused"  # the pod's creator was told why not
    EXACT = "exact"  # the binding got the values of its node
    CAREFUL = "careful"  # its node does not tell its cards: the values of the largest there is
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
