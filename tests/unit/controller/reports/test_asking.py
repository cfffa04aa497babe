"""Who is reported on, and whom that is asked of."""

from collections.abc import Callable, Sequence
from itertools import chain, repeat

from controller.model import ClusterState, OwnerKey, OwnerState, PodState, Way
from controller.reports.asking import AT_ONCE, NO_NODE, PodAsking
from controller.reports.results import ReportRule, ResultWord
from controller.settings import ControllerSettings
from gpufence.idle import IdleWords
from gpufence.mode import Mode
from gpufence.pods import Pod
from gpufence.snapshot import PodActivityRow, PodRow, Snapshot

GPU = Pod({}, (), "", {}, {})
FENCED = {"team": Mode.CAP}


def pod(name: str, node: str, namespace: str = "team", *, terminating: bool = False) -> PodState:
    made = PodState(name, namespace, name, None, node, "Running", 0, {}, GPU)
    return made._replace(terminating=terminating)


def cluster(*pods: PodState, words: IdleWords | None = None) -> ClusterState:
    keys = [OwnerKey(each.namespace, "v1", "Pod", each.name) for each in pods]
    owners = {
        key: OwnerState(key, "u", "1", Way.SCALE, pods=(each,), words=words)
        for key, each in zip(keys, pods, strict=True)
    }
    return ClusterState(0.0, fresh=True, owners=owners, pods=pods, nodes={})


def idle(seconds: float) -> PodActivityRow:
    return PodActivityRow("idle", seconds, "NoKernels")


class Agents:
    """Know one idle pod on each node, called as the node is."""

    def __init__(self) -> None:
        self.asked: list[Sequence[str]] = []

    def __call__(self, nodes: Sequence[str]) -> dict[str, Snapshot | None]:
        self.asked.append(nodes)
        return {
            node: Snapshot(
                node,
                "0",
                "",
                "",
                fresh=True,
                stale_seconds=0.1,
                pods=(PodRow(node, "team", node, activity=idle(100.0)),),
            )
            for node in nodes
        }


def asking(agents: Agents, goes_on: Callable[[], bool] = lambda: True) -> PodAsking:
    return PodAsking(agents, ControllerSettings(), goes_on, lambda _: None)


def test_all_nodes_of_fenced_pods_are_asked_a_few_at_a_time() -> None:
    """Once each, and nobody of those that have no such pod."""
    agents, count = Agents(), AT_ONCE + 1
    pods = [pod(f"n{place}", f"n{place}") for place in range(count)]
    others = [pod("other", "elsewhere", "open"), pod("going", "gone", terminating=True)]
    others.append(pod("plain", "plain")._replace(gpu=None))
    lines = asking(agents).lines(cluster(*pods, *others), FENCED)

    assert lines is not None
    assert {"team": 4 * count} == {name: len(each) for name, each in lines.items()}
    assert [AT_ONCE, 1] == [len(nodes) for nodes in agents.asked]
    assert {each.node for each in pods} == {node for nodes in agents.asked for node in nodes}


def test_of_a_pod_on_no_node_nobody_is_asked() -> None:
    """It is skipped, and says why."""
    agents = Agents()
    lines = asking(agents).lines(cluster(pod("a", "")), FENCED)

    assert lines is not None
    assert [[]] == agents.asked
    assert 3 == sum(each.result.message == NO_NODE for each in lines["team"])


def test_an_owners_word_says_what_idle_is() -> None:
    """Else the controller's own setting."""
    words = IdleWords(after_seconds=60.0, contended_seconds=60.0)
    found = [
        asking(Agents()).lines(cluster(pod("n", "n"), words=said), FENCED) for said in (words, None)
    ]

    assert [ResultWord.WARN, ResultWord.PASS] == [
        each.result.word
        for lines in found
        for each in (lines or {})["team"]
        if each.result.rule is ReportRule.IDLE
    ]


def test_who_stops_asking_has_nothing_to_report() -> None:
    """Even if he might go on at once: he has not seen all pods."""
    pods = [pod(f"n{place}", f"n{place}") for place in range(2 * AT_ONCE)]
    left = chain([9, 0], repeat(9))

    assert asking(Agents(), lambda: next(left) > 0).lines(cluster(*pods), FENCED) is None
