"""Every alert fires when it should, stays quiet when it should, and leads to its page."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from agent.model.decision import Brake
from tests.support.metric_names import metric_names, metrics_in
from tests.support.running import program
from tests.support.tree import found
from tools.manifests import BASE, COMPONENTS

FOREIGN = ("kube_", "apiserver_")  # of kube-state-metrics, and the API server's own
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in found("PrometheusRule", "gpufence", COMPONENTS / "prometheus-operator")["spec"][
        "groups"
    ]
    for rule in group["rules"]
}
Series = dict[str, str]
NODE = {"node": "n1"}
CARD = {"node": "n1", "card": "GPU-1"}
CLOCK = "0+60x60"
CAP_HOOK = {"name": "cap.pods.gpufence.io"}
CONTACT = 'gpufence_webhook_cluster_last_contact_timestamp_seconds{pod="a",source="nodes"}'
USED = 'gpufence_quota_memory_used_bytes{namespace="team-a"}'
QUOTA = 'gpufence_quota_memory_bytes{namespace="team-a"}'
UNAVAILABLE = "kube_daemonset_status_number_unavailable"
OURS = {"namespace": "gpu-fences", "daemonset": "gpufence-agent"}


class Case(NamedTuple):
    """
    Minute by minute what is shown, at which minute the alert fires, and with which labels; `quiet`
    is what is shown when it does not. `value` is that of the alert, where its summary tells it.
    """

    loud: Series
    quiet: Series
    labels: Mapping[str, str] = {}
    minute: int = 30
    value: str = ""


def card(metric: str, value: str) -> Series:
    return {f'gpufence_card_{metric}{{node="n1",card="GPU-1"}}': value}


def requests(rewritten: str, failed: str) -> Series:
    return {
        'gpufence_webhook_requests_total{hook="cap",result="rewritten"}': rewritten,
        'gpufence_webhook_requests_total{hook="cap",result="failed"}': failed,
    }


def evictions(accepted: str, blocked: str) -> Series:
    return {
        'gpufence_evictions_total{node="n1",action="evict",result="accepted"}': accepted,
        'gpufence_evictions_total{node="n1",action="evict",result="blocked"}': blocked,
    }


def evicted(**pods: str) -> Series:
    """Show how many pods of one owner were evicted on each node, and one of another owner."""
    of_web = 'gpufence_owner_evicted_pods{{namespace="team-a",owner="ReplicaSet/web",node="{}"}}'
    other = 'gpufence_owner_evicted_pods{namespace="team-a",owner="Job/once",node="n1"}'
    return {other: "1x60", **{of_web.format(node): count for node, count in pods.items()}}


def passed(hook: str, count: str, domain: str = "pods.gpufence.io") -> Series:
    """Show how often the API server went on without a hook's answer."""
    name = f"{hook}.{domain}"
    return {f'apiserver_admission_webhook_fail_open_count{{name="{name}",type="admit"}}': count}


def controllers(leader: str, fresh: str, brake: str = "0x60") -> Series:
    """Show two of them, of which the second does not lead."""
    return {
        'gpufence_controller_leader{pod="a"}': leader,
        'gpufence_controller_leader{pod="b"}': "0x60",
        'gpufence_controller_fresh{pod="a"}': fresh,
        'gpufence_controller_fresh{pod="b"}': "0x60",
        'gpufence_controller_brake{pod="a"}': brake,
    }


def measuring(**times: str) -> Series:
    """Show agents of nodes n1 and n2, of which some have measured, and a webhook."""
    shown = {'gpufence_build_info{program="webhook",version="1"}': "1x60"} | {
        f'gpufence_build_info{{program="agent",node="{name}",version="1"}}': "1x60"
        for name in ("n1", "n2")
    }
    return shown | {
        f'gpufence_last_sample_timestamp_seconds{{node="{name}"}}': at for name, at in times.items()
    }


