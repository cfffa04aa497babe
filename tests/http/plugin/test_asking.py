"""Answers that are missing, slow, strange or forbidden."""

import io
import json

import pytest

from agent.fence import PodContext
from agent.pod_view import read_pod_on_node
from gpufence import names
from gpufence.dialects import Units
from gpufence.memory_condition import HeldOnCard
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from gpufence.snapshot import write_snapshot
from kube import ForbiddenError, UnreachableError
from kubectl_gpufence.output import advice
from kubectl_gpufence.reader import MissingError
from tests.http.kube.builders import status
from tests.support import builders
from tests.support.agent.builders import CARDS
from tests.support.builders import container
from tests.support.plugin import (
    ABSENT,
    AGENT,
    DENIED,
    LIMIT,
    NODE,
    PODS,
    SYSTEM,
    Desk,
    Screen,
    agent_pod,
    listed,
    raw_pod,
    raw_saying,
    snapshot,
)
from tests.support.servers import Answer, hang, reply

OF_CLAIMS = "/apis/resource.k8s.io/v1"
STORE = {"metadata": {"name": "store.example.com"}, "spec": {}}
NODE_2 = "/api/v1/nodes/gpu-2"
NEWER = write_snapshot(snapshot()).replace('"v":1', '"v":2').encode()


class Impatient(io.StringIO):
    """Takes two pages and then presses Ctrl-C."""

    def write(self, text: str, /) -> int:
        if self.getvalue().count("POD") >= 2:
            raise KeyboardInterrupt
        return super().write(text)


def test_the_contexts_namespace_is_meant(desk: Desk) -> None:
    """Where no namespace is named, that of the kubeconfig's context is asked for."""
    said = desk.run("top")

    assert (0, "") == (said.code, said.err)
    assert "trainer-0" in said.out
    assert "NAMESPACE" not in said.out


def test_completed_pods_are_not_asked_for(desk: Desk) -> None:
    """What has ended holds no memory, and may be the most of a cluster."""
    desk.run("top", "-A", "--node", NODE)

    [seen] = desk.server.seen("GET /api/v1/pods")
    assert (
        f"status.phase!=Succeeded,status.phase!=Failed,spec.nodeName={NODE}"
        == seen.query["fieldSelector"]
    )


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (DENIED, "you may not ask agents"),
        (ABSENT, "its pod is gone, or knows no snapshots"),
        (reply(status(503, "ServiceUnavailable", "no route"), 503), "it does not answer: no route"),
        (reply(status(400, "BadRequest", "no"), 400), "it refuses: 400 no"),
        (reply(b"<html>"), "its answer is no snapshot"),
        (reply(NEWER), "it is newer than this plugin: upgrade the plugin"),
        (reply({"odd": 1}, 202), "status 202 comes without a text"),
        (hang(), "it does not answer in time"),
    ],
    ids=["denied", "gone", "unreachable", "refused", "page", "newer", "accepted", "silent"],
)
def test_a_silent_agent_costs_only_the_measurements(
    desk: Desk, answer: Answer, reason: str
) -> None:
    """Limits and caps are shown all the same, and the note says what is the matter."""
    desk.get(AGENT, answer)

    said = desk.run("top", "-o", "json", "--request-timeout", "2s")

    [pod] = said.json["pods"]
    assert ("3072Mi", "2150Mi", None) == (pod["limit"], pod["told"], pod["used"])
    assert any(reason in note for note in said.json["notes"])


def test_who_may_not_list_nodes_or_agents_is_told_so(desk: Desk) -> None:
    """Each missing right is one note."""
    desk.get("/api/v1/nodes", DENIED)
    desk.get(SYSTEM, DENIED)

    said = desk.run("top")

    assert 2 == said.err.count("note: you may not list")
    assert "trainer-0" in said.out


