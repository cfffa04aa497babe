"""
All pods of a node: what lists and changes do to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.node.downward import NodeFacts
from simulator.node.launch import Bench
from simulator.node.lifecycle import Pauses
from simulator.node.pods import Inbox, Pods
from simulator.node.procroot import ProcRoot
from simulator.node.sharing import Sharing
from tests.unit.simulator.node.builders import card, container, pod, pod_object
from tests.unit.simulator.node.fakes import FakeReports

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from simulator.node.environment import Reference

FOREIGN = container(image="busybox")
MIRROR = {"kubernetes.io/config.mirror": "0123"}


class NoLibrary:
    """
    A namespace without ConfigMaps and Secrets.
    """

    def read(
        self, namespace: str, references: Iterable[Reference]
    ) -> dict[Reference, dict[str, str]]:
        del namespace, references
        return {}


def pods(folder: Path, reports: FakeReports) -> Pods:
    node = NodeFacts("node-a", "127.0.0.1")
    bench = Bench(node, (card(),), Sharing(), NoLibrary(), folder, folder / "state")
    return Pods(bench, reports, Pauses(), lambda _: None)


def test_a_list_without_a_pod_means_that_it_is_gone(tmp_path: Path) -> None:
    """
    A pod that a new list lacks is let go, without a word to the API.
    """
    reports = FakeReports()
    every, proc = pods(tmp_path / "pods", reports), ProcRoot(tmp_path / "proc")
    every.take(("ADDED", [pod(FOREIGN)]))
    every.tick(proc)
    before = every.find("team-a/trainer")
    every.take((None, []))
    every.tick(proc)

    assert (True, None, 1) == (
        before is not None,
        every.find("team-a/trainer"),
        len(reports.told),
    )


def test_a_list_with_a_known_pod_changes_nothing(tmp_path: Path) -> None:
    """
    A pod that a new list still has goes on.
    """
    reports = FakeReports()
    every, proc = pods(tmp_path / "pods", reports), ProcRoot(tmp_path / "proc")
    for _ in range(2):
        every.take((None, [pod(FOREIGN)]))
        every.tick(proc)

    assert 1 == len(reports.told)


def test_the_end_of_an_unknown_pod_is_no_news(tmp_path: Path) -> None:
    """
    A deletion of a pod that was never here is passed over.
    """
    every = pods(tmp_path / "pods", FakeReports())
    every.take(("DELETED", [pod()]))

    assert None is every.find("team-a/trainer")


def test_mirror_pods_are_passed_over(tmp_path: Path) -> None:
    """
    What only shows a static pod is not run.
    """
    every = pods(tmp_path / "pods", FakeReports())
    every.take(("ADDED", [pod(annotations=MIRROR)]))

    assert None is every.find("team-a/trainer")


def test_news_come_in_their_order() -> None:
    """
    The inbox hands out what it was given, oldest first, and nothing when it is empty.
    """
    inbox = Inbox()
    inbox.replace([])
    inbox.apply("ADDED", pod_object())

    assert [(None, []), ("ADDED", [pod()]), None] == [inbox.next(0) for _ in range(3)]
