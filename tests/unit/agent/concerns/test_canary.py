"""What the canary of a node shows, and what the Node says of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.concerns.driver.canary import Canary, NodeWord, asked_of, why_not
from agent.concerns.driver.model import KEPT_READS, LimitFound, LimitRecord, State
from agent.model.pod import DriverLimit, PodOnNode
from agent.model.sample import Trouble
from agent.nvml.faults import Code
from agent.nvml.protocol import NvmlFailure
from gpufence import names
from gpufence.canary import CanaryNote, Proof, read_note, write_note
from gpufence.cards import Card, Instance
from gpufence.quantity import MIB
from tests.support.agent.builders import CARDS, container_id, controller, pod
from tests.support.agent.driven import NOT_SET, DrivenNode, held, refused

SMALL = 64 * MIB
HELD = held(SMALL, 0)
HANGS = Trouble("the driver gave no answer for 2.5 s")
ASKED = DriverLimit(SMALL)
FIRST, SECOND = container_id("canary"), container_id("canary", "again")
DRIVER = "615.71.09"
PASSED = CanaryNote(Proof.PASSED, DRIVER, FIRST)
WORDS = "exit status 127: symbol lookup error"


class CanaryNode(DrivenNode):
    """A node whose operator wants a canary."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.label.namespace = names.SYSTEM_NAMESPACE

    def canary(self, identity: str = FIRST, **more: Any) -> PodOnNode:
        made_by = controller("DaemonSet", names.CANARY)
        fields = {"uid": self.uid("canary"), "namespace": names.SYSTEM_NAMESPACE, "mode": None}
        asked = {"driver": {"main": ASKED}, "containers": {identity: "main"}}
        return pod("canary", limit=None, **{**fields, **asked, "controller": made_by} | more)

    def run(self, item: PodOnNode, answer: Any = HELD) -> None:
        """Start it, and read back what the driver says of its cgroup."""
        self.claim(item)
        identity = next(iter(item.containers), "")
        path = self.root / f"kubepods.slice/kubepods-pod{item.uid}.slice" / f"{identity}.scope"
        path.mkdir(parents=True)
        self.nvml.answers[str(path)] = answer
        self.turn()

    def last(self) -> None:
        """Let what stands against limits last."""
        self.turn(KEPT_READS + 1)

    def events(self) -> list[str]:
        notices = [item.notice for item in self.api.written]
        return [each.message for each in notices if each.topic == "canary"]


@pytest.fixture
def node(tmp_path: Path) -> CanaryNode:
    return CanaryNode(tmp_path)


def test_a_canary_that_is_held_labels_its_node(node: CanaryNode) -> None:
    """The first read is enough, on every card; it is no tenant's in metrics and Events."""
    node.run(node.canary())

    assert NodeWord("true", PASSED) == node.label.word
    assert {("held",): 0.0, ("absent",): 0.0, ("unknown",): 0.0} == node.page(
        "gpufence_driver_limits"
    )
    assert [] == node.api.reasons


@pytest.mark.parametrize(
    ("change", "answer", "why"),
    [
        ({}, NOT_SET, "NVIDIA's hook did not run"),
        ({}, NvmlFailure(Code.FUNCTION_NOT_FOUND, "f"), "they begin with r615"),
        ({}, held(2 * SMALL), "a larger one, 128 MiB"),
        ({"driver": {"main": ASKED._replace(refused=WORDS)}}, HELD, f"cannot start: {WORDS}"),
        ({"containers": {}}, HELD, "its canary has not started"),
        ({"driver": {}}, HELD, "its canary has not started"),
    ],
)
def test_what_is_not_held_labels_nothing(
    node: CanaryNode, change: dict[str, Any], answer: Any, why: str
) -> None:
    """After a minute the Node says why; before that a container may only be about to start."""
    node.run(node.canary(**change), answer)
    early = node.label.word
    node.last()

    assert NodeWord() == early
    assert node.label.word.label is None
    assert node.label.word.note is not None
    assert Proof.FAILED is node.label.word.note.shown
    assert why in node.label.word.note.why
    assert [] == node.events()


