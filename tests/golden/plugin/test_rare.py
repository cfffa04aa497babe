"""What the doctor says of rare states beside what it says where all is well; verdicts and sums."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.model.decision import Brake, Outcome
from gpufence import names
from gpufence.annotations import Headroom
from gpufence.canary import CanaryNote, Proof, write_note
from gpufence.capped import Ending
from gpufence.cards import Instance, NodeCards
from gpufence.fences import Fence
from gpufence.mode import Mode
from gpufence.plan import Done, Setting, write_setting
from gpufence.pods import read_pod
from gpufence.quantity import GIB, MIB
from gpufence.share import ShareTerms, allowance
from gpufence.times import read_moment
from kubectl_gpufence.cluster_view import SeenNode, by_node
from kubectl_gpufence.pods import SeenEvent, SeenPod, see_pod
from kubectl_gpufence.verbs.doctor import examine, findings_lines
from kubectl_gpufence.verbs.doctor.installation import (
    HOOKS,
    Installation,
    LabelledNamespace,
    MaybeHidden,
    SliceCards,
    read_class,
    read_labelled,
    read_published,
    read_quota,
)
from kubectl_gpufence.verbs.doctor.starting import is_rolling
from kubectl_gpufence.verbs.explain.injected import ShareFigures, formula
from kubectl_gpufence.verdicts import (
    BRAKES,
    FENCES,
    VERDICTS,
    fence_sentence,
    verdict,
    what_follows,
)
from kubectl_gpufence.view import Display
from tests.support import builders, verb_cases
from tests.support.builders import container, pod
from tests.support.golden import assert_cases, changed
from tests.support.plugin import (
    NODE,
    agent,
    pod_row,
    raw_pod,
    seen_node,
    seen_pod,
    snapshot,
    use_row,
)
from tests.support.rewriting import rewritten_with_claims
from tests.support.verb_cases import HIDDEN

FILES = Path(__file__).parent / "rare"
FINE = verb_cases.healthy()
Changes = Mapping[str, Any]


def said(installation: Installation) -> Iterator[str]:
    for item in (findings := examine(installation)):
        remedy = f" -> {item.remedy}" if item.remedy else ""
        yield f"{item.level} {item.subject}: {item.text}{remedy}"
    yield [*findings_lines(findings, Display())][-1]


def assert_said(name: str, cases: Mapping[str, Changes], base: Installation = FINE) -> None:
    """Compare what is said in each case, and was not before, with a file."""
    found = {
        title: changed(said(base), said(replace(base, **changes)))
        for title, changes in cases.items()
    }
    assert_cases(FILES / f"{name}.txt", found)


def of(*items: Any) -> MaybeHidden[Any]:
    return MaybeHidden(list(items))


def switched(**data: str) -> Changes:
    return {"switch": MaybeHidden({"data": {key.replace("_", "-"): v for key, v in data.items()}})}


def calling(*urls: str, **more: Any) -> Changes:
    """Build a webhook whose hooks call these addresses, or a Service where there is none."""
    hooks = [
        {"name": name, "failurePolicy": "Ignore", "clientConfig": {"url": url} if url else {}}
        for name, url in zip(HOOKS, urls, strict=True)
    ]
    return {"configuration": MaybeHidden({"webhooks": hooks}), **more}


def seen_nodes(node: SeenNode) -> Changes:
    return {"nodes": MaybeHidden({NODE: node})}


TEAMS = of(*(LabelledNamespace(name, "evict") for name in ("team-a", "team-b")))


def quota(*counted: str) -> Changes:
    """Build two teams, of which one has a quota on these resources."""
    hard = dict.fromkeys(counted, "8")
    raw = {"metadata": {"namespace": "team-a"}, "spec": {"hard": hard}}
    return {"namespaces": TEAMS, "quotas": of(read_quota(raw))}


def asking_for_12(quota: str) -> Changes:
    """Build a team with a quota, and three pods of 6 GiB, of which one has ended."""
    metadata = {"name": "team-a", "labels": {names.MODE: "evict"}}
    team = {"metadata": {**metadata, "annotations": {names.QUOTA_MEMORY: quota}}}
    asking = read_pod(pod(annotations={names.MEMORY: "6Gi"}))
    made = replace(seen_pod(), namespace="team-a", pod=asking)
    pods = (made, made, replace(made, phase="Succeeded"))
    return {"namespaces": of(read_labelled(team)), "pods": of(*pods)}


AWAY: Any = {"deployment": MaybeHidden(), "slices": of()}
URL = "https://127.0.0.1:4433"
SHORT = (0.0, verb_cases.NOW + verb_cases.DAY)
CAPPED = Ending("trainer", 1, waiting="CrashLoopBackOff", out_of_memory="CUDA out of memory")
MISSED = replace(seen_pod(), injected="", namespace="team-a")
NOT_READY: Any = {
    "deployment": verb_cases.deployment(None),
    "slices": verb_cases.slices(0, 2),
    "tried": MaybeHidden(value=False),
    "pods": of(MISSED),
}
IN_PART = agent(snapshot(trouble="card 1: GB10 has no memory of its own"))
EVICTED = SeenEvent("", names.EVICTED, 3, "evicted", "team-a/ReplicaSet/greedy")
ON_POD, AGAIN = EVICTED._replace(about="team-a/Pod/greedy-1"), EVICTED._replace(times=1)
ONCE = AGAIN._replace(about="team-a/ReplicaSet/once")
WORDS = {names.MEMORY: "6GB", names.UNDECLARED_USE: "evcit"}
LABELS = {names.MODE: "cap", names.IDLE: "relase"}
TEAM = {"name": "team-a", "labels": LABELS, "annotations": WORDS}
ENDING = {"name": "team-a", "labels": LABELS, "deletionTimestamp": "2026-01-01T00:00:00Z"}
OWN = seen_pod(mode=Mode.CAP, annotations={names.HEADROOM: "much"}, namespace=WORDS)
CAP = of(LabelledNamespace("team-a", "cap"))

STATES: dict[str, Changes] = {
    "one replica": {"deployment": verb_cases.deployment(1, None)},
    "an old API server": {"version": verb_cases.version("v1.35.0")},
    "no namespace": {"system": MaybeHidden()},
    "a webhook outside of the cluster": calling(*(f"{URL}/{name}" for name in HOOKS), **AWAY),
    "one of whose hooks calls inside": calling(URL, URL, URL, "", **AWAY),
    "all of whose hooks do": calling("", "", "", "", **AWAY),
    "agents and nodes are hidden": {"agents": MaybeHidden({}), "nodes": HIDDEN},
    "the kill switch is at cap": switched(max_mode="cap"),
    "the kill switch says nothing": {"switch": MaybeHidden({})},
    "the kill switch was installed at observe": switched(default_max_mode="observe"),
    "the lower of both counts": switched(max_mode="evict", default_max_mode="observe"),
    "two CAs overlap": {"trusted": dict.fromkeys(HOOKS, (*verb_cases.YEARS, SHORT))},
    "the only CA ends soon": {"trusted": dict.fromkeys(HOOKS, (SHORT,))},
    "no replica is ready": {"deployment": verb_cases.deployment(None)},
    "no replica is ready, and pods were not seen": NOT_READY,
    "no webhook, and pods were not seen": {**NOT_READY, "deployment": MaybeHidden()},
    "a firewall": {"tried": MaybeHidden(value=False)},
    "no pods": {"namespaces": CAP, "pods": of()},
    "a crash loop at a cap": {
        "namespaces": CAP,
        "pods": of(replace(seen_pod(), endings=(CAPPED,))),
    },
    "the webhook never saw a pod": {"pods": of(MISSED)},
    "it never saw one that ends": {"pods": of(replace(MISSED, terminating=True))},
    "a namespace that ends": {"namespaces": of(read_labelled({"metadata": ENDING}))},
    "cards that cannot be read": seen_nodes(replace(seen_node(), cards=None, cards_trouble="odd")),
    "a node measured in part": {"agents": MaybeHidden({NODE: IN_PART})},
    "pods and nodes are hidden": {"pods": HIDDEN, "nodes": HIDDEN},
    "wrong words of tenants": {
        "namespaces": of(read_labelled({"metadata": TEAM})),
        "pods": of(OWN),
    },
    "wrong words, and no mode": {
        "namespaces": of(read_labelled({"metadata": {**TEAM, "labels": {names.IDLE: "relase"}}}))
    },
    "evicted again and again": {"events": of(EVICTED, ON_POD, AGAIN, ONCE)},
    "evicted once": {"events": of(ONCE)},
    "no quota": {"namespaces": TEAMS},
    "a quota on CPU": quota("cpu"),
    "a quota on GPU memory": quota("cpu", "requests.aliyun.com/gpu-mem"),
    "a quota on claims": quota("gpu.deviceclass.resource.k8s.io/devices"),
    "above the quota for annotations": asking_for_12("10Gi"),
    "all of the quota for annotations": asking_for_12("12Gi"),
    "quotas are hidden": {"namespaces": TEAMS, "quotas": HIDDEN},
}


def test_rare_states_are_said_as_reviewed() -> None:
    """Each has its finding and its remedy, and takes no other finding away."""
    assert_said("doctor", STATES)


def limiting(setting: str | None = "labelled") -> MaybeHidden[Any]:
    """Build the webhook's Deployment with this setting."""
    env = [{"name": names.RESERVE, "value": "700Mi"}]
    env += [] if setting is None else [{"name": names.DRIVER_SETTING, "value": setting}]
    template = {"spec": {"containers": [{"name": "webhook", "env": env}]}}
    whole = {**(FINE.deployment.value or {}), "spec": {"replicas": 2, "template": template}}
    return MaybeHidden(whole)


