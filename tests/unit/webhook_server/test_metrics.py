"""
The page of metrics.
"""

from __future__ import annotations

from pathlib import Path

from gpufence.exposition import write_page
from webhook.metrics import EXPIRY, READY, SILENCE, Metrics
from webhook.outcome import Outcome, Result
from webhook.registry import Counter, Gauge

GOLDEN = Path(__file__).with_name("metrics.golden.txt")


def test_the_page_is_as_reviewed() -> None:
    """
    One whole page, compared as it was read and agreed to.
    """
    metrics = Metrics(("observe", "cap", "evict", "bindings"))
    metrics.loads.add("swapped")
    metrics.add_gauge(EXPIRY, "Seconds until the serving certificate expires.", lambda: 86400.5)
    metrics.add_gauge(READY, "Whether /readyz says yes.", lambda: True)
    metrics.add_gauge(SILENCE, "Silence.", lambda: {"nodes": 1.5, "namespaces": 60.0}, "source")
    metrics.count("cap", Outcome(Result.REWRITTEN, operations=3, warnings=2), 0.0007)
    metrics.count("cap", Outcome(Result.UNCHANGED), 0.0002)
    metrics.count("bindings", Outcome(Result.SKIPPED, reason="api-slow"), 3.0)

    assert GOLDEN.read_text(encoding="utf-8") == metrics.page()


def test_label_values_are_escaped() -> None:
    """
    A value cannot end its line or its quotes.
    """
    counter = Counter("a_total", "A.", ("l",))
    counter.add('x"\\\ny')

    assert 'a_total{l="x\\"\\\\\\ny"} 1' in write_page([counter]).splitlines()


def test_an_unknown_number_has_no_line() -> None:
    """
    What is not known is absent, and never zero.
    """
    assert "# HELP g G.\n# TYPE g gauge\n" == write_page([Gauge("g", "G.", lambda: None)])


def test_a_counter_without_labels_starts_at_zero() -> None:
    """
    A number that nothing has happened to yet is on the page.
    """
    assert "n_total 0" in write_page([Counter("n_total", "N.")]).splitlines()
