"""
Write what follows from the code: `python -m tools <verb>`, as the Makefile calls it.

`lock` renews requirements/, `docs` writes the tables of settings and dialects into the pages,
`manifests` the conditions of the webhook and its policies into deploy/, `dashboards` Grafana's
dashboards and where alerts lead, `chart` the Helm chart.
"""

import os
import subprocess
import sys
from pathlib import Path

from simulator.controlplane import Assets
from simulator.progress import Progress
from tools import chart, dashboards, picture, runbooks
from tools.conditions import CONDITIONED, with_conditions
from tools.lock import lock
from tools.pages import PAGES, with_tables


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


VERBS = {
    "lock": lock,
    "docs": docs,
    "manifests": manifests,
    "dashboards": write_dashboards,
    "chart": write_chart,
}

if __name__ == "__main__":
    sys.exit(VERBS[sys.argv[1]]())
