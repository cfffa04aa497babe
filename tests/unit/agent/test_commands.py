"""What the commands on a node find and print: the checks, their table, and the snapshot."""

import json
import os
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
from agent.commands.snapshot import names_of_pods
from agent.model.sample import CardSample, Sample, Trouble, TroubleCode
from gpufence.errors import Finding, Level, look, ok, wrong
from tests.support.agent.builders import CARDS, card_sample, occupant
from tests.support.agent.node import Processes
from tests.unit.agent.procfs.test_lookup import OURS
from tests.unit.agent.procfs.test_parse import line

FINE = ok("NVML", "driver 580")
SHADY = look("identity", "its own account", "upgrade")
GONE = wrong("Node", "there is none", "set GPUFENCE_NODE")


def test_warnings_do_not_stand_in_the_way() -> None:
    """Only what is missing makes a node unenforceable."""
    assert can_enforce([FINE, SHADY])
    assert not can_enforce([FINE, GONE])


def test_people_get_a_table_remedies_and_an_answer() -> None:
    """The table comes first, the answer last."""
    expected = """\
CHECK      STATE     FOUND
NVML       ok        driver 580
identity   warning   its own account
Node       missing   there is none

identity: upgrade
Node: set GPUFENCE_NODE

This node cannot be enforced.
"""
    assert expected == text_of([FINE, SHADY, GONE])


def test_a_node_without_a_flaw_needs_no_remedy() -> None:
    """Where all is well there is the table and the answer."""
    expected = "CHECK   STATE   FOUND\nNVML    ok      driver 580\n\nThis node can be enforced.\n"
    assert expected == text_of([FINE])


def test_programs_get_all_of_it() -> None:
    """JSON has a version, the answer, and each check."""
    said = json.loads(json_of([FINE, GONE]))

    assert (1, False) == (said["v"], said["enforceable"])
    assert {
        "subject": "Node",
        "state": "missing",
        "text": "there is none",
        "remedy": "set GPUFENCE_NODE",
    } == said["checks"][1]


LIVING = Processes({7: occupant(7, None, None)})


def checked(*cards: CardSample, trouble: str = "") -> list[Finding]:
    sample = Sample(0.0, cards, "580", Trouble(trouble))
    return check_cards(sample, LIVING)


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


def test_without_nvml_its_trouble_is_all() -> None:
    """A driver that cannot be asked is told once, whatever cards there were."""
    found = checked(CardSample(CARDS[0], None, None), trouble="no library")

    assert [("NVML", Level.WRONG, "no library")] == [
        (item.subject, item.level, item.text) for item in found
    ]


def test_a_card_without_memory_of_its_own_is_told() -> None:
    """A card on which no pod is fenced is worth a look, and no fault of the driver's."""
    unfenced = Trouble("it has no memory of its own", TroubleCode.UNIFIED).of_card(0)
    sample = Sample(0.0, (), "580", unidentified=(unfenced,))
    driver, found = check_cards(sample, LIVING)

    assert (Level.OK, Level.LOOK) == (driver.level, found.level)
    assert "card 0: it has no memory of its own" == found.text


def with_process(proc: Path, pid: int, *, cgroup: str = OURS, stat: str = "") -> str:
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "stat").write_text(stat or line())
    (folder / "cgroup").write_text(cgroup)
    return str(proc)


def namespace(tmp_path: Path, text: str) -> Finding:
    own = tmp_path / "pid"
    own.symlink_to(text)
    return check_pid_namespace(str(own))


def test_the_hosts_pid_namespace_is_fine(tmp_path: Path) -> None:
    """The first PID namespace of a machine is the one that drivers mean."""
    assert Level.OK == namespace(tmp_path, INITIAL_PID_NAMESPACE).level


def test_any_other_pid_namespace_is_not(tmp_path: Path) -> None:
    """A container's own PID namespace is told with hostPID as the remedy."""
    found = namespace(tmp_path, "pid:[4026532000]")

    assert Level.WRONG == found.level
    assert "hostPID: true" in found.remedy


def test_without_proc_the_namespace_is_unknown(tmp_path: Path) -> None:
    """What cannot be read is a warning, not an answer."""
    assert Level.LOOK == check_pid_namespace(str(tmp_path / "none")).level


