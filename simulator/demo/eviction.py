"""What happens next: a second tenant keeps to no setting, takes too much and is evicted."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import TYPE_CHECKING, Any

from gpufence import names
from gpufence.snapshot import read_snapshot
from simulator.demo.narrator import StoryError, gauge, legend
from simulator.demo.stage import StagePlan
from simulator.demo.story import annotations_of, jsonpath, running_pod, wait_for

if TYPE_CHECKING:
    from gpufence.snapshot import PodRow, Snapshot
    from simulator.demo.cast import Cast
    from simulator.demo.narrator import Narrator
    from simulator.demo.stage import Stage

TENANT = "speech"
NEIGHBOUR = "vision"
EVENTS = "custom-columns=REASON:.reason,OBJECT:.involvedObject.kind,MESSAGE:.message"
ANSWER_SECONDS = 5.0
EVICTION_SECONDS = 60.0
HOLD_SECONDS = 10
PLAN = StagePlan(agent={"GPUFENCE_HOLD_SECONDS": f"{HOLD_SECONDS}"})
FRAME_SECONDS = 0.5
LABELER = """\
apiVersion: v1
kind: Pod
metadata:
  name: labeler
spec:
  containers:
  - name: labeler
    image: gpufence/workload
    args: [--context, 300Mi, "hold 4Gi"]
    resources:
      limits: {aliyun.com/gpu-mem: 6}
"""


def tell(stage: Stage, say: Narrator, cast: Cast) -> None:
    first = _second_tenant(stage, say, cast)
    _grows(stage, say, first)
    _evicted(stage, say, first)
    _afterwards(stage, say, first)


def _second_tenant(stage: Stage, say: Narrator, cast: Cast) -> str:
    say.chapter("5. A second tenant, who keeps to no setting")
    say.tell(
        f"{cast.greedy_is} That is what the agent on the node is for. It gives a pod 30 s over its "
        f"limit; here {HOLD_SECONDS} s, and less the more it takes, so that you need not wait."
    )
    say.tell("The first team fills the other card, so that its trainer has to share.")
    say.kubectl("apply", "-n", NEIGHBOUR, "-f", "-", stdin=LABELER, quiet=True)
    wait_for(lambda: running_pod(stage, NEIGHBOUR, "labeler"), "the labeler runs")
    say.kubectl("create", "namespace", TENANT)
    say.kubectl("label", "namespace", TENANT, NEIGHBOUR, f"{names.MODE}=evict", "--overwrite")
    wait_for(lambda: stage.fences(TENANT), "the API server calls the webhook")
    say.kubectl("apply", "-n", TENANT, "-f", "-", stdin=cast.greedy)
    pod = wait_for(lambda: newest(stage, ""), "the tenant's pod runs")
    name: str = pod["metadata"]["name"]
    say.kubectl("get", "pod", "-n", TENANT, name, "-o", jsonpath(names.SUMMARY))
    say.expect(names.INJECTED in annotations_of(pod), "it was told its limit all the same")
    return name


def _grows(stage: Stage, say: Narrator, name: str) -> None:
    say.chapter("6. It takes what it wants")
    say.tell("The card both are on, as the agent measures it:")
    say.show(legend([f"{NEIGHBOUR}/trainer", f"{TENANT}/{name}"]))
    deadline = time.monotonic() + EVICTION_SECONDS
    peak, frame, shown = 0, "", False
    while True:
        snapshot = snapshot_of(stage)
        row = next((pod for pod in snapshot.pods if pod.name == name), None)
        if row is not None and row.terminating:
            break
        if row is None and peak:
            break
        if row is not None and row.uses:
            use = row.uses[0]
            peak = max(peak, use.used_bytes or 0)
            frame = _frame(snapshot, row)
            say.redraw(frame)
            if use.outcome == "holding" and use.over_seconds and not shown:
                _side_by_side(say)
                shown = True
        if time.monotonic() > deadline:
            raise StoryError(f"nobody was evicted within {EVICTION_SECONDS:.0f} s: {frame}")
        time.sleep(FRAME_SECONDS)
    say.settle()
    say.expect(peak > 3 * 2**30, f"it held {peak // 2**20} MiB, and is evicted")


def _side_by_side(say: Narrator) -> None:
    """Show what everybody can see while it happens, then go on with the gauge."""
    say.settle()
    say.tell(
        "At this moment, for whoever looks: what was declared, what the frameworks were told, and "
        "what is really held. (The agent of this story is no pod: GPUFENCE_AGENTS tells the plugin "
        "where it is.)"
    )
    say.kubectl("gpufence", "top", "-A")
    say.kubectl("gpufence", "top", "cards")
    say.tell("It goes on taking:")


def _frame(snapshot: Snapshot, row: PodRow) -> str:
    use = row.uses[0]
    card = next(card for card in snapshot.cards if card.uuid == use.card)
    pods = sorted(snapshot.pods, key=lambda pod: pod.namespace == TENANT)
    holders = {
        pod.uid: item.used_bytes or 0 for pod in pods for item in pod.uses if item.card == card.uuid
    }
    return f"{gauge(card.total_bytes, holders)}  {use.outcome} {use.over_seconds:.0f} s"


def _evicted(stage: Stage, say: Narrator, name: str) -> None:
    say.chapter("7. Why, for whoever asks")
    about = "type=Warning,involvedObject.kind=Pod"
    wait_for(lambda: names.EVICTED in reasons(stage), "the event is there")
    say.kubectl("get", "events", "-n", TENANT, "--field-selector", about, "-o", EVENTS)
    say.tell(
        f"Its eviction stands on its owner as well, for the time when pod {name} is forgotten."
    )


def _afterwards(stage: Stage, say: Narrator, name: str) -> None:
    say.chapter("8. The neighbour, and the tenant's next pod")
    say.kubectl("get", "pods", "-n", NEIGHBOUR)
    say.expect(running_pod(stage, NEIGHBOUR, "trainer"), "the neighbour never noticed")
    pod = wait_for(lambda: newest(stage, name), "its owner has made another pod")
    say.kubectl("get", "pods", "-n", TENANT)
    say.expect(
        names.INJECTED in annotations_of(pod),
        "the Deployment made another, fenced as the first; if it does the same again, it is given "
        "longer each time, so that a crash loop is not made of it",
    )
    say.tell(
        "What was declared, what it was told and why, by the plan on the pod, and what it holds:"
    )
    say.kubectl("gpufence", "explain", "-n", NEIGHBOUR, "trainer")
    say.tell("What each model took, and how far that can be trusted after so short a time:")
    say.kubectl("gpufence", "recommend", "-A")
    say.tell("And whether everything that this needs is there:")
    say.kubectl("gpufence", "doctor")


def snapshot_of(stage: Stage) -> Snapshot:
    url = f"http://{stage.agent}/v1/snapshot"
    with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as answer:
        return read_snapshot(answer.read().decode())


def newest(stage: Stage, before: str) -> dict[str, Any]:
    text = stage.plane.kubectl("get", "pods", "-n", TENANT, "-o", "json").stdout
    pods: list[dict[str, Any]] = json.loads(text)["items"]
    new = [pod for pod in pods if pod["metadata"]["name"] != before]
    return next((pod for pod in new if pod["status"].get("phase") == "Running"), {})


def reasons(stage: Stage) -> str:
    where = ("-n", TENANT, "-o", "jsonpath={.items[*].reason}")
    return stage.plane.kubectl("get", "events", *where).stdout
