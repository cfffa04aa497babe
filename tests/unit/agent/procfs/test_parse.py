"""What is read of a process, and for how long its owner is remembered."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.model.use import Occupant, Owner
from agent.procfs.lookup import KEPT_SECONDS, MOST_REMEMBERED, Remembered
from agent.procfs.parse import Stat, parse_cgroup, parse_stat

_FILE = Path(__file__).parents[3] / "data" / "cgroup-paths.jsonl"
ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in _FILE.read_text(encoding="utf-8").splitlines()
]
UID = "c8975b0c-f223-4cfc-9144-e0d6525ddbb6"
OTHER = "e32046d3-3464-4d11-bbe4-69e279637cf8"
ID = "a" * 64
NEXT = "b" * 64
PATH = f"/kubepods/burstable/pod{UID}/{ID}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["environment"])
def test_paths_seen_in_the_field(row: dict[str, Any]) -> None:
    """Every path of the collection yields the pod and the container that a person reads in it."""
    said = (row["pod_uid"], row["container_id"])
    expected = None if said == (None, None) else Owner(*said)

    assert expected == parse_cgroup(row["line"])


def test_hierarchies_of_v1_agree() -> None:
    """The lines of cgroup v1 are read together, those of the runtime's service beside them."""
    text = f"4:memory:{PATH}\n3:cpu,cpuacct:{PATH}\n1:name=systemd:/\n0::/system.slice/x.service\n"

    assert Owner(UID, ID) == parse_cgroup(text)


def test_line_that_stops_at_the_pod() -> None:
    """A hierarchy that ends at the pod does not contradict one that names the container."""
    assert Owner(UID, ID) == parse_cgroup(f"2:a:/kubepods/pod{UID}\n1:b:/kubepods/pod{UID}/{ID}\n")


@pytest.mark.parametrize("other", [f"pod{OTHER}/{ID}", f"pod{UID}/{NEXT}"])
def test_hierarchies_that_disagree(other: str) -> None:
    """Lines that name different pods or containers name nobody."""
    assert parse_cgroup(f"2:memory:/kubepods/pod{UID}/{ID}\n1:pids:/kubepods/{other}\n") is None


def test_line_with_a_uid_counts_more_than_a_neighbour() -> None:
    """A line that names a pod is believed before one that names a container alone."""
    assert Owner(UID, ID) == parse_cgroup(f"2:memory:/../{NEXT}\n1:pids:{PATH}\n")


def test_neighbours_that_disagree() -> None:
    """Two different containers in the reader's own pod name nobody."""
    assert parse_cgroup(f"2:memory:/../{ID}\n1:pids:/../{NEXT}\n") is None


@pytest.mark.parametrize(
    "path",
    [
        f"/../{ID}/{NEXT}",  # a folder below a neighbour
        f"/../../{ID}",  # not in the reader's pod
        "/../crio-conmon-" + ID + ".scope",  # the monitor of a container, not the container
        "/../x",
        f"/kubepods/pod{UID.upper()}/{ID}",  # no kubelet writes capitals
        f"/kubepods/pod{UID}x/{ID}",
        f"/kubepods/xpod{UID}/{ID}",
        f"/kubepods/pod{UID[:-1]}/{ID}",
        f"/libpod_parent/libpod-{ID}",
    ],
)
def test_what_only_looks_like_a_pod(path: str) -> None:
    """A path that no kubelet writes names nobody."""
    assert parse_cgroup(f"0::{path}") is None


@pytest.mark.parametrize("monitor", ["crio-conmon-{}.scope", "{}x", "x{}", "docker-{}.slice"])
def test_monitor_beside_a_container(monitor: str) -> None:
    """
    A segment that is not exactly a container's name is none: the pod is known, the container not.
    """
    assert Owner(UID, None) == parse_cgroup(f"0::/kubepods/pod{UID}/{monitor.format(ID)}")


@pytest.mark.parametrize("separator", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\r"])
def test_line_forged_inside_a_line(separator: str) -> None:
    """Only a newline ends a line: a folder named like another line stays part of its own."""
    forged = f"{PATH}/x{separator}0::/kubepods/pod{OTHER}/{NEXT}"

    assert Owner(UID, ID) == parse_cgroup(f"0::{forged}\n")


def test_huge_line() -> None:
    """A line of 64 KiB is read like any other."""
    assert Owner(UID, ID) == parse_cgroup(f"0::{PATH}/" + "x/" * 32768)


def line(command: str = "python3", state: str = "S", started: str = "4711") -> str:
    """Write a line as the kernel does."""
    middle = " ".join(str(number) for number in range(4, 22))
    return f"17 ({command}) {state} {middle} {started} 23 24\n"


@pytest.mark.parametrize("command", ["python3", "a) R (b 1", "", "((", "two words", ") Z 1 2"])
def test_name_may_hold_anything(command: str) -> None:
    """The fields are counted from the last parenthesis, whatever the program is called."""
    assert Stat(command, gone=False, started_ticks=4711, cpu_ticks=14 + 15) == parse_stat(
        line(command)
    )


@pytest.mark.parametrize(("state", "gone"), [("R", False), ("D", False), ("Z", True), ("X", True)])
def test_processes_that_have_ended(state: str, gone: bool) -> None:  # noqa: FBT001 - a column
    """A zombie is gone, a process that waits for its driver is not."""
    assert Stat("python3", gone, 4711, 14 + 15) == parse_stat(line(state=state))


@pytest.mark.parametrize("text", ["", "17", "17 (x)", "17 (x) S 1 2 3", line(started="soon")])
def test_line_cut_short(text: str) -> None:
    """What is not a whole line names no process."""
    assert parse_stat(text) is None


OWNER = ("uid-a", "c" * 64)


def process(pid: int) -> Occupant:
    return Occupant(pid, 1, 0.01, Owner(*OWNER))


def test_what_is_asked_for_stays() -> None:
    """A process for which somebody asks is remembered for ever, any other one for two minutes."""
    known = Remembered(10)
    for pid in (1, 2):
        known.put(process(pid))
    gone = []
    for turn in range(1, 4):
        known.get(1)
        gone.append(list(known.age(turn * KEPT_SECONDS)))

    assert [[], [2], []] == gone
    assert (process(1), None) == (known.get(1), known.get(2))


def test_too_many_are_forgotten_at_once() -> None:
    """Beyond its bound all of it is forgotten, whatever its age."""
    known = Remembered(1)
    for pid in (1, 2):
        known.put(process(pid))

    assert {1, 2} == set(known.age(0.0))
    assert 0 == len(known)


def test_processes_of_a_container_share_its_name() -> None:
    """What names a container is kept once, however many processes it has."""
    known = Remembered(10)
    owners = [known.put(process(pid)).owner for pid in (1, 2)]

    assert owners[0] is owners[1]


def test_a_process_that_is_dropped_is_gone() -> None:
    """What ended is forgotten in either generation."""
    known = Remembered(10)
    known.put(process(1))
    known.age(KEPT_SECONDS)
    known.drop(1)

    assert known.get(1) is None


def test_a_node_of_many_processes_fits() -> None:
    """The bound lies above 16 cards with 300 pods of 60 processes each."""
    assert 300 * 60 < MOST_REMEMBERED


def test_a_process_of_no_container_is_remembered_too() -> None:
    """What runs on the node itself is known again, with no owner."""
    known = Remembered(10)
    alone = Occupant(1, 1, 0.01, None)

    assert alone == known.put(alone) == known.get(1)