def stated(driver: str, **changes: Any) -> NodeCards:
    whole = seen_node().cards
    assert whole is not None
    return whole._replace(driver=driver, cards=tuple(c._replace(**changes) for c in whole.cards))


def labelled(**changes: Any) -> Changes:
    known = {"limits": True, "cards": stated("615.71.09"), **changes}
    return seen_nodes(replace(seen_node(), **known))


def carrying() -> SeenPod:
    """Build a pod for which the webhook wrote a limit."""
    raw = raw_pod()
    plan = json.loads(raw["metadata"]["annotations"][names.PLAN])
    setting = Setting(names.DRIVER_LIMIT, "", "driver", Done.SET, limit_bytes=GIB)
    for one in plan["containers"].values():
        one["settings"].append(json.loads(write_setting(setting)))
    raw["metadata"]["annotations"][names.PLAN] = json.dumps(plan)
    return see_pod(raw, seen_node().gpu)


def answering(*fences: str, trouble: str = "", **changes: Any) -> Changes:
    row = pod_row(*(use_row(fence=fence) for fence in fences))
    state = snapshot(row, limits_trouble=trouble, **changes)
    return {"agents": MaybeHidden(by_node([agent(state)]))}


AUTO = limiting("auto")
PASSED = write_note(CanaryNote(Proof.PASSED, "615.71.09", "c"))
LOST = write_note(CanaryNote(Proof.LOST, "615.71.09", "c", "no canary runs here"))
HELD: Changes = {**labelled(), "pods": of(carrying())}
OLD, INSTANCE = stated("580.65"), stated("", mig=Instance("GPU-0", "1g.5gb"))
LIMITS: dict[str, Changes] = {
    "no setting": {"deployment": limiting(None)},
    "off": {"deployment": limiting("off")},
    "labelled in vain": {"deployment": limiting("off"), **labelled()},
    "the setting is hidden": {"deployment": HIDDEN, **HELD, **answering("driver")},
    "the setting is hidden, and no node labelled": {"deployment": HIDDEN},
    "agents are hidden": {"agents": HIDDEN},
    "no label": {},
    "held": {**HELD, **answering("driver")},
    "not held": {"deployment": limiting("on"), **HELD, **answering("driver", "agent")},
    "stale": {**HELD, **answering("driver", stale_seconds=99.0)},
    "nothing seen": {"deployment": limiting("on"), **labelled()},
    "no agent": {"deployment": limiting("on"), **labelled(), "agents": MaybeHidden({})},
    "trouble": {**labelled(), **answering("agent", trouble="containers fail")},
    "an old driver": labelled(cards=OLD),
    "MIG instances": {"deployment": limiting("on"), **labelled(cards=INSTANCE)},
    "no cards": labelled(cards=None),
    "a canary": {"deployment": AUTO, **labelled(canary=PASSED), **answering("agent")},
    "a canary that nobody looks at": {
        **labelled(canary=PASSED),
        **answering("agent", stale_seconds=99.0),
    },
    "a canary that is gone": {"deployment": AUTO, **labelled(limits=False, canary=LOST)},
    "a note that nobody can read": {"deployment": AUTO, **labelled(canary="{}")},
}


