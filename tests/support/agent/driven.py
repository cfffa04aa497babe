"""A node in memory whose driver holds containers to limits, read back from a tree of folders."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.concern import Concern
from agent.concerns.driver.canary import NodeWord
from agent.concerns.driver.concern import DriverConcern
from agent.concerns.driver.model import DriverPolicy
from agent.model.pod import DriverLimit, PodOnNode
from agent.model.sample import Trouble
from agent.nvml.faults import Code
from agent.nvml.protocol import Answer, Limited, NvmlFailure, Question
from gpufence.canary import CanaryNote, Proof
from gpufence.quantity import GIB
from tests.support.agent.builders import LIMIT, container_id, pod
from tests.support.agent.node import Node

OURS = DriverLimit(LIMIT, ours=True)
NOT_SET = NvmlFailure(Code.NOT_FOUND, "nvmlDeviceGetMemoryLimits_v1")


class Nvml:
    """Answers by the folder of a cgroup: nothing is set but what a test has set."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer | Trouble] = {}
        self.otherwise: Answer | Trouble = NOT_SET
        self.asked: list[Question] = []
        self.rests = 0

    def ask(self, questions: Collection[Question]) -> dict[Question, Answer | Trouble]:
        self.asked += questions
        return {item: self.answers.get(item.path, self.otherwise) for item in questions}

    def rest(self) -> None:
        self.rests += 1


class Label:
    """The Node's label, why it was taken back, and what a canary has shown where one counts."""

    def __init__(self) -> None:
        self.is_set = False
        self.namespace = ""
        self.word = NodeWord()
        self.taken: list[str] = []

    def take_back(self, why: str) -> None:
        self.taken.append(why)

    def say(self, note: CanaryNote) -> None:
        label = {Proof.PASSED: "true", Proof.LOST: None}.get(note.shown, self.word.label)
        self.word = NodeWord(label, note)


class DrivenNode(Node):
    """`root` is where the cgroups are; `driven` starts pods that ask for a limit."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "cgroup.subtree_control").touch()
        self.nvml, self.label = Nvml(), Label()
        super().__init__()
        self.cards.driver = "615.71.09"

    def shelves(self) -> Sequence[Concern]:
        policy = DriverPolicy(cgroup_root=str(self.root))
        self.driver = DriverConcern(policy, "n1", self.nvml, self.label, self.clock)  # type: ignore[arg-type]  # as much of it as is used
        return (self.driver,)

    def uid(self, name: str) -> str:
        return f"00000000-0000-4000-8000-{name.encode().hex():0>12}"

    def driven(self, name: str = "a", *containers: str, **more: Any) -> PodOnNode:
        """Return a pod whose containers are to be held to its limit."""
        asks = dict.fromkeys(containers or ("main",), OURS)
        return pod(name, *containers, **{"uid": self.uid(name), "driver": asks} | more)

    def folder(self, item: PodOnNode, container: str = "main") -> str:
        """Make the cgroup of a container as kubelet and containerd do, and return its folder."""
        path = self.root.joinpath(
            "kubepods.slice",
            "kubepods-burstable.slice",
            f"kubepods-burstable-pod{item.uid.replace('-', '_')}.slice",
            f"cri-containerd-{container_id(item.name, container)}.scope",
        )
        path.mkdir(parents=True, exist_ok=True)
        return str(path)

    def start(self, item: PodOnNode, answer: Answer | Trouble, used: int = GIB) -> str:
        """Start a pod of which the driver says so, and look at it."""
        folder = self.folder(item)
        self.nvml.answers[folder] = answer
        self.add(item, used, 1)
        self.turn()
        return folder

    def turn(self, times: int = 1, seconds: float = 10.0) -> None:
        """Tick, read back what is due, and let the next tick say so."""
        for _ in range(times):
            self.tick(seconds=seconds)
            self.driver.read()
            self.tick(seconds=0.0)

    def fences(self) -> list[str]:
        """Return what holds each pod on each card."""
        rows = self.driver.rows(self.clock.now, current=True)
        return [str(use["fence"]) for row in rows.values() for use in row.uses.values()]

    def page(self, family: str) -> dict[tuple[str, ...], float | None]:
        """Return the values of a family of metrics by what its labels say."""
        last = self.loop.state.last
        (found,) = (
            each for each in self.driver.families(last, self.clock.now) if each.name == family
        )
        return {tuple(labels.values()): value for labels, value in found.values}

    def older(self, driver: str) -> None:
        """Have a driver of another version under a Node that has the label."""
        self.cards.driver, self.label.is_set = driver, True


def held(hard: int = LIMIT, used: int = GIB) -> Limited:
    return Limited(0, hard, used)


def refused(item: PodOnNode, words: str) -> PodOnNode:
    """Return a pod whose container cannot start with its limit."""
    return replace(item, driver={"main": OURS._replace(refused=words)})
