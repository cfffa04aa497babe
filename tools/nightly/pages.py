"""Where the runs are kept, as data and as the table of docs/nightly.md."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tools import ROOT
from tools.nightly import Runs, as_table, read_runs
from tools.pages import with_tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.nightly import Run

RESULTS: Final = Path(__file__).with_name("results.json")
PAGE: Final = ROOT / "docs" / "nightly.md"


def load(path: Path = RESULTS) -> Runs:
    return read_runs(json.loads(path.read_text(encoding="utf-8")))


def store(runs: Mapping[str, Run]) -> None:
    """Keep the runs, and write the page anew."""
    kept = {name: asdict(run) for name, run in sorted(runs.items())}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def table() -> str:
    return as_table(load())
