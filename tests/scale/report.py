"""
What was measured, as data and as the table of docs/scale.md.

`results.json` has a column for each size; a run of one of the two that the page shows replaces its
own.
"""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.scale.size import Size
from tests.support.observing import Figure

RESULTS: Final = Path(__file__).with_name("results.json")
SHOWN: Final = (Size(500, 5000, 2, 20), Size())


def load_results() -> dict[str, Any]:
    if not RESULTS.exists():
        return {}
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return results


def store(wanted: Size, figures: Sequence[Figure]) -> None:
    """Keep what was measured, at a size that the page shows."""
    if wanted not in SHOWN:
        return
    rows = [{"what": item.what, "said": item.text, "goal": item.budget} for item in figures]
    results = {**load_results(), wanted.text: {"on": time.strftime("%Y-%m-%d"), "rows": rows}}
    ordered = {size.text: results[size.text] for size in SHOWN if size.text in results}
    RESULTS.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


def tables() -> str:
    """Return the table of all sizes beside each other."""
    return as_table(load_results())


def as_table(results: Mapping[str, Any]) -> str:
    heads = ["nodes / pods", *results, "goal"]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    columns = [result["rows"] for result in results.values()]
    for rows in zip(*columns, strict=True):
        cells = [rows[0]["what"], *(row["said"] for row in rows), rows[-1]["goal"]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
