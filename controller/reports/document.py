"""
PURE. A namespace's Report, as OpenReports has it: bounded, in an order that depends on what it says
alone, and what is remembered of those that are there.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.cluster.shared import digest
from controller.reports.results import ReportRule, ResultWord
from gpufence import names
from kube.kinds import ApiKind
from kube.replies import part_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from controller.model import PodState
    from controller.reports.results import PodResult
    from kube.replies import JsonObject

REPORT: Final = ApiKind(names.REPORT_GROUP, "Report", names.REPORTS)
NAME: Final = "gpufence"
"""Of our Report in each namespace, of its source, and of the policy of every result."""
LEFT_OUT: Final = "left-out"
_SAID: Final = ("source", "scope", "configuration", "summary", "results")
_WORST_FIRST: Final = {word: place for place, word in enumerate(ResultWord)}
_RULES: Final = {rule: place for place, rule in enumerate(ReportRule)}
_SEVERITIES: Final = {
    (ReportRule.OVER, ResultWord.FAIL): "high",
    (ReportRule.OVER, ResultWord.WARN): "medium",
    (ReportRule.DECLARED, ResultWord.WARN): "medium",
    (ReportRule.CAPPED, ResultWord.WARN): "medium",
    (ReportRule.IDLE, ResultWord.WARN): "low",
}


class ReportLine(NamedTuple):
    """One result, and whose it is."""

    pod: PodState
    result: PodResult


class KeptReport(NamedTuple):
    """What is remembered of a Report: `said` is what it says, in a few bytes."""

    uid: str
    version: str
    said: bytes
    ours: bool


def keep_report(item: JsonObject) -> tuple[str, KeptReport | None]:
    """Keep a Report of our name, by its namespace."""
    metadata = part_of(item, "metadata")
    namespace = str(metadata.get("namespace", ""))
    if metadata.get("name") != NAME:
        return f"{namespace}/", None
    return namespace, KeptReport(
        uid=str(metadata.get("uid", "")),
        version=str(metadata.get("resourceVersion", "")),
        said=said_by(item),
        ours=part_of(metadata, "labels").get(names.MANAGED_BY) == names.CONTROLLER,
    )


def said_by(report: JsonObject) -> bytes:
    """Say in a few bytes what a Report says."""
    return digest({key: report.get(key) for key in _SAID})


def report_of(namespace: str, lines: Iterable[ReportLine], most: int) -> dict[str, object]:
    """
    Write the Report of a namespace, with the worst results first and no more than `most` of them;
    its summary counts them all.
    """
    ordered = sorted(lines, key=_place)
    room = len(ordered) if len(ordered) <= most else most - 1
    shown, rest = ordered[:room], ordered[room:]
    results = [*map(_result, shown), *_left_out(rest)]
    counts = Counter(str(line.result.word) for line in ordered)
    counts[str(ResultWord.SKIP)] += len(results) - len(shown)
    return {
        "apiVersion": names.REPORT_GROUP,
        "kind": REPORT.kind,
        "metadata": {
            "name": NAME,
            "namespace": namespace,
            "labels": {names.MANAGED_BY: names.CONTROLLER},
        },
        "source": NAME,
        "scope": {"apiVersion": "v1", "kind": "Namespace", "name": namespace},
        "configuration": {"limits": {"maxResults": most}},
        "summary": {str(word): counts[str(word)] for word in ResultWord},
        "results": results,
    }


def _place(line: ReportLine) -> tuple[int, int, str, str]:
    result = line.result
    return _WORST_FIRST[result.word], _RULES[result.rule], line.pod.name, line.pod.uid


def _result(line: ReportLine) -> Mapping[str, object]:
    pod, result = line
    about = {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
    }
    written: dict[str, object] = {
        "policy": NAME,
        "rule": str(result.rule),
        "category": "GPU sharing",
        "result": str(result.word),
        "message": result.message,
        "resources": [about],
        "properties": dict(_properties(pod)),
    }
    severity = _SEVERITIES.get((result.rule, result.word))
    return written if severity is None else {**written, "severity": severity}


def _properties(pod: PodState) -> Iterator[tuple[str, str]]:
    if pod.owner is not None:
        yield "owner", f"{pod.owner.kind}/{pod.owner.name}"
    if pod.node:
        yield "node", pod.node


def _left_out(lines: list[ReportLine]) -> Iterator[Mapping[str, object]]:
    """Say what there is no room for; a result of no resource is about the namespace."""
    if not lines:
        return
    counts = Counter(line.result.word for line in lines)
    each = ", ".join(f"{counts[word]} {word}" for word in ResultWord if counts[word])
    yield {
        "policy": NAME,
        "rule": LEFT_OUT,
        "category": "GPU sharing",
        "result": str(ResultWord.SKIP),
        "message": f"{len(lines)} more results are counted above and not shown: {each}",
    }
