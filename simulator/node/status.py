"""PURE. The status of a pod, as its node reports it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulator.node.lifecycle import ContainerRecord, Running, Terminated, Waiting, is_final

if TYPE_CHECKING:
    from simulator.node.lifecycle import ContainerState, Records
    from simulator.node.pod import NodeContainer, NodePod

RUNTIME = "containerd://"


@dataclass(frozen=True, slots=True)
class PodFailure:
    """Why a whole pod has failed, where that is not its containers' doing."""

    reason: str
    message: str


def phase(pod: NodePod, records: Records, *, terminal: bool = False) -> str:
    """
    Sum the containers up in one word, as the kubelet does.

    With `terminal` nothing is started again, whatever the restart policy says.
    """
    every = records.values()
    running = any(record.is_running for record in every)
    final = terminal or all(is_final(pod, record) for record in every)
    if final and not running:
        return "Succeeded" if all(record.has_succeeded for record in every) else "Failed"
    return "Running" if all(record.was_started for record in every) else "Pending"


def pod_status(
    pod: NodePod, records: Records, address: str, times: tuple[str, str], *, terminal: bool = False
) -> dict[str, object]:
    """Build the status; `times` are the pod's start and now."""
    started_at, now = times
    summary = phase(pod, records, terminal=terminal)
    return {
        "phase": summary,
        "conditions": _conditions(pod, records, summary, now),
        "hostIP": address,
        "hostIPs": [{"ip": address}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": started_at,
        "containerStatuses": [
            _container_status(one, records[one.name], terminal=terminal) for one in pod.containers
        ],
    }


def failed_status(failure: PodFailure, started_at: str) -> dict[str, object]:
    return {
        "phase": "Failed",
        "reason": failure.reason,
        "message": failure.message,
        "startTime": started_at,
    }


def _conditions(pod: NodePod, records: Records, summary: str, now: str) -> list[dict[str, object]]:
    """Build the conditions a node answers for; one that did not change keeps its time."""
    ready = all(record.is_running for record in records.values())
    over = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}
    unready = "" if ready else over.get(summary, "ContainersNotReady")
    wanted = {
        "PodReadyToStartContainers": (True, ""),
        "Initialized": (True, ""),
        "Ready": (ready, unready),
        "ContainersReady": (ready, unready),
        "PodScheduled": (True, ""),
    }
    before = {condition.get("type"): condition for condition in pod.conditions}
    conditions: list[dict[str, object]] = []
    for kind, (status, reason) in wanted.items():
        old = before.get(kind, {})
        since = old.get("lastTransitionTime") if old.get("status") == str(status) else None
        condition: dict[str, object] = {
            "type": kind,
            "status": str(status),
            "lastTransitionTime": since or now,
        }
        conditions.append({**condition, "reason": reason} if reason else condition)
    return conditions


def _container_status(
    container: NodeContainer, record: ContainerRecord, *, terminal: bool
) -> dict[str, object]:
    state, last = record.state, record.last
    if terminal and not record.is_running and record.ending is not None:
        state = record.ending
    latest = last if isinstance(state, Waiting) else state
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "containerID": "" if latest is None else RUNTIME + latest.container_id,
        "ready": record.is_running,
        "started": record.is_running,
        "restartCount": record.restarts,
        "state": _state(state),
        "lastState": {} if last is None or last is state else _state(last),
    }


def _state(state: ContainerState) -> dict[str, object]:
    if isinstance(state, Running):
        return {"running": {"startedAt": state.started_at}}
    if isinstance(state, Terminated):
        ending = {
            "exitCode": state.exit_code,
            "reason": state.reason or ("Error" if state.exit_code else "Completed"),
            "startedAt": state.started_at,
            "finishedAt": state.finished_at,
            "containerID": RUNTIME + state.container_id,
        }
        return {"terminated": {**ending, "message": state.message} if state.message else ending}
    waiting = {"reason": state.reason}
    return {"waiting": {**waiting, "message": state.message} if state.message else waiting}