CASES = [
    ("GpufenceWebhookAway", Case({}, {'gpufence_webhook_ready{pod="a"}': "1x60"})),
    (
        "GpufenceWebhookAway",
        Case(
            {'gpufence_webhook_ready{pod="a"}': "0x60", 'gpufence_webhook_ready{pod="b"}': "0x60"},
            {'gpufence_webhook_ready{pod="a"}': "0x60", 'gpufence_webhook_ready{pod="b"}': "1x60"},
        ),
    ),
    (
        "GpufenceWebhookFailing",
        Case(requests("0+9x60", "0+1x60"), requests("0+9x60", "5x60"), {"hook": "cap"}),
    ),
    ("GpufenceWebhookFailOpen", Case(passed("cap", "0x25 1x40"), passed("cap", "7x60"), CAP_HOOK)),
    (
        "GpufenceWebhookFailOpen",  # a count begins with what it counts
        Case(passed("cap", "_x25 1x40"), passed("other", "0+1x60", "example.org"), CAP_HOOK),
    ),
    (
        "GpufenceCertificateEnds",
        Case(
            {"gpufence_webhook_certificate_expiry_timestamp_seconds": "1210199x90"},
            {"gpufence_webhook_certificate_expiry_timestamp_seconds": "1213801x90"},
            minute=70,
        ),
    ),
    (
        "GpufenceWebhookDeaf",
        Case(
            {CONTACT: "0x60"},
            {CONTACT: "0+60x60"},
            {"pod": "a", "source": "nodes"},
        ),
    ),
    (
        "GpufenceQuotaPassed",
        Case(
            {USED: "9x60", QUOTA: "8x60"},
            {USED: "8x60", QUOTA: "8x60"},
            {"namespace": "team-a"},
            minute=1,
        ),
    ),
    (
        "GpufenceAgentAway",
        Case(
            {f'{UNAVAILABLE}{{namespace="gpu-fences",daemonset="gpufence-agent"}}': "2x60"},
            {
                f'{UNAVAILABLE}{{namespace="gpu-fences",daemonset="gpufence-agent"}}': "0x60",
                f'{UNAVAILABLE}{{namespace="gpu-fences",daemonset="other"}}': "2x60",
            },
            OURS,
            value="2",
        ),
    ),
    (
        "GpufenceCardUnreadable",
        Case(card("readable", "0x60"), card("readable", "1x27 0 0 0"), CARD),
    ),
    (
        "GpufenceNotMeasuring",
        Case(measuring(n1="0x60", n2=CLOCK), measuring(n1=CLOCK, n2="1741x60"), NODE),
    ),
    ("GpufenceNotMeasuring", Case(measuring(n2=CLOCK), measuring(n1=CLOCK, n2=CLOCK), NODE)),
    (
        "GpufenceAgentBlind",
        Case(
            {'gpufence_cluster_fresh{node="n1"}': "0x60"},
            {'gpufence_cluster_fresh{node="n1"}': "1x25 0x5"},
            NODE,
        ),
    ),
    (
        "GpufenceLimitsUnsupported",
        Case(
            {'gpufence_driver_limits_unsupported{node="n1"}': "1x60"},
            {'gpufence_driver_limits_unsupported{node="n1"}': "0x60"},
            NODE,
        ),
    ),
    (
        "GpufenceLimitsAbsent",
        Case(
            {'gpufence_driver_limits{node="n1",state="absent"}': "2x60"},
            {
                'gpufence_driver_limits{node="n1",state="absent"}': "0x60",
                'gpufence_driver_limits{node="n1",state="held"}': "2x60",
            },
            NODE,
            value="2",
        ),
    ),
    (
        "GpufenceEvictionsSuspended",
        Case(
            {'gpufence_brake{node="n1",reason="suspended"}': "1x60"},
            {
                'gpufence_brake{node="n1",reason="suspended"}': "0x60",
                'gpufence_brake{node="n1",reason="start"}': "1x60",
            },
            NODE,
        ),
    ),
    (
        "GpufenceEvictionsRefused",
        Case(evictions("0x60", "0+1x60"), evictions("0+1x60", "0x27 1 2 2"), NODE),
    ),
    (
        "GpufenceOwnerEvictedAgain",
        Case(
            evicted(n1="1x60", n2="2x60"),
            evicted(n1="1x60", n2="1x60"),
            {"namespace": "team-a", "owner": "ReplicaSet/web"},
            value="3",
        ),
    ),
    (
        "GpufencePodsOverLimit",
        Case(
            {'gpufence_violating_pods{node="n1",namespace="team-a",mode="evict"}': "3x60"},
            {'gpufence_violating_pods{node="n1",namespace="team-a",mode="observe"}': "3x60"},
            {"namespace": "team-a"},
            value="3",
        ),
    ),
    (
        "GpufenceUnattributedMemory",
        Case(
            card("memory_unattributed_bytes", "1073741825x60"),
            card("memory_unattributed_bytes", "1073741824x60"),
            CARD,
            minute=40,
        ),
    ),
    (
        "GpufenceAgentFailing",
        Case(
            {'gpufence_agent_ticks_failed_total{node="n1"}': "0+1x60"},
            {'gpufence_agent_ticks_failed_total{node="n1"}': "7x60"},
            NODE,
        ),
    ),
    ("GpufenceControllerAway", Case(controllers("0x60", "1x60"), controllers("1x60", "1x60"))),
    ("GpufenceControllerAway", Case(controllers("1x60", "0x60"), {})),
    (
        "GpufenceReleasesSuspended",
        Case(controllers("1x60", "1x60", "1x60"), controllers("1x60", "0x60", "1x60")),
    ),
    (
        "GpufenceControllerFailing",
        Case(
            {'gpufence_controller_passes_failed_total{pod="a"}': "0+1x60"},
            {'gpufence_controller_passes_failed_total{pod="a"}': "7x60"},
            {"pod": "a"},
        ),
    ),
]


