"""Measurements beside their budgets, and the table of them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One measurement; `budget` is empty where the figure only informs."""

    what: str
    value: float
    unit: str
    budget: str = ""
    kept: bool = True

    @property
    def text(self) -> str:
        decimals = 0 if self.value >= 100 else 2 if self.value < 10 else 1
        return f"{self.value:,.{decimals}f} {self.unit}".rstrip()


def at_most(what: str, value: float, unit: str, budget: float) -> Figure:
    return Figure(what, value, unit, f"< {budget:g} {unit}".rstrip(), value < budget)


def at_least(what: str, value: float, unit: str, budget: float) -> Figure:
    return Figure(what, value, unit, f">= {budget:g} {unit}".rstrip(), value >= budget)


def as_text(figures: Sequence[Figure]) -> str:
    """Write a table for the terminal."""
    lines = [f"{'what':58} {'measured':>14} {'budget':>12}"]
    for figure in figures:
        late = "" if figure.kept else "  over budget"
        lines.append(f"{figure.what:58} {figure.text:>14} {figure.budget:>12}{late}")
    return "\n".join(lines)


def as_markdown(figures: Sequence[Figure]) -> str:
    """Write the same table for docs/benchmarks.md."""
    rows = [f"| {figure.what} | {figure.text} | {figure.budget} |" for figure in figures]
    return "\n".join(["| what | measured | budget |", "|---|---:|---:|", *rows])


def percentile(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
