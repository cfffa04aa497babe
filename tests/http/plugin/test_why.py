"""How pods ended, found at agents and in ConfigMaps, and drawn."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpufence import names
from gpufence.nodes import kept_configmap
from gpufence.quantity import GIB, MIB
from gpufence.records import (
    CAPPED,
    RUNNING,
    Moment,
    NodeRecords,
    Record,
    Threshold,
    write_records,
)
from kube import JsonObject
from kubectl_gpufence.verbs.why.story import FoundRecord, story
from kubectl_gpufence.view import Display
from tests.support.golden import assert_cases
from tests.support.plugin import (
    ABSENT,
    DENIED,
    NODE,
    SYSTEM,
    Asked,
    Desk,
    agent_pod,
    answered,
    listed,
)
from tests.support.servers import Answer, reply
from tests.support.verb_cases import ENDED

PAGE = f"{SYSTEM}/gpufence-agent-x:8080/proxy/v1/why"
FILES = Path(__file__).parents[2] / "golden" / "plugin" / "rare"
MAPS = "/api/v1/namespaces/gpufence-system/configmaps"
APPS = {"groups": [{"preferredVersion": {"groupVersion": "apps/v1"}}]}
DEPLOYMENTS = {
    "name": "deployments",
    "kind": "Deployment",
    "shortNames": ["deploy"],
    "namespaced": True,
}
EARLIER = ENDED._replace(at="2026-11-20T06:00:00Z", shortage=True, neighbours=())
OTHER = ENDED._replace(namespace="team-b", name="other", owner="", controller="")


def node_records(*records: Record, node: str = NODE) -> NodeRecords:
    return NodeRecords(node, "2026-11-19T00:00:00Z", records)


def stored(known: NodeRecords) -> dict[str, object]:
    data = {names.WHY_KEY: write_records(known)}
    return kept_configmap(f"{names.WHY_PREFIX}{known.node}", names.WHY_LABEL, data, "7")


NOTEBOOK = "/apis/kubeflow.org/v1/namespaces/team-a/notebooks/mine"
SETS = "/apis/apps/v1/namespaces/team-a/statefulsets"
KNOWN: dict[str, Answer] = {
    PAGE: reply(write_records(node_records(EARLIER, ENDED, OTHER)).encode()),
    "/apis": reply(APPS),
    "/apis/apps/v1": reply({"resources": [DEPLOYMENTS]}),
    "/api/v1": reply({"resources": [{"name": "pods", "kind": "Pod"}]}),
}
"""An agent that remembers three ends."""


def of_set(name: str) -> Record:
    return ENDED._replace(
        uid=name, name=f"{name}-0", owner=f"StatefulSet/{name}", controller=f"StatefulSet/{name}"
    )


def made(name: str, uid: str, above: str = "") -> Answer:
    """Answer with an object, and the Notebook that controls it."""
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "name": "mine", "uid": above}
    owners = [{**owner, "controller": True}] if above else []
    metadata = {"name": name, "namespace": "team-a", "uid": uid, "resourceVersion": "1"}
    return reply({"metadata": {**metadata, "ownerReferences": owners}})


STATEFUL = {"name": "statefulsets", "kind": "StatefulSet", "namespaced": True}
KUBEFLOW = {"preferredVersion": {"groupVersion": "kubeflow.org/v1"}}
NOTEBOOKS = {"name": "notebooks", "singularName": "notebook", "kind": "Notebook"}
OF_SETS = [of_set(name) for name in ("made-long", "mine-other")]
BELOW: dict[str, Answer] = KNOWN | {
    "/apis": reply({"groups": [*APPS["groups"], KUBEFLOW]}),
    "/apis/apps/v1": reply(
        {
            "resources": [
                DEPLOYMENTS,
                {"name": "statefulsets", "kind": "StatefulSet", "namespaced": True},
            ]
        }
    ),
    "/apis/kubeflow.org/v1": reply({"resources": [{**NOTEBOOKS, "namespaced": True}]}),
    PAGE: reply(write_records(node_records(ENDED, OTHER, *OF_SETS)).encode()),
    "/apis/apps/v1/namespaces/team-a/deployments/worker": made("worker", "d"),
    NOTEBOOK: made("mine", "n"),
    f"{SETS}/made-long": made("made-long", "s", above="n"),
    f"{SETS}/mine-other": made("mine-other", "t"),
}
"""A Notebook whose StatefulSet has another name, and one whose name only looks like its own."""
GONE = dict.fromkeys((NOTEBOOK, f"{SETS}/made-long", f"{SETS}/mine-other"), ABSENT)
UNREADY = {SYSTEM: listed(agent_pod(), agent_pod("y", "gpu-2", "False"))}
BOTH_UNREADY = {SYSTEM: listed(agent_pod(ready="False"), agent_pod("y", "gpu-2", "False"))}
DAMAGED = {"metadata": {"name": "gpufence-why-z"}, "data": {names.WHY_KEY: "{"}}
STORED = {MAPS: listed(stored(node_records(ENDED)), DAMAGED)}
EVENTS = "/api/v1/namespaces/team-a/events"


def refusal_of(name: str, at: str, kind: str = "ReplicaSet", **changes: object) -> JsonObject:
    """Build the Event that a controller writes of a pod that the webhook refused."""
    denied = 'Error creating: admission webhook "evict.pods.gpufence.io" denied the request: '
    return {
        "reason": "FailedCreate",
        "message": f"{denied}gpufence refuses this pod: 200Mi is too little; request 1Gi",
        "type": "Warning",
        "count": 12,
        "lastTimestamp": at,
        "involvedObject": {"kind": kind, "namespace": "team-a", "name": name},
        **changes,
    }


REFUSED = refusal_of("fresh-7d9f", "2026-11-20T07:00:00Z")
QUOTA = refusal_of("fresh-7d9f", "2026-11-20T08:00:00Z", message="exceeded quota: gpus")
OTHERS = refusal_of("fresh-too-7d9f", "2026-11-20T08:00:00Z")
ASKED: dict[str, Asked] = {
    "an owner whose pods are refused": (
        "why deploy/fresh",
        KNOWN | {EVENTS: listed(REFUSED, QUOTA, OTHERS)},
    ),
    "refusals for programs": ("why deploy/fresh -o json", KNOWN | {EVENTS: listed(REFUSED)}),
    "a refused owner where no agent may be asked": (
        "why deploy/fresh",
        KNOWN | {PAGE: DENIED, MAPS: DENIED, EVENTS: listed(REFUSED)},
    ),
    "an owner whose Events may not be read": ("why deploy/fresh", KNOWN | {EVENTS: DENIED}),
    "pods of a Notebook are refused": (
        "why notebook/fresh",
        BELOW | {EVENTS: listed(refusal_of("fresh-a", "2026-11-20T08:00:00Z", "StatefulSet"))},
    ),
    "a pod that is gone": ("why worker-7f9c-x", KNOWN),
    "an owner that is deleted": ("why deploy/worker --last 5", KNOWN),
    "an owner by its group": ("why deployments.apps/worker --last 5", KNOWN),
    "pods below a Notebook": ("why notebook/mine --last 5", BELOW),
    "a Notebook that is gone": ("why notebook/mine --last 5", BELOW | GONE),
    "the last ends of all": ("why --last 3 -A", KNOWN),
    "without an agent the ConfigMap answers": (
        "why pod/worker-7f9c-x",
        KNOWN | BOTH_UNREADY | STORED,
    ),
    "neither agent nor ConfigMap may be read": (
        *("why worker-7f9c-x", KNOWN | {PAGE: DENIED, MAPS: DENIED}),
    ),
    "the last of what may not be read": ("why --last 1", KNOWN | {PAGE: DENIED, MAPS: DENIED}),
    "one of two agents is silent": ("why worker-7f9c-x", KNOWN | UNREADY | {MAPS: DENIED}),
    "a pod that is not there": ("why worker-7f9c-y", KNOWN),
    "an owner that is not there": ("why deploy/workers", KNOWN),
    "nothing to tell": ("why --last 3", {SYSTEM: listed(), MAPS: listed()}),
}


def test_answers_are_those_reviewed(tmp_path: Path) -> None:
    """Ends are found at agents or in ConfigMaps, by pod and by topmost owner, and drawn."""
    assert_cases(FILES / "why.txt", answered(tmp_path, ASKED))


@pytest.mark.parametrize(("at", "first"), [("T08", "rejected"), ("T05", "evicted")])
def test_the_newest_of_refusals_and_ends_is_first(desk: Desk, at: str, first: str) -> None:
    """An owner whose pods were evicted and refused has both stories."""
    refused = refusal_of("worker-88bb", f"2026-11-20{at}:00:00Z")
    for path, answer in {**KNOWN, EVENTS: listed(refused)}.items():
        desk.get(path, answer)
    said = desk.run("why", "deploy/worker").out

    assert first in said.splitlines()[0]
    assert 2 == said.count("WHAT TO TYPE")


def test_a_pod_that_lives_shows_its_last_minutes(desk: Desk) -> None:
    """What it has held so far is drawn, and `explain` named for the present."""
    for path, answer in KNOWN.items():
        desk.get(path, answer)
    living = ENDED._replace(kind=RUNNING, name="alive", enough_bytes=None)
    pages = [write_records(each).encode() for each in (node_records(ENDED), node_records(living))]
    desk.server.on(f"GET {PAGE}", *map(reply, pages))
    said = desk.run("why", "alive")

    assert "has not ended" in said.out
    assert "it holds 3900Mi; the most it held was 3900Mi." in said.out
    assert "it has not ended: `kubectl gpufence explain`" in said.err
    assert ["", "running"] == [
        seen.query.get("only", "") for seen in desk.server.seen(f"GET {PAGE}")
    ]


@pytest.mark.parametrize("arguments", [["why"], ["why", "--last", "0"], ["why", "a b"]])
def test_a_call_that_makes_no_sense_is_refused(desk: Desk, arguments: list[str]) -> None:
    """Without a name or a number there is nothing to answer."""
    with pytest.raises(SystemExit, match="2"):
        desk.run(*arguments)


AT_ITS_CAP = ENDED._replace(
    kind=CAPPED,
    container="main",
    asked_bytes=3 * GIB,
    given_bytes=2 * GIB,
    thresholds=(Threshold("limit", 3 * GIB, 90.0), Threshold("evict", 3328 * MIB, 90.0)),
)
QUIET = ENDED._replace(kind=RUNNING, enough_bytes=None, thresholds=(Threshold("limit", 3 * GIB),))
HOSTILE = "\x1b[2J\u202e<script>"
WILD = Record(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)._replace(
    owner=f"Deployment/{HOSTILE}",
    model=HOSTILE,
    thresholds=(Threshold(HOSTILE, 2**60, 10.0**9), Threshold("limit", 1, 10.0**9)),
    course=(Moment(3, 2**60, 2**61, None), Moment(9, None, None, None), Moment(10**6, 0, 0, 0)),
)


@pytest.mark.parametrize("width", [20, 60, 80, 100, None])
@pytest.mark.parametrize(
    "record",
    [
        *(ENDED, EARLIER, WILD, ENDED._replace(course=()), AT_ITS_CAP),
        *(AT_ITS_CAP._replace(certain=True), QUIET),
        ENDED._replace(limit_bytes=None, thresholds=(), free_bytes=None),
    ],
)
@pytest.mark.parametrize("unicode", [True, False])
def test_what_is_drawn_fits_and_is_harmless(
    record: Record, width: int | None, *, unicode: bool
) -> None:
    """No name draws anything, no line leaves the terminal, and ASCII is enough for a chart."""
    lines = list(story(FoundRecord(NODE, record), Display(width=width, unicode=unicode)))
    chart = [line for line in lines if "-" not in line and line[9:11] in (" |", " +", " │")]

    assert all(line.isprintable() for line in lines)
    assert width is None or width < 60 or all(len(line) <= max(width, 60) for line in lines)
    assert unicode or all(line.isascii() for line in chart)


def test_colours_take_no_places() -> None:
    """Use above the limit is red, and the axis stands where it stood."""
    plain = list(story(FoundRecord(NODE, ENDED), Display(width=60)))
    colourful = list(story(FoundRecord(NODE, ENDED), replace(Display(width=60), colour=True)))

    assert "\x1b[31m" in "".join(colourful)
    assert [line.find("│") for line in plain] == [line.find("│") for line in colourful]
