"""
What was measured, as data and as the tables of docs/scaling.md.

`results.json` has an entry for each load; a run replaces those that it played.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.keda.model import LOADS
from tests.keda.play import Outcome

RESULTS: Final = Path(__file__).with_name("results.json")
OURS: Final = "ours"
OBVIOUS: Final = "obvious"
RULES: Final = (OURS, OBVIOUS)
_SHOWN: Final = {OURS: "backlog and busy", OBVIOUS: "backlog alone"}
_FIGURES: Final = "figures"


def load_results() -> dict[str, Any]:
    if not RESULTS.exists():
        return {}
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return results


def store(
    load: str,
    outcomes: Mapping[tuple[str, float], Outcome],
    least: Mapping[float, int],
    today: str,
) -> None:
    rows = [
        {"rule": rule, "target": target, "least": least[target], "on": today, **one._asdict()}
        for (rule, target), one in outcomes.items()
    ]
    _write(load, rows)


def store_figure(name: str, seconds: float) -> None:
    """Keep a single figure, in seconds of a cluster."""
    figures = load_results().get(_FIGURES, {})
    _write(_FIGURES, dict(sorted({**figures, name: round(seconds, 1)}.items())))


def _write(key: str, value: object) -> None:
    results = {**load_results(), key: value}
    ordered = {name: results[name] for name in (*LOADS, _FIGURES) if name in results}
    RESULTS.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


def as_list(items: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})


def tables() -> str:
    """Return the table of all loads."""
    results = load_results()
    heads = "load", "target", "triggers", "replicas, mean (most)", "fewest fixed", "wait p99"
    lines = [f"| {' | '.join(heads)} | over target |", f"|{' --- |' * (len(heads) + 1)}"]
    for load in LOADS:
        for row in results.get(load, []):
            over = f"{100 * row['over_target']:.1f} %"
            lines.append(
                f"| {load} | {row['target']:g} s | {_SHOWN[row['rule']]} | "
                f"{row['mean_replicas']:.1f} ({row['most_replicas']}) | {row['least']} | "
                f"{row['wait_p99']:.1f} s | {over} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{tables()}\n")
    for name, seconds in load_results().get(_FIGURES, {}).items():
        sys.stdout.write(f"{name}: {seconds:g} s\n")
