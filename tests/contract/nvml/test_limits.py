"""Memory limits by control group, as real pynvml sets and reads them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpufence.quantity import MIB
from simulator.nvml.build import LIMITED
from simulator.nvml.groups import ROOT, GroupTree
from simulator.nvml.layout import NO_LIMIT, Memacct
from simulator.nvml.processes import Holding
from simulator.nvml.state import State
from tests.support.driver import Client

PID = 1000
SLICE, LEAF, OTHER = "pods.slice", "pods.slice/leaf.scope", "pods.slice/other.scope"
NOTHING, REFUSED = "NVMLError_NotFound", "NVMLError_NotSupported"
INVALID = "NVMLError_InvalidArgument"
DMEM = pytest.mark.parametrize("kind", [Memacct.DMEM])
BOTH = pytest.mark.parametrize("kind", [Memacct.MISC, Memacct.DMEM], ids=["misc", "dmem"])


class Site:
    """A machine of the driver with limits, a tree of groups, and root at the keyboard."""

    def __init__(self, machine: State, tree: GroupTree, root: Client) -> None:
        self.machine = machine
        self.tree = tree
        self._root = root

    def path(self, group: str) -> str:
        return str(self.tree.root / group)

    def set(self, group: str, hard: int, soft: int = 0, card: int = 0) -> str:
        """Set a limit in MiB; return the error's name, empty if it was set."""
        most = NO_LIMIT if hard == NO_LIMIT else hard * MIB
        answer = self._root.ask(f"limit({card}, {self.path(group)!r}, {most}, {soft * MIB})")
        return str(answer.get("error", ""))

    def get(self, group: str, card: int = 0) -> list[int] | str:
        """Read soft, hard and used in MiB, or the error's name."""
        answer = self._root.ask(f"limits({card}, {self.path(group)!r})")
        if "error" in answer:
            return str(answer["error"])
        return [one if one == NO_LIMIT else one // MIB for one in answer["value"]]

    def hold(self, group: str, memory: int, managed: int = 0) -> Holding:
        place = self.machine.find("0")
        path = self.path(group)
        holding = self.machine.processes.put(place, PID, memory * MIB, kept=True, group=path)
        holding.resize(managed=managed * MIB)
        return holding


@pytest.fixture
def kind() -> Memacct:
    return Memacct.MISC


@pytest.fixture
def site(machine: State, tmp_path: Path, kind: Memacct) -> Iterator[Site]:
    machine.groups.memacct = kind
    tree = GroupTree(tmp_path / "cgroup")
    tree.add(LEAF)
    tree.add(OTHER)
    with Client(machine.path, LIMITED, variables={ROOT: "1"}) as root:
        yield Site(machine, tree, root)


@BOTH
def test_a_limit_is_read_back(site: Site) -> None:
    """What was set for a group on a card is read for both, with what the group uses since."""
    said = site.set(LEAF, 3000, soft=1000)
    site.hold(LEAF, 500)

    assert "" == said
    assert [1000, 3000, 500] == site.get(LEAF)


@BOTH
def test_a_card_has_its_own_limit(site: Site, kind: Memacct) -> None:
    """A limit of one card says nothing of another."""
    site.set(LEAF, 3000)
    expected = REFUSED if kind is Memacct.MISC else [0, NO_LIMIT, 0]

    assert expected == site.get(LEAF, card=1)


@BOTH
def test_reading_takes_no_rights(site: Site) -> None:
    """A process that is not root may read a limit and set none."""
    site.set(LEAF, 3000)
    path = site.path(LEAF)
    with Client(site.machine.path, LIMITED, variables={ROOT: "0"}) as tenant:
        read = tenant(f"limits(0, {path!r})")
        said = tenant.error(f"limit(0, {path!r}, {4000 * MIB})")

    assert [0, 3000 * MIB, 0] == read
    assert "NVMLError_NoPermission" == said


def test_older_drivers_have_no_symbol(start: Callable[..., Client], tmp_path: Path) -> None:
    """Before 615 the functions are not there at all."""
    client = start()

    assert "NVMLError_FunctionNotFound" == client.error(f"limits(0, {str(tmp_path)!r})")
    assert "NVMLError_FunctionNotFound" == client.error(f"limit(0, {str(tmp_path)!r}, 0)")


@pytest.mark.parametrize("kind", [Memacct.OFF])
def test_off_is_not_supported(site: Site) -> None:
    """A driver that was loaded without the feature says so of every group."""
    assert REFUSED == site.set(LEAF, 3000) == site.get(LEAF)


@BOTH
@pytest.mark.parametrize("card", [5, 6], ids=["A100-40", "A100-80"])
def test_mig_is_refused(site: Site, card: int) -> None:
    """A card that is cut, and its instances, have no limits."""
    site.machine.cards[card].cut("1g.5gb" if card == 5 else "1g.10gb")

    assert REFUSED == site.set(LEAF, 3000, card=card) == site.get(LEAF, card=card)


@BOTH
@pytest.mark.parametrize(
    ("hard", "soft"),
    [
        pytest.param(15361, 0, id="a limit above the card"),
        pytest.param(NO_LIMIT, 15361, id="a request above the card"),
        pytest.param(1000, 1001, id="a request above the limit"),
    ],
)
def test_what_cannot_be_is_invalid(site: Site, hard: int, soft: int) -> None:
    """A limit above the card's total, or below what is reserved, is an invalid argument."""
    assert INVALID == site.set(LEAF, hard, soft)


@BOTH
@pytest.mark.parametrize("hard", [0, 15360, NO_LIMIT])
def test_all_between_is_valid(site: Site, hard: int) -> None:
    """Nothing, all of the card, and no limit can be set."""
    assert "" == site.set(LEAF, hard)
    assert [0, hard, 0] == site.get(LEAF)


@BOTH
def test_a_group_must_be_there(site: Site) -> None:
    """A path that is not there is not found, and one that is no control group is invalid."""
    (site.tree.root / "plain").mkdir()

    assert NOTHING == site.set("nowhere", 3000) == site.get("nowhere")
    assert INVALID == site.set("plain", 3000) == site.get("plain")


@pytest.mark.parametrize(
    ("kind", "said"), [(Memacct.MISC, REFUSED), (Memacct.DMEM, NOTHING)], ids=["misc", "dmem"]
)
def test_the_top_has_no_limit(site: Site, said: str) -> None:
    """No limit can be set on the topmost group."""
    assert said == site.set("", 3000)


def test_misc_climbs_to_the_nearest(site: Site) -> None:
    """On misc a group without a limit answers with that of the nearest group above it."""
    virgin = site.get(LEAF)
    site.set(SLICE, 5000)
    site.hold(OTHER, 200)
    climbed = site.get(LEAF)
    site.set(LEAF, 3000)

    assert REFUSED == virgin
    assert [0, 5000, 200] == climbed
    assert [0, 3000, 0] == site.get(LEAF)


@DMEM
def test_dmem_does_not_climb(site: Site) -> None:
    """On dmem a group answers for itself, and what is used below it counts."""
    site.set(SLICE, 5000)
    site.hold(OTHER, 200)

    assert [0, NO_LIMIT, 0] == site.get(LEAF)
    assert [0, 5000, 200] == site.get(SLICE)


@DMEM
def test_dmem_needs_the_controller(site: Site) -> None:
    """A group without the controller's files takes no limit and is read as the one above it."""
    site.tree.leave_out(SLICE)
    site.set(SLICE, 5000)

    assert NOTHING == site.set(LEAF, 3000)
    assert [0, 5000, 0] == site.get(LEAF)


@pytest.mark.parametrize(
    ("kind", "counted"), [(Memacct.MISC, 300), (Memacct.DMEM, 800)], ids=["misc", "dmem"]
)
def test_what_was_held_before(site: Site, counted: int) -> None:
    """What a group holds when its limit is set counts on dmem, and never on misc."""
    holding = site.hold(LEAF, 500)
    site.set(LEAF, 3000)
    holding.grow(300 * MIB)

    assert [0, 3000, counted] == site.get(LEAF)


def test_misc_gives_back_what_it_counted(site: Site) -> None:
    """What was taken last is given back first, each to the limit that it counted to."""
    site.set(SLICE, 9000)
    holding = site.hold(LEAF, 500)
    site.set(LEAF, 3000)
    holding.grow(300 * MIB)
    holding.grow(-400 * MIB)

    assert [0, 3000, 0] == site.get(LEAF)
    assert [0, 9000, 400] == site.get(SLICE)


def test_misc_keeps_a_limit_above_its_use(site: Site) -> None:
    """On misc a limit below what counts to it is refused, on dmem it is set."""
    site.set(LEAF, 3000)
    holding = site.hold(LEAF, 500)
    refused = site.set(LEAF, 400)
    holding.release()
    site.machine.groups.memacct = Memacct.DMEM
    site.hold(LEAF, 500)

    assert INVALID == refused
    assert "" == site.set(LEAF, 400)


@DMEM
def test_managed_memory_does_not_count(site: Site) -> None:
    """Managed memory is the host's business."""
    site.set(LEAF, 3000)
    site.hold(LEAF, 100, managed=5000)

    assert [0, 3000, 100] == site.get(LEAF)


@pytest.mark.parametrize(
    ("kind", "left"),
    [(Memacct.MISC, [0, 3000, 0]), (Memacct.DMEM, [0, NO_LIMIT, 0])],
    ids=["misc", "dmem"],
)
def test_a_group_made_anew(site: Site, left: list[int]) -> None:
    """A deleted group's limit is gone on dmem, and waits on misc for the next in its place."""
    site.set(LEAF, 3000)
    site.tree.remove(LEAF)
    gone = site.get(LEAF)
    (site.tree.root / "another").mkdir()  # or the file system gives the same number again
    site.tree.add(LEAF)

    assert NOTHING == gone
    assert left == site.get(LEAF)


def test_misc_may_take_another_for_it(site: Site) -> None:
    """A new group elsewhere may inherit the limit of one that is gone."""
    site.set(LEAF, 3000)
    site.tree.remove(LEAF)
    new = site.tree.add("pods.slice/new.scope")
    site.machine.groups.hand_on(site.tree.root / LEAF, new)

    assert [0, 3000, 0] == site.get("pods.slice/new.scope")


@DMEM
def test_dmem_reserves_above(site: Site) -> None:
    """What leaves reserve is reserved above them, until it is lowered and not when they go."""
    site.set(LEAF, 3000, soft=1000)
    site.set(OTHER, 3000, soft=500)
    both = site.get(SLICE)
    site.set(OTHER, 3000)
    site.tree.remove(LEAF)

    assert [1500, NO_LIMIT, 0] == both
    assert [1000, NO_LIMIT, 0] == site.get(SLICE)


def test_groups_that_are_gone_make_room(site: Site) -> None:
    """However many groups come and go, there is a place for the next."""
    for number in range(300):
        site.tree.add(f"pods.slice/{number}")
        said = site.set(f"pods.slice/{number}", 100)
        site.tree.remove(f"pods.slice/{number}")

        assert "" == said