def test_limits_are_called_good_only_where_they_were_seen() -> None:
    """What is switched on is compared with nodes, and well only once a pod was seen held there."""
    cases = {title: {"deployment": limiting(), **changes} for title, changes in LIMITS.items()}

    assert_said("doctor-limits", cases)


def claiming(item: Any) -> SeenPod:
    """See a pod with one claim, as the webhook left it and the API server shows the claim."""
    raw = pod(builders.claiming(container(), gpu=""), resourceClaims=[builders.by_name("gpu", "c")])
    return see_pod(rewritten_with_claims(raw, {"gpu": item}), None, {}, {"gpu": item})


def published(driver: str, node: str = NODE) -> SliceCards:
    devices = [{"name": "gpu-0", "allowMultipleAllocations": True}, {"name": "gpu-1"}]
    return read_published({"spec": {"driver": driver, "nodeName": node, "devices": devices}})


SHARED = SliceCards(NODE, 2, 2)
LEAST = SHARED._replace(least_bytes=GIB)
RESOURCE = {"extendedResourceName": "example.com/gpu"}
OURS = {**RESOURCE, "selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]}
CLASSES = of(
    read_class({"metadata": {"name": "c"}, "spec": RESOURCE}),
    read_class({"metadata": {"name": "s"}, "spec": OURS}),
    read_class(builders.device_class()),
    read_class({}),
)
OTHERS = pod(container(), resourceClaims=[builders.by_name("nic", "c")])
NIC = replace(see_pod(OTHERS, None, {}, {}), injected="yes")
NO_PODS: Changes = {"namespaces": CAP, "pods": of()}
CLAIMS: dict[str, Changes] = {
    "no cards in slices": {"published": of(SliceCards("n", 0, 0))},
    "the kind does not exist": {"published": MaybeHidden()},
    "a slice of ours": {"published": of(published("gpu.nvidia.com"))},
    "a slice of another driver": {"published": of(published("nic.example.com"))},
    "shared by memory": {"published": of(SHARED)},
    "none of them shared": {"published": of(SliceCards(NODE, 2, 0))},
    "a node without an agent": {"published": of(SHARED, SliceCards("node-2", 1, 1))},
    "slices are hidden": {"published": HIDDEN},
    "agents are hidden": {"published": of(SHARED), "agents": HIDDEN},
    "a pod whose claim is known": {
        **NO_PODS,
        "pods": of(claiming(builders.claim("c", builders.request("3Gi")))),
    },
    "a pod whose claim does not exist": {**NO_PODS, "pods": of(claiming("does not exist"))},
    "a pod with claims of other devices": {**NO_PODS, "pods": of(NIC)},
    "a resource served by shared cards": {"published": of(LEAST), "classes": CLASSES},
    "a resource served by whole cards": {"published": of(SHARED), "classes": CLASSES},
}


def test_claims_are_said_as_reviewed() -> None:
    """A node with cards for claims needs an agent, and a pod with claims a configured value."""
    assert_said("doctor-claims", CLAIMS)


def rolled(at: str) -> dict[str, Any]:
    """Build a Deployment of long ago that had its last progress then."""
    going = {"type": "Progressing", "status": "True", "lastUpdateTime": at}
    made = {"creationTimestamp": "2025-01-01T00:00:00Z"}
    return {"metadata": made, "status": {"conditions": [going]}}


@pytest.mark.parametrize(
    ("deployment", "young"),
    [
        ({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}, True),
        ({"metadata": {"creationTimestamp": "2025-12-31T23:00:00Z"}}, False),
        (rolled("2026-01-01T00:00:30Z"), True),
        (rolled("2025-12-31T23:00:00Z"), False),
        (rolled("yesterday"), False),
        ({}, False),
    ],
)
def test_a_rollout_is_young_for_two_minutes(deployment: dict[str, Any], *, young: bool) -> None:
    """By when the Deployment was made or went on last."""
    assert young == is_rolling(read_moment("2026-01-01T00:01:40Z", "now"), deployment)


OVER = {"outcome": "holding", "over_seconds": 3.0}
USES: dict[str, dict[str, Any]] = {
    **{f"outcome {word or 'none'}": {"outcome": word} for word in sorted(VERDICTS)},
    "in grace": {**OVER, "outcome": "grace", "due_seconds": 113.0},
    "holding": {**OVER, "due_seconds": 27.0},
    "holding without an end": OVER,
    "backing off": {"outcome": "backing off", "due_seconds": 5.0},
    "a word of a newer agent": {"outcome": "dancing"},
}


def verdicts(**changes: Any) -> Iterator[str]:
    """Show a use in the table and in the story, in each mode."""
    use = use_row(**changes)
    for mode in (*map(str, Mode), ""):
        row = pod_row(use, mode=mode)
        in_table = verdict(row, use, str(Brake.SUSPENDED)).text
        yield f"  {mode or 'no mode'}: {in_table}: {what_follows(row, use)}"


def test_verdicts_are_those_reviewed() -> None:
    """Each outcome is a word in tables, a sentence in stories, and a threat in mode evict alone."""
    cases = {title: verdicts(**changes) for title, changes in USES.items()}

    assert_cases(FILES / "verdicts.txt", cases)


def test_every_word_of_this_versions_agent_is_known() -> None:
    """The plugin has a meaning for each word an agent may say, and for none besides."""
    assert {str(item) for item in Outcome} | {""} == set(VERDICTS)
    assert {str(item) for item in Brake} == set(BRAKES)
    assert [*Fence] == list(FENCES)
    assert "fence newer?" == fence_sentence("newer\x1b")


FACTOR = allowance(8 * GIB, 8 * GIB, ShareTerms(512 * MIB, 1, Headroom.FACTOR)).bytes
FORMULAS = {
    "by no known rule": ShareFigures(3 * GIB, 512 * MIB, 15 * GIB, 1000 * MIB, 1),
    "without a card": ShareFigures(3 * GIB, 512 * MIB, None, 1, 1),
    "without a context": ShareFigures(3 * GIB, 0, 15 * GIB, 3 * GIB // 2, 2),
    "by the other rule": ShareFigures(8 * GIB, 512 * MIB, 15 * GIB, FACTOR, 1),
}


@pytest.mark.parametrize("headroom", Headroom)
def test_sums_are_those_reviewed(headroom: Headroom) -> None:
    """No rule is guessed, and what needs no context is divided among the processes alone."""
    cases = {title: formula(figures, headroom) for title, figures in FORMULAS.items()}

    assert_cases(FILES / "sums.txt", cases)
