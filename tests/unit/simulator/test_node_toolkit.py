"""What the container toolkit makes of a container's variables, and kubelet of its failures."""

from pathlib import Path

import pytest

from gpufence.quantity import MIB
from simulator.node.errors import HookError, StartError
from simulator.node.machine import cards_of
from simulator.node.runtime import ContainerRuntime, visible_cards
from simulator.node.toolkit import Toolkit, wanted_limits
from simulator.nvml.build import CURRENT, LIMITED, library_path
from simulator.nvml.groups import GROUP
from simulator.nvml.layout import Memacct
from simulator.nvml.state import State
from tests.support.toolkit import FAILURES, SUCCESSES, Row
from tests.unit.simulator.builders import card

PATH = "/kubepods.slice/pod.slice/leaf.scope"
LIMITED_TO_3 = {"NVIDIA_GPU_MEMORY_REQUEST": "0", "NVIDIA_GPU_MEMORY_LIMIT": "3072"}
WORDS = "error running createRuntime hook #0: exit status"


@pytest.mark.parametrize("row", SUCCESSES, ids=lambda row: row.id)
def test_variables_say_what_is_set(row: Row) -> None:
    """Each list of variables that the hook takes comes to a soft and a hard limit, or to none."""
    found = wanted_limits(row.variables)

    assert row.expected == (None if found is None else (found.soft, found.hard))


@pytest.mark.parametrize("row", FAILURES, ids=lambda row: row.id)
def test_variables_that_fail(row: Row) -> None:
    """What the hook cannot read ends the start with its words."""
    with pytest.raises(HookError) as caught:
        wanted_limits(row.variables)

    assert row.words in str(caught.value)


def test_groups_of_version_1_fail() -> None:
    """Any of the variables fails on a host with control groups of version 1, and none does not."""
    with pytest.raises(HookError, match="only supported in cgroup v2"):
        wanted_limits(["NVIDIA_GPU_MEMORY_LIMIT=3072"], cgroup_v2=False)
    assert None is wanted_limits(["A=b"], cgroup_v2=False)


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ("", []),
        ("none", []),
        ("void", []),
        ("all", [0, 1]),
        ("1", [1]),
        ("GPU-0", [0]),
        ("GPU-1, 0", [0, 1]),
        ("MIG-1", []),
    ],
)
def test_cards_are_given_by_a_variable(said: str, seen: list[int]) -> None:
    """The toolkit gives the cards that NVIDIA_VISIBLE_DEVICES names, by index or UUID."""
    given = visible_cards({"NVIDIA_VISIBLE_DEVICES": said}, [card(0), card(1)])

    assert seen == [one.index for one in given]


class Host:
    """A machine of two unequal cards with a container runtime."""

    def __init__(self, folder: Path, variant: str = LIMITED, *, cgroup_v2: bool = True) -> None:
        self.state = State.create(folder / "cards", "T4,L4")
        self.cards = cards_of(self.state)
        library = library_path(variant).parent
        path = self.state.path
        self.runtime = ContainerRuntime(folder / "cgroup", library, path, cgroup_v2=cgroup_v2)
        self.runtime.toolkit = Toolkit.CURRENT

    def begin(self, said: dict[str, str], cards: str = "0") -> dict[str, str]:
        variables = {"NVIDIA_VISIBLE_DEVICES": cards, **said}
        return dict(self.runtime.begin(PATH, variables, self.cards))

    def refused(self, said: dict[str, str], cards: str = "0") -> str:
        with pytest.raises(StartError) as caught:
            self.begin(said, cards)
        assert not (self.runtime.root / PATH[1:]).exists()
        return str(caught.value)

    @property
    def limits(self) -> list[tuple[int, int, int]]:
        return [(one.card, one.soft, one.hard // MIB) for one in self.state.groups.limits()]


def test_a_limit_is_set_for_each_card(tmp_path: Path) -> None:
    """Before a container starts, its own group has the limit on each of its cards."""
    host = Host(tmp_path)
    seen = host.begin(LIMITED_TO_3, "all")

    assert {GROUP: str(tmp_path / "cgroup" / PATH[1:])} == seen
    assert [(0, 0, 3072), (1, 0, 3072)] == host.limits


@pytest.mark.parametrize("toolkit", [Toolkit.OLDER, Toolkit.LEGACY, Toolkit.NONE])
def test_without_the_hook_nothing_is_set(tmp_path: Path, toolkit: Toolkit) -> None:
    """Toolkits without the hook start whatever the variables say."""
    host = Host(tmp_path, CURRENT)
    host.runtime.toolkit = toolkit
    host.begin({"NVIDIA_GPU_MEMORY_LIMIT": "nonsense"})

    assert [] == host.limits


@pytest.mark.parametrize("said", [{}, LIMITED_TO_3], ids=["no variable", "no card"])
def test_there_may_be_nothing_to_do(tmp_path: Path, said: dict[str, str]) -> None:
    """Without the variables, and without a card, the hook does nothing on any driver."""
    host = Host(tmp_path, CURRENT)
    host.begin(said, "none" if said else "0")

    assert [] == host.limits


def test_more_than_the_smallest_card_fails(tmp_path: Path) -> None:
    """A limit above one of the container's cards keeps it from starting."""
    host = Host(tmp_path)
    large = {**LIMITED_TO_3, "NVIDIA_GPU_MEMORY_LIMIT": "20000"}

    assert "Invalid Argument" in host.refused(large, "all")
    assert {GROUP} == set(host.begin(large, "1"))


@pytest.mark.parametrize(
    ("kind", "words"),
    [(Memacct.OFF, "Not Supported"), (Memacct.DMEM, "Not Found")],
    ids=["off", "no controller"],
)
def test_a_driver_that_cannot_fails(tmp_path: Path, kind: Memacct, words: str) -> None:
    """What the driver answers is in the container's message."""
    host = Host(tmp_path)
    host.state.groups.memacct = kind
    (tmp_path / "cgroup" / "kubepods.slice/pod.slice").mkdir(parents=True)
    (tmp_path / "cgroup" / "kubepods.slice/pod.slice/cgroup.procs").write_text("")
    text = host.refused(LIMITED_TO_3)

    assert f"{WORDS} 1, stdout: , stderr: " in text
    assert f'failed to set memory limits for gpu \\"{host.cards[0].uuid}\\": {words}' in text


def test_an_older_driver_fails(tmp_path: Path) -> None:
    """Where the driver has no such function the hook ends with 127."""
    text = Host(tmp_path, CURRENT).refused(LIMITED_TO_3)

    assert text.startswith("failed to create containerd task: failed to create shim task: ")
    assert f"{WORDS} 127" in text
    assert "undefined symbol: nvmlDeviceSetMemoryLimits_v1" in text


def test_a_host_with_version_1_fails(tmp_path: Path) -> None:
    """On version 1 there is no tree, and the variables keep a container from starting."""
    host = Host(tmp_path, cgroup_v2=False)

    assert "only supported in cgroup v2" in host.refused(LIMITED_TO_3)
    assert {} == host.begin({})
