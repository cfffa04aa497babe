"""What an agent remembers while pods come and go all the time."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from agent.cluster.filter import filter_pod
from agent.cluster.pod_index import PodIndex, Sources
from agent.cluster.settings import ClusterSettings
from agent.model.pod import pods_on_node
from agent.procfs.lookup import Lookup
from agent.procfs.remembered import KEPT_SECONDS
from gpufence.mode import Mode
from gpufence.quantity import GIB
from kube.informers.views import NamespaceView
from tests.support.agent.builders import LIMIT, pod, process_of
from tests.support.agent.node import QUICK, Clock, Node, running
from tests.support.agent.tables import sizes
from tests.support.objects import gpu_pod
from tests.unit.agent.procfs.test_lookup import OURS
from tests.unit.agent.procfs.test_parse import line

NO_TEXTS = NamespaceView({}, {})

AT_ONCE = 10
SECONDS = 30.0
FILLING = 1200
"""More pods than any table has room for."""
MORE = 300
_FREE = 8
"""How many entries a table may differ by, for what one look has and the next one has not."""


def _renew(node: Node, first: int) -> None:
    """Put new pods in the place of all that are there, some over their limit, and look at them."""
    pods = [pod(f"new-{first + number}") for number in range(AT_ONCE)]
    node.api.known = pods_on_node(pods)
    node.processes.living = {
        first + number: process_of(item, first + number) for number, item in enumerate(pods)
    }
    holdings = {pid: LIMIT + GIB if pid % 5 == 0 else GIB for pid in node.processes.living}
    node.cards.held = {0: dict(holdings)}
    node.cards.workers = {0: set(holdings)}
    for _ in range(4):
        node.tick()
    node.clock.now += SECONDS
    node.api.acts.clear()


def _grown(before: Counter[str], after: Counter[str]) -> dict[str, tuple[int, int]]:
    return {
        place: (before[place], size)
        for place, size in after.items()
        if size > before[place] + _FREE
    }


def test_pods_that_come_and_go_leave_nothing_behind() -> None:
    """Past its bounds no table of the loop grows, however many pods there have been."""
    with running(replace(QUICK, repeated_memory_seconds=600.0)) as node:
        for first in range(1, FILLING, AT_ONCE):
            _renew(node, first)
        before = sizes(node.loop, node.worker)
        for first in range(FILLING + 1, FILLING + MORE, AT_ONCE):
            _renew(node, first)
        after = sizes(node.loop, node.worker)

    assert {} == _grown(before, after)


def test_the_walk_finds_what_is_remembered() -> None:
    """Fields in slots, in dictionaries and within other tables count; the same one counts once."""
    index = PodIndex(ClusterSettings(node="n1"))
    index.pods(
        Sources({}, {"a": NO_TEXTS, "b": NO_TEXTS}, Mode.EVICT, None),
        fresh=True,
    )
    found = sizes(index, index)

    within = [found[f"PodIndex._sources{depth}"] for depth in ("", "[]", "[][]")]
    assert [5, 2, 2] == within


def test_processes_that_come_and_go_leave_nothing_behind(tmp_path: Path) -> None:
    """A process that ended before it was met twice is forgotten after two minutes."""
    clock = Clock()
    lookup = Lookup(tmp_path, 100, clock=clock)
    known = []
    for pid in range(100, 400):
        folder = tmp_path / f"{pid}"
        folder.mkdir()
        (folder / "stat").write_text(line())
        (folder / "cgroup").write_text(OURS)
        lookup.occupants([pid])
        (folder / "stat").unlink()
        clock.now += KEPT_SECONDS / 10
        known.append(sum(sizes(lookup).values()))

    assert max(known[:50]) >= max(known[-50:])


def test_the_index_forgets_pods_that_have_gone() -> None:
    """What was read of a pod is kept for as long as the pod is there."""
    index, held = PodIndex(ClusterSettings(node="n1")), []
    for number in range(50):
        raw = gpu_pod(f"new-{number}")
        raw["metadata"] |= {"uid": f"uid-{number}", "namespace": "team-a"}
        index.pods(Sources(dict([filter_pod(raw)]), {}, Mode.EVICT, None), fresh=True)
        held.append(sum(sizes(index).values()))

    assert held[1] == held[-1]
