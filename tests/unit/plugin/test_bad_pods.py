"""Pods that somebody made to trip a reader up: each costs its own line, and nobody else's."""

import io
import json
from pathlib import Path

import pytest

from agent.fence import PodContext
from agent.pod_view import read_pod_on_node
from gpufence import names
from gpufence.dialects import Units
from gpufence.mode import Mode
from kubectl_gpufence.cluster_view import ClusterAnswers, NodeAgent
from kubectl_gpufence.output import output_to
from kubectl_gpufence.pod_lines import POD_FIELDS, pod_lines
from kubectl_gpufence.pods import see_pod
from kubectl_gpufence.verbs.explain.chapters import explanation
from kubectl_gpufence.verbs.explain.record import PodRecord
from kubectl_gpufence.view import Display, columns_of, records, table
from tests.support.agent.builders import CARDS
from tests.support.builders import gpushare
from tests.support.builders import pod as built
from tests.support.plugin import NODE, raw_pod, seen_node, snapshot

PLAIN = Display(width=120, colour=False, unicode=True)
DIGITS = "9" * 4299
CONTAINER = '{"limit":"3Gi","processes":%s,"headroom":"factor","cap":"2Gi","settings":[]}'
PLAN = '{"v":1,"mode":"cap","dialect":"gpushare","limit":"3Gi","containers":{"trainer":%s}}'
SETTING = (
    '{"env":%s,"slot":"s0","form":"bytes","done":"set","user":%s,'
    '"L":"1Gi","C":"1Gi","T":"1Gi","A":"1Gi"}'
)
WITH_SETTING = CONTAINER.replace("[]", "[%s]")
PLANS = {
    "many processes": PLAN % (CONTAINER % DIGITS),
    "more digits than Python reads": PLAN % (CONTAINER % (DIGITS * 2)),
    "an amount of many digits": PLAN.replace('"3Gi"', DIGITS, 1) % (CONTAINER % 1),
    "a cap below zero": PLAN % (CONTAINER % 1).replace('"2Gi"', "-5"),
    "no number": PLAN.replace('"v":1', '"v":NaN') % (CONTAINER % 1),
    "no amount": PLAN % (CONTAINER % 1).replace('"2Gi"', "NaN"),
    "without end": PLAN % (CONTAINER % 1).replace('"2Gi"', "Infinity"),
    "far too large": PLAN % (CONTAINER % 1).replace('"2Gi"', "1e999"),
    "deep": PLAN % ("[" * 900 + "]" * 900),
    "deeper": PLAN % ("[" * 100_000 + "]" * 100_000),
    "deep version": '{"v":' + "[" * 970 + "]" * 970 + "}",
    "wrong types": '{"v":1,"mode":[],"dialect":{},"limit":[[]],"containers":[1]}',
    "text for a container": PLAN % '"x"',
    "half a character": PLAN % (WITH_SETTING % (1, SETTING % ('"\\ud800"', '"\\udfff"'))),
    "a huge text": PLAN % (WITH_SETTING % (1, SETTING % ('"E"', json.dumps("x" * 200_000)))),
    "a huge name": PLAN.replace("trainer", "t" * 200_000) % "5",
    "escapes": PLAN % (WITH_SETTING % (1, SETTING % ('"\\u001b[2J"', '"\\u0007"'))),
    "no JSON": "{",
    "nothing": "",
}


def bad_pod(plan: str) -> dict[str, object]:
    made = raw_pod(name="bad-1", uid="bad")
    made["metadata"]["annotations"] |= {names.PLAN: plan, names.INJECTED: "yes"}
    return made


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_bad_pod_costs_top_one_line(plan: str) -> None:
    """The table has a line for the bad pod, and the others' lines as they are without it."""
    good = see_pod(raw_pod(), seen_node().gpu)
    bad = see_pod(bad_pod(plan), seen_node().gpu)
    agents = {NODE: NodeAgent(NODE, "agent-1", snapshot=snapshot())}
    nodes = {NODE: seen_node()}
    alone = ClusterAnswers((good,), agents, nodes)
    both = ClusterAnswers((good, bad), agents, nodes)
    columns = columns_of(POD_FIELDS, wide=True)
    rows = table(columns, pod_lines(both, ""), PLAIN)

    assert 3 == len(rows)
    assert 2 == len(json.dumps(records(POD_FIELDS, pod_lines(both, ""))).split("bad-1"))
    assert max(map(len, rows)) < 250
    assert 2 == len(table(columns, pod_lines(alone, ""), PLAIN))


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_bad_pod_can_be_explained(plan: str, tmp_path: Path) -> None:
    """Its explanation is told as far as it goes, on a terminal that takes no half characters."""
    pod = see_pod(bad_pod(plan), seen_node().gpu)
    lines = explanation(PodRecord(pod=pod, mode="cap", agent=None, no_agent="", events=()), PLAIN)
    with (tmp_path / "out").open("w", encoding="utf-8") as out:
        output_to(out, io.StringIO(), {}).lines(lines)

    assert "bad-1" in (tmp_path / "out").read_text(encoding="utf-8")


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_an_agent_reads_a_bad_pod(plan: str) -> None:
    """What somebody forges as a plan costs the agent no exception, and changes no limit."""
    raw = built(gpushare(), annotations={names.PLAN: plan, names.INJECTED: "yes"})
    context = PodContext({names.MODE: "evict"}, {}, Mode.EVICT, CARDS, Units())
    found = read_pod_on_node(raw, context)

    assert 3 * 2**30 == found.limits[CARDS[0].uuid].limit_bytes
