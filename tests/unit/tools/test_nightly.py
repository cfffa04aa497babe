"""What make nightly runs, what it still has to run, and the page of how each of it ended."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools import ROOT
from tools.nightly import (
    FAILED,
    GPUSHARE,
    NOT_RUN,
    PASSED,
    ROOT_USER,
    VERBS,
    Run,
    as_table,
    due,
    ended,
    failed,
    read_runs,
    took,
    why_not,
)
from tools.nightly.__main__ import commit_of, play
from tools.nightly.pages import load

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
NAMES = [verb.name for verb in VERBS]


def run(outcome: str = PASSED, commit: str = "abc1234", seconds: int = 90, note: str = "") -> Run:
    return Run(commit, "2026-01-02", outcome, seconds, note)


def test_every_verb_is_the_makefiles() -> None:
    """Each verb is one that `make help` lists."""
    assert set() == set(NAMES) - set(re.findall(r"^([a-z0-9-]+):.*## ", MAKEFILE, re.MULTILINE))


def test_the_list_of_verbs_fits_a_terminal() -> None:
    """No line of `make help` is broken at 80 columns."""
    told = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)

    assert [] == [line for line in told.stdout.splitlines() if len(line) > 80]


def test_what_make_test_leaves_out_is_run_at_night() -> None:
    """Each marker that `make test` deselects has its verb."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    chosen = options["tool"]["pytest"]["addopts"][-1].removeprefix("not ")

    assert set(chosen.split(" and not ")) == {verb.marker for verb in VERBS} - {""}


def test_a_new_commit_has_all_to_run() -> None:
    """What ended on another commit is due again."""
    assert list(VERBS) == due({"bench": run(commit="of-yesterday")}, "abc1234")


def test_a_stopped_run_goes_on() -> None:
    """What passed or failed on the commit is not run again; what could not be run is tried."""
    runs = {"slow": run(), "bench": run(FAILED), "gpushare": run(NOT_RUN)}

    assert NAMES[2:] == [verb.name for verb in due(runs, "abc1234")]


def test_what_is_named_is_run() -> None:
    """A verb that is asked for is due, however it ended."""
    assert ["bench"] == [verb.name for verb in due({"bench": run()}, "abc1234", ["bench"])]


def test_what_a_machine_lacks_is_said() -> None:
    """A verb says what it takes and is not there, and nothing where all is there."""
    wanting = {verb.name: why_not(verb, {ROOT_USER}) for verb in VERBS}

    assert wanting["gpushare"] == "GPUSHARE_INSPECT names no build of gpushare's program"
    assert wanting["keda"] == "takes Debian's rabbitmq-server"
    assert "" == wanting["e2e"] == wanting["scale"]
    assert "" == why_not(VERBS[2], {GPUSHARE})


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        (0, "== 31 passed, 2 deselected in 9.1s ==", (PASSED, "31 passed")),
        (1, "1 failed, 30 passed in 9.1s", (FAILED, "1 failed, 30 passed")),
        (1, "3 passed in 1s\n2 errors in 4s", (FAILED, "2 errors")),
        (2, "make: no rule\n", (FAILED, "ended with status 2")),
        (0, "a table of figures", (PASSED, "")),
        (
            0,
            "not tried: 6 tests for want of chromium; fetch it\n9 passed in 1s",
            (PASSED, "9 passed; not tried: 6 tests for want of chromium; fetch it"),
        ),
    ],
)
def test_an_end_in_a_few_words(status: int, said: str, expected: tuple[str, str]) -> None:
    """The note has the last count of tests, or the status, and what was not tried."""
    assert expected == ended(status, said.splitlines(keepends=True))


def test_a_failure_of_this_commit_is_red() -> None:
    """Failures on the commit are named; those of others are history."""
    runs = {"bench": run(FAILED), "slow": run(), "keda": run(FAILED, commit="older")}

    assert ["bench"] == failed(runs, "abc1234")


def test_the_table_has_a_row_for_each_verb() -> None:
    """A row says how the verb ended, how long it took, when and on what."""
    runs = {
        "slow": run(seconds=3700, note="31 passed"),
        "bench": run(FAILED, note="ended with status 2"),
        "gpushare": run(NOT_RUN, note="no build"),
    }
    rows = as_table(runs).splitlines()[2:]

    assert len(VERBS) == len(rows)
    assert rows[0].endswith("| passed | 62 min | 2026-01-02 | `abc1234` | 31 passed |")
    assert "| **failed** | 90 s | 2026-01-02 | `abc1234` | ended with status 2 |" in rows[1]
    assert "| not run |  | 2026-01-02 | `abc1234` | no build |" in rows[2]
    assert rows[3].endswith("| not run |  |  |  |  |")


@pytest.mark.parametrize(("seconds", "text"), [(119, "119 s"), (120, "2 min"), (5400, "90 min")])
def test_a_time_is_short(seconds: int, text: str) -> None:
    """Up to two minutes there are seconds, then minutes."""
    assert text == took(seconds)


def test_a_verb_that_is_gone_is_forgotten() -> None:
    """What was kept of a verb that is no more is left out."""
    kept = {"commit": "abc1234", "day": "2026-01-02", "outcome": PASSED, "seconds": 90, "note": ""}

    assert {"bench": run()} == read_runs({"bench": kept, "unheard-of": kept})


def test_what_is_kept_can_be_read() -> None:
    """The file beside the code holds runs of these verbs."""
    assert set() == load().keys() - set(NAMES)


def test_a_run_is_shown_and_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """All that a verb says is seen at once and is in its log, both streams together."""
    command = [sys.executable, "-c", "import sys; print('1 failed in 2s'); sys.exit('no')"]

    assert (FAILED, "1 failed") == play(command, tmp_path / "logs" / "a.log")
    assert "1 failed in 2s\n" in capfd.readouterr().out
    assert {"1 failed in 2s", "no"} == set((tmp_path / "logs" / "a.log").read_text().splitlines())


def test_a_verb_hears_nothing_of_the_make_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A VERB or ONLY of the outer make is not the inner one's."""
    monkeypatch.setenv("MAKEFLAGS", "-- ONLY=bench")
    play([sys.executable, "-c", "import os; print(os.getenv('MAKEFLAGS'))"], tmp_path / "a.log")

    assert "None\n" == (tmp_path / "a.log").read_text()


def test_a_changed_tree_is_another_commit(tmp_path: Path) -> None:
    """Changes have a part in the name, but for what the verbs themselves write."""
    own = ("-c", "user.name=a", "-c", "user.email=a@example")
    for name in ("code.py", "results.json", "docs/page.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1\n")
    for words in (["init", "-q"], ["add", "."], [*own, "commit", "-qm", "all"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    clean = commit_of(tmp_path)
    (tmp_path / "results.json").write_text("2\n")
    (tmp_path / "docs" / "page.md").write_text("2\n")
    played = commit_of(tmp_path)
    (tmp_path / "code.py").write_text("2\n")

    assert clean == played
    assert commit_of(tmp_path).startswith(f"{clean}+")
