"""Answers that are missing, slow, strange or forbidden."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from agent.fence import PodContext
from agent.pod_view import read_pod_on_node
from gpufence import names
from gpufence.dialects import Units
from gpufence.memory_condition import HeldOnCard
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from gpufence.snapshot import write_snapshot
from kube import UnreachableError
from kubectl_gpufence.output import advice
from kubectl_gpufence.reader import MissingError
from tests.http.kube.builders import status
from tests.support import builders
from tests.support.agent.builders import CARDS
from tests.support.builders import container
from tests.support.golden import assert_cases
from tests.support.plugin import (
    ABSENT,
    AGENT,
    DENIED,
    LIMIT,
    NODE,
    PODS,
    SYSTEM,
    Asked,
    Desk,
    Screen,
    agent_pod,
    answered,
    listed,
    raw_pod,
    raw_saying,
    snapshot,
)
from tests.support.servers import Answer, hang, reply

OF_CLAIMS = "/apis/resource.k8s.io/v1"
STORE = {"metadata": {"name": "store.example.com"}, "spec": {}}
NODE_2 = "/api/v1/nodes/gpu-2"
FILES = Path(__file__).parents[2] / "golden" / "plugin" / "rare"
NEWER = write_snapshot(snapshot()).replace('"v":1', '"v":2').encode()


class Impatient(io.StringIO):
    """Takes two pages and then presses Ctrl-C."""

    def write(self, text: str, /) -> int:
        if self.getvalue().count("POD") >= 2:
            raise KeyboardInterrupt
        return super().write(text)


def in_page(**changes: Any) -> Answer:
    return reply(write_snapshot(snapshot(**changes)).encode())


ALL_PODS, NODES, SPACE = "/api/v1/pods", "/api/v1/nodes", "/api/v1/namespaces/team-a"
RAW = raw_saying("OverLimit", HeldOnCard(0, 3500 * MIB, LIMIT))
SAYING = {PODS: listed(RAW), f"{PODS}/trainer-0": reply(RAW)}
TWO_AGENTS = {SYSTEM: listed(agent_pod(), agent_pod("gpufence-agent-y", "gpu-2"))}
NOTHING = {ALL_PODS: listed(), f"{NODES}/gpu-9": reply(b'{"metadata": {"name": "gpu-9"}}')}
HIDDEN = dict.fromkeys((SPACE, f"{NODES}/{NODE}", SYSTEM, f"{SPACE}/events"), DENIED)
ONE_GPU_LESS = {AGENT: ABSENT, "/v1/snapshot": in_page(version="9.9.9")}
SILENCE: dict[str, Answer] = {
    "denied": DENIED,
    "gone": ABSENT,
    "unreachable": reply(status(503, "ServiceUnavailable", "no route"), 503),
    "refused": reply(status(400, "BadRequest", "no"), 400),
    "page": reply(b"<html>"),
    "newer": reply(NEWER),
    "accepted": reply({"odd": 1}, 202),
    "silent": hang(),
}


def claiming(classes: Answer) -> dict[str, Answer]:
    """Answer with a pod whose claim asks for memory of another driver's class."""
    wanted = builders.request("3Gi")
    wanted["exactly"]["deviceClassName"] = "store.example.com"
    raw = raw_pod(bound=False)
    del raw["metadata"]["annotations"]
    raw["spec"] = {
        "containers": [builders.claiming(container(), gpu="")],
        "resourceClaims": [builders.by_template("gpu", "part")],
    }
    templates = f"{OF_CLAIMS}/namespaces/team-a/resourceclaimtemplates/part"
    return {
        f"{PODS}/trainer-0": reply(raw),
        templates: reply(builders.template("part", wanted)),
        f"{OF_CLAIMS}/deviceclasses": classes,
    }