@pytest.mark.parametrize(
    "change",
    [
        {"namespace": "team-a"},
        {"controller": None},
        {"controller": controller("DaemonSet", "other")},
        {"controller": controller("ReplicaSet", names.CANARY)},
        {"ended": True},
        {"terminating": True},
    ],
    ids=str,
)
def test_only_our_own_canary_counts(node: CanaryNode, change: dict[str, Any]) -> None:
    """A pod of a tenant, or one that nothing of ours has made, shows nothing, whatever it has."""
    node.run(node.canary(**change))
    node.last()

    assert NodeWord() == node.label.word
    assert [] == node.nvml.asked


def test_without_the_operators_word_none_counts(node: CanaryNode) -> None:
    """Where the agent is not to label, a canary is a pod like any other."""
    node.label.namespace = ""
    node.run(node.canary())
    node.last()

    assert NodeWord() == node.label.word
    assert [] == node.nvml.asked


@pytest.mark.parametrize(
    ("driver", "answer"),
    [(DRIVER, HANGS), (DRIVER, NvmlFailure(Code.GPU_IS_LOST, "f")), ("", HELD)],
    ids=["hangs", "lost", "no driver"],
)
def test_what_is_not_known_changes_nothing(node: CanaryNode, driver: str, answer: Any) -> None:
    """A driver that does not answer proves nothing, and takes nothing back."""
    node.cards.driver = driver
    node.run(node.canary(), answer)
    node.last()
    unproved = node.label.word
    node.label.word = NodeWord("true", PASSED)
    node.last()

    assert (NodeWord(), NodeWord("true", PASSED)) == (unproved, node.label.word)


def lose_the_limit(node: CanaryNode) -> None:
    node.nvml.answers.clear()


def start_without(node: CanaryNode) -> None:
    """The runtime starts the container again, and sets no limit."""
    node.run(node.canary(SECOND), NOT_SET)


def fail(node: CanaryNode) -> None:
    node.claim(refused(node.driven(), f"{WORDS}: Not Supported"))


@pytest.mark.parametrize(
    ("happens", "lasts", "container", "why"),
    [
        (lambda node: node.leave(node.canary()), True, FIRST, "no canary runs here"),
        (lose_the_limit, True, FIRST, "NVIDIA's hook did not run"),
        (start_without, True, SECOND, "NVIDIA's hook did not run"),
        (fail, False, FIRST, "container main of pod team-a/a cannot start"),
    ],
    ids=["gone", "lost", "started without", "pods fail"],
)
def test_the_label_goes_when_the_proof_does(
    node: CanaryNode,
    happens: Callable[[CanaryNode], None],
    lasts: bool,  # noqa: FBT001 - a row of the table
    container: str,
    why: str,
) -> None:
    """What lasts takes it back, a pod that cannot start at once; an Event on the Node says why."""
    node.run(node.canary())
    happens(node)
    node.turn(2)
    early = node.label.word.label
    node.last()
    label, note = node.label.word

    assert note is not None
    assert ("true" if lasts else None, None) == (early, label)
    assert (Proof.LOST, container) == (note.shown, note.container)
    assert why in note.why
    assert any(why in text and "no longer proved" in text for text in node.events())


def test_instances_of_a_card_take_no_limit(node: CanaryNode) -> None:
    """Where one card is cut, no container of the node may be given the variables."""
    cut = CARDS[1]._replace(mig=Instance("GPU-0", "1g.5gb"))

    assert "MIG" in str(why_not(Canary(node.canary(), DRIVER, (CARDS[0], cut)), {}))


