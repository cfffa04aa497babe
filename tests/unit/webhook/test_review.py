"""The envelope: what counts as a review, what an answer looks like, and what is counted of both."""

import base64
import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from service.exposition import write_page
from tests.support.rewriting import binding_review, encoded, pod, review
from webhook.metrics import CONTACT, EXPIRY, READY, Account, Gauge, Metrics, RequestLog
from webhook.review import (
    BINDINGS,
    PODS,
    BadReviewError,
    Expected,
    ReviewOutcome,
    ReviewResult,
    Subject,
    read_review,
    write_allowed,
    write_denied,
)


def refused(body: bytes, expected: Expected = PODS) -> BadReviewError:
    with pytest.raises(BadReviewError) as caught:
        read_review(body, expected)
    return caught.value


def deep(levels: int) -> bytes:
    item: Any = {}
    for _ in range(levels):
        item = {"a": item}
    return encoded(review(object=item))


def test_a_review_names_its_subject() -> None:
    """A review says which object of which namespace it is about."""
    found = read_review(encoded(review(object=pod(name="p"), dryRun=True)), PODS)

    assert Subject("705ab4f5-6393-11e8-b7cc-42010a800002", "team-a", "p", True) == found.subject  # noqa: FBT003 - reads well enough


def test_unknown_fields_of_the_object_survive() -> None:
    """The object is handed on as it came."""
    item = pod() | {"spec": {"containers": [], "fromTheFuture": [1, None, {"x": "\u00fc"}]}}

    assert item == read_review(encoded(review(object=item)), PODS).object


def test_a_pod_without_a_name_is_called_by_what_will_become_one() -> None:
    """Before the API server has made a name, generateName stands in for it."""
    item = pod(generateName="web-")
    del item["metadata"]["name"]

    assert "web-" == read_review(encoded(review(object=item)), PODS).subject.name


@pytest.mark.parametrize(
    "request_",
    [{}, {"resource": {"group": "", "version": "v1", "resource": "bindings"}, "subResource": None}],
)
def test_both_ways_to_bind_are_bindings(request_: dict[str, Any]) -> None:
    """A Binding is read from pods/binding and from the older resource alike."""
    found = read_review(encoded(binding_review(**request_)), BINDINGS)

    assert "trainer" == found.subject.name


@pytest.mark.parametrize(
    ("reason", "body"),
    [
        ("not-json", b""),
        ("not-json", b"{"),
        ("not-json", b"hello"),
        ("not-json", encoded(review()) + b"x"),
        ("not-json", encoded(review(extra=float("nan")))),
        ("not-json", encoded(review(extra=float("-inf")))),
        ("not-json", b'{"a": ' + b"9" * 10_000 + b"}"),
        ("not-json", b'{"a": "\\ud800"}'),
        ("not-json", b"\xef\xbb\xbf" + encoded(review())),
        ("not-json", b'{"a": "\xff"}'),
        ("not-json", json.dumps(review()).encode("utf-16")),
        ("not-object", b"[]"),
        ("not-object", b"null"),
        ("not-json", b"[" * 100_000),
        ("too-deep", deep(300)),
        ("wrong-version", b"{}"),
        ("wrong-version", encoded(review() | {"apiVersion": "admission.k8s.io/v1beta1"})),
        ("wrong-version", encoded(review() | {"apiVersion": ["admission.k8s.io/v1"]})),
        ("wrong-version", encoded(review() | {"kind": "Pod"})),
        ("no-request", encoded(review() | {"request": None})),
        ("no-request", encoded(review() | {"request": []})),
        ("no-uid", encoded(review(uid=None))),
        ("no-uid", encoded(review(uid=""))),
        ("no-uid", encoded(review(uid=5))),
        ("no-uid", encoded(review(uid="u" * 1000))),
        ("wrong-operation", encoded(review(operation="UPDATE"))),
        ("wrong-operation", encoded(review(operation=None))),
        ("wrong-kind", encoded(review(kind=None))),
        ("wrong-kind", encoded(review(kind={"group": "", "version": "v1", "kind": "Node"}))),
        ("wrong-kind", encoded(review(kind={"group": "", "version": "v2", "kind": "Pod"}))),
        ("wrong-kind", encoded(review(kind={"group": "x", "version": "v1", "kind": "Pod"}))),
        ("wrong-kind", encoded(review(kind={"group": [], "version": {}, "kind": "Pod"}))),
        ("wrong-resource", encoded(review(resource=None))),
        ("wrong-resource", encoded(review(resource={"resource": ["pods"]}))),
        ("wrong-resource", encoded(review(resource={"resource": "nodes"}))),
        ("wrong-resource", encoded(review(subResource="status"))),
        ("wrong-resource", encoded(review(subResource=["status"]))),
        ("no-object", encoded(review(object=None))),
        ("no-object", encoded(review(object=[]))),
        ("no-text", encoded(review(namespace=5))),
        ("no-text", encoded(review(name={"a": 1}))),
    ],
)
def test_whatever_is_no_review_is_refused_by_a_word(reason: str, body: bytes) -> None:
    """Everything but a review of a pod's creation is refused with a fixed word."""
    assert reason == refused(body).reason


def test_a_refusal_repeats_nothing_of_the_body() -> None:
    """What a stranger wrote does not come back to anybody."""
    error = refused(encoded(review(operation="<script>", namespace="<script>")))

    assert "<script>" not in error.sentence


