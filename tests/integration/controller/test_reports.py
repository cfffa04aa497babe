"""
From what agents see to a Report in each fenced namespace: on a real API server, with the
controller's own rights and OpenReports' kind.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from controller.reports.document import LEFT_OUT, NAME, REPORT
from gpufence import names
from kube import ClientSettings, ForbiddenError, JsonObject, PatchType, connect, core
from tests.support.controller.gate import Gate, Trouble
from tests.support.controller.process import ControllerProcess
from tests.support.controller.site import ControllerSite
from tests.support.observing import wait_until

pytestmark = pytest.mark.usefixtures("followed")

RULES = ("declared", "capped", "over", "idle")


@pytest.fixture(scope="module")
def reporting_site(shared_site: ControllerSite) -> ControllerSite:
    shared_site.install_reports()
    return shared_site


@pytest.fixture
def bare(
    reporting_site: ControllerSite, site: ControllerSite, full_namespace: str
) -> Iterator[ControllerSite]:
    """The cluster with a fenced namespace, and without OpenReports' kind."""
    assert reporting_site is site
    site.fence(full_namespace, None)
    yield site
    site.forget_reports()


@pytest.fixture
def reported(bare: ControllerSite) -> ControllerSite:
    bare.define_reports()
    return bare


def words(report: JsonObject, part: str = "") -> dict[str, str]:
    """Return what became of each rule, of pods whose names have a part."""
    return {
        item["rule"]: item["result"]
        for item in report.get("results", [])
        if any(part in about["name"] for about in item.get("resources", []))
    }


def version(report: JsonObject) -> str:
    return str(report.get("metadata", {}).get("resourceVersion", ""))


def writes(controller: ControllerProcess, step: str, outcome: str = "done") -> float:
    name = f'gpufence_controller_report_writes_total{{step="{step}",outcome="{outcome}"}}'
    return controller.metrics().get(name, 0)


def passes(controller: ControllerProcess, count: int = 3) -> None:
    """Wait until the agents have been asked for some passes more."""

    def asked() -> float:
        return controller.metrics()["gpufence_controller_agents_asked_total"]

    until = asked() + 2 * count
    wait_until(lambda: asked() >= until, controller.lines)


def test_a_report_says_of_each_pod_how_it_stands(
    reported: ControllerSite, full_namespace: str
) -> None:
    """
    Who is over fails, who is idle and who was told nothing are warned of, and the summary adds up.
    """
    reported.played.greedy = {"greedy"}
    reported.played.busy = {"modest"}
    reported.deploy(full_namespace, "greedy")
    reported.deploy(full_namespace, "modest")
    with reported.controller() as controller:
        wait_until(
            lambda: (
                words(reported.report(full_namespace), "greedy").get("idle") == "warn"
                and words(reported.report(full_namespace), "modest").get("idle") == "pass"
            ),
            controller.lines,
        )
        report = reported.report(full_namespace)

    first = report["results"][0]
    (pod,) = [
        item for item in reported.pods(full_namespace) if "greedy" in item["metadata"]["name"]
    ]
    told = "warn"  # no webhook runs here
    assert dict(zip(RULES, ("pass", told, "fail", "warn"), strict=True)) == words(report, "greedy")
    assert dict(zip(RULES, ("pass", told, "pass", "pass"), strict=True)) == words(report, "modest")
    assert {"pass": 4, "fail": 1, "warn": 3, "error": 0, "skip": 0} == report["summary"]
    assert ("over", "high", "it holds more than its limit of 5120 MiB on card GPU-1") == (
        *(first[key] for key in ("rule", "severity", "message")),
    )
    assert pod["metadata"]["uid"] == first["resources"][0]["uid"]
    assert {"owner": "Deployment/greedy", "node": pod["spec"]["nodeName"]} == first["properties"]
    assert ("gpufence", full_namespace) == (report["source"], report["scope"]["name"])


