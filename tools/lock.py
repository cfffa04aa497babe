"""The locks in requirements/: every dependency with its hashes, one file for each program."""

import datetime as dt
import subprocess

from tools import ROOT

PROGRAMS = ("webhook", "agent", "certs", "controller", "plugin")
COOL_DOWN = dt.timedelta(days=7)


def lock() -> int:
    """Pin every dependency with its hashes, taking no release younger than a week."""
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
