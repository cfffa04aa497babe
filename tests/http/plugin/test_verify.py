"""`verify --node NODE` on a scripted API server: the Job that it makes, and what becomes of it."""

import json
from typing import Any

import pytest
import yaml

from kubectl_gpufence.reader import MissingError
from kubectl_gpufence.verbs.verify import UnansweredError, job_on
from tests.support.plugin import NODE, SYSTEM, Desk, listed
from tests.support.servers import refusal, reply
from tools import ROOT
from tools.manifests import COMPONENTS

AGENTS = "/apis/apps/v1/namespaces/gpufence-system/daemonsets/gpufence-agent"
JOBS = "/apis/batch/v1/namespaces/gpufence-system/jobs"
WEBHOOK = "/apis/apps/v1/namespaces/gpufence-system/deployments/gpufence-webhook"
NAME = "gpufence-verify-x"
SET = {"name": "GPUFENCE_RESERVE", "value": "Tesla T4=1664Mi"}


def daemonset() -> dict[str, Any]:
    text = (ROOT / "deploy" / "base" / "agent" / "daemonset.yaml").read_text()
    manifest: dict[str, Any] = yaml.safe_load(text)
    return manifest


def pod(phase: str, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": f"{NAME}-1"}, "status": {"phase": phase} | status}


@pytest.fixture
def bench(desk: Desk) -> Desk:
    """Return a cluster with the shipped agent, and a Job that ends well."""
    desk.get(AGENTS, reply(daemonset()))
    desk.get(WEBHOOK, reply({"spec": {"template": {"spec": {"containers": [{"env": [SET]}]}}}}))
    desk.server.on(f"POST {JOBS}", reply({"metadata": {"name": NAME}}, 201))
    desk.server.on(f"DELETE {JOBS}/{NAME}", reply({}))
    desk.get(SYSTEM, listed(pod("Succeeded")))
    desk.get(f"{SYSTEM}/{NAME}-1/log", reply(b"As assumed.\n"))
    return desk


@pytest.mark.parametrize(("phase", "code"), [("Succeeded", 0), ("Failed", 1)])
def test_the_jobs_answer_is_printed_and_the_job_deleted(phase: str, code: int, bench: Desk) -> None:
    """What the pod wrote is shown, its end is the exit code, and nothing is left behind."""
    bench.get(SYSTEM, listed(pod(phase)))
    said = bench.run("verify", "--node", NODE, "--program", "torch=x y", "-o", "json")
    (asked,) = bench.server.seen(f"POST {JOBS}")
    (deleted,) = bench.server.seen(f"DELETE {JOBS}/{NAME}")
    container = json.loads(asked.body)["spec"]["template"]["spec"]["containers"][0]

    assert (code, "As assumed.\n") == (said.code, said.out)
    assert ["verify", "-o", "json", "--program=torch=x y"] == container["command"][1:]
    assert {"propagationPolicy": "Background"} == json.loads(deleted.body)


def test_the_job_is_the_agents_pod_without_its_rights() -> None:
    """Its image, runtime class, tolerations and host PIDs stay; token, probes and priority go."""
    agents = daemonset()["spec"]["template"]["spec"]
    made = job_on(NODE, daemonset(), [], 300)["spec"]["template"]["spec"]
    container, terms = made["containers"][0], made["affinity"]["nodeAffinity"]

    for same in ("hostPID", "runtimeClassName", "tolerations", "securityContext"):
        assert agents[same] == made[same]
    assert agents["containers"][0]["image"] == container["image"]
    assert made["automountServiceAccountToken"] is False
    assert not {"serviceAccountName", "priorityClassName"} & made.keys()
    assert not {"livenessProbe", "ports"} & container.keys()
    assert [{"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,utility"}] == [
        each for each in container["env"] if each["name"].endswith("CAPABILITIES")
    ]
    assert NODE in json.dumps(terms)


@pytest.mark.parametrize("hidden", [403, 404, None])
def test_the_job_knows_what_is_set_for_contexts(hidden: int | None, bench: Desk) -> None:
    """The webhook's own setting counts where it can be seen, and the table where it cannot."""
    if hidden is not None:
        bench.get(WEBHOOK, refusal(hidden, "x"))
    bench.run("verify", "--node", NODE)
    (asked,) = bench.server.seen(f"POST {JOBS}")
    container = json.loads(asked.body)["spec"]["template"]["spec"]["containers"][0]

    assert (hidden is None) == (SET in container["env"])


@pytest.mark.parametrize("component", ["driver-cdi", "driver-nri"])
def test_the_job_gets_the_driver_by_the_agents_annotations(component: str) -> None:
    """They name the container, too, so that it keeps its name."""
    agents = daemonset()
    patch = yaml.safe_load((COMPONENTS / component / "agent.yaml").read_text(encoding="utf-8"))
    said = agents["spec"]["template"]["metadata"]["annotations"] = patch["spec"]["template"][
        "metadata"
    ]["annotations"]
    made = job_on(NODE, agents, [], 300)["spec"]["template"]

    assert said == made["metadata"]["annotations"]
    assert ["agent"] == [each["name"] for each in made["spec"]["containers"]]


@pytest.mark.parametrize(
    ("pods", "said"),
    [
        ([], "it has no pod yet"),
        ([pod("Pending", conditions=[{"status": "False", "message": "0/1 nodes"}])], "0/1 nodes"),
        (
            [
                pod(
                    "Pending",
                    containerStatuses=[{"state": {"waiting": {"reason": "ErrImagePull"}}}],
                )
            ],
            "ErrImagePull",
        ),
    ],
)
def test_a_job_that_does_not_end_says_what_it_waits_for(
    pods: list[dict[str, Any]], said: str, bench: Desk
) -> None:
    """The error names the Job and its reason, and the Job is deleted all the same."""
    bench.get(SYSTEM, listed(*pods))
    with pytest.raises(UnansweredError, match=f"{NAME} did not end in 0 s: .*{said}"):
        bench.run("verify", "--node", NODE, "--timeout", "10ms")

    assert bench.server.seen(f"DELETE {JOBS}/{NAME}")


def test_without_an_agent_there_is_no_image(bench: Desk) -> None:
    """The error says what to do instead."""
    bench.get(AGENTS, refusal(404, "NotFound"))
    with pytest.raises(
        MissingError, match="install gpufence first, or run `gpufence-agent verify`"
    ):
        bench.run("verify", "--node", NODE)