def test_a_report_is_written_when_it_says_something_new(
    reported: ControllerSite, full_namespace: str
) -> None:
    """
    Passes in which nothing changes leave its version alone; one in which a pod goes over does not.
    """
    reported.played.busy = {"worker"}
    reported.deploy(full_namespace, "worker")
    with reported.controller() as controller:
        wait_until(
            lambda: words(reported.report(full_namespace)).get("idle") == "pass", controller.lines
        )
        passes(controller)
        before = reported.report(full_namespace)
        passes(controller)
        after = reported.report(full_namespace)
        reported.played.greedy = {"worker"}
        wait_until(
            lambda: words(reported.report(full_namespace)).get("over") == "fail", controller.lines
        )

    assert before == after


def test_what_nobody_can_tell_is_skipped(reported: ControllerSite, full_namespace: str) -> None:
    """Of a node whose agent is silent or knows old things nothing passes, and it says why."""
    reported.played.busy = {"worker"}
    reported.deploy(full_namespace, "worker")
    skipped = dict.fromkeys(("declared", "over", "idle"), "skip")
    with reported.controller() as controller:
        for trouble in (reported.agents.silent, reported.agents.stale):
            wait_until(
                lambda: words(reported.report(full_namespace)).get("over") == "pass",
                controller.lines,
            )
            trouble |= set(reported.played.nodes)
            wait_until(
                lambda: skipped.items() <= words(reported.report(full_namespace)).items(),
                controller.lines,
            )
            why = {item["message"] for item in reported.report(full_namespace)["results"]}
            trouble.clear()

    assert any("knows is too old" in each for each in why)


def test_a_report_goes_with_its_fence(reported: ControllerSite, full_namespace: str) -> None:
    """A namespace that is fenced no longer has none; what somebody else has called so stays."""
    with (
        reported.plane.fresh_namespace("other") as other,
        reported.controller() as controller,
    ):
        reported.admin.post(
            REPORT.path(other), {**_report("mine"), "metadata": {"name": "gpufence"}}
        )
        wait_until(lambda: reported.report(full_namespace), controller.lines)
        label = {"metadata": {"labels": {names.MODE: None}}}
        reported.admin.patch(core("namespaces", full_namespace), label, PatchType.MERGE)
        wait_until(lambda: not reported.report(full_namespace), controller.lines)

        assert "mine" == reported.report(other)["source"]


def test_what_others_make_of_a_report_is_mended(
    reported: ControllerSite, full_namespace: str
) -> None:
    """
    Whoever may edit Reports can neither change nor delete what is said for longer than a pass.
    """
    path = REPORT.path(full_namespace, NAME)
    with reported.controller() as controller:
        wait_until(lambda: reported.report(full_namespace), controller.lines)
        reported.admin.patch(path, {"source": "liar"}, PatchType.MERGE)
        wait_until(lambda: reported.report(full_namespace)["source"] == "gpufence")
        reported.admin.delete(path)
        wait_until(lambda: reported.report(full_namespace), controller.lines)


def test_a_kind_that_comes_goes_and_comes_again(bare: ControllerSite, full_namespace: str) -> None:
    """
    Without it no agent is asked and nothing is complained of, and it is found when it is there.
    """
    with bare.controller() as controller:
        controller.wait_until_leading()
        time.sleep(2)
        unasked = controller.metrics()["gpufence_controller_agents_asked_total"]
        bare.define_reports()
        wait_until(lambda: bare.report(full_namespace), controller.lines)
        bare.forget_reports()
        wait_until(lambda: controller.metrics()["gpufence_controller_reports"] == 0)
        bare.define_reports()
        wait_until(lambda: bare.report(full_namespace), controller.lines)
        failed = [line for line in map(str, controller.lines) if "failed" in line]

    assert (0, []) == (unasked, failed)


