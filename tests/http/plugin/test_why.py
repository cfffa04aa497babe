"""How pods ended, found at agents and in ConfigMaps, and drawn."""

from dataclasses import replace

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
from kubectl_gpufence.reader import MissingError
from kubectl_gpufence.verbs.why.story import FoundRecord, story
from kubectl_gpufence.view import Display
from tests.support.plugin import DENIED, NODE, SYSTEM, Desk, agent_pod, listed
from tests.support.servers import Answer, refusal, reply
from tests.support.verb_cases import ENDED

PAGE = f"{SYSTEM}/gpufence-agent-x:8080/proxy/v1/why"
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


@pytest.fixture
def known(desk: Desk) -> Desk:
    """An agent that remembers three ends."""
    page = reply(write_records(node_records(EARLIER, ENDED, OTHER)).encode())
    desk.get(PAGE, page)
    desk.get("/apis", reply(APPS))
    desk.get("/apis/apps/v1", reply({"resources": [DEPLOYMENTS]}))
    desk.get("/api/v1", reply({"resources": [{"name": "pods", "kind": "Pod"}]}))
    return desk


def test_a_pod_that_is_gone_is_explained(known: Desk) -> None:
    """Its last end is drawn, with what happened when, why, and the value that would do."""
    said = known.run("why", "worker-7f9c-x")

    assert 0 == said.code
    assert (
        "pod team-a/worker-7f9c-x (Deployment/worker): evicted at 2026-11-20T07:01:02Z" in said.out
    )
    assert "06:59:32, 90 s before the end: it passed its limit of 3072Mi." in said.out
    assert "It was over its limit for 45 s; 30 s above the threshold are allowed" in said.out
    assert "One other pod on its card held 1024Mi of 3072Mi, and 4000Mi were free." in said.out
    assert "About 5568Mi would do" in said.out
    assert "ended 1 more times: --last 2 shows all" in said.err
    assert [] == known.server.seen(f"GET {MAPS}")


@pytest.mark.parametrize("word", ["deploy/worker", "deployments.apps/worker"])
def test_an_owner_that_is_deleted_is_found(known: Desk, word: str) -> None:
    """The ends of its pods are found by its name alone."""
    said = known.run("why", word, "--last", "5", "-o", "json")

    assert ["2026-11-20T07:01:02Z", "2026-11-20T06:00:00Z"] == [
        each["at"] for each in said.json["records"]
    ]
    assert {NODE} == {each["node"] for each in said.json["records"]}


NOTEBOOK = "/apis/kubeflow.org/v1/namespaces/team-a/notebooks/mine"
SETS = "/apis/apps/v1/namespaces/team-a/statefulsets"
GONE = refusal(404, "NotFound")


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


@pytest.fixture
def notebooks(known: Desk) -> Desk:
    """A Notebook whose StatefulSet has another name, and one whose name only looks like its own."""
    kubeflow = {"preferredVersion": {"groupVersion": "kubeflow.org/v1"}}
    known.get("/apis", reply({"groups": [*APPS["groups"], kubeflow]}))
    sets = {"name": "statefulsets", "kind": "StatefulSet", "namespaced": True}
    known.get("/apis/apps/v1", reply({"resources": [DEPLOYMENTS, sets]}))
    kind = {"name": "notebooks", "singularName": "notebook", "kind": "Notebook"}
    known.get("/apis/kubeflow.org/v1", reply({"resources": [{**kind, "namespaced": True}]}))
    records = [of_set(name) for name in ("made-long", "mine-other")]
    known.get(PAGE, reply(write_records(node_records(ENDED, OTHER, *records)).encode()))
    known.get("/apis/apps/v1/namespaces/team-a/deployments/worker", made("worker", "d"))
    known.get(NOTEBOOK, made("mine", "n"))
    known.get(f"{SETS}/made-long", made("made-long", "s", above="n"))
    known.get(f"{SETS}/mine-other", made("mine-other", "t"))
    return known


def test_pods_below_a_notebook_are_found(notebooks: Desk) -> None:
    """What made a pod is read up to its topmost owner; a name alone is no sign."""
    said = notebooks.run("why", "notebook/mine", "--last", "5")

    assert ["pod team-a/made-long-0"] == [
        line.partition(" (")[0] for line in said.out.splitlines() if line.startswith("pod ")
    ]
    assert "" == said.err


