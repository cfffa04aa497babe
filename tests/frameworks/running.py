"""Run a framework's own Python as a container of a pod would run, and see where it is refused."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpufence import names
from simulator.nvml.groups import GROUP, GroupTree
from simulator.nvml.state import State
from simulator.wheels.catalog import WheelSet
from simulator.wheels.install import packages_of
from simulator.wheels.launch import command, ours, variables
from simulator.workload.real.probe import SIGN
from tests.frameworks.cases import CARD, LIMIT_GIB, Case
from tests.support.driver import set_limit

PROBE = "simulator.workload.real.probe"
MOST_RESIDENT = 10 << 30
"""Bytes of this machine's memory that a program may take: contents of a card are not kept."""

SECONDS = 600.0
SHOWN = 4000
KEPT = ("PATH", "HOME", "TMPDIR", "LANG")


@dataclass(frozen=True)
class Injected:
    """What the webhook makes of a pod: variables, warnings, plan, and the line for Python."""

    variables: dict[str, str]
    warnings: str = ""
    site_line: str = ""
    plan: str = ""


@dataclass(frozen=True)
class Leaf:
    """A container's control group that the driver limits; `capped` is the device's size, too."""

    limit_mib: int
    capped: bool = False

    def made(self, machine: State, folder: Path) -> dict[str, str]:
        """Make it; return the variable by which a process counts to it."""
        group = GroupTree(folder / "cgroup").add("pod/leaf")
        set_limit(machine.path, group, self.limit_mib << 20)
        machine.groups.totals_capped = self.capped
        return {GROUP: str(group)}


def inject(case: Case, folder: Path, settings: Mapping[str, str] | None = None) -> Injected:
    """Let gpufence's own command rewrite the pod, and read its variables as a kubelet would."""
    pod = _rewritten(case, settings or {})
    annotations: dict[str, str] = pod["metadata"]["annotations"]
    told = {
        item["name"]: item["value"] if "value" in item else _referred(item, annotations)
        for item in pod["spec"]["containers"][0]["env"]
    }
    if names.SITECUSTOMIZE in annotations:
        (folder / names.HOOK_FILE).write_text(annotations[names.SITECUSTOMIZE])
    if "PYTHONPATH" in told:
        told["PYTHONPATH"] = told["PYTHONPATH"].replace(names.HOOK_FOLDER, str(folder))
    line = annotations.get(names.SITE_LINE, "").replace(names.HOOK_FOLDER, str(folder))
    return Injected(told, annotations.get(names.WARNINGS, ""), line, annotations[names.PLAN])


def _rewritten(case: Case, settings: Mapping[str, str]) -> dict[str, Any]:
    env = [{"name": name, "value": value} for name, value in (case.user or {}).items()]
    container = {
        "name": "trainer",
        "image": "of-the-user",
        "env": env,
        "resources": {"limits": {"aliyun.com/gpu-mem": LIMIT_GIB}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "trainer", "annotations": case.annotations},
        "spec": {"containers": [container]},
    }
    program = [str(Path(sys.executable).with_name("gpufence-webhook")), "rewrite", "-f", "-"]
    card = ["--card", "40960Mi", "--compute-capability", "8.0"]
    text = subprocess.check_output(
        [*program, *card, "-o", "yaml"],
        input=json.dumps(pod),
        text=True,
        env={**os.environ, **settings},
    )
    rewritten: dict[str, Any] = yaml.safe_load(text)
    return rewritten


def _referred(item: dict[str, Any], annotations: Mapping[str, str]) -> str:
    path: str = item["valueFrom"]["fieldRef"]["fieldPath"]
    return annotations[path.removeprefix("metadata.annotations['").removesuffix("']")]


@dataclass(frozen=True)
class Outcome:
    """How a program ended; `answer` is the probe's, where it came to one."""

    code: int
    answer: dict[str, Any]
    said: str

    @property
    def last_words(self) -> str:
        """What the framework said when it refused, or the last line of one that failed."""
        lines = [line for line in self.said.splitlines() if line.strip()]
        return str(self.answer.get("said") or (lines[-1] if lines else ""))


def run_probe(
    wheels: WheelSet,
    folder: Path,
    injected: Injected,
    asked: Mapping[str, Any] | None = None,
    flags: tuple[str, ...] = (),
    leaf: Leaf | None = None,
) -> Outcome:
    """Grow until refused, on one card; raises AssertionError where this machine lacks memory."""
    words = json.dumps({"framework": wheels.framework, **(asked or {})})
    return run(wheels, folder, (*flags, *ours(PROBE, words)), injected, leaf)


def run(
    wheels: WheelSet,
    folder: Path,
    arguments: tuple[str, ...],
    injected: Injected,
    leaf: Leaf | None = None,
    cards: str = CARD,
) -> Outcome:
    """Run the environment's Python with the variables and the line of a container."""
    machine = State.create(folder / "cards", cards)
    counted = {} if leaf is None else leaf.made(machine, folder)
    own = {name: os.environ[name] for name in KEPT if name in os.environ}
    output = folder / "output"
    with output.open("wb") as stream, _mounted(wheels, injected.site_line):
        process = subprocess.Popen(
            command(wheels, arguments),
            env=variables(wheels, machine.path, {**own, **counted, **injected.variables}),
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=folder,
        )
        _wait(process)
    said = output.read_text(errors="replace")
    lines = [line.removeprefix(SIGN) for line in said.splitlines() if line.startswith(SIGN)]
    answer: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    rest = "\n".join(line for line in said.splitlines() if not line.startswith(SIGN))
    return Outcome(process.returncode, answer, rest[-SHOWN:])


@contextmanager
def _mounted(wheels: WheelSet, line: str) -> Iterator[None]:
    """Have a line in the environment's site folder, as a mount would put it there."""
    path = packages_of(wheels) / names.HOOK_SITE_FILE
    if not line:
        yield
        return
    path.write_text(line)
    try:
        yield
    finally:
        path.unlink()


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end, and bring it about where the program takes too much time or memory."""
    deadline = time.monotonic() + SECONDS
    while process.poll() is None:
        resident = _resident(process.pid)
        if resident > MOST_RESIDENT or time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise AssertionError(f"killed with {resident >> 20} MiB of this machine's memory")
        time.sleep(0.1)


def _resident(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    resident, shared = int(fields[1]), int(fields[2])
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
