"""
Figures of the tree, for the Makefile: `coverage` holds all modules to the rules, `pure` the pure
ones, `figures` prints the ledger and the walks beside what is recorded and wanted, `walks` counts
those for their test, and `orders` lists their modules.
"""

import json
import subprocess
import sys

from tests.support.tree import pure_files, shown
from tests.unit.house.ledger import BUDGETS, counted, spent
from tests.unit.house.ledger import RECORDED as FIGURES
from tests.unit.house.walks import RECORDED, WANTED, Walk, orders, walks
from tools import ROOT

OVERALL_PERCENT = 90
PURE_PERCENT = 100


def coverage() -> int:
    """Report branch coverage; fail below 90 % overall or 100 % in the pure modules."""
    subprocess.run(["coverage", "combine", "--quiet"], cwd=ROOT, check=False)
    print("==> coverage of everything")
    return _reported(OVERALL_PERCENT) or coverage_of_pure()


def coverage_of_pure() -> int:
    """Report branch coverage of the pure modules; fail below 100 %."""
    print("==> coverage of the pure modules, which are to be 100 %")
    return _reported(PURE_PERCENT, "--include", ",".join(shown(path) for path in pure_files()))


def _reported(percent: int, *chosen: str) -> int:
    command = ["coverage", "report", f"--fail-under={percent}", *chosen]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def figures() -> int:
    """Print the ledger: each figure of the tree and each walk, what is recorded, what is wanted."""
    print(f"    {'':42} {'now':>12} {'recorded':>12} {'wanted':>12}")
    for name, now in counted().items():
        print(f"    {name:42}" + "".join(f" {_shown(each):>12}" for each in (now, *FIGURES[name])))
    for shelf, lines in spent().items():
        print(f"    {f'lines of {shelf}, budget':42} {lines:>12,} {BUDGETS[shelf]:>12,}")
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


def print_orders() -> int:
    print(json.dumps(orders()))
    return 0


CHORES = {
    "coverage": coverage,
    "pure": coverage_of_pure,
    "figures": figures,
    "walks": print_walks,
    "orders": print_orders,
}

if __name__ == "__main__":
    sys.exit(CHORES[sys.argv[1]]())
