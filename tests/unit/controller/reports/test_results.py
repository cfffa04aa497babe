"""What is reported of one pod."""

from typing import Any

import pytest

from agent.model.decision import Outcome
from controller.cluster.pods import MOST_WARNED, keep_pod
from controller.cluster.shared import Shared
from controller.reports.results import (
    MOST_MESSAGE,
    OUTCOMES,
    ReportRule,
    ReportTerms,
    ResultWord,
    results_of,
)
from gpufence import names
from gpufence.dialects import Units
from gpufence.mode import Mode
from gpufence.pods import Pod
from gpufence.quantity import GIB
from gpufence.snapshot import PodActivityRow, PodRow, UseRow
from tests.support.builders import container, gpushare
from tests.support.builders import pod as raw_pod
from tests.support.plugin import pod_row, use_row

BUSY = PodActivityRow("busy", 0.0, "Busy", busy_share=0.5)
CAPPED, DECLARED, OVER, IDLE = (
    ReportRule.CAPPED,
    ReportRule.DECLARED,
    ReportRule.OVER,
    ReportRule.IDLE,
)


def pod(*containers: dict[str, Any], **annotations: str) -> Pod:
    """Build a pod as it is kept, with annotations of ours."""
    said = {f"{names.PREFIX}{key}": text for key, text in annotations.items()}
    raw = raw_pod(*(containers or (gpushare("main"),)), annotations=said)
    _, kept = keep_pod({**raw, "status": {"phase": "Running"}}, Shared())
    assert kept is not None
    assert kept.state.gpu is not None
    return kept.state.gpu


def found(
    row: PodRow | str = "unused", of: Pod | None = None, **terms: Any
) -> dict[ReportRule, tuple[ResultWord, str]]:
    held_to = ReportTerms(Mode.CAP, 900.0, Units())._replace(**terms)
    made = results_of(of or pod(injected="yes"), row, held_to)
    return {each.rule: (each.word, each.message) for each in made}


def test_a_pod_as_it_should_be_passes() -> None:
    """It is declared, told, within its limit and busy."""
    results = found(pod_row(activity=BUSY))

    assert dict.fromkeys(ReportRule, ResultWord.PASS) == {
        rule: word for rule, (word, _) in results.items()
    }


def test_of_whom_nobody_tells_nothing_passes_but_what_the_pod_says_itself() -> None:
    """The reason stands in place of what was not measured."""
    results = found("the agent of node a does not answer")
    skipped = ResultWord.SKIP, "the agent of node a does not answer"

    assert ResultWord.PASS == results.pop(CAPPED)[0]
    assert dict.fromkeys((DECLARED, OVER, IDLE), skipped) == results


def test_who_declares_nothing_is_warned_of() -> None:
    """With the agent's reason; nobody can be over what nobody knows."""
    results = found(pod_row(undeclared="it asks for whole cards")._replace(uses=()))

    assert (
        ResultWord.WARN,
        "nothing says how much it may hold: it asks for whole cards",
    ) == results[DECLARED]
    assert (ResultWord.SKIP, "nothing says how much it may hold") == results[OVER]


@pytest.mark.parametrize(
    ("annotations", "mode", "word", "part"),
    [
        ({"injected": "yes"}, Mode.CAP, ResultWord.PASS, "told what"),
        ({"injected": "yes", "warnings": "main: X"}, Mode.CAP, ResultWord.WARN, "warned: main: X"),
        ({"injected": "yes", "warnings": ""}, Mode.CAP, ResultWord.PASS, "told what"),
        ({"injected": "opted-out"}, Mode.EVICT, ResultWord.WARN, "opted out"),
        ({}, Mode.OBSERVE, ResultWord.WARN, "never saw it"),
        ({"injected": "nothing"}, Mode.OBSERVE, ResultWord.SKIP, "mode observe"),
        ({"injected": "nothing"}, Mode.CAP, ResultWord.WARN, "told nothing"),
        ({"injected": "forged" * 99}, Mode.CAP, ResultWord.WARN, "told nothing"),
    ],
)
def test_who_was_told_is_capped(
    annotations: dict[str, str], mode: Mode, word: ResultWord, part: str
) -> None:
    """By what stands on the pod, and by the mode it is in."""
    result = found(of=pod(**annotations), mode=mode)[CAPPED]

    assert word is result[0]
    assert part in result[1]


