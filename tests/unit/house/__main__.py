"""
Figures of the tree, for the Makefile: `coverage` holds them to the rules, `figures` prints the
ledger and the walks beside what is recorded and wanted, `walks` counts those for their test.
"""

import json
import subprocess
import sys

from tests.support.sources import ROOT, pure_files, shown
from tests.unit.house.ledger import RECORDED as FIGURES
from tests.unit.house.ledger import counted
from tests.unit.house.walks import RECORDED, WANTED, Walk, walks

OVERALL_PERCENT = 90
PURE_PERCENT = 100


def coverage() -> int:
    """Report branch coverage; fail below 90 % overall or 100 % in the pure modules."""
    subprocess.run(["coverage", "combine", "--quiet"], cwd=ROOT, check=False)
    overall = ["coverage", "report", f"--fail-under={OVERALL_PERCENT}"]
    pure = ",".join(shown(path) for path in pure_files())
    print("==> coverage of everything")
    failed = subprocess.run(overall, cwd=ROOT, check=False).returncode
    print("==> coverage of the pure modules, which are to be 100 %")
    exact = ["coverage", "report", f"--include={pure}", f"--fail-under={PURE_PERCENT}"]
    return subprocess.run(exact, cwd=ROOT, check=False).returncode or failed


def figures() -> int:
    """Print the ledger: each figure of the tree and each walk, what is recorded, what is wanted."""
    print(f"    {'':42} {'now':>12} {'recorded':>12} {'wanted':>12}")
    for name, now in counted().items():
        print(f"    {name:42}" + "".join(f" {_shown(each):>12}" for each in (now, *FIGURES[name])))
    for name, walk in walks().items():
        row = (walk, RECORDED[name], WANTED[name])
        print(f"    {f'walk of {name}: functions / modules':42}" + "".join(map(_pair, row)))
    return 0


def _shown(figure: float | None) -> str:
    return "" if figure is None else f"{figure:,.0f}"


def _pair(walk: Walk) -> str:
    return f" {f'{walk.functions} / {walk.modules}':>12}"


def print_walks() -> int:
    print(json.dumps(walks()))
    return 0


CHORES = {"coverage": coverage, "figures": figures, "walks": print_walks}

if __name__ == "__main__":
    sys.exit(CHORES[sys.argv[1]]())
