"""
NVIDIA's own hook of the container toolkit, unmodified, and the node simulator's: they agree.

The hook calls the simulated driver, in mounts of its own with control groups of version 2.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpufence import names
from gpufence.quantity import MIB
from simulator.controlplane import Assets
from simulator.node.errors import HookError
from simulator.node.runtime import ContainerRuntime
from simulator.node.toolkit import Toolkit
from simulator.nvml.build import CURRENT, LIBRARY, LIMITED, library_path
from simulator.nvml.layout import Memacct
from simulator.nvml.state import State
from simulator.progress import Progress
from simulator.published import CDI_HOOK
from tests.support.cdi_hook import words_of
from tests.support.toolkit import FAILURES, SUCCESSES, Row, both
from tests.support.tree import found, pod_spec
from tools.manifests import COMPONENTS

pytestmark = pytest.mark.e2e

SYMBOL = "undefined symbol: nvmlDeviceSetMemoryLimits_v1"
(CONTAINER,) = pod_spec(found("DaemonSet", names.CANARY, COMPONENTS / "driver-limits-canary"))[
    "containers"
]
CANARY = Row(
    "the canary, as it is shipped",
    tuple(f"{entry['name']}={entry['value']}" for entry in CONTAINER["env"]),
    (0, 64 * MIB),
)
ROWS = (
    *SUCCESSES,
    CANARY,
    *FAILURES,
    Row("more than one card", both("0", "20000")),
    Row("more than every card", both("0", "99999")),
)


@dataclass(frozen=True)
class Host:
    """A machine, by its driver and by how that and the kernel count."""

    id: str
    cards: str = "T4,L4"
    variant: str = LIMITED
    memacct: Memacct = Memacct.MISC
    cgroup: int = 2


HOSTS = (
    Host("two unequal cards"),
    Host("one card", cards="T4"),
    Host("an older driver", variant=CURRENT),
    Host("a driver with the feature off", memacct=Memacct.OFF),
    Host("a kernel without the controller", memacct=Memacct.DMEM),
    Host("a cut card", cards="A100-40:1g.5gb"),
    Host("control groups of version 1", cgroup=1),
)

Outcome = tuple[int, str, list[list[int]]]
"""The hook's code, its words, and the limits that the container's group has then."""


@pytest.fixture(scope="module")
def hook() -> Path:
    return CDI_HOOK.ensure(Assets.from_environment(os.environ), Progress())


def by_nvidia(hook: Path, host: Host, folder: Path) -> list[Outcome]:
    """Let NVIDIA's hook have all rows on a machine."""
    state = State.create(folder / "cards", host.cards)
    state.groups.memacct = host.memacct
    libraries = folder / "root" / "usr" / "lib64"
    libraries.mkdir(parents=True)
    (libraries / LIBRARY).write_bytes(library_path(host.variant).read_bytes())
    asked: dict[str, Any] = {
        "hook": str(hook),
        "driver_root": str(folder / "root"),
        "state": str(state.path),
        "uuids": [card.uuid for card in state.cards],
        "cgroup": host.cgroup,
        "rows": [row.variables for row in ROWS],
    }
    mounts = ("unshare", "--mount", "--propagation", "private")
    done = subprocess.run(
        [*mounts, sys.executable, "-m", "tests.support.cdi_hook", json.dumps(asked)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "" == done.stderr
    return [_short(*json.loads(line)) for line in done.stdout.splitlines()]


def by_ours(host: Host, folder: Path) -> list[Outcome]:
    """Let the node simulator have all rows on a machine of the same kind."""
    state = State.create(folder / "cards", host.cards)
    state.groups.memacct = host.memacct
    library = library_path(host.variant).parent
    two = host.cgroup == HOSTS[0].cgroup
    runtime = ContainerRuntime(folder / "cgroup", library, state.path, cgroup_v2=two)
    runtime.toolkit = Toolkit.CURRENT
    uuids = [card.uuid for card in state.cards]
    return [
        _ours(runtime, state, row, uuids, folder / "cgroup" / f"row-{number}")
        for number, row in enumerate(ROWS)
    ]


def _ours(
    runtime: ContainerRuntime, state: State, row: Row, uuids: Sequence[str], group: Path
) -> Outcome:
    group.mkdir()
    if runtime.cgroup_v2:
        (group / "cgroup.procs").write_text("")
        (group / "cgroup.type").write_text("domain\n")
        (group.parent / "cgroup.subtree_control").write_text("memory\n")
    code, words = 0, ""
    try:
        runtime.run_hook(group, row.variables, uuids)
    except HookError as error:
        code, words = error.code, str(error)
    limits = [one for one in state.groups.limits() if one.group == str(group)]
    return _short(code, words, [[one.card, one.soft, one.hard] for one in limits])


def _short(code: int, words: str, limits: list[list[int]]) -> Outcome:
    """Keep of an outcome what has to be the same: not the names of files and cards."""
    if not code:
        return code, "", limits
    for word in words.split():
        if word.startswith('"GPU-'):
            words = words.replace(word, '"GPU":')
    return code, SYMBOL if SYMBOL in words else words, limits


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.id)
def test_both_hooks_agree(hook: Path, host: Host, tmp_path: Path) -> None:
    """On every row, code, words and limits of the two are the same."""
    (tmp_path / "nvidia").mkdir()
    (tmp_path / "ours").mkdir()
    theirs, ours = by_nvidia(hook, host, tmp_path / "nvidia"), by_ours(host, tmp_path / "ours")

    assert len(ROWS) == len(theirs)
    assert {} == {
        row.id: pair for row, *pair in zip(ROWS, theirs, ours, strict=True) if pair[0] != pair[1]
    }


def test_rows_are_what_the_hook_does(hook: Path, tmp_path: Path) -> None:
    """On a machine with one card each row comes to what the table of rows says."""
    outcomes = dict(zip(ROWS, by_nvidia(hook, HOSTS[1], tmp_path), strict=True))
    known = {row: outcomes[row] for row in (*SUCCESSES, CANARY, *FAILURES)}

    assert {} == {
        row.id: outcome
        for row, outcome in known.items()
        if (1 if row in FAILURES else 0) != outcome[0]
        or ([[0, *row.expected]] if row.expected else []) != outcome[2]
        or row.words not in outcome[1]
    }


def test_the_words_of_a_log_are_found() -> None:
    """Of what the hook logs the last error counts, without its quotes."""
    log = 'time="x" level=info msg="a"\ntime="x" level=error msg="b \\"c\\": d"\n'

    assert 'b "c": d' == words_of(log)
