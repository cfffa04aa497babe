"""Two colleagues: one holds a card that he does not use, the other's job needs both."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from gpufence import names
from simulator.demo.stage import StagePlan
from simulator.demo.story import wait_for
from simulator.node.machine import WHOLE

if TYPE_CHECKING:
    from simulator.demo.narrator import Narrator
    from simulator.demo.stage import Stage

HOLDER, WAITER = "vision", "speech"
CONTENDED_SECONDS: Final = 10
_EVENTS = "custom-columns=REASON:.reason,OBJECT:.involvedObject.kind,MESSAGE:.message"
_KEPT = "custom-columns=NAME:.metadata.name,KEPT:.metadata.annotations.gpufence\\.io/keep-until"
_WORKER = f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: worker
  annotations:
    {names.WAKE}: when-free
spec:
  selector: {{matchLabels: {{app: worker}}}}
  template:
    metadata: {{labels: {{app: worker}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: worker
        image: gpufence/workload
        args: [--context, 300Mi, "hold 4Gi; busy 60%; after 3s busy 0"]
        resources:
          limits: {{nvidia.com/gpu: 1}}
"""
_JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: both-cards
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: trainer
        image: gpufence/workload
        args: [--card, "0,1", --context, 300Mi, "hold 6Gi; busy 90%; after 6s exit 0"]
        resources:
          limits: {nvidia.com/gpu: 2}