def test_the_leader_alone_writes(reported: ControllerSite, full_namespace: str) -> None:
    """The other asks no agent; when it takes over, it finds everything said already."""
    reported.played.busy = {"worker"}
    reported.deploy(full_namespace, "worker")
    with reported.controller() as first:
        first.wait_until_leading()
        with reported.controller() as second:
            wait_until(
                lambda: words(reported.report(full_namespace)).get("idle") == "pass", first.lines
            )
            passes(first)
            before = reported.report(full_namespace)
            idle = second.metrics()["gpufence_controller_agents_asked_total"]
            first.process.terminate()
            second.wait_until_leading()
            passes(second)
            written = writes(second, "apply")

    assert (0, 0) == (idle, written)
    assert version(before) == version(reported.report(full_namespace))


def test_a_report_is_bounded(reported: ControllerSite, full_namespace: str) -> None:
    """The worst come first, the last says what is left out, and the summary counts everything."""
    reported.played.greedy = {"worker"}
    reported.deploy(full_namespace, "worker", 3)
    with reported.controller(GPUFENCE_REPORT_RESULTS="3") as controller:
        wait_until(
            lambda: reported.report(full_namespace).get("summary", {}).get("fail") == 3,
            controller.lines,
        )
        report = reported.report(full_namespace)

    assert ["over", "over", LEFT_OUT] == [item["rule"] for item in report["results"]]
    assert report["results"][-1]["message"].startswith("10 more results")
    assert {"limits": {"maxResults": 3}} == report["configuration"]
    assert 13 == sum(report["summary"].values())


def test_a_write_that_comes_too_late_is_decided_anew(
    reported: ControllerSite, full_namespace: str, tmp_path: Any
) -> None:
    """
    A Report that has changed since it was seen is not deleted as it was, but in the next pass; and
    one whose answer is lost is not written twice.
    """
    path = REPORT.path(full_namespace, NAME)
    with Gate(reported.plane) as gate:
        token = reported.plane.service_account_token(reported.system, names.CONTROLLER)
        kubeconfig = str(gate.kubeconfig(tmp_path, token))
        gate.trouble(Trouble.LOSE_ANSWER, lambda method, at: (method, at) == ("PATCH", path))
        gate.trouble(Trouble.HOLD, lambda method, at: (method, at) == ("DELETE", path))
        with reported.controller(KUBECONFIG=kubeconfig) as controller:
            wait_until(lambda: reported.report(full_namespace), controller.lines)
            first = version(reported.report(full_namespace))
            time.sleep(2)
            same = version(reported.report(full_namespace))
            label = {"metadata": {"labels": {names.MODE: None}}}
            reported.admin.patch(core("namespaces", full_namespace), label, PatchType.MERGE)
            wait_until(gate.held.is_set, controller.lines)
            reported.admin.patch(path, {"source": "changed"}, PatchType.MERGE)
            gate.let_go()
            wait_until(lambda: not reported.report(full_namespace), controller.lines)
        answers = [
            status for method, at, status in gate.statuses if (method, at) == ("DELETE", path)
        ]

    assert first == same
    assert [409, 200] == answers


def test_the_controller_may_write_reports_of_its_name_alone(
    reported: ControllerSite, full_namespace: str
) -> None:
    """With its token: no Report of another name, and no look at those of others."""
    settings = ClientSettings(kubeconfig=str(reported.kubeconfig_of(names.CONTROLLER)))
    applied = {"fieldManager": "thief", "force": "true"}
    with connect(settings) as thief:
        named = {**_report("x"), "metadata": {"name": "other"}}
        with pytest.raises(ForbiddenError):
            thief.patch(REPORT.path(full_namespace, "other"), named, PatchType.APPLY, applied)
        with pytest.raises(ForbiddenError):
            thief.post(REPORT.path(full_namespace), named)
        with pytest.raises(ForbiddenError):
            thief.list(REPORT.everywhere)
        named["metadata"] = {"name": NAME}
        made = thief.patch(REPORT.path(full_namespace, NAME), named, PatchType.APPLY, applied)

    assert "x" == made["source"]


def _report(source: str) -> JsonObject:
    return {"apiVersion": names.REPORT_GROUP, "kind": "Report", "source": source}
