"""
All pods of the node: taken from the API, given cards, kept going, and let go.
"""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING, TypeAlias

from simulator.node import clock
from simulator.node.launch import Bench, Launch
from simulator.node.placement import Placement, place
from simulator.node.pod import Pod, read_pod
from simulator.node.processes import members
from simulator.node.run import Parts, PodRun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kube import ChangeType, JsonObject
    from simulator.node.lifecycle import Pauses
    from simulator.node.procroot import ProcRoot
    from simulator.node.run import Reports


Say: TypeAlias = "Callable[[str], None]"
News: TypeAlias = "tuple[ChangeType | None, Sequence[Pod]]"


class Inbox:
    """
    Takes the reflector's news and keeps them for the thread that looks after the pods.
    """

    def __init__(self) -> None:
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()

    def replace(self, objects: Sequence[JsonObject]) -> None:
        self._news.put((None, [read_pod(item) for item in objects]))

    def apply(self, change: ChangeType, item: JsonObject) -> None:
        self._news.put((change, [read_pod(item)]))

    def next(self, seconds: float) -> News | None:
        """
        Return the oldest news, waiting for some at most so long.
        """
        try:
            return self._news.get(timeout=seconds) if seconds > 0 else self._news.get_nowait()
        except queue.Empty:
            return None


class Pods:
    """
    The pods of one node by uid. Its methods belong to one thread, but for those that only look.
    """

    def __init__(self, bench: Bench, reports: Reports, pauses: Pauses, say: Say) -> None:
        self._bench = bench
        self._parts = Parts(bench.node, reports, self._launch, pauses, say)
        self._runs: dict[str, PodRun] = {}
        self._placements: dict[str, Placement] = {}

    def take(self, news: News) -> None:
        """
        Take a list of all pods, or one change.
        """
        change, pods = news
        now = clock.monotonic()
        if change is None:
            known = {pod.uid for pod in pods}
            for uid, run in self._runs.items():
                if uid not in known:
                    run.vanish(now)
        for pod in pods:
            run_of = self._runs.get(pod.uid)
            if change == "DELETED":
                if run_of is not None:
                    run_of.vanish(now)
            elif run_of is not None:
                run_of.update(pod, now)
            elif not pod.is_mirror:
                self._runs[pod.uid] = PodRun(pod, self._parts, now)

    def tick(self, proc: ProcRoot) -> None:
        """
        Look after every pod once: first the processes and what /proc shows, then the API.
        """
        now = clock.monotonic()
        for run in self._runs.values():
            run.advance(now)
        proc.show(self.cgroups())
        for run in self._runs.values():
            run.tell(now)
        self._runs = {uid: run for uid, run in self._runs.items() if not run.is_gone}
        self._placements = {
            uid: placement for uid, placement in self._placements.items() if uid in self._runs
        }

    def shut_down(self, seconds: float) -> None:
        """
        Begin to end everything, with so much grace at most.
        """
        deadline = clock.monotonic() + seconds
        for run in self._runs.values():
            run.shut_down(deadline)

    @property
    def are_finished(self) -> bool:
        return all(run.is_finished for run in self._runs.values())

    def find(self, full_name: str) -> PodRun | None:
        """
        Find a pod by `namespace/name`: the living one, where its predecessor has not gone yet.
        """
        found = [run for run in list(self._runs.values()) if run.pod.full_name == full_name]
        return min(found, key=lambda run: run.is_finished, default=None)

    def cgroups(self) -> Mapping[int, str]:
        """
        Return the cgroup line of every process of every pod, by PID.
        """
        lines: dict[int, str] = {}
        for run in list(self._runs.values()):
            lines |= run.lines
        found = members(lines.keys())
        return {pid: lines[session] for session, pids in found.items() for pid in pids}

    def _launch(self, pod: Pod) -> Launch:
        taken: dict[str, int] = {}
        for uid, placement in self._placements.items():
            run = self._runs.get(uid)
            if run is not None and not run.is_finished:
                for card, amount in placement.declared.items():
                    taken[card] = taken.get(card, 0) + amount
        placement = place(pod, self._bench.cards, self._bench.sharing, taken)
        self._placements[pod.uid] = placement
        return Launch(pod, self._bench, placement)
