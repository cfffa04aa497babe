"""
Two chores of the Makefile: `lock` renews requirements/, `coverage` holds the figures to the rules.
"""

from __future__ import annotations

import datetime as dt
import subprocess
import sys

from tests.support.sources import ROOT, pure_files, shown

PROGRAMS = ("webhook", "agent", "certs", "plugin")
OVERALL_PERCENT = 90
COOL_DOWN = dt.timedelta(days=7)


def lock() -> int:
    """
    Pin every dependency with its hashes, taking no release younger than a week.
    """
    until = (dt.datetime.now(dt.UTC) - COOL_DOWN).strftime("%Y-%m-%dT00:00:00Z")
    targets = {name: ["--extra", name] for name in PROGRAMS}
    targets["dev"] = ["--all-extras", "--group", "dev"]
    for name, choice in targets.items():
        print(f"    requirements/{name}.txt", flush=True)
        command = ["uv", "pip", "compile", "pyproject.toml", *choice, "--quiet", "--universal"]
        command += ["--python-version", "3.11", "--generate-hashes", "--no-header"]
        command += ["--exclude-newer", until, "--upgrade", "-o", f"requirements/{name}.txt"]
        subprocess.run(command, cwd=ROOT, check=True)
    return 0


def coverage() -> int:
    """
    Report branch coverage; fail below 90 % overall or below 100 % in any pure module.
    """
    subprocess.run(["coverage", "combine", "--quiet"], cwd=ROOT, check=False)
    overall = ["coverage", "report", f"--fail-under={OVERALL_PERCENT}"]
    pure = ",".join(shown(path) for path in pure_files())
    print("==> coverage of everything")
    failed = subprocess.run(overall, cwd=ROOT, check=False).returncode
    print("==> coverage of the pure modules, which must be 100 %")
    exact = ["coverage", "report", f"--include={pure}", "--fail-under=100"]
    return subprocess.run(exact, cwd=ROOT, check=False).returncode or failed


if __name__ == "__main__":
    sys.exit({"lock": lock, "coverage": coverage}[sys.argv[1]]())
