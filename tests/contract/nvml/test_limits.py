"""Memory limits by control group, as real pynvml sets and reads them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

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
NEW = "pods.slice/new.scope"
NOTHING, REFUSED = "NVMLError_NotFound", "NVMLError_NotSupported"
INVALID = "NVMLError_InvalidArgument"
BOTH = pytest.mark.parametrize("kind", [Memacct.MISC, Memacct.DMEM], ids=["misc", "dmem"])


class Site:
    """A machine of the driver with limits, a tree of groups, and root at the keyboard."""

    def __init__(self, machine: State, tree: GroupTree, root: Client) -> None:
        self.machine = machine
        self.tree = tree
        self._root = root
        self.held: list[Holding] = []

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


Step: TypeAlias = "Callable[[Site], object]"


def limit(group: str, hard: int, soft: int = 0) -> Step:
    def step(site: Site) -> None:
        assert "" == site.set(group, hard, soft)

    return step


def hold(group: str, memory: int, managed: int = 0) -> Step:
    return lambda site: site.held.append(site.hold(group, memory, managed))


def grow(amount: int) -> Step:
    return lambda site: site.held[-1].grow(amount * MIB)


def remove(group: str) -> Step:
    return lambda site: site.tree.remove(group)


def made_anew(site: Site) -> None:
    site.tree.remove(LEAF)
    assert NOTHING == site.get(LEAF)
    (site.tree.root / "another").mkdir()  # or the file system gives the same number again
    site.tree.add(LEAF)


def inherited(site: Site) -> None:
    """Have a new group take the place of one that has gone, as file systems may."""
    site.tree.remove(LEAF)
    site.machine.groups.hand_on(site.tree.root / LEAF, site.tree.add(NEW))


MISC, DMEM = Memacct.MISC, Memacct.DMEM
ABOVE = limit(SLICE, 5000), hold(OTHER, 200)
BEFORE = hold(LEAF, 500), limit(LEAF, 3000), grow(300)
RESERVED = limit(LEAF, 3000, 1000), limit(OTHER, 3000, 500)


@pytest.mark.parametrize(
    ("kind", "steps", "expected"),
    [
        *(
            (kind, (limit(LEAF, 3000, 1000), hold(LEAF, 500)), {LEAF: [1000, 3000, 500]})
            for kind in (MISC, DMEM)
        ),
        *(
            (kind, (limit(LEAF, hard),), {LEAF: [0, hard, 0]})
            for kind in (MISC, DMEM)
            for hard in (0, 15360, NO_LIMIT)
        ),
        (MISC, (), {LEAF: REFUSED}),
        (MISC, ABOVE, {LEAF: [0, 5000, 200]}),
        (MISC, (*ABOVE, limit(LEAF, 3000)), {LEAF: [0, 3000, 0]}),
        (DMEM, ABOVE, {LEAF: [0, NO_LIMIT, 0], SLICE: [0, 5000, 200]}),
        (MISC, BEFORE, {LEAF: [0, 3000, 300]}),
        (DMEM, BEFORE, {LEAF: [0, 3000, 800]}),
        (
            MISC,
            (limit(SLICE, 9000), *BEFORE, grow(-400)),
            {LEAF: [0, 3000, 0], SLICE: [0, 9000, 400]},
        ),
        (DMEM, (limit(LEAF, 3000), hold(LEAF, 100, managed=5000)), {LEAF: [0, 3000, 100]}),
        (DMEM, RESERVED, {SLICE: [1500, NO_LIMIT, 0]}),
        (DMEM, (*RESERVED, limit(OTHER, 3000), remove(LEAF)), {SLICE: [1000, NO_LIMIT, 0]}),
        (MISC, (limit(LEAF, 3000), made_anew), {LEAF: [0, 3000, 0]}),
        (DMEM, (limit(LEAF, 3000), made_anew), {LEAF: [0, NO_LIMIT, 0]}),
        (MISC, (limit(LEAF, 3000), inherited), {NEW: [0, 3000, 0]}),
    ],
    ids=[
        *("set, misc", "set, dmem", *(f"{each} of the card" for each in range(6)), "none, misc"),
        *("misc climbs to the nearest", "its own first", "dmem does not climb"),
        *("misc counts from then on", "dmem counts what was held", "given back last in first out"),
        *("managed memory does not count", "dmem reserves above", "until it is lowered"),
        *("misc waits for the next", "dmem forgets with the group", "misc takes another for it"),
    ],
)
def test_what_a_group_is_held_to(
    site: Site, steps: tuple[Step, ...], expected: dict[str, list[int] | str]
) -> None:
    """Soft and hard limit and what counts to it, as they are read after all that was done."""
    for step in steps:
        step(site)

    assert expected == {group: site.get(group) for group in expected}


@BOTH
def test_a_card_has_its_own_limit(site: Site, kind: Memacct) -> None:
    """A limit of one card says nothing of another."""
    site.set(LEAF, 3000)

    assert (REFUSED if kind is MISC else [0, NO_LIMIT, 0]) == site.get(LEAF, card=1)


@pytest.mark.parametrize("kind", [DMEM])
def test_dmem_needs_the_controller(site: Site) -> None:
    """A group without the controller's files takes no limit and is read as the one above it."""
    site.tree.leave_out(SLICE)
    site.set(SLICE, 5000)

    assert NOTHING == site.set(LEAF, 3000)
    assert [0, 5000, 0] == site.get(LEAF)


@pytest.mark.parametrize(("kind", "top"), [(MISC, REFUSED), (DMEM, NOTHING)], ids=["misc", "dmem"])
def test_what_cannot_be_is_refused(site: Site, top: str) -> None:
    """A limit above the card or below its request, of no group, of no control group, of the top."""
    (site.tree.root / "plain").mkdir()
    wrong = ((15361, 0), (NO_LIMIT, 15361), (1000, 1001))

    assert [INVALID] * 3 == [site.set(LEAF, hard, soft) for hard, soft in wrong]
    assert NOTHING == site.set("nowhere", 3000) == site.get("nowhere")
    assert INVALID == site.set("plain", 3000) == site.get("plain")
    assert top == site.set("", 3000)


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


def test_groups_that_are_gone_make_room(site: Site) -> None:
    """However many groups come and go, there is a place for the next."""
    for number in range(300):
        site.tree.add(f"pods.slice/{number}")
        said = site.set(f"pods.slice/{number}", 100)
        site.tree.remove(f"pods.slice/{number}")

        assert "" == said