ASKED: dict[str, Asked] = {
    "the context's namespace is meant": ("top", {}),
    "completed pods are not asked for": (f"top -A --node {NODE}", {}),
    **{
        f"an agent's answer: {name}": ("top --request-timeout 2s", {AGENT: answer})
        for name, answer in SILENCE.items()
    },
    "neither nodes nor agents may be listed": ("top", {NODES: DENIED, SYSTEM: DENIED}),
    "pods say what they hold, and agents too": ("top", SAYING),
    "pods say what they hold, and agents may not be listed": ("top", SAYING | {SYSTEM: DENIED}),
    "pods say what they hold, and agents may not be asked": ("top", SAYING | {AGENT: DENIED}),
    "a pod says what it holds, in JSON": ("top -o json", SAYING | {SYSTEM: DENIED}),
    "a story by what a pod says": ("explain trainer-0 -o json", SAYING | {SYSTEM: DENIED}),
    "no agent runs": ("top", {SYSTEM: listed()}),
    "an agent that is not ready is not waited for": (
        *("top", {SYSTEM: listed(agent_pod(ready="False"))}),
    ),
    "agents of the nodes in question are asked": ("top", TWO_AGENTS),
    "all agents are asked": ("top -A", TWO_AGENTS),
    **{
        f"nothing to show: {words}": (words, NOTHING)
        for words in (
            *("top -n empty", "top -A --node gpu-9", "top cards --node gpu-9"),
            "top nodes --node gpu-9",
        )
    },
    **{
        f"{what} as {form}": (f"top {what} -o {form}", {})
        for what in ("pods", "cards", "nodes")
        for form in ("json", "wide")
    },
    "a story": ("explain trainer-0 -o json", {}),
    "a story without the rights to all of it": ("explain trainer-0", HIDDEN),
    "a story of another driver's claim": ("explain trainer-0", claiming(listed(STORE))),
    "a story of an absent class": ("explain trainer-0", claiming(listed())),
    "a story of a class that may not be read": ("explain trainer-0", claiming(DENIED)),
    "a story of a pod without a node": (
        "explain trainer-0",
        {f"{PODS}/trainer-0": reply(raw_pod(bound=False))},
    ),
    "agents may not be listed for an inspection": (f"inspect {NODE}", {SYSTEM: DENIED}),
    "an agent may not be asked for an inspection": (f"inspect {NODE}", {AGENT: DENIED}),
    "no node to inspect": ("inspect gpu-2", {NODE_2: ABSENT}),
    "a node that may not be read": ("inspect gpu-2", {NODE_2: DENIED}),
    "a node without an agent": ("inspect gpu-2", {NODE_2: reply({"kind": "Node"})}),
    "an agent at its address": (f"inspect {NODE} --agents {NODE}=SERVER/", ONE_GPU_LESS),
    "the agent of another node at an address": (
        *("top nodes --agents gpu-2=SERVER", {"/v1/snapshot": in_page()}),
    ),
    "pods may not be listed": ("top", {PODS: DENIED}),
}


def test_answers_are_those_reviewed(tmp_path: Path) -> None:
    """What is missing, slow, strange or forbidden costs its part alone, with a remedy."""
    assert_cases(FILES / "asked.txt", answered(tmp_path, ASKED))


def test_watching_goes_on_until_somebody_stops_it(desk: Desk) -> None:
    """Every look asks anew; where one fails the last table stays, with a note that it is old."""
    desk.server.on(f"GET {PODS}", listed(raw_pod()), DENIED)
    screen, aside = Impatient(), io.StringIO()

    with pytest.raises(KeyboardInterrupt):
        desk.run("top", "--watch", "--interval", "0", out=screen, err=aside)

    assert 2 <= len(desk.server.seen(f"GET {PODS}"))
    assert 2 == screen.getvalue().count("trainer-0")
    assert "note: this is an old look: GET" in aside.getvalue()


def test_a_terminal_is_told_what_takes_so_long(desk: Desk) -> None:
    """It gets a line after two seconds, a file does not."""
    desk.get(AGENT, hang())
    screen = Screen()

    desk.run("top", "--request-timeout", "2500ms", err=screen)

    assert screen.getvalue().startswith("waiting for 1 of 1 agent\n")


