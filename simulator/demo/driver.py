"""A tenant takes too much where the driver refuses it, and again where the driver cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence import names
from gpufence.fences import Fence
from simulator.demo.eviction import LABELER, NEIGHBOUR, TENANT, newest, reasons, snapshot_of
from simulator.demo.stage import StagePlan
from simulator.demo.story import annotations_of, held, jsonpath, running_pod, wait_for
from simulator.node.toolkit import Toolkit
from simulator.nvml.build import LIMITED

if TYPE_CHECKING:
    from simulator.demo.narrator import Narrator
    from simulator.demo.stage import Stage

LIMIT_MIB = 3 * 1024
PLAN = StagePlan(
    cards="T4",
    cards_are="a simulated T4 card",
    node={"driver": LIMITED, "toolkit": Toolkit.CURRENT},
    webhook={names.DRIVER_SETTING: "labelled"},
    agent={"GPUFENCE_DRIVER_SECONDS": "1"},
)
_EVENTS = "custom-columns=REASON:.reason,MESSAGE:.message"
_GREEDY = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: greedy
spec:
  selector: {matchLabels: {app: greedy}}
  template:
    metadata: {labels: {app: greedy}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: greedy
        image: gpufence/workload
        args: [--context, 300Mi, --on-oom, wait, "hold 1Gi; after 2s grow 2Gi/s to 8Gi"]
        resources:
          limits: {aliyun.com/gpu-mem: 3}
"""


def tell(stage: Stage, say: Narrator) -> None:
    """Tell the story; raises `StoryError` where it does not happen."""
    name = _written(stage, say)
    _refused(stage, say, name)
    _rolled_back(stage, say, name)


def _written(stage: Stage, say: Narrator) -> str:
    say.chapter("1. A node whose driver can refuse")
    say.tell(
        "One T4 card, shared by gpushare, which only counts. Its driver, r615, can hold a "
        "container to a limit, and NVIDIA's toolkit sets that limit from two variables before it "
        "starts. (Here both are simulated.) An operator labels the node:"
    )
    say.kubectl("label", "node", stage.node.name, f"{names.DRIVER_LIMITS}=true")
    for namespace in (NEIGHBOUR, TENANT):
        say.kubectl("create", "namespace", namespace)
    say.kubectl("label", "namespace", TENANT, NEIGHBOUR, f"{names.MODE}=evict")
    wait_for(lambda: all(map(stage.fences, (TENANT, NEIGHBOUR))), "the webhook is called")
    say.kubectl("apply", "-n", NEIGHBOUR, "-f", "-", stdin=LABELER, quiet=True)
    wait_for(lambda: running_pod(stage, NEIGHBOUR, "labeler"), "the neighbour runs")
    say.tell("A tenant whose program reads no setting asks for 3 GiB, and wants 8:")
    say.kubectl("apply", "-n", TENANT, "-f", "-", stdin=_GREEDY)
    pod = wait_for(lambda: newest(stage, ""), "the tenant's pod runs")
    name: str = pod["metadata"]["name"]
    say.kubectl("get", "pod", "-n", TENANT, name, "-o", jsonpath(names.SUMMARY))
    say.tell("What its container has for the toolkit, beside what frameworks read:")
    variables = {item["name"]: item.get("value") for item in pod["spec"]["containers"][0]["env"]}
    ours = (names.DRIVER_REQUEST, names.DRIVER_LIMIT)
    say.show("\n".join(f"{each}={variables.get(each)}" for each in ours))
    say.expect(variables.get(names.DRIVER_LIMIT) == f"{LIMIT_MIB}", "its limit, in whole MiB")
    return name


def _refused(stage: Stage, say: Narrator, name: str) -> None:
    say.chapter("2. It takes what it wants, and is refused")
    log = wait_for(lambda: _refusal(stage, name), "the driver refused the tenant's program")
    say.show(log)
    wait_for(lambda: _fences(stage, name) == [Fence.DRIVER], "the agent has read the limit back")
    say.kubectl("gpufence", "top", "-A", "-o", "wide")
    taken = held(stage, TENANT, name)
    say.expect(
        0 < taken <= LIMIT_MIB, f"it holds {taken} MiB of {LIMIT_MIB}, and no more is to be had"
    )
    say.expect(names.EVICTED not in reasons(stage), "nothing was evicted")
    say.expect(_untouched(stage), "its neighbour never noticed")
    say.tell("A node is called good once an agent has seen its driver hold a pod:")
    say.kubectl("gpufence", "doctor")


def _rolled_back(stage: Stage, say: Narrator, name: str) -> None:
    say.chapter("3. The same pod where the driver is asked for nothing")
    say.tell(
        "The node's toolkit is rolled back to one that does not know the variables. The same pod, "
        "made again, starts without a limit in the driver. The agent sees that, and is its fence:"
    )
    stage.node.toolkit = Toolkit.OLDER
    say.kubectl("delete", "pod", "-n", TENANT, name, "--wait=false")
    pod = wait_for(lambda: newest(stage, name), "its owner has made another")
    again: str = pod["metadata"]["name"]
    wait_for(lambda: names.LIMIT_ABSENT in reasons(stage), "the agent says that there is no limit")
    wait_for(lambda: names.EVICTED in reasons(stage), "the agent has evicted it")
    chosen = f"involvedObject.name={again}"
    say.kubectl("get", "events", "-n", TENANT, "--field-selector", chosen, "-o", _EVENTS)
    say.expect(
        names.INJECTED in annotations_of(pod), "eviction is the net where the driver is none"
    )
    say.expect(_untouched(stage), "the neighbour keeps what it has")


def _refusal(stage: Stage, name: str) -> str:
    log = stage.node.log(TENANT, name, "greedy")
    return log if "out of memory" in log.lower() or "OUT_OF_MEMORY" in log else ""


def _untouched(stage: Stage) -> bool:
    pod = running_pod(stage, NEIGHBOUR, "labeler")
    return bool(pod) and not pod["status"]["containerStatuses"][0]["restartCount"]


def _fences(stage: Stage, name: str) -> list[str]:
    rows = [pod for pod in snapshot_of(stage).pods if pod.name == name]
    return [use.fence for row in rows for use in row.uses]