@pytest.mark.parametrize("place", [SYSTEM, AGENT])
def test_pods_say_what_they_hold_where_agents_may_not_be_asked(desk: Desk, place: str) -> None:
    """Their conditions are shown with a note, by both verbs, and only there."""
    raw = raw_saying("OverLimit", HeldOnCard(0, 3500 * MIB, LIMIT))
    desk.get(PODS, listed(raw))
    desk.get(f"{PODS}/trainer-0", reply(raw))
    measured = desk.run("top", "-o", "json").json
    desk.get(place, DENIED)
    table, rows = desk.run("top"), desk.run("top", "-o", "json").json
    explained = desk.run("explain", "trainer-0", "-o", "json").json
    said = {"reason": "OverLimit", "at": "2026-01-02T03:04:05Z"}

    assert None is measured["pods"][0]["said"]
    assert (said, "3500Mi", 0) == tuple(rows["pods"][0][key] for key in ("said", "used", "index"))
    assert "~3500Mi" in table.out
    assert "~ is what pods say of themselves" in table.err
    amounts = {"index": 0, "used": "3500Mi", "limit": "3072Mi"}
    assert {**said, "cards": [amounts]} == explained["measured"]["said"]
    assert ["It is over its limit."] == explained["follows"]


def test_a_cluster_without_agents_says_so(desk: Desk) -> None:
    """No agent at all is not the same as one that is silent."""
    desk.get(SYSTEM, listed())

    assert "no agent runs in this cluster" in desk.run("top").err


def test_only_agents_of_the_nodes_in_question_are_asked(desk: Desk) -> None:
    """For one namespace there is no need to ask a thousand nodes."""
    desk.get(SYSTEM, listed(agent_pod(), agent_pod("gpufence-agent-y", "gpu-2")))

    assert "" == desk.run("top").err
    assert "not scripted" in desk.run("top", "-A").err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("top", "-n", "empty"), "no pod in namespace empty has to do with GPU memory"),
        (("top", "-A", "--node", "gpu-9"), "no pod in any namespace has to do with GPU memory on"),
        (("top", "cards", "--node", "gpu-9"), "there are no cards on node gpu-9"),
        (("top", "nodes", "--node", "gpu-9"), "there are no GPU nodes on node gpu-9"),
    ],
    ids=["namespace", "all", "cards", "nodes"],
)
def test_nothing_to_show_is_said(desk: Desk, arguments: tuple[str, ...], text: str) -> None:
    """An empty table would leave open whether the question was understood."""
    desk.get("/api/v1/pods", listed())
    desk.get("/api/v1/nodes/gpu-9", reply(b'{"metadata": {"name": "gpu-9"}}'))

    said = desk.run(*arguments)

    assert (0, "") == (said.code, said.out)
    assert f"note: {text}" in said.err


@pytest.mark.parametrize("what", ["pods", "cards", "nodes"])
def test_every_table_of_top_is_also_json(desk: Desk, what: str) -> None:
    """Programs find the items under the word that was typed, with a version."""
    found = desk.run("top", what, "-o", "json").json

    assert 1 == found["v"]
    assert 1 == len(found[what])
    assert desk.run("top", what, "-o", "wide").out.count("\n") == 2


def test_watching_goes_on_until_somebody_stops_it(desk: Desk) -> None:
    """Every look asks anew."""
    desk.server.on(f"GET {PODS}", listed(raw_pod()), listed(raw_pod(name="later")))
    screen = Impatient()

    with pytest.raises(KeyboardInterrupt):
        desk.run("top", "--watch", "--interval", "0", out=screen)

    assert 2 <= len(desk.server.seen(f"GET {PODS}"))
    assert "trainer-0" in screen.getvalue()


def test_a_watch_survives_a_failing_look(desk: Desk) -> None:
    """The last table stays, with a note that it is old."""
    desk.server.on(f"GET {PODS}", listed(raw_pod()), DENIED)
    screen, aside = Impatient(), io.StringIO()

    with pytest.raises(KeyboardInterrupt):
        desk.run("top", "--watch", "--interval", "0", out=screen, err=aside)

    assert 2 == screen.getvalue().count("trainer-0")
    assert "note: this is an old look: GET" in aside.getvalue()


def test_an_agent_that_is_not_ready_is_not_waited_for(desk: Desk) -> None:
    """A lost node costs no patience."""
    desk.get(SYSTEM, listed(agent_pod(ready="False")))

    assert "its pod is not ready" in desk.run("top").err
    assert [] == desk.server.seen(f"GET {AGENT}")