def test_errors_come_with_advice() -> None:
    """One sentence says what happened and what to do."""
    assert "`kubectl version`" in advice(UnreachableError("GET /: nobody there"))
    assert "as it is" == advice(MissingError("as it is"))


DIGITS = "9" * 4299
CONTAINER = '{"limit":"3Gi","processes":%s,"headroom":"factor","cap":"2Gi","settings":[]}'
PLAN = '{"v":1,"mode":"cap","dialect":"gpushare","limit":"3Gi","containers":{"trainer":%s}}'
SETTING = (
    '{"env":%s,"slot":"s0","form":"bytes","done":"set","user":%s,'
    '"L":"1Gi","C":"1Gi","T":"1Gi","A":"1Gi"}'
)
WITH_SETTING = CONTAINER.replace("[]", "[%s]")
PLANS = {
    "many-processes": PLAN % (CONTAINER % DIGITS),
    "more-digits-than-python-reads": PLAN % (CONTAINER % (DIGITS * 2)),
    "an-amount-of-many-digits": PLAN.replace('"3Gi"', DIGITS, 1) % (CONTAINER % 1),
    "a-cap-below-zero": PLAN % (CONTAINER % 1).replace('"2Gi"', "-5"),
    "no-number": PLAN.replace('"v":1', '"v":NaN') % (CONTAINER % 1),
    "no-amount": PLAN % (CONTAINER % 1).replace('"2Gi"', "NaN"),
    "without-end": PLAN % (CONTAINER % 1).replace('"2Gi"', "Infinity"),
    "far-too-large": PLAN % (CONTAINER % 1).replace('"2Gi"', "1e999"),
    "deep": PLAN % ("[" * 900 + "]" * 900),
    "deeper": PLAN % ("[" * 100_000 + "]" * 100_000),
    "deep-version": '{"v":' + "[" * 970 + "]" * 970 + "}",
    "wrong-types": '{"v":1,"mode":[],"dialect":{},"limit":[[]],"containers":[1]}',
    "text-for-a-container": PLAN % '"x"',
    "half-a-character": PLAN % (WITH_SETTING % (1, SETTING % ('"\\ud800"', '"\\udfff"'))),
    "a-huge-text": PLAN % (WITH_SETTING % (1, SETTING % ('"E"', json.dumps("x" * 200_000)))),
    "a-huge-name": PLAN.replace("trainer", "t" * 200_000) % "5",
    "escapes": PLAN % (WITH_SETTING % (1, SETTING % ('"\\u001b[2J"', '"\\u0007"'))),
    "no-json": "{",
    "nothing": "",
}


def test_a_bad_pod_costs_one_line(desk: Desk) -> None:
    """The others have theirs; each is explained as far as it goes, without half characters."""
    bad = {name: raw_pod(name=name, uid=name) for name in PLANS}
    for name, raw in bad.items():
        raw["metadata"]["annotations"] |= {names.PLAN: PLANS[name], names.INJECTED: "yes"}
        desk.get(f"{PODS}/{name}", reply(raw))
    desk.get(PODS, listed(raw_pod(), *bad.values()))
    rows, alone = desk.run("top", "-o", "wide").out.splitlines(), desk.run("top", "-o", "json").json
    told = {name: desk.run("explain", name).out for name in bad}

    assert {"trainer-0", *PLANS} == {row["name"] for row in alone["pods"]}
    assert (len(PLANS) + 2, True) == (len(rows), max(map(len, rows)) < 250)
    assert [] == [name for name in PLANS if f"pod team-a/{name}: " not in told[name]]
    assert all(text.encode() for text in told.values())


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_an_agent_reads_a_bad_pod(plan: str) -> None:
    """What a tenant forges as a plan costs the agent no exception, and changes no limit."""
    raw = builders.pod(builders.gpushare(), annotations={names.PLAN: plan, names.INJECTED: "yes"})
    context = PodContext({names.MODE: "evict"}, {}, Mode.EVICT, CARDS, Units())

    assert 3 * GIB == read_pod_on_node(raw, context).limits[CARDS[0].uuid].limit_bytes