def rendered(text: str, case: Case) -> str:
    """Put labels and value into an alert's text as Prometheus does."""
    for name, value in case.labels.items():
        text = text.replace(f"{{{{ $labels.{name} }}}}", value)
    return text.replace("{{ $value }}", case.value)


def rehearsals(alert: str, case: Case) -> list[dict[str, Any]]:
    """Describe the loud and the quiet hour as promtool's tests."""
    rule = RULES[alert]
    fired = {
        "exp_labels": {**rule["labels"], **case.labels},
        "exp_annotations": {
            name: rendered(text, case) for name, text in rule["annotations"].items()
        },
    }
    return [
        {
            "interval": "1m",
            "input_series": [{"series": name, "values": text} for name, text in shown.items()],
            "alert_rule_test": [
                {"eval_time": f"{case.minute}m", "alertname": alert, "exp_alerts": expected}
            ],
        }
        for shown, expected in ((case.loud, [fired]), (case.quiet, []))
    ]


def test_every_alert_is_rehearsed() -> None:
    """No alert is without a case, and no case without its alert."""
    assert RULES.keys() == {alert for alert, _ in CASES}


@pytest.mark.needs("promtool")
def test_alerts_fire_when_they_should_and_not_when_they_should_not(tmp_path: Path) -> None:
    """Each alert fires in its loud hour, with its text, and not in its quiet one."""
    rules = found("PrometheusRule", "gpufence", COMPONENTS / "prometheus-operator")["spec"]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    tests = [each for alert, case in CASES for each in rehearsals(alert, case)]
    (tmp_path / "tests.yaml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests})
    )
    done = subprocess.run(
        [program("promtool"), "test", "rules", "tests.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("alert", RULES)
def test_alerts_are_about_metrics_that_exist(alert: str) -> None:
    """No alert waits for a figure that nobody shows."""
    expr = RULES[alert]["expr"]

    assert set() == metrics_in(expr) - metric_names()
    assert metrics_in(expr) or any(start in expr for start in FOREIGN)


def test_the_api_servers_count_is_asked_for_our_hooks() -> None:
    """The alert about pods that went on without an answer knows each of our hooks by its name."""
    (pattern,) = set(re.findall(r'name=~"([^"]+)"', RULES["GpufenceWebhookFailOpen"]["expr"]))
    hooks = found("MutatingWebhookConfiguration", "gpufence", BASE)["webhooks"]

    assert [] == [hook["name"] for hook in hooks if not re.fullmatch(pattern, hook["name"])]


def test_alerts_know_the_brakes() -> None:
    """The brake that an alert asks for is one of the code's."""
    asked = set(re.findall(r'reason="(\w+)"', str(RULES)))

    assert set() == asked - {brake.name.lower() for brake in Brake}


@pytest.mark.parametrize("alert", RULES)
def test_alerts_say_how_bad_it_is(alert: str) -> None:
    """Every alert has a severity that people sort by, and two sentences."""
    rule = RULES[alert]

    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert {"summary", "description", "runbook_url"} == rule["annotations"].keys()