def test_whoever_sits_there_is_told_what_takes_so_long(desk: Desk) -> None:
    """A terminal gets a line after two seconds, a file does not."""
    desk.get(AGENT, hang())
    screen = Screen()

    desk.run("top", "--request-timeout", "2500ms", err=screen)

    assert screen.getvalue().startswith("waiting for 1 of 1 agent\n")


def test_a_story_is_also_json(desk: Desk) -> None:
    """Programs get declared, injected and measured, what follows and what to do."""
    told = desk.run("explain", "trainer-0", "-o", "json").json

    assert ("3072Mi", "3072Mi") == (
        told["declared"]["limit"],
        told["measured"]["cards"][0]["limit"],
    )
    assert ["It is within its limit. Nothing happens."] == told["follows"]


def test_a_story_is_told_without_the_rights_to_all_of_it(desk: Desk) -> None:
    """Namespace, node, events and agents are extras."""
    for path in ("/api/v1/namespaces/team-a", f"/api/v1/nodes/{NODE}", SYSTEM):
        desk.get(path, DENIED)
    desk.get("/api/v1/namespaces/team-a/events", DENIED)

    said = desk.run("explain", "trainer-0")

    assert 0 == said.code
    assert "namespace unknown" in said.out
    assert "Unknown: you may not list pods in gpufence-system" in said.out


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (listed(STORE), "its resource claims ask for no GPU that gpufence knows"),
        (listed(), "memory of device class store.example.com, which does not exist"),
        (DENIED, "memory of device class store.example.com, which cannot be read"),
    ],
    ids=["another driver's", "absent", "denied"],
)
def test_a_story_tells_whose_memory_a_claim_asks_for(desk: Desk, answer: Answer, told: str) -> None:
    """By the class, since any driver's devices may have memory."""
    wanted = builders.request("3Gi")
    wanted["exactly"]["deviceClassName"] = "store.example.com"
    raw = raw_pod(bound=False)
    del raw["metadata"]["annotations"]
    raw["spec"] = {
        "containers": [builders.claiming(container(), gpu="")],
        "resourceClaims": [builders.by_template("gpu", "part")],
    }
    desk.get(f"{PODS}/trainer-0", reply(raw))
    desk.get(
        f"{OF_CLAIMS}/namespaces/team-a/resourceclaimtemplates/part",
        reply(builders.template("part", wanted)),
    )
    desk.get(f"{OF_CLAIMS}/deviceclasses", answer)

    assert told in " ".join(desk.run("explain", "trainer-0").out.split())


def test_a_story_of_a_pod_without_a_node_asks_no_agent(desk: Desk) -> None:
    """Before a pod is placed nobody measures it."""
    desk.get(f"{PODS}/trainer-0", reply(raw_pod(bound=False)))

    assert "no node has been chosen yet" in desk.run("explain", "trainer-0").out
    assert [] == desk.server.seen(f"GET {AGENT}")


@pytest.mark.parametrize(
    ("node", "path", "answer", "text"),
    [
        (NODE, SYSTEM, DENIED, "you may not list pods in gpufence-system"),
        (NODE, AGENT, DENIED, "agent gpufence-agent-x on node gpu-1: you may not ask agents"),
        ("gpu-2", NODE_2, ABSENT, "there is no node gpu-2; `kubectl get nodes`"),
        ("gpu-2", NODE_2, DENIED, "no agent runs on a node gpu-2"),
        ("gpu-2", NODE_2, reply({"kind": "Node"}), "on node gpu-2; `kubectl gpufence doctor`"),
    ],
    ids=["agents", "snapshot", "absent", "denied", "without"],
)
def test_an_inspection_needs_its_agent(
    desk: Desk, node: str, path: str, answer: Answer, text: str
) -> None:
    """Without a snapshot there is nothing to inspect, and what is missing decides what to do."""
    desk.get(path, answer)

    with pytest.raises(MissingError, match=text):
        desk.run("inspect", node)


def test_errors_that_end_a_call_come_with_advice(desk: Desk) -> None:
    """One sentence says what happened and what to do."""
    desk.get(PODS, DENIED)

    with pytest.raises(ForbiddenError) as caught:
        desk.run("top")

    assert advice(caught.value).endswith("or name a namespace of yours with -n")
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
    """The others have theirs; each is explained as far as that goes, without half characters."""
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
