"""
Chores of the Makefile: `lock` renews requirements/, `coverage` holds the figures to the rules,
`figures` prints the size of the tree and of its two walks, `walks` counts those for their test,
`docs` writes the tables of settings and dialects into the pages, `manifests` the conditions of the
webhook and its policies into deploy/, `dashboards` Grafana's dashboards and where alerts lead,
`chart` the Helm chart.
"""

import datetime as dt
import json
import os
import subprocess
import sys
from pathlib import Path

from simulator.controlplane import Assets
from simulator.progress import Progress
from tests.support.sources import ROOT, files_of_tests, product_files, pure_files, shown
from tests.unit.house import chart, dashboards, picture, runbooks
from tests.unit.house.conditions import CONDITIONED, with_conditions
from tests.unit.house.pages import PAGES, with_tables
from tests.unit.house.walks import RECORDED, walks

PROGRAMS = ("webhook", "agent", "certs", "controller", "plugin")
OVERALL_PERCENT = 90
PURE_PERCENT = 99  # 100 is wanted: what lacks an example is listed by each run
COOL_DOWN = dt.timedelta(days=7)


def lock() -> int:
    """Pin every dependency with its hashes, taking no release younger than a week."""
    until = (dt.datetime.now(dt.UTC) - COOL_DOWN).strftime("%Y-%m-%dT00:00:00Z")
    targets = {name: ["--extra", name] for name in PROGRAMS}
    targets["dev"] = ["--all-extras", "--group", "dev"]
    targets["release"] = ["--group", "release"]
    for name, choice in targets.items():
        print(f"    requirements/{name}.txt", flush=True)
        command = ["uv", "pip", "compile", "pyproject.toml", *choice, "--quiet", "--universal"]
        command += ["--python-version", "3.11", "--generate-hashes", "--no-header"]
        command += ["--exclude-newer", until, "--upgrade", "-o", f"requirements/{name}.txt"]
        subprocess.run(command, cwd=ROOT, check=True)
    return 0


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


def docs() -> int:
    """
    Write every generated table anew, from the code, and the picture of the demo from its record.
    """
    for page in PAGES:
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
    record = picture.recorded(picture.RECORD.read_text(encoding="utf-8"))
    picture.PICTURE.write_text(picture.drawn(record), encoding="utf-8")
    return 0


def manifests() -> int:
    """Write every condition anew that follows from the dialects."""
    for path in CONDITIONED:
        path.write_text(with_conditions(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def write_dashboards() -> int:
    """Write every dashboard anew, and into each alert where its runbook is."""
    for path, text in dashboards.pages().items():
        path.write_text(text, encoding="utf-8")
    runbooks.RULES.write_text(
        runbooks.with_addresses(runbooks.RULES.read_text(encoding="utf-8")), encoding="utf-8"
    )
    return 0


def write_chart() -> int:
    """
    Write the chart's templates and values anew, as the kubectl that is built renders the manifests.
    """
    kubectl = Assets.from_environment(os.environ).ensure(["kubectl"], Progress(sys.stderr))[
        "kubectl"
    ]

    def kustomize(folder: Path) -> str:
        command = [str(kubectl), "kustomize", str(folder)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    for path, text in chart.pages(kustomize).items():
        path.write_text(text, encoding="utf-8")
    return 0


CHORES = {
    "lock": lock,
    "coverage": coverage,
    "figures": figures,
    "walks": print_walks,
    "docs": docs,
    "manifests": manifests,
    "dashboards": write_dashboards,
    "chart": write_chart,
}

if __name__ == "__main__":
    sys.exit(CHORES[sys.argv[1]]())
