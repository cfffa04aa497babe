"""What the commands on a node find and print: the checks, their table, and the snapshot."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.commands.check import (
    INITIAL_PID_NAMESPACE,
    can_enforce,
    check_cards,
    check_cgroups,
    check_clock,
    check_kill,
    check_pid_namespace,
    json_of,
    text_of,
)
from agent.commands.driver_paths import driver_remedy
from agent.commands.snapshot import names_of_pods
from agent.model.sample import CardSample, Sample, Trouble, TroubleCode
from gpufence import names
from gpufence.errors import Finding, Level, look, ok, wrong
from tests.support.agent.builders import CARDS, card_sample, occupant
from tests.support.agent.node import Processes
from tests.unit.agent.procfs.test_lookup import OURS
from tests.unit.agent.procfs.test_parse import line

FINE = ok("NVML", "driver 580")
SHADY = look("identity", "its own account", "upgrade")
REMEDY = "look at the driver"
GONE = wrong("Node", "there is none", "set GPUFENCE_NODE")


def test_people_get_a_table_remedies_and_an_answer() -> None:
    """The table comes first, the answer last; only what is missing makes a node unenforceable."""
    expected = """\
CHECK      STATE     FOUND
NVML       ok        driver 580
identity   warning   its own account
Node       missing   there is none

identity: upgrade
Node: set GPUFENCE_NODE

This node cannot be enforced.
"""
    well = "CHECK   STATE   FOUND\nNVML    ok      driver 580\n\nThis node can be enforced.\n"
    assert expected == text_of([FINE, SHADY, GONE])
    assert well == text_of([FINE])
    assert can_enforce([FINE, SHADY])


def test_programs_get_all_of_it() -> None:
    """JSON has a version, the answer, and each check."""
    said = json.loads(json_of([FINE, GONE]))
    row = {"subject": "Node", "state": "missing", "text": "there is none"}

    assert (1, False) == (said["v"], said["enforceable"])
    assert row | {"remedy": "set GPUFENCE_NODE"} == said["checks"][1]


LIVING = Processes({7: occupant(7, None, None)})


def checked(*cards: CardSample, trouble: str = "") -> list[Finding]:
    sample = Sample(0.0, cards, "580", Trouble(trouble))
    return check_cards(sample, LIVING, REMEDY)


@pytest.mark.parametrize(
    ("card", "expected", "text"),
    [
        (card_sample(0, {7: 1}), Level.OK, "Tesla T4, 1 process"),
        (card_sample(0, {}), Level.OK, "Tesla T4, 0 processes"),
        (card_sample(0, {8: 1}), Level.WRONG, "none of which is alive"),
        (card_sample(0, {7: None}), Level.LOOK, "does not say how much"),
        (card_sample(0, {7: 1}, mps={7}), Level.LOOK, "MPS"),
        (card_sample(0), Level.WRONG, "cannot be listed"),
        (
            replace(card_sample(0, {7: 1}), trouble=Trouble("it is lost")),
            Level.WRONG,
            "it is lost",
        ),
    ],
)
def test_each_card_is_told_apart(card: CardSample, expected: Level, text: str) -> None:
    """A card is fine, or there is a reason why nobody is evicted from it."""
    driver, found = checked(card)

    assert (Level.OK, expected) == (driver.level, found.level)
    assert text in found.text
    assert (expected is Level.OK) == (not found.remedy)


def test_what_is_no_card_is_told_once() -> None:
    """A driver that cannot be asked, and a card without memory of its own."""
    (lost,) = checked(CardSample(CARDS[0], None, None), trouble="no library")
    unfenced = Trouble("it has no memory of its own", TroubleCode.UNIFIED).of_card(0)
    driver, found = check_cards(Sample(0.0, (), "580", unidentified=(unfenced,)), LIVING, REMEDY)

    assert ("NVML", Level.WRONG, "no library") == (lost.subject, lost.level, lost.text)
    assert (Level.OK, Level.LOOK) == (driver.level, found.level)
    assert "card 0: it has no memory of its own" == found.text


def with_process(proc: Path, pid: int, *, cgroup: str = OURS, stat: str = "") -> str:
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "stat").write_text(stat or line())
    (folder / "cgroup").write_text(cgroup)
    return str(proc)


@pytest.mark.parametrize(
    ("link", "expected", "remedy"),
    [
        (INITIAL_PID_NAMESPACE, Level.OK, ""),
        ("pid:[4026532000]", Level.WRONG, "hostPID: true"),
        (None, Level.LOOK, ""),
    ],
)
def test_the_pid_namespace(tmp_path: Path, link: str | None, expected: Level, remedy: str) -> None:
    """The machine's first one is the drivers'; what cannot be read is a warning, not an answer."""
    own = tmp_path / "pid"
    if link is not None:
        own.symlink_to(link)
    found = check_pid_namespace(str(own))

    assert expected == found.level
    assert remedy in found.remedy


def test_the_clock(tmp_path: Path) -> None:
    """A process that starts after now shows that clocks differ; another /proc shows nothing."""
    future = line().split()
    future[21] = str(10**12)
    away = check_clock(str(tmp_path))
    wrong_clock = check_clock(with_process(tmp_path, os.getpid(), stat=" ".join(future)))

    assert [Level.OK, Level.LOOK, Level.WRONG] == [
        each.level for each in (check_clock("/proc"), away, wrong_clock)
    ]


def outside(proc: Path, cgroup: str, *, pid: int = 17, own: bool = True) -> str:
    """Show a process that is in no pod, and this one beside it."""
    if own:
        (proc / "self").mkdir()
        (proc / "self" / "cgroup").write_text(cgroup)
    return with_process(proc, pid, cgroup=cgroup)


def hidden(proc: Path) -> str:
    (proc / "17").mkdir()
    return str(proc)


@pytest.mark.parametrize(
    ("make", "level", "text", "remedy"),
    [
        (
            lambda proc: with_process(proc, 17),
            Level.OK,
            "1 processes, among them those of 1 containers of 1 pods",
            "",
        ),
        (lambda proc: outside(proc, "0::/user.slice\n"), Level.WRONG, "0::/user.slice", ""),
        (lambda proc: outside(proc, "0::/\n"), Level.WRONG, "0::/", ""),
        (lambda proc: outside(proc, "0::/\n", own=False), Level.WRONG, "'nothing'", ""),
        (hidden, Level.WRONG, "", "hidepid"),
        (
            lambda proc: outside(proc, "0::/\n", pid=os.getpid(), own=False),
            Level.WRONG,
            "no process but the agent's own is shown",
            "hidepid",
        ),
        (lambda proc: str(proc / "none"), Level.WRONG, "", ""),
    ],
    ids=[
        *("a pod's container", "no pods", "in the topmost group", "nothing of itself"),
        *("hidden files", "hidden processes", "no such folder"),
    ],
)
def test_processes_of_containers_are_recognised(
    tmp_path: Path, make: Callable[[Path], str], level: Level, text: str, remedy: str
) -> None:
    """One process of a pod's container is enough to see that its runtime is understood."""
    found = check_cgroups(make(tmp_path))

    assert level == found.level
    assert text in found.text
    assert remedy in found.remedy


