"""Texts that others have chosen, in everything that the plugin prints."""

import pytest

from gpufence import names
from gpufence.errors import GpufenceError
from gpufence.idle import OwnerRelease, OwnerReleases, write_owners
from gpufence.quantity import GIB
from gpufence.records import NodeRecords, Record, write_records
from gpufence.snapshot import EndedRow, PodActivityRow, write_snapshot
from kubectl_gpufence.output import advice
from tests.support.plugin import (
    AGENT,
    NODE,
    PODS,
    SYSTEM,
    Desk,
    card_row,
    listed,
    pod_row,
    raw_pod,
    snapshot,
    use_row,
)
from tests.support.servers import refusal, reply

HOSTILE = "\x1b[2J\x1b]0;x\x07\u202e\r\n<script>"
EVENT = {
    "metadata": {"creationTimestamp": HOSTILE},
    "involvedObject": {"kind": "Pod", "namespace": "team-a", "name": "trainer-0"},
    "reason": names.EVICTED,
    "message": HOSTILE,
    "type": "Warning",
}
CALLS = (
    *("top", "top pods -o wide", "top cards", "top nodes", "top -A -o json"),
    *("explain trainer-0", "explain gone-0", "why worker-0", "why --last 9 -A", "recommend -A"),
    *(f"inspect {NODE}", "idle -A -o wide", "why deploy/fresh", "explain deploy/fresh"),
)


def spoiled() -> dict[str, object]:
    """Return a pod whose annotations, condition and last words draw."""
    pod = raw_pod()
    pod["metadata"]["annotations"] |= {
        **dict.fromkeys((names.SUMMARY, names.WARNINGS, names.PLAN, names.FRAMEWORK), HOSTILE),
        names.MEMORY: HOSTILE,
    }
    said = {
        "terminated": {"exitCode": 1, "reason": HOSTILE, "message": f"CUDA out of memory {HOSTILE}"}
    }
    status = {"name": "trainer", "restartCount": 9, "lastState": said, "state": said}
    condition = {"type": names.GPU_MEMORY, "status": "False", "reason": HOSTILE, "message": HOSTILE}
    pod["status"] |= {"containerStatuses": [status], "conditions": [condition]}
    return pod


@pytest.fixture
def hostile(desk: Desk) -> Desk:
    """A cluster in which agents, pods and Events say what would clear a screen."""
    ended = EndedRow("trainer", HOSTILE, HOSTILE, certain=True)
    row = pod_row(
        use_row(GIB, outcome=HOSTILE, fence=HOSTILE),
        ended=(ended,),
        undeclared=HOSTILE,
        activity=PodActivityRow(HOSTILE, 1.0, HOSTILE, HOSTILE),
    )
    other = row._replace(uid="other", name=HOSTILE, owner=f"ReplicaSet/{HOSTILE}", mode=HOSTILE)
    card = card_row(model=HOSTILE, trouble=HOSTILE)
    known = snapshot(row, other, cards=(card,), brake=HOSTILE, driver=HOSTILE, version=HOSTILE)
    desk.get(AGENT, reply(write_snapshot(known).encode()))
    record = Record("evicted", HOSTILE, "u", "team-a", "worker-0", HOSTILE, HOSTILE, model=HOSTILE)
    records = NodeRecords(NODE, HOSTILE, (record, record._replace(name=HOSTILE)))
    page = f"{SYSTEM}/gpufence-agent-x:8080/proxy/v1/why"
    desk.get(page, reply(write_records(records).encode()))
    gone = {**EVENT, "involvedObject": {**EVENT["involvedObject"], "name": "gone-0"}}  # type: ignore[dict-item]  # it is one
    fresh = {
        **EVENT,
        "involvedObject": {"kind": "Deployment", "namespace": "team-a", "name": "fresh"},
        "reason": "FailedCreate",
        "message": f"gpufence refuses this pod: {HOSTILE}",
    }
    desk.get("/api/v1/namespaces/team-a/events", listed(EVENT, gone, fresh))
    for path in (PODS, "/api/v1/pods"):
        desk.get(path, listed(spoiled()))
    desk.get(f"{PODS}/trainer-0", reply(spoiled()))
    desk.get("/apis", reply({"groups": [{"preferredVersion": {"groupVersion": "apps/v1"}}]}))
    kind = {"name": "deployments", "kind": "Deployment", "shortNames": ["deploy"]}
    desk.get("/apis/apps/v1", reply({"resources": [{**kind, "namespaced": True}]}))
    worker = {"name": "fresh", "namespace": "team-a", "uid": "d", "resourceVersion": "1"}
    at = "/apis/apps/v1/namespaces/team-a/deployments/fresh"
    desk.get(at, reply({"metadata": worker}))
    owner = OwnerRelease("team-a", "apps/v1", "Deployment", "fresh", state="kept", why=HOSTILE)
    said = OwnerReleases(leader=True, at=0.0, brake=HOSTILE, owners=(owner,))
    desk.get(f"{SYSTEM}/gpufence-agent-x:8080/proxy/v1/owners", reply(write_owners(said).encode()))
    desk.get("/apis/gpufence.io/v1alpha1/gpumemoryprofiles", refusal(404, "NotFound"))
    desk.get(f"{PODS}/gone-0", refusal(404, "NotFound"))
    return desk


@pytest.mark.parametrize("call", CALLS)
def test_what_others_have_written_draws_nothing(hostile: Desk, call: str) -> None:
    """Tables, stories, notes and errors have lines that a terminal shows as they are."""
    try:
        said = hostile.run(*call.split())
        text = said.out + said.err
    except GpufenceError as error:
        text = advice(error)

    assert text
    assert [] == [line for line in text.split("\n") if not line.isprintable()]
