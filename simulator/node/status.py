"""
PURE. The status of a pod, as its node reports it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulator.node.lifecycle import (
    Record,
    Running,
    State,
    Terminated,
    has_succeeded,
    init_failed,
    is_final,
    is_initialized,
    is_over,
)
from simulator.node.pod import Container, Kind

if TYPE_CHECKING:
    from simulator.node.downward import NodeFacts
    from simulator.node.lifecycle import Records
    from simulator.node.pod import Pod

RUNTIME = "containerd://"


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    Why a whole pod has failed, where that is not its containers' doing.
    """

    reason: str
    message: str


def pod_status(
    pod: Pod, records: Records, node: NodeFacts, times: tuple[str, str], *, terminal: bool = False
) -> dict[str, object]:
    """
    Build the status; `times` are the pod's start and now.

    With `terminal` nothing is started again, whatever the restart policy says.
    """
    started_at, now = times
    found = phase(pod, records, terminal=terminal)
    return {
        "phase": found,
        "conditions": conditions(pod, records, found, now),
        "hostIP": node.address,
        "hostIPs": [{"ip": node.address}],
        "podIP": node.address,
        "podIPs": [{"ip": node.address}],
        "startTime": started_at,
        "initContainerStatuses": [
            container_status(one, records[one.name], terminal=terminal) for one in pod.inits
        ],
        "containerStatuses": [
            container_status(one, records[one.name], terminal=terminal) for one in pod.mains
        ],
    }


def failed_status(verdict: Verdict, started_at: str) -> dict[str, object]:
    """
    Build the status of a pod that is refused before anything of it was started.
    """
    return {
        "phase": "Failed",
        "reason": verdict.reason,
        "message": verdict.message,
        "startTime": started_at,
    }


def phase(pod: Pod, records: Records, *, terminal: bool = False) -> str:
    """
    Sum the containers up in one word, as the kubelet does.
    """
    if init_failed(pod, records):
        return "Failed"
    mains = [(one, records[one.name]) for one in pod.mains]
    running = any(record.is_running for record in records.values())
    if terminal and not running:
        return "Succeeded" if all(has_succeeded(record) for _, record in mains) else "Failed"
    if not is_initialized(pod, records) or not all(record.was_started for _, record in mains):
        return "Pending"
    if running or not all(is_final(one, record) for one, record in mains):
        return "Running"
    return "Succeeded" if all(has_succeeded(record) for _, record in mains) else "Failed"


def conditions(pod: Pod, records: Records, found: str, now: str) -> list[dict[str, object]]:
    """
    Build the conditions a node answers for; one that did not change keeps its time.
    """
    ready = all(records[one.name].is_running for one in pod.mains)
    over = is_over(pod, records)
    unready = "PodCompleted" if found == "Succeeded" else "PodFailed" if over else ""
    unready = unready or "ContainersNotReady"
    initialized = is_initialized(pod, records)
    said = {
        "PodReadyToStartContainers": (True, ""),
        "Initialized": (initialized, "" if initialized else "ContainersNotInitialized"),
        "Ready": (ready, "" if ready else unready),
        "ContainersReady": (ready, "" if ready else unready),
        "PodScheduled": (True, ""),
    }
    before = {condition.get("type"): condition for condition in pod.conditions}
    result: list[dict[str, object]] = []
    for kind, (status, reason) in said.items():
        old = before.get(kind, {})
        since = old.get("lastTransitionTime") if old.get("status") == str(status) else None
        new: dict[str, object] = {
            "type": kind,
            "status": str(status),
            "lastTransitionTime": since or now,
        }
        result.append({**new, "reason": reason} if reason else new)
    return result


def container_status(container: Container, record: Record, *, terminal: bool) -> dict[str, object]:
    """
    Build one container's status.
    """
    state, last = record.state, record.last
    if terminal and not record.is_running and record.ending is not None:
        state = record.ending
    ready = record.is_running
    if container.kind is Kind.INIT:
        ready = has_succeeded(record)
    container_id = "" if not isinstance(state, Running | Terminated) else state.container_id
    if not container_id and last is not None:
        container_id = last.container_id
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "containerID": RUNTIME + container_id if container_id else "",
        "ready": ready,
        "started": record.is_running,
        "restartCount": record.restarts,
        "state": _state(state),
        "lastState": _state(last) if last is not None and last is not state else {},
    }


def _state(state: State) -> dict[str, object]:
    if isinstance(state, Running):
        return {"running": {"startedAt": state.started_at}}
    if isinstance(state, Terminated):
        said: dict[str, object] = {
            "exitCode": state.exit_code,
            "reason": "Error" if state.exit_code else "Completed",
            "startedAt": state.started_at,
            "finishedAt": state.finished_at,
            "containerID": RUNTIME + state.container_id,
        }
        return {"terminated": {**said, "message": state.message} if state.message else said}
    said = {"reason": state.reason}
    return {"waiting": {**said, "message": state.message} if state.message else said}