@pytest.mark.parametrize(("driver", "cards"), [(DRIVER, ()), ("", CARDS[:1])])
def test_a_driver_that_shows_nothing_proves_nothing(
    node: CanaryNode, driver: str, cards: tuple[Card, ...]
) -> None:
    """Without its version, or any card, nothing is known for or against limits."""
    assert None is why_not(Canary(node.canary(), driver, cards), {})
    assert None is why_not(Canary(None, driver, cards), {})


def test_a_card_without_an_answer_proves_nothing(node: CanaryNode) -> None:
    """One that is held says nothing of the other."""
    canary = Canary(node.canary(), DRIVER, tuple(CARDS[:2]))
    first, second = (
        {item.key: LimitRecord(0, 0, LimitFound(State.HELD), 0, 0, None)}
        for item in asked_of(canary)
    )

    assert [None, None, ""] == [why_not(canary, each) for each in ({}, first, first | second)]


def test_of_two_canaries_the_later_counts(node: CanaryNode) -> None:
    """While the DaemonSet replaces its pod, both may be there."""
    node.run(node.canary(created="2026-11-20T10:00:00Z"))
    later = node.canary(SECOND, uid=node.uid("later"), created="2026-11-20T11:00:00Z")
    node.run(later)

    assert NodeWord("true", PASSED._replace(container=SECOND)) == node.label.word


@pytest.mark.parametrize("label", ["true", None])
def test_another_driver_takes_another_container(node: CanaryNode, label: str | None) -> None:
    """A proof ends with its driver, at once; only a container that starts later renews it."""
    node.run(node.canary())
    node.label.word = node.label.word._replace(label=label)
    node.cards.driver = "620.1"
    node.turn()
    lost = node.label.word
    node.last()
    still = node.label.word
    node.run(node.canary(SECOND))

    assert lost == still
    assert f"driver 620.1 has replaced {DRIVER}" == lost.lost
    assert NodeWord("true", CanaryNote(Proof.PASSED, "620.1", SECOND)) == node.label.word


def test_a_label_that_somebody_takes_off_comes_back(node: CanaryNode) -> None:
    """It says what the canary shows; an operator who wants none writes another value."""
    node.run(node.canary())
    node.label.word = NodeWord(None, PASSED)
    node.turn(2)

    assert NodeWord("true", PASSED) == node.label.word


def test_a_container_that_starts_again_is_named(node: CanaryNode) -> None:
    """The label stays while the next day's container starts, and the note follows."""
    node.run(node.canary())
    node.run(node.canary(SECOND))

    assert NodeWord("true", PASSED._replace(container=SECOND)) == node.label.word


@pytest.mark.parametrize("label", ["true", "false"])
def test_the_operators_label_stays(node: CanaryNode, label: str) -> None:
    """What somebody has set by hand is neither overwritten nor taken back for a canary."""
    node.label.word = NodeWord(label)
    node.run(node.canary())
    held_label = node.label.word.label
    lose_the_limit(node)
    node.last()

    assert [label, label] == [held_label, node.label.word.label]


def test_a_no_after_a_proof_stays(node: CanaryNode) -> None:
    """An operator holds a node out of it by another value, for as long as that is there."""
    node.run(node.canary())
    node.label.word = NodeWord("false", PASSED)
    node.last()
    node.cards.driver = "620.1"
    node.last()

    assert "false" == node.label.word.label


@pytest.mark.parametrize(
    "text", [None, "", "x", "[]", "{}", '{"shown":"new"}', '{"shown":"passed","driver":5}']
)
def test_a_note_that_nobody_can_read_is_none(text: str | None) -> None:
    """Anybody who may write on Nodes may write there."""
    assert None is read_note(text)


@pytest.mark.parametrize("note", [PASSED, CanaryNote(Proof.LOST, "", "c", "why")])
def test_a_note_reads_as_it_was_written(note: CanaryNote) -> None:
    """The Node keeps it while agents come and go."""
    assert note == read_note(write_note(note))
