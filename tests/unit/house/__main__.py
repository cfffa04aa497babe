"""
Figures of the tree, for the Makefile: `coverage` holds them to the rules, `figures` prints the size
of the tree and of its two walks, `walks` counts those for their test.
"""

import json
import subprocess
import sys
from pathlib import Path

from tests.support.sources import (
    ROOT,
    files_of_tests,
    files_of_tools,
    product_files,
    pure_files,
    shown,
)
from tests.unit.house.walks import RECORDED, walks

OVERALL_PERCENT = 90
PURE_PERCENT = 99  # 100 is wanted: what lacks an example is listed by each run


def coverage() -> int:
    """Report branch coverage; fail below 90 % overall or 99 % in the pure modules."""
    subprocess.run(["coverage", "combine", "--quiet"], cwd=ROOT, check=False)
    overall = ["coverage", "report", f"--fail-under={OVERALL_PERCENT}"]
    pure = ",".join(shown(path) for path in pure_files())
    print("==> coverage of everything")
    failed = subprocess.run(overall, cwd=ROOT, check=False).returncode
    print("==> coverage of the pure modules, which are to be 100 %")
    exact = ["coverage", "report", f"--include={pure}", f"--fail-under={PURE_PERCENT}"]
    return subprocess.run(exact, cwd=ROOT, check=False).returncode or failed


def figures() -> int:
    """Print what somebody has to read: modules and lines, and the two walks beside their record."""
    simulator = ROOT / "simulator"
    product = [path for path in product_files() if simulator not in path.parents]
    simulated = [path for path in product_files() if simulator in path.parents]
    for name, files in (
        ("product", product),
        ("simulator", simulated),
        ("tools", files_of_tools()),
        ("tests", files_of_tests()),
    ):
        print(f"    {name:12} {len(files):4} modules {sum(map(_lines, files)):7,} lines")
    for name, walk in walks().items():
        recorded = RECORDED[name]
        print(
            f"    one {name:8} {walk.functions:4} functions in {walk.modules} modules"
            f" (recorded: {recorded.functions} in {recorded.modules})"
        )
    return 0


def print_walks() -> int:
    print(json.dumps(walks()))
    return 0


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


CHORES = {"coverage": coverage, "figures": figures, "walks": print_walks}

if __name__ == "__main__":
    sys.exit(CHORES[sys.argv[1]]())
