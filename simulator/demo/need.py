"""Three models of which nobody knows how much memory they need: measured, proposed, enforced."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import TYPE_CHECKING, Any, Final

from gpufence import names
from gpufence.need import NodeNeed, OwnerNeed, need_configmap, read_need, write_need
from gpufence.need.profile import READY
from gpufence.snapshot import read_snapshot
from gpufence.times import write_moment
from simulator.demo.narrator import gauge, legend
from simulator.demo.stage import StagePlan
from simulator.demo.story import annotations_of, wait_for
from simulator.node.machine import WHOLE

if TYPE_CHECKING:
    from gpufence.snapshot import Snapshot
    from simulator.demo.narrator import Narrator
    from simulator.demo.stage import Stage

TEAM: Final = "vision"
SHARES: Final = 4
DAYS: Final = 7
_DAY_SECONDS: Final = 86_400
_CALM_SECONDS: Final = 6.0
_ANSWER_SECONDS: Final = 5.0
_MODEL = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: model
        image: gpufence/workload
        args: [--framework, {framework}, --context, 300Mi, "{script}"]
        resources:
          limits: {{nvidia.com/gpu: 1}}
"""
MODELS: Final = {
    "detector": ("torch", "hold 1Gi"),
    "ranker": ("torch", "hold 1Gi; after 1s grow 1Gi/s to 2Gi"),
    "tagger": ("jax", "hold 2560Mi"),
}
_LIMITS = (
    "custom-columns=POD:.metadata.name,LIMIT:.metadata.annotations.gpufence\\.io/memory,"
    "STATUS:.status.phase"
)
PLAN = StagePlan(
    unit=WHOLE,
    clients=SHARES,
    components=("need",),
    agent={"GPUFENCE_NEED_SECONDS": "1"},
    controller={},
)


def tell(stage: Stage, say: Narrator) -> None:
    """Tell the story; raises `StoryError` where it does not happen."""
    _measured(stage, say)
    _proposed(stage, say)
    _applied(stage, say)
    _enforced(stage, say)


def _measured(stage: Stage, say: Narrator) -> None:
    say.chapter("1. Three models, and nobody knows what they need")
    say.tell(
        f"A node with two T4 cards; NVIDIA's device plugin hands out {SHARES} shares of each. A "
        "share is a number, not an amount: a JAX takes 11 of the 15 GiB of its card at once, "
        "whatever it needs. So the team begins by looking: nothing is capped, frameworks grow on "
        "demand."
    )
    say.kubectl("create", "namespace", TEAM)
    say.kubectl("label", "namespace", TEAM, f"{names.MODE}=observe")
    say.kubectl("annotate", "namespace", TEAM, f"{names.GROWTH}=enabled")
    wait_for(lambda: stage.fences(TEAM), "the API server calls the webhook")
    first, *others = [
        _MODEL.format(name=name, framework=framework, script=script)
        for name, (framework, script) in MODELS.items()
    ]
    say.kubectl("apply", "-n", TEAM, "-f", "-", stdin=first)
    say.tell("Two more are like it: another PyTorch, which grows for a while, and a JAX.")
    stage.plane.kubectl("apply", "-n", TEAM, "-f", "-", stdin="---\n".join(others))
    wait_for(lambda: len(_running(stage)) == len(MODELS), "the models run")
    say.kubectl("get", "deployments", "-n", TEAM)
    wait_for(lambda: len(_profiles(stage)) == len(MODELS), "each model has a profile")
    wait_for(lambda: "2348Mi" in json.dumps(_profiles(stage)), "the agent has seen the ranker grow")
    say.tell(
        "The agent measures each process, and keeps the most of each day in a ConfigMap of its "
        "node. The controller makes of that what a person asks for:"
    )
    say.kubectl("get", "gmp", "-n", TEAM)
    say.expect(
        not any(item["status"].get("target") for item in _profiles(stage)),
        "a few seconds of one pod are no ground for a limit: there is no target yet",
    )