def test_a_refusal_knows_the_uid_once_it_was_read() -> None:
    """The log can name the request, even where the rest of it is wrong."""
    assert "abc" == refused(encoded(review(uid="abc", operation="DELETE"))).uid


def test_a_binding_is_no_pod() -> None:
    """A path answers only for the kind it is for."""
    assert "wrong-kind" == refused(encoded(binding_review()), PODS).reason


def test_a_name_that_stands_twice_counts_by_its_last_value() -> None:
    """Double names are read as the API server reads them."""
    body = encoded(review()).replace(b'"uid":', b'"uid": "first", "uid":', 1)

    assert "705ab4f5-6393-11e8-b7cc-42010a800002" == read_review(body, PODS).subject.uid


def test_a_wide_pod_is_not_a_deep_one() -> None:
    """Many objects beside each other are ordinary."""
    item = pod() | {"list": [{"n": [number]} for number in range(1000)]}

    assert item == read_review(encoded(review(object=item)), PODS).object


def test_a_plain_yes_holds_no_patch() -> None:
    """The API server refuses a patch type without a patch."""
    assert {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u", "allowed": True},
    } == json.loads(write_allowed("u"))


def test_a_yes_carries_patch_warnings_and_audit() -> None:
    """An answer says what it changes, what it warns of and what the audit log shall know."""
    operations = [{"op": "add", "path": "/metadata/annotations", "value": {"k": "\u00fc"}}]
    response = json.loads(write_allowed("u", operations, ["careful"], {"result": "rewritten"}))[
        "response"
    ]
    patch = json.loads(base64.b64decode(response.pop("patch")))

    assert operations == patch
    assert {
        "uid": "u",
        "allowed": True,
        "patchType": "JSONPatch",
        "warnings": ["careful"],
        "auditAnnotations": {"result": "rewritten"},
    } == response


def test_a_no_tells_the_person_why() -> None:
    """A refusal carries a message and a status that kubectl shows."""
    response = json.loads(write_denied('u"', "too small", ["w"], {"a": "b"}))["response"]

    assert {
        "uid": 'u"',
        "allowed": False,
        "status": {"code": 403, "reason": "Forbidden", "message": "too small"},
        "warnings": ["w"],
        "auditAnnotations": {"a": "b"},
    } == response


GOLDEN = Path(__file__).with_name("metrics.golden.txt")


def test_the_page_is_as_reviewed() -> None:
    """One whole page, compared as it was read and agreed to."""
    metrics = Metrics(("observe", "cap", "evict", "bindings"), lambda: 100.0)
    metrics.count_load("swapped")
    metrics.add_gauges(
        Gauge(EXPIRY, "Unix time at which the serving certificate expires", lambda: 86400.5),
        Gauge(READY, "Whether /readyz says yes", lambda: True),
        Gauge(CONTACT, "Contact", lambda: {"nodes": 1.5, "namespaces": 60.0}, "source"),
    )
    metrics.count("cap", ReviewOutcome(ReviewResult.REWRITTEN, operations=3, warnings=2), 0.0007)
    metrics.count("cap", ReviewOutcome(ReviewResult.UNCHANGED), 0.0002)
    metrics.count("bindings", ReviewOutcome(ReviewResult.SKIPPED, reason="api-slow"), 3.0)

    assert GOLDEN.read_text(encoding="utf-8") == metrics.page()


def test_an_unknown_number_has_no_line() -> None:
    """What is not known is absent, and never zero."""
    assert "# HELP g G.\n# TYPE g gauge\n" == write_page([Gauge("g", "G.", lambda: None).family()])


def accounted(outcome: ReviewOutcome, level: int = logging.INFO) -> list[dict[str, Any]]:
    """Return the lines that a request leaves."""
    stream = io.BytesIO()
    Account(Metrics(("cap",)), RequestLog(level, stream))("cap", outcome, 0.00123)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_request_is_one_line_of_json() -> None:
    """The log has one object for a request, with all that the outcome knows."""
    subject = Subject("uid-1", "team-a", "trainer", dry_run=True)
    outcome = ReviewOutcome(
        ReviewResult.REWRITTEN, subject, "namespace-unknown", "3 GiB of a T4", 4, 1
    )
    (line,) = accounted(outcome)
    del line["time"]

    assert {
        "level": "info",
        "logger": "webhook.requests",
        "message": "request",
        "hook": "cap",
        "result": "rewritten",
        "uid": "uid-1",
        "namespace": "team-a",
        "name": "trainer",
        "milliseconds": 1.23,
        "reason": "namespace-unknown",
        "detail": "3 GiB of a T4",
        "operations": 4,
        "warnings": 1,
        "dryRun": True,
    } == line


@pytest.mark.parametrize(
    ("level", "result"),
    [
        ("error", ReviewResult.FAILED),
        ("warning", ReviewResult.REJECTED),
        ("info", ReviewResult.REFUSED),
    ],
)
def test_the_level_says_whose_trouble_it_is(level: str, result: ReviewResult) -> None:
    """Our bugs are errors, strangers are warnings, and a refused wish is everyday life."""
    assert [level] == [line["level"] for line in accounted(ReviewOutcome(result))]


def test_a_quiet_log_has_no_everyday_lines() -> None:
    """At level warning only what is out of order is written."""
    assert [] == accounted(ReviewOutcome(ReviewResult.REWRITTEN), logging.WARNING)