def test_a_notebook_that_is_gone_is_found_by_names(notebooks: Desk) -> None:
    """Of what is gone the name is all there is, and a note says so."""
    for path in (NOTEBOOK, f"{SETS}/made-long", f"{SETS}/mine-other"):
        notebooks.get(path, GONE)
    said = notebooks.run("why", "notebook/mine", "--last", "5", "-o", "json")

    assert ["mine-other-0"] == [each["name"] for each in said.json["records"]]
    assert (
        "gone, or not yours to read: StatefulSet/mine-other; mine's by name"
        in said.json["notes"][0]
    )


def test_the_last_ends_of_all_are_listed(known: Desk) -> None:
    """Of every namespace the newest come first, with short memory where that decided."""
    said = known.run("why", "--last", "3", "-A")

    assert said.out.index("pod team-b/other") < said.out.index("2026-11-20T06:00:00Z")
    assert "The card was short of memory: 4000Mi were free" in said.out
    assert "No other pod was on its card." in said.out


def test_without_an_agent_the_configmap_answers(known: Desk) -> None:
    """Where the agent does not run, what it has stored is read; what no agent wrote is left out."""
    known.get(SYSTEM, listed(agent_pod(ready="False"), agent_pod("y", "gpu-2", "False")))
    damaged = {"metadata": {"name": "gpufence-why-z"}, "data": {names.WHY_KEY: "{"}}
    known.get(MAPS, listed(stored(node_records(ENDED)), damaged))
    said = known.run("why", "pod/worker-7f9c-x")
    (seen,) = known.server.seen(f"GET {MAPS}")

    assert "it held 3900Mi and was evicted" in said.out
    assert "1 agent (gpu-2) did not answer" in said.err
    assert f"app.kubernetes.io/name={names.WHY_LABEL}" == seen.query["labelSelector"]


def test_what_may_not_be_read_is_said(known: Desk) -> None:
    """Who may neither ask agents nor list ConfigMaps is sent to the Role that allows both."""
    known.get(PAGE, DENIED)
    known.get(MAPS, DENIED)
    with pytest.raises(MissingError, match="Role gpufence-viewer"):
        known.run("why", "worker-7f9c-x")
    with pytest.raises(MissingError, match="Role gpufence-viewer"):
        known.run("why", "--last", "1")


def test_a_silent_agent_is_named(known: Desk) -> None:
    """Where one of two agents may not be asked, the other's answer has a note."""
    known.get(SYSTEM, listed(agent_pod(), agent_pod("y", "gpu-2", "False")))
    known.get(MAPS, DENIED)
    said = known.run("why", "worker-7f9c-x")

    assert "nothing is known of gpu-2: its pod is not ready" in said.err


def test_a_name_that_is_not_there_has_a_hint(known: Desk) -> None:
    """The error says what may have been meant, and how long records are kept."""
    with pytest.raises(MissingError, match="did you mean worker-7f9c-x") as caught:
        known.run("why", "worker-7f9c-y")
    with pytest.raises(MissingError, match="did you mean Deployment/worker"):
        known.run("why", "deploy/workers")

    assert "128 evictions of each node" in str(caught.value)
    assert "`kubectl gpufence explain -n team-a deploy/NAME` shows why" in str(caught.value)
    assert "run since 2026-11-19T00:00:00Z" in str(caught.value)


def test_nothing_to_tell_is_no_error(desk: Desk) -> None:
    """Where no pod has ended `--last` says so, with how long records are kept."""
    desk.get(SYSTEM, listed())
    desk.get(MAPS, listed())
    said = desk.run("why", "--last", "3")

    assert (0, "") == (said.code, said.out)
    assert "no end of a pod in namespace team-a is recorded" in said.err
    assert "no agent runs in this cluster" in said.err


def test_a_pod_that_lives_shows_its_last_minutes(known: Desk) -> None:
    """What it has held so far is drawn, and `explain` named for the present."""
    living = ENDED._replace(kind=RUNNING, name="alive", enough_bytes=None)
    pages = [write_records(each).encode() for each in (node_records(ENDED), node_records(living))]
    known.server.on(f"GET {PAGE}", *map(reply, pages))
    said = known.run("why", "alive")

    assert "has not ended" in said.out
    assert "it holds 3900Mi; the most it held was 3900Mi." in said.out
    assert "it has not ended: `kubectl gpufence explain`" in said.err
    assert ["", "running"] == [
        seen.query.get("only", "") for seen in known.server.seen(f"GET {PAGE}")
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