"""
PLAN = StagePlan(
    unit=WHOLE,
    agent={"GPUFENCE_ACTIVITY_SECONDS": "0.5", "GPUFENCE_IDLE_SECONDS": "2"},
    controller={
        "GPUFENCE_IDLE_SECONDS": "2",
        "GPUFENCE_RELEASE_LEAST_SECONDS": "1",
        "GPUFENCE_RELEASE_NOTICE_SECONDS": "4",
        "GPUFENCE_RELEASE_WARM_UP_SECONDS": "1",
        "GPUFENCE_RELEASE_WAITING_SECONDS": "2",
        "GPUFENCE_RELEASE_FREE_SECONDS": "3",
    },
)


def tell(stage: Stage, say: Narrator) -> None:
    """Tell the story; raises `StoryError` where it does not happen."""
    _in_vain(stage, say)
    _needed(stage, say)
    _released(stage, say)
    _back(stage, say)


def _in_vain(stage: Stage, say: Narrator) -> None:
    say.chapter("1. A worker that waits for input")
    say.tell(
        "A node with two T4 cards. A worker has claimed one of them, works for a few seconds, and "
        "then waits for input that does not come. Its team has said that it may be released, and "
        "that it comes back when nobody needs its place."
    )
    say.kubectl("create", "namespace", HOLDER)
    say.kubectl("label", "namespace", HOLDER, f"{names.IDLE}=release")
    say.kubectl(
        "annotate",
        "namespace",
        HOLDER,
        f"{names.IDLE_AFTER}=15m",
        f"{names.IDLE_AFTER_CONTENDED}={CONTENDED_SECONDS}s",
    )
    wait_for(lambda: stage.takes_pods(HOLDER), "pods can be made in the namespace")
    say.kubectl("apply", "-n", HOLDER, "-f", "-", stdin=_WORKER)
    wait_for(lambda: _phases(stage, HOLDER) == ["Running"], "the worker runs")
    say.tell("The agent measures by process what it does, and says so on the pod:")
    say.kubectl(
        "wait", "-n", HOLDER, f"--for=condition={names.GPU_IDLE}", "pod", "-l", "app=worker"
    )
    say.kubectl("gpufence", "idle", "-A")
    say.tell(
        "It stays: one that comes back when its place is free is released only for a pod that "
        "waits, and no pod does. Without gpufence.io/wake: when-free it would go in 15 minutes."
    )


def _needed(stage: Stage, say: Narrator) -> None:
    say.chapter("2. A colleague needs both cards")
    say.kubectl("create", "namespace", WAITER)
    wait_for(lambda: stage.takes_pods(WAITER), "pods can be made in the namespace")
    say.kubectl("apply", "-n", WAITER, "-f", "-", stdin=_JOB)
    wait_for(lambda: "Insufficient nvidia.com/gpu" in _why_waiting(stage), "the job's pod waits")
    say.kubectl("get", "pods", "-n", WAITER)
    say.expect(_phases(stage, WAITER) == ["Pending"], f"it waits: {_why_waiting(stage)}")
    wait_for(lambda: names.IDLE_WARNING in _reasons(stage), "the worker is announced")
    say.tell(
        "For a card that somebody waits for, this team has said "
        f"{CONTENDED_SECONDS} s (a minute, by default, at least). The controller sees who waits "
        "for whom, and says on the worker when it goes, and how to keep it:"
    )
    say.kubectl("gpufence", "idle", "-A")
    _show_event(say, names.IDLE_WARNING)


def _released(stage: Stage, say: Narrator) -> None:
    say.chapter("3. The worker goes, the job runs")
    say.tell(
        "At its time the controller takes a last look at the agent of the node, writes down what "
        "there was, and scales the worker to zero."
    )
    wait_for(lambda: _phases(stage, WAITER) == ["Running"], "the job runs")
    _show_event(say, names.IDLE_RELEASED)
    say.kubectl("get", "pods", "-A", "-l", "app=worker")
    say.kubectl("get", "pods", "-n", WAITER)
    say.expect(_replicas(stage) == 0, "the worker has no replicas, and both cards are the job's")
    say.kubectl("gpufence", "idle", "-A")


def _back(stage: Stage, say: Narrator) -> None:
    say.chapter("4. The job is done, the worker comes back")
    say.kubectl("wait", "-n", WAITER, "--for=condition=Complete", "job/both-cards")
    wait_for(lambda: _phases(stage, HOLDER) == ["Running"], "the worker is back")
    _show_event(say, names.IDLE_WOKEN)
    say.kubectl("get", "pods", "-n", HOLDER)
    say.expect(_replicas(stage) == 1, "it has its replica again, and nobody had to ask")
    say.tell(
        "Whoever does not want that writes gpufence.io/wake: manual, or nothing, and types "
        "kubectl gpufence wake; kubectl gpufence keep shields a worker for some hours."
    )
    say.kubectl("gpufence", "keep", "-n", HOLDER, "deploy/worker", "--for", "8h")
    say.kubectl("get", "deployment", "-n", HOLDER, "worker", "-o", _KEPT)


def _show_event(say: Narrator, reason: str) -> None:
    chosen = f"reason={reason},involvedObject.kind=Deployment"
    say.kubectl("get", "events", "-n", HOLDER, "--field-selector", chosen, "-o", _EVENTS)


def _reasons(stage: Stage) -> str:
    where = ("-n", HOLDER, "-o", "jsonpath={.items[*].reason}")
    return stage.plane.kubectl("get", "events", *where).stdout


def _pods(stage: Stage, namespace: str) -> list[dict[str, Any]]:
    text = stage.plane.kubectl("get", "pods", "-n", namespace, "-o", "json").stdout
    pods: list[dict[str, Any]] = json.loads(text)["items"]
    return pods


def _phases(stage: Stage, namespace: str) -> list[str]:
    """Return the phases of a namespace's pods, without those that are on their way out."""
    return [
        str(pod["status"].get("phase"))
        for pod in _pods(stage, namespace)
        if "deletionTimestamp" not in pod["metadata"]
    ]


def _why_waiting(stage: Stage) -> str:
    for pod in _pods(stage, WAITER):
        for item in pod["status"].get("conditions", []):
            if item["type"] == "PodScheduled":
                return str(item.get("message", ""))
    return ""


def _replicas(stage: Stage) -> int:
    where = ("deployment/worker", "-n", HOLDER, "-o", "jsonpath={.spec.replicas}")
    return int(stage.plane.kubectl("get", *where).stdout)