def test_our_own_start_dates_the_clock() -> None:
    """The true /proc dates this process before now."""
    assert Level.OK == check_clock("/proc").level


def test_a_start_in_the_future_is_a_time_namespace(tmp_path: Path) -> None:
    """A process that starts after now shows that the clocks differ."""
    future = line().split()
    future[21] = str(10**12)
    proc = with_process(tmp_path, os.getpid(), stat=" ".join(future))

    assert Level.WRONG == check_clock(proc).level


def test_a_proc_without_us_is_worth_a_warning(tmp_path: Path) -> None:
    """Another machine's /proc, or a simulated one, does not show this process."""
    assert Level.LOOK == check_clock(str(tmp_path)).level


def test_processes_of_containers_are_recognised(tmp_path: Path) -> None:
    """One process of a pod's container is enough to see that its runtime is understood."""
    found = check_cgroups(with_process(tmp_path, 17))

    assert Level.OK == found.level
    assert "1 processes, among them those of 1 containers of 1 pods" == found.text


@pytest.mark.parametrize("cgroup", ["0::/user.slice\n", "0::/\n"])
def test_a_machine_without_pods_is_no_node(tmp_path: Path, cgroup: str) -> None:
    """Where no process belongs to a container gpufence knows, its own cgroup is shown."""
    folder = tmp_path / "self"
    folder.mkdir()
    (folder / "cgroup").write_text(cgroup)
    found = check_cgroups(with_process(tmp_path, 17, cgroup=cgroup))

    assert Level.WRONG == found.level
    assert cgroup.strip() in found.text


def test_no_word_of_ourselves_is_told_as_such(tmp_path: Path) -> None:
    """Without /proc/self there is nothing to show."""
    assert "'nothing'" in check_cgroups(with_process(tmp_path, 17, cgroup="0::/\n")).text


def test_hidden_processes_are_told(tmp_path: Path) -> None:
    """PIDs whose files cannot be read point at hidepid."""
    (tmp_path / "17").mkdir()
    found = check_cgroups(str(tmp_path))

    assert Level.WRONG == found.level
    assert "hidepid" in found.remedy


def test_processes_that_are_not_even_shown_are_told(tmp_path: Path) -> None:
    """A /proc that shows the agent alone, without the first process, points at hidepid as well."""
    found = check_cgroups(with_process(tmp_path, os.getpid(), cgroup="0::/\n"))

    assert Level.WRONG == found.level
    assert "no process but the agent's own is shown" == found.text
    assert "hidepid" in found.remedy


def test_a_missing_proc_is_told(tmp_path: Path) -> None:
    """A folder that is not there is named."""
    assert Level.WRONG == check_cgroups(str(tmp_path / "none")).level


@pytest.mark.parametrize(
    ("wanted", "capabilities", "expected"),
    [
        (False, "0000000000000000", Level.OK),
        (True, "0000000000000020", Level.OK),
        (True, "0000000000000000", Level.WRONG),
    ],
)
def test_the_capability_to_kill_matters_where_it_is_wanted(
    tmp_path: Path, capabilities: str, expected: Level, *, wanted: bool
) -> None:
    """The last resort needs its capability; without the last resort nobody does."""
    status = tmp_path / "status"
    status.write_text(f"Name:\tx\nCapEff:\t{capabilities}\n")

    assert expected == check_kill(wanted=wanted, status=str(status)).level


def test_unknown_capabilities_are_none(tmp_path: Path) -> None:
    """Without the kernel's word nobody has a capability."""
    assert Level.WRONG == check_kill(wanted=True, status=str(tmp_path / "none")).level


def test_pods_are_named_by_the_kubelets_folder_of_logs(tmp_path: Path) -> None:
    """Folders that are no pod's are passed over, and a missing folder names nobody."""
    for name in ("team-a_train_uid-a", "lost+found", "a_b_c_d"):
        (tmp_path / name).mkdir()

    assert {"uid-a": ("team-a", "train")} == names_of_pods(str(tmp_path))
    assert {} == names_of_pods(str(tmp_path / "none"))