def test_a_library_that_caps_is_a_cap() -> None:
    """HAMi's pods are told nothing, and need not be."""
    asked = {names.NVIDIA_GPU: "1", names.HAMI_MEMORY: "3000"}
    hami = pod(container("main", **asked), injected="nothing")

    assert (ResultWord.PASS, "the library of its sharing system caps it") == found(of=hami)[CAPPED]


def test_every_verdict_of_an_agent_is_known() -> None:
    """One more verdict needs its place here."""
    assert {*map(str, Outcome), ""} == OUTCOMES


@pytest.mark.parametrize(
    ("use", "word", "part"),
    [
        (use_row(outcome="holding"), ResultWord.FAIL, "its limit of 3072 MiB on card GPU-0"),
        (use_row(outcome="tolerated"), ResultWord.FAIL, "more than its limit"),
        (use_row(outcome="not enforced"), ResultWord.WARN, "not enforced"),
        (use_row(outcome="unconfirmed"), ResultWord.SKIP, "only one list"),
        (use_row(outcome="mps"), ResultWord.SKIP, "MPS"),
        (use_row(None, outcome="within"), ResultWord.SKIP, "cannot be read"),
        (use_row(outcome="within"), ResultWord.PASS, "no more than its limit"),
        (use_row(outcome="idle"), ResultWord.PASS, "no more than its limit"),
        (use_row(outcome="\x1b[31mnovel"), ResultWord.SKIP, "?[31mnovel, which this controller"),
    ],
)
def test_the_agents_verdict_says_who_is_over(use: UseRow, word: ResultWord, part: str) -> None:
    """What is not certain neither fails nor passes."""
    result = found(pod_row(use))[OVER]

    assert word is result[0]
    assert part in result[1]


def test_the_worst_of_several_cards_counts() -> None:
    """Over on one and unknown on another is over."""
    uses = (use_row(), use_row(None), use_row(card="GPU-1", limit_bytes=GIB, outcome="evict"))

    assert (ResultWord.FAIL, "it holds more than its limit of 1024 MiB on card GPU-1") == found(
        pod_row(*uses)
    )[OVER]


def test_who_holds_nothing_holds_no_more_than_its_limit() -> None:
    """Its agent has looked, and seen it on no card."""
    assert ResultWord.PASS is found(pod_row()._replace(uses=()))[OVER][0]


@pytest.mark.parametrize(
    ("activity", "word", "part"),
    [
        (BUSY, ResultWord.PASS, "has not been idle for 15m"),
        (PodActivityRow("idle", 899.0, "NoKernels"), ResultWord.PASS, "not been idle for 15m"),
        (PodActivityRow("idle", 900.0, "NoKernels"), ResultWord.WARN, "for 15m and more"),
        (PodActivityRow("unknown", None, "NotMeasurable", "MPS"), ResultWord.SKIP, "tell: MPS"),
        (PodActivityRow("unknown", None, "NotMeasurable"), ResultWord.SKIP, "not say why"),
        (None, ResultWord.SKIP, "does not tell"),
    ],
)
def test_who_has_been_idle_for_long_is_warned_of(
    activity: PodActivityRow | None, word: ResultWord, part: str
) -> None:
    """What nobody can tell is not idle, and not busy either."""
    result = found(pod_row(activity=activity))[IDLE]

    assert word is result[0]
    assert part in result[1]


def test_what_anybody_wrote_is_one_bounded_line() -> None:
    """Neither what the webhook has warned of nor what an agent says can fill a report."""
    long = "\x1b[2J\n" + "x" * 10_000
    results = found(pod_row(undeclared=long), of=pod(injected="yes", warnings=long))

    assert all(message.isprintable() for _, message in results.values())
    assert all(len(message) <= MOST_MESSAGE + 3 for _, message in results.values())
    assert MOST_WARNED <= MOST_MESSAGE
