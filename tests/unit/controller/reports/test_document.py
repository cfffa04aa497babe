"""What a Report says of a namespace."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model import OwnerKey, PodState
from controller.reports.document import (
    LEFT_OUT,
    NAME,
    REPORT,
    ReportLine,
    keep_report,
    report_of,
    said_by,
)
from controller.reports.results import PodResult, ReportRule, ResultWord
from gpufence import names

OWNER = OwnerKey("team", "apps/v1", "Deployment", "web")
MOST_BYTES = 10**6
LINES = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(ReportRule), st.sampled_from(ResultWord)),
    max_size=12,
)


def line(
    name: str = "a", rule: ReportRule = ReportRule.OVER, word: ResultWord = ResultWord.PASS
) -> ReportLine:
    pod = PodState(name, "team", name, OWNER, "node-1", "Running", 0, {}, None)
    return ReportLine(pod, PodResult(rule, word, f"{name} {rule}"))


def written(*lines: ReportLine, most: int = 10) -> dict[str, object]:
    return report_of("team", lines, most)


def test_a_result_is_about_a_pod() -> None:
    """By its UID, with whose it is and where it runs."""
    report = written(line(word=ResultWord.FAIL))

    assert [
        {
            "policy": "gpufence",
            "rule": "over",
            "category": "GPU sharing",
            "result": "fail",
            "severity": "high",
            "message": "a over",
            "resources": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "namespace": "team",
                    "name": "a",
                    "uid": "a",
                }
            ],
            "properties": {"owner": "Deployment/web", "node": "node-1"},
        }
    ] == report["results"]


def test_a_pod_without_owner_or_node_has_no_properties() -> None:
    """What is not known is not said."""
    one = line()
    report = written(one._replace(pod=one.pod._replace(owner=None, node="")))
    results = report["results"]

    assert isinstance(results, list)
    assert {} == results[0]["properties"]


def test_a_namespace_without_gpu_pods_has_an_empty_report() -> None:
    """It is fenced, and there is nothing to say."""
    report = written()

    assert [] == report["results"]
    assert {"fail": 0, "error": 0, "warn": 0, "skip": 0, "pass": 0} == report["summary"]


def test_the_worst_come_first_and_what_is_left_out_is_counted() -> None:
    """A report that is full ends with how much it does not show."""
    lines = [
        line(name, word=word) for name, word in zip("abcd", reversed(ResultWord), strict=False)
    ]
    report = written(*lines, most=3)
    results = report["results"]

    assert isinstance(results, list)
    assert ["error", "warn", "skip"] == [item["result"] for item in results]
    assert LEFT_OUT == results[-1]["rule"]
    assert (
        "2 more results are counted above and not shown: 1 skip, 1 pass" == results[-1]["message"]
    )
    assert {"fail": 0, "error": 1, "warn": 1, "skip": 2, "pass": 1} == report["summary"]


@given(LINES, st.randoms(use_true_random=False))
def test_the_same_lines_in_any_order_say_the_same(
    lines: list[tuple[str, ReportRule, ResultWord]], random: Random
) -> None:
    """No report is written because a dictionary was in another order."""
    made = [line(*each) for each in dict.fromkeys(lines)]
    shuffled = [*made]
    random.shuffle(shuffled)

    assert said_by(written(*made, most=4)) == said_by(written(*shuffled, most=4))


def test_the_largest_report_fits_into_the_cluster() -> None:
    """With the longest names and messages that there can be, etcd takes it."""
    pod = PodState(
        "u" * 36,
        "n" * 63,
        "p" * 253,
        OWNER._replace(kind="K" * 63, name="o" * 253),
        "m" * 253,
        "Running",
        0,
        {},
        None,
    )
    result = PodResult(ReportRule.DECLARED, ResultWord.WARN, "\u2028" * 303)
    lines = [ReportLine(pod._replace(name=f"{place:0253}"), result) for place in range(900)]

    assert MOST_BYTES * 1.4 > len(json.dumps(report_of("n" * 63, lines, 800), ensure_ascii=False))


@pytest.mark.parametrize("change", [{"source": "x"}, {"results": []}, {"summary": {"pass": 9}}])
def test_what_a_report_says_is_known_by_a_digest(change: dict[str, object]) -> None:
    """Metadata are no part of it."""
    report = written(line())
    metadata = {"name": NAME, "namespace": "team", "uid": "u", "resourceVersion": "7"}

    assert said_by(report) == said_by({**report, "metadata": metadata})
    assert said_by(report) != said_by({**report, **change})


def test_a_report_of_ours_is_kept_by_its_namespace() -> None:
    """By its label it is known as ours; one of another name is none."""
    labels = {names.MANAGED_BY: names.CONTROLLER}
    metadata = {"name": NAME, "namespace": "team", "uid": "u", "resourceVersion": "7"}
    report = written(line())
    namespace, kept = keep_report({**report, "metadata": {**metadata, "labels": labels}})
    _, foreign = keep_report({**report, "metadata": metadata})

    assert kept is not None
    assert foreign is not None
    assert ("team", "u", "7", said_by(report), True) == (namespace, *kept)
    assert not foreign.ours
    assert ("team/", None) == keep_report({"metadata": {**metadata, "name": "other"}})
    assert "/apis/openreports.io/v1alpha1/namespaces/team/reports/gpufence" == REPORT.path(
        "team", NAME
    )
