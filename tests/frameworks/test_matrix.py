"""Each framework, in each version, keeps to what the webhook tells it, or the webhook warns."""

import datetime as dt
from pathlib import Path

import pytest

from simulator.wheels.catalog import WheelSet
from tests.frameworks import report
from tests.frameworks.cases import Case, every_case
from tests.frameworks.chosen import is_chosen
from tests.frameworks.running import Injected, inject, run_probe

pytestmark = pytest.mark.frameworks

CHOSEN = [(wheels, case) for wheels, case in every_case() if is_chosen(wheels.name)]


@pytest.mark.parametrize(
    ("wheels", "case"), CHOSEN, ids=[f"{wheels.name}: {case.name}" for wheels, case in CHOSEN]
)
def test_a_cap_bites_or_is_warned_of(wheels: WheelSet, case: Case, tmp_path: Path) -> None:
    """A framework with the variables that the webhook injects stops where it shall."""
    untouched = case.user is None or case.alone
    injected = Injected(case.user or {}) if untouched else inject(case, tmp_path)
    outcome = run_probe(wheels, tmp_path, injected, case.asked)
    held, gpu = outcome.answer.get("held", 0), outcome.answer.get("gpu", True)
    instead = case.said_instead(wheels)
    report.store(
        wheels.name,
        case.name,
        {
            "version": wheels.version,
            "told": injected.variables,
            "held_mib": held,
            "gpu": gpu,
            "code": outcome.code,
            "said": (instead if instead in outcome.said else "") or outcome.last_words[:400],
            "warned": bool(case.warns) and case.warns in injected.warnings,
            "on": dt.datetime.now(dt.UTC).date().isoformat(),
        },
    )

    assert bool(instead) == (outcome.code != 0 or not gpu), outcome.said
    assert instead in outcome.said
    assert case.expected(wheels) == held, outcome.last_words
    assert case.warns in injected.warnings