def _proposed(stage: Stage, say: Narrator) -> None:
    say.chapter("2. A week later")
    say.tell(
        "Nobody waits a week for a demo. So this is the one thing that is played: what the agent "
        f"has measured today is written down for the {DAYS - 1} days before as well, each of them "
        "a full one with a new pod. The agent, which goes on writing, takes that for its own."
    )
    _let_days_pass(stage)
    wait_for(lambda: _ready(stage) == len(MODELS), "each model has a target")
    say.kubectl("get", "gmp", "-n", TEAM)
    say.tell("Why, of one of them, and all of them together:")
    say.kubectl("get", "gmp", "-n", TEAM, "deployment-ranker", "-o", _REASONS)
    say.kubectl("gpufence", "recommend", "-n", TEAM)
    say.expect(
        all(item["status"]["confidence"] == "high" for item in _profiles(stage)),
        "seven days and three pods: the targets can be trusted",
    )


_REASONS = (
    'jsonpath={range .status.containers[*]}{.reasons.peak}{"\\n"}{.reasons.target}{"\\n"}'
    '{.reasons.confidence}{"\\n"}{end}'
)


def _applied(stage: Stage, say: Narrator) -> None:
    say.chapter("3. What was measured becomes the limit")
    say.tell(
        "Nothing has been changed so far. Now the team says in each profile that pods which are "
        "made from now on get the target, and climbs the ladder: frameworks get their limits, "
        "and who breaks one goes."
    )
    for name in MODELS:
        patch = '{"spec":{"apply":"AtCreate"}}'
        say.kubectl("patch", "gmp", "-n", TEAM, f"deployment-{name}", "--type=merge", "-p", patch)
    wait_for(lambda: all(item["status"].get("applied") for item in _profiles(stage)), "it is said")
    say.kubectl("label", "namespace", TEAM, f"{names.MODE}=cap", "--overwrite")
    wait_for(lambda: _is_applied(stage), "the webhook knows the profiles")
    say.kubectl("rollout", "restart", "-n", TEAM, "deployment")
    wait_for(lambda: len(_limited(stage)) == len(MODELS), "the next pods run, with a limit each")
    say.kubectl("get", "pods", "-n", TEAM, "-o", _LIMITS)
    pod = next(pod for pod in _limited(stage) if pod["metadata"]["labels"]["app"] == "tagger")
    say.tell("What one of them was told, and by whose word:")
    say.show(annotations_of(pod)[names.SUMMARY])
    say.kubectl("label", "namespace", TEAM, f"{names.MODE}=evict", "--overwrite")


def _enforced(stage: Stage, say: Narrator) -> None:
    say.chapter("4. The same two cards, twice the models")
    say.kubectl("scale", "-n", TEAM, "deployment", "--all", "--replicas=2")
    wanted = 2 * len(MODELS)
    wait_for(lambda: len(_limited(stage)) == wanted, "all of them run")
    wait_for(lambda: len(_holding(stage)) == wanted, "all of them hold memory")
    before = sorted(pod["metadata"]["uid"] for pod in _limited(stage))
    time.sleep(_CALM_SECONDS)  # longer than a pod may be over its limit on this stage
    say.tell(
        f"The {2 * SHARES} shares alone would have taken these pods, too: they count pods, not "
        "memory, and one JAX left to itself takes 11 GiB of its card from the models beside it. "
        "With a target each they fit. Both cards, as the agent measures them:"
    )
    _show_cards(_snapshot(stage), say)
    say.kubectl("get", "pods", "-n", TEAM, "-o", _LIMITS)
    after = sorted(pod["metadata"]["uid"] for pod in _limited(stage))
    where = ("-n", TEAM, "-o", "jsonpath={.items[*].reason}")
    events = stage.plane.kubectl("get", "events", *where).stdout
    say.expect(
        before == after and names.EVICTED not in events,
        "nobody went, and nobody had to guess a number",
    )
    say.tell(
        "Who grows beyond that some day is told so by his framework, and his profile says AtCap or "
        "the eviction; spec.max and gpufence.io/max-memory bound what a profile may give."
    )


