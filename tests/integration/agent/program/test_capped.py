"""A container that ends at its cap, as its Event, metric, snapshot, top and explain say it."""

from collections.abc import Iterator
from functools import partial

import pytest

from gpufence import names
from gpufence.records import read_records
from simulator.controlplane import ControlPlane
from simulator.node import RestartPauses
from tests.support.agent.capped import ASKED, GIVEN, capped
from tests.support.agent.node_site import Ground, NodeSite, events, node_site, place
from tests.support.observing import wait_until


@pytest.fixture(scope="module")
def crashing_site(control_plane: ControlPlane) -> Iterator[NodeSite]:
    pauses = RestartPauses(first_seconds=0.3, most_seconds=1.0)
    with node_site(control_plane, cards="1xT4", pauses=pauses) as ready:
        yield ready


@pytest.fixture
def ground(crashing_site: NodeSite, namespace: str) -> Iterator[Ground]:
    yield crashing_site.ground(namespace)
    crashing_site.clear()


def restarts(ground: Ground, name: str) -> int:
    found = ground.status(name).get("containerStatuses", [])
    return max((item["restartCount"] for item in found), default=0)


def test_a_crash_loop_at_the_cap_is_one_event(crashing_site: NodeSite, ground: Ground) -> None:
    """
    Its pod and its owner have one Event, however often it ends; metric, snapshot, top and explain
    say the same, and explain does where no agent can be asked.
    """
    with crashing_site.agent() as agent:
        place(ground, capped("loop", "hold 1Gi; grow 8Gi/s to 4Gi"))
        wait_until(lambda: restarts(ground, "loop") >= 3, str(ground.status("loop")))
        wait_until(lambda: events(ground, names.CAP_REACHED), str(agent.lines[-5:]))
        counted = {"namespace": ground.namespace, "pod": "loop", "container": "main"}
        key = ",".join(f'{label}="{text}"' for label, text in counted.items())
        metric = f"gpufence_pod_capped_total{{{key}}}"
        wait_until(lambda: agent.metrics().get(metric, 0.0) >= 3, str(agent.metrics()))
        said = events(ground, names.CAP_REACHED)
        (row,) = [item for item in agent.snapshot().pods if item.name == "loop"]
        known = read_records(agent.get("/v1/why")[1]).records
    explained = crashing_site.plugin("explain", "-n", ground.namespace, "loop").stdout
    show = partial(crashing_site.plugin, "top", "-n", ground.namespace)
    wait_until(lambda: "capped" in show().stdout, str(ground.status("loop")))

    assert {"loop", "web"} == {item["involvedObject"]["name"] for item in said}
    assert 2 == len(said)
    assert all("may allocate 2150Mi" in item["message"] for item in said)
    assert all("would do" in item["message"] for item in said)
    (record,) = [item for item in known if item.namespace == ground.namespace]
    assert ("capped", "loop", ASKED, GIVEN, True) == (
        *(record.kind, record.name, record.asked_bytes),
        *(record.given_bytes, record.certain),
    )
    (ended,) = row.ended
    assert ("main", "capped", ASKED, GIVEN) == (ended.container, ended.reason, *ended[4:6])
    assert ended.certain
    assert "of 3072Mi asked for, it may allocate 2150Mi" in " ".join(explained.split())
    assert "headroom: auto" in explained
