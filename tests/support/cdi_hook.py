"""
Run NVIDIA's own hook for containers of our making, in mounts of its own: a program for root.

Its argument is JSON: `hook`, `driver_root`, `state`, `uuids`, `cgroup` (2, or 1 for a host without
it) and `rows`, the variables of one container each. Each container is a sleeping process in a group
of its own. Each line of output is what became of one: the hook's code, its words, and the limits.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpufence.names import SIMULATOR_STATE
from simulator.nvml.state import State

GROUPS = Path("/sys/fs/cgroup")
VERB = "apply-cuda-memory-limits"
_ERROR = re.compile(r'level=error msg="((?:[^"\\]|\\.)*)"')


def main(asked: dict[str, Any]) -> None:
    kind = "cgroup2" if asked["cgroup"] == 2 else "tmpfs"
    subprocess.run(["mount", "-t", kind, "none", str(GROUPS)], check=True)
    for number, variables in enumerate(asked["rows"]):
        with _group(f"gpufence-hook-{os.getpid()}-{number}") as (group, pid):
            done = _run(asked, variables, pid)
            limits = State.open(Path(asked["state"])).groups.limits()
            found = [[one.card, one.soft, one.hard] for one in limits if one.group == str(group)]
            sys.stdout.write(json.dumps([done.returncode, words_of(done.stderr), found]) + "\n")


def words_of(stderr: str) -> str:
    """Find the error in what the hook has logged, or its last line."""
    errors = _ERROR.findall(stderr)
    if errors:
        return str(errors[-1].replace('\\"', '"'))
    return (stderr.strip().splitlines() or [""])[-1]


def _run(asked: dict[str, Any], variables: list[str], pid: int) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as bundle:
        spec = {"ociVersion": "1.2.0", "process": {"env": variables, "cwd": "/", "args": ["x"]}}
        Path(bundle, "config.json").write_text(json.dumps(spec))
        state = {"ociVersion": "1.2.0", "id": "x", "status": "created", "pid": pid}
        cards = [word for uuid in asked["uuids"] for word in ("--gpu-id", uuid)]
        return subprocess.run(
            [asked["hook"], VERB, "--driver-root", asked["driver_root"], *cards],
            input=json.dumps({**state, "bundle": bundle}),
            env={SIMULATOR_STATE: asked["state"], "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=False,
        )


@contextmanager
def _group(name: str) -> Iterator[tuple[Path, int]]:
    group = GROUPS / name
    group.mkdir()
    sleeper = subprocess.Popen(["sleep", "infinity"])
    (group / "cgroup.procs").write_text(str(sleeper.pid))
    try:
        yield group, sleeper.pid
    finally:
        sleeper.kill()
        sleeper.wait()
        if (group / "cgroup.type").exists():
            group.rmdir()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