def _show_cards(snapshot: Snapshot, say: Narrator) -> None:
    for card in snapshot.cards:
        holders = {
            pod.name: use.used_bytes or 0
            for pod in snapshot.pods
            for use in pod.uses
            if use.card == card.uuid and use.used_bytes
        }
        say.show(legend(list(holders)))
        say.show(gauge(card.total_bytes, holders))


def _let_days_pass(stage: Stage) -> None:
    """Write down for the days before what was measured today, as an administrator can."""
    name = need_configmap(stage.node.name)
    where = ("-n", names.SYSTEM_NAMESPACE)
    raw = json.loads(stage.plane.kubectl("get", "cm", name, *where, "-o", "json").stdout)
    need = read_need(raw["data"][names.NEED_KEY])
    owners = tuple(_with_past(owner) for owner in need.owners)
    data = {names.NEED_KEY: write_need(NodeNeed(need.node, owners, need.cards))}
    patch = json.dumps({"data": data})
    stage.plane.kubectl("patch", "configmap", name, *where, "--type=merge", "-p", patch)


def _with_past(owner: OwnerNeed) -> OwnerNeed:
    today = owner.days[-1]
    now = time.time()
    past = [
        today._replace(
            day=write_moment(now - ago * _DAY_SECONDS)[: len(today.day)],
            held_seconds=_DAY_SECONDS,
            started=1,
        )
        for ago in range(DAYS - 1, 0, -1)
    ]
    return OwnerNeed(owner.key, (*past, today))


def _ready(stage: Stage) -> int:
    """Count the profiles that have a target for every container."""
    return sum(
        condition["status"] == "True"
        for item in _profiles(stage)
        for condition in item["status"]["conditions"]
        if condition["type"] == READY
    )


def _profiles(stage: Stage) -> list[dict[str, Any]]:
    text = stage.plane.kubectl("get", "gmp", "-n", TEAM, "-o", "json").stdout
    items: list[dict[str, Any]] = json.loads(text)["items"]
    return [item for item in items if item.get("status", {}).get("containers")]


def _is_applied(stage: Stage) -> bool:
    """Return whether the next pod of each model would get its target: nothing is made of these."""
    command = ("create", "--dry-run=server", "-n", TEAM, "-f", "-", "-o", "json")
    tried = [
        stage.plane.kubectl(*command, stdin=json.dumps(_next_pod(name)), check=False).stdout
        for name in MODELS
    ]
    return all(f'"{names.MEMORY}"' in text for text in tried)


def _next_pod(model: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": model, "uid": "0"}
    container = {
        "name": "model",
        "image": "gpufence/workload",
        "resources": {"limits": {names.NVIDIA_GPU: 1}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "ownerReferences": [{**owner, "controller": True}]},
        "spec": {"containers": [container]},
    }


def _pods(stage: Stage) -> list[dict[str, Any]]:
    text = stage.plane.kubectl("get", "pods", "-n", TEAM, "-o", "json").stdout
    pods: list[dict[str, Any]] = json.loads(text)["items"]
    return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def _running(stage: Stage) -> list[dict[str, Any]]:
    return [pod for pod in _pods(stage) if pod["status"].get("phase") == "Running"]


def _limited(stage: Stage) -> list[dict[str, Any]]:
    """Return the pods that run and have a limit, nothing while there are any without."""
    pods = _running(stage)
    if len(pods) != len(_pods(stage)):
        return []
    return pods if all(names.MEMORY in annotations_of(pod) for pod in pods) else []


def _holding(stage: Stage) -> set[str]:
    return {
        pod.uid
        for pod in _snapshot(stage).pods
        if not pod.terminating and any(use.used_bytes for use in pod.uses)
    }


def _snapshot(stage: Stage) -> Snapshot:
    url = f"http://{stage.agent}/v1/snapshot"
    with urllib.request.urlopen(url, timeout=_ANSWER_SECONDS) as answer:
        return read_snapshot(answer.read().decode())
