"""Realistic pods and what becomes of each, kept as files that are reviewed like code."""

import json

import pytest

from tests.golden.webhook.cases import FOLDER, Case, applied, cases
from tests.support.golden import assert_reviewed
from webhook.rewrite import Rewrite, Unchanged


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_pod_becomes_what_its_file_says(case: Case) -> None:
    """Plan, operations, warnings and binding of a golden pod are those written beside it."""
    outcome = case.outcome()
    text = json.dumps(outcome, indent=1, ensure_ascii=False)

    assert_reviewed(case.expected_file, f"{text}\n")


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_golden_pod_needs_no_second_pass(case: Case) -> None:
    """A second pass over a golden pod makes no operation."""
    pod = case.given["pod"]
    said = case.decide(pod)
    if isinstance(said, Rewrite):
        assert isinstance(case.decide(applied(pod, said)), Unchanged)


def test_describe_names_values_by_their_variables() -> None:
    """The values of a pod of three containers are listed as `kubectl describe pod` shows them."""
    case = next(each for each in cases() if each.name == "init-and-sidecar")
    said = case.decide(case.given["pod"])

    assert isinstance(said, Rewrite)
    shown = applied(case.given["pod"], said)["metadata"]["annotations"]
    lines = [f"{key}: {text}" for key, text in sorted(shown.items()) if key.startswith("env.")]
    assert_reviewed(FOLDER / "describe.txt", "".join(f"{line.rstrip()}\n" for line in lines))


def test_there_are_enough_golden_pods() -> None:
    """At least thirty realistic pods are held, and none has lost its second half."""
    names = {case.name for case in cases()}
    halves = {
        path.name.removesuffix(".out.json")
        for path in cases()[0].expected_file.parent.glob("*.out.json")
    }

    assert len(names) >= 30
    assert names == halves
