"""All pods of the node: taken from the API, given cards, kept going, and let go."""

from __future__ import annotations

import queue
import time
from typing import TYPE_CHECKING, TypeAlias

from simulator.node.launch import PodStarter, StartContext
from simulator.node.machine import Placement, place
from simulator.node.pod import NodePod, read_pod
from simulator.node.processes import members
from simulator.node.run import PodRun, PodRunContext

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kube import JsonObject
    from kube.watch import ChangeType
    from simulator.node.lifecycle import RestartPauses
    from simulator.node.processes import ProcRoot
    from simulator.node.run import StatusReports


PodChange: TypeAlias = "tuple[ChangeType | None, Sequence[NodePod]]"


class Inbox:
    """Takes what the reflector learns and keeps it for the thread that looks after the pods."""

    def __init__(self) -> None:
        self._changes: queue.SimpleQueue[PodChange] = queue.SimpleQueue()

    def replace(self, objects: Sequence[JsonObject]) -> None:
        self._changes.put((None, [read_pod(item) for item in objects]))

    def apply(self, change: ChangeType, item: JsonObject) -> None:
        self._changes.put((change, [read_pod(item)]))

    def next(self, seconds: float) -> PodChange | None:
        """Return the oldest change, waiting for one at most so long."""
        try:
            return self._changes.get(timeout=seconds) if seconds > 0 else self._changes.get_nowait()
        except queue.Empty:
            return None


class Pods:
    """
    The pods of one node by uid. Its methods belong to one thread, but for those that only look.
    """

    def __init__(
        self,
        context: StartContext,
        reports: StatusReports,
        pauses: RestartPauses,
        say: Callable[[str], None],
    ) -> None:
        self._context = context
        address = context.machine.address
        self._pod_context = PodRunContext(address, reports, self._starter, pauses, say)
        self._runs: dict[str, PodRun] = {}
        self._placements: dict[str, Placement] = {}

    def take(self, update: PodChange) -> None:
        """Take a list of all pods, or one change."""
        change, pods = update
        now = time.monotonic()
        if change is None:
            listed = {pod.uid for pod in pods}
            for uid, run in self._runs.items():
                if uid not in listed:
                    run.vanish(now)
        for pod in pods:
            run_of = self._runs.get(pod.uid)
            if change == "DELETED":
                if run_of is not None:
                    run_of.vanish(now)
            elif run_of is not None:
                run_of.update(pod, now)
            else:
                self._runs[pod.uid] = PodRun(pod, self._pod_context, now)

    def tick(self, proc: ProcRoot) -> None:
        """Look after every pod once: first the processes and what /proc shows, then the API."""
        now = time.monotonic()
        for run in self._runs.values():
            run.advance(now)
        proc.show(self.cgroups())
        for run in self._runs.values():
            run.report(now)
        self._runs = {uid: run for uid, run in self._runs.items() if not run.is_gone}
        self._placements = {
            uid: placement for uid, placement in self._placements.items() if uid in self._runs
        }

    def shut_down(self, seconds: float) -> None:
        """Begin to end everything, with so much grace at most."""
        deadline = time.monotonic() + seconds
        for run in self._runs.values():
            run.shut_down(deadline)

    @property
    def are_finished(self) -> bool:
        return all(run.is_finished for run in self._runs.values())

    def find(self, full_name: str) -> PodRun | None:
        runs = [run for run in list(self._runs.values()) if run.pod.full_name == full_name]
        return min(runs, key=lambda run: run.is_finished, default=None)

    def cgroups(self) -> Mapping[int, str]:
        lines: dict[int, str] = {}
        for run in list(self._runs.values()):
            lines |= run.lines
        by_session = members(lines.keys())
        return {pid: lines[session] for session, pids in by_session.items() for pid in pids}

    def _starter(self, pod: NodePod) -> PodStarter:
        taken: dict[str, int] = {}
        for uid, placement in self._placements.items():
            run = self._runs.get(uid)
            if run is not None and not run.is_finished:
                for card in placement.cards:
                    taken[card.uuid] = taken.get(card.uuid, 0) + placement.declared
        driver = self._context.driver
        placement = (
            place(pod, self._context.machine, taken) if driver is None else driver.place(pod)
        )
        self._placements[pod.uid] = placement
        return PodStarter(pod, self._context, placement)