@pytest.mark.parametrize(
    ("wanted", "capabilities", "expected"),
    [
        (False, "0000000000000000", Level.OK),
        (True, "0000000000000020", Level.OK),
        (True, "0000000000000000", Level.WRONG),
        (True, None, Level.WRONG),
    ],
)
def test_the_capability_to_kill_matters_where_it_is_wanted(
    tmp_path: Path, capabilities: str | None, expected: Level, *, wanted: bool
) -> None:
    """The last resort needs its capability, which without the kernel's word no process has."""
    status = tmp_path / "status"
    if capabilities is not None:
        status.write_text(f"Name:\tx\nCapEff:\t{capabilities}\n")

    assert expected == check_kill(wanted=wanted, status=str(status)).level


def test_pods_are_named_by_the_kubelets_folder_of_logs(tmp_path: Path) -> None:
    """Folders that are no pod's are passed over, and a missing folder names nobody."""
    for name in ("team-a_train_uid-a", "lost+found", "a_b_c_d"):
        (tmp_path / name).mkdir()

    assert {"uid-a": ("team-a", "train")} == names_of_pods(str(tmp_path))
    assert {} == names_of_pods(str(tmp_path / "none"))


ALL = {"NVIDIA_VISIBLE_DEVICES": "all", "LD_LIBRARY_PATH": "/usr/local/nvidia/lib64"}
CDI = {names.CDI_ANNOTATION: "nvidia.com/gpu=all"}
LIBRARY, CONTROL = "usr/lib64/libnvidia-ml.so.1", "dev/nvidiactl"
MOUNT = "var/run/nvidia-container-devices/all"


@pytest.mark.parametrize(
    ("there", "environ", "said"),
    [
        ([], {}, "tried: nothing that can be seen from inside; missing: libnvidia-ml.so.1 in /usr"),
        ([], ALL, "tried: NVIDIA_VISIBLE_DEVICES=all, for NVIDIA's runtime"),
        (
            [CONTROL],
            CDI,
            "on the node (nvidia-ctk cdi list); missing: libnvidia-ml.so.1 in /usr/lib64:",
        ),
        ([], ALL | CDI, "(its class, or the default); CDI annotation nvidia.com/gpu=all, for"),
        ([MOUNT], {}, "volume mount /var/run/nvidia-container-devices/all, for a runtime that acc"),
        (
            ["usr/local/nvidia/lib64/x"],
            ALL,
            "; folder /usr/local/nvidia/lib64 of the node; ",
        ),
        ([CONTROL], ALL, "missing: libnvidia-ml.so.1 in /usr/local/nvidia/lib64:/usr/lib64:"),
        ([LIBRARY], ALL, "missing: /dev/nvidiactl; docs/platforms.md"),
        ([LIBRARY, CONTROL], ALL, "nvidia-smi on the node says whether"),
    ],
)
def test_a_missing_driver_is_said_with_what_was_tried(
    tmp_path: Path, there: list[str], environ: dict[str, str], said: str
) -> None:
    """Each way into a container leaves its trace, and what it did not bring is named."""
    for name in there:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    assert said in driver_remedy(environ, tmp_path)
