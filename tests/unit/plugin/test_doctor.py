"""What the doctor finds; and what it looks for is what the manifests install."""

import base64
import datetime as dt
import json
from dataclasses import replace
from typing import Any

import pytest
import trustme

from gpufence import names
from gpufence.capped import Ending
from gpufence.cards import Instance, NodeCards
from gpufence.errors import Level
from gpufence.names import DRIVER_LIMITS as LABEL
from gpufence.names import MODE
from gpufence.plan import Done, Setting, write_setting
from gpufence.quantity import GIB
from kubectl_gpufence.cluster_view import by_node
from kubectl_gpufence.pods import STATUS_PORT, SeenPod, read_status_pod, see_pod
from kubectl_gpufence.reader import AGENT_LABEL, WEBHOOK_LABEL
from kubectl_gpufence.verbs.doctor import FINDING_FIELDS, examine, findings_lines, is_wrong
from kubectl_gpufence.verbs.doctor.installation import (
    HOOKS,
    POLICIES,
    Installation,
    LabelledNamespace,
    MaybeHidden,
    read_labelled,
)
from kubectl_gpufence.verbs.doctor.read import metric, validity
from kubectl_gpufence.view import Display, records
from tests.support import verb_cases
from tests.support.plugin import (
    NODE,
    agent,
    pod_row,
    raw_pod,
    seen_node,
    seen_pod,
    snapshot,
    use_row,
)
from tests.support.tree import found
from tools.manifests import objects

FINE = verb_cases.healthy()
NO_PODS: dict[str, Any] = {
    "namespaces": MaybeHidden([LabelledNamespace("team-a", "cap")]),
    "pods": MaybeHidden([]),
}
SHORT = (0.0, verb_cases.NOW + verb_cases.DAY)
FIRST = {"default-max-mode": "observe"}


CAPPED = Ending("trainer", 1, waiting="CrashLoopBackOff", out_of_memory="CUDA out of memory")


def texts(**changes: Any) -> str:
    """Return all that is said of a healthy installation in which something is different."""
    return " ".join(item.text for item in examine(replace(FINE, **changes)))


@pytest.mark.parametrize(
    ("installation", "text"),
    [
        (FINE, "all is well"),
        (replace(FINE, deployment=verb_cases.deployment(1, None)), "all is well"),
        (replace(FINE, version=verb_cases.version("v1.35.0")), "nothing is wrong, 1 worth a look"),
        (replace(FINE, system=MaybeHidden()), "1 thing is wrong"),
        (verb_cases.denied(), "nothing wrong was found, and 16 could not be found out"),
    ],
    ids=["fine", "one replica", "old", "absent", "denied"],
)
def test_the_doctor_sums_up(installation: Installation, text: str) -> None:
    """The last line says whether anything is wrong, and what else there is."""
    assert text == list(findings_lines(examine(installation), Display()))[-1]


def _called(*urls: str) -> MaybeHidden[Any]:
    hooks = [
        {"name": name, "failurePolicy": "Ignore", "clientConfig": {"url": url} if url else {}}
        for name, url in zip(HOOKS, urls, strict=True)
    ]
    return MaybeHidden({"webhooks": hooks})


def test_a_webhook_outside_of_the_cluster_needs_no_deployment() -> None:
    """
    Where all hooks call an address, nobody misses replicas and endpoints; where one of them calls
    none, they are missed.
    """
    away: dict[str, Any] = {"deployment": MaybeHidden(), "slices": MaybeHidden([])}
    url = "https://127.0.0.1:4433"
    whole = texts(configuration=_called(*(f"{url}/{name}" for name in HOOKS)), **away)
    partly = texts(configuration=_called(url, url, url, ""), **away)

    assert f"it runs outside of this cluster, at {url}" in whole
    assert "there is no Deployment" not in whole
    assert "there is no Deployment" in partly
    assert "there is no Deployment" in texts(configuration=_called(*[""] * 4), **away)


def test_the_doctor_speaks_json() -> None:
    """Programs get level, subject, words and remedy of each check."""
    items = records(FINDING_FIELDS, examine(verb_cases.bare()))

    assert {"level", "subject", "said", "remedy"} == set(items[0])
    assert is_wrong(examine(verb_cases.bare()))
    assert not is_wrong(examine(FINE))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"agents": MaybeHidden({}), "nodes": verb_cases.HIDDEN}, "you may not see it"),
        (
            {"switch": MaybeHidden({"data": {"max-mode": "cap"}})},
            "no agent evicts any pod (highest mode cap); caps are as namespaces ask",
        ),
        ({"switch": MaybeHidden({})}, "namespaces decide"),
        (
            {"switch": MaybeHidden({"data": {"max-mode": "evict", "default-max-mode": "observe"}})},
            "no agent evicts any pod (highest mode observe)",
        ),
        ({"trusted": dict.fromkeys(HOOKS, (*verb_cases.YEARS, SHORT))}, "(2 CAs, 3650d left)"),
        (
            {"deployment": verb_cases.deployment(None)},
            "0 of 2 replicas ready: new pods get no limits",
        ),
        (
            {"namespaces": MaybeHidden([LabelledNamespace("a", "cap")]), "pods": MaybeHidden([])},
            "1 in mode cap",
        ),
        (
            NO_PODS | {"pods": MaybeHidden([replace(seen_pod(), endings=(CAPPED,))])},
            "1 pod in a crash loop (capped): team-a/trainer-0",
        ),
    ],
    ids=["hidden", "lowered", "no key", "lower", "overlap", "no replica", "no pods", "capped"],
)
def test_a_rare_state_has_its_finding(changes: dict[str, Any], text: str) -> None:
    """A lowered kill switch, two CAs that overlap, a webhook scaled to nothing: each is named."""
    assert text in texts(**changes)


@pytest.mark.parametrize(
    ("data", "remedy"),
    [({"max-mode": "cap"}, """-p '{"data":{"max-mode":null}}'"""), (FIRST, "observeFirst=false")],
    ids=["by hand", "installed"],
)
def test_a_lowered_switch_is_lifted_where_it_was_lowered(data: dict[str, str], remedy: str) -> None:
    """What somebody set by hand is taken back so, and what a component set by leaving that out."""
    (switch,) = [
        one
        for one in examine(replace(FINE, switch=MaybeHidden({"data": data})))
        if one.subject == "kill switch"
    ]

    assert remedy in switch.remedy


def test_a_ca_that_ends_soon_is_wrong() -> None:
    """Two weeks before its end nobody has renewed it: something is broken."""
    assert is_wrong(examine(replace(FINE, trusted=dict.fromkeys(HOOKS, (SHORT,)))))


def test_what_is_on_its_way_out_needs_no_remedy() -> None:
    """A namespace that is being deleted is fenced no more, and a pod that ends is not asked for."""
    ending = {
        "name": "team-a",
        "labels": {MODE: "cap"},
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    }
    missed = replace(seen_pod(), injected="", namespace="team-a")

    assert LabelledNamespace("team-a", None) == read_labelled({"metadata": ending})
    assert "never saw 1 pod" in texts(pods=MaybeHidden([missed]))
    assert "never saw" not in texts(pods=MaybeHidden([replace(missed, terminating=True)]))


def test_a_node_whose_cards_cannot_be_read_is_named() -> None:
    """One broken annotation says so, and takes no other finding away."""
    odd = replace(seen_node(), cards=None, cards_trouble="odd")

    assert "gpu-1: odd" in texts(nodes=MaybeHidden({"gpu-1": odd}))


def test_a_node_that_is_measured_in_part_is_not_called_unmeasured() -> None:
    """A card that cannot be read takes nothing away from what is said of the others."""
    said = agent(snapshot(trouble="card 1: GB10 has no memory of its own"))

    assert "gpu-1 is measured in part: card 1: GB10" in texts(agents=MaybeHidden({"gpu-1": said}))


def test_hidden_parts_do_not_hide_the_rest() -> None:
    """Whoever may not see pods or nodes still learns about everything else."""
    hidden: dict[str, Any] = {"pods": verb_cases.HIDDEN, "nodes": verb_cases.HIDDEN}

    assert "measures and answers" in texts(**hidden)
    assert {Level.OK, Level.UNKNOWN} == {item.level for item in examine(replace(FINE, **hidden))}


def bundle(*pems: bytes) -> str:
    return base64.b64encode(b"".join(pems)).decode()


def test_each_ca_of_a_bundle_has_its_time() -> None:
    """From when to when is read of every CA that a caBundle holds; an empty one holds none."""
    first, second = trustme.CA(), trustme.CA(organization_name="another")
    times = validity(bundle(first.cert_pem.bytes(), second.cert_pem.bytes()))

    assert times is not None
    assert 2 == len(times)
    assert all(since < dt.datetime.now(dt.UTC).timestamp() < until for since, until in times)
    assert () == validity("")


@pytest.mark.parametrize(
    "text",
    [
        "%%%",
        bundle(b"\xff\xfe"),
        bundle(b"no certificate"),
        bundle(trustme.CA().issue_cert("example.test").cert_chain_pems[0].bytes()),
    ],
    ids=["no base64", "no text", "no PEM", "no CA"],
)
def test_what_is_no_bundle_cannot_be_read(text: str) -> None:
    """
    Whatever somebody pasted there, if only a server's certificate, the doctor says it is none.
    """
    assert None is validity(text)


def test_a_metric_is_found_by_its_whole_name() -> None:
    """Neither a longer name nor one with labels is taken for it, nor what is no number."""
    page = '# HELP x Something.\nx 12.5\nxy 1\nbad much\nlabelled{a="b"} 3\n'

    assert [12.5, None, None] == [metric(page, name) for name in ("x", "bad", "labelled")]


def names_of(kind: str) -> set[str]:
    return {item["metadata"]["name"] for item in objects() if item["kind"] == kind}


def test_hooks_and_policies_are_those_that_are_installed() -> None:
    """The doctor misses no hook and no policy, and asks for none that does not exist."""
    hooks = found("MutatingWebhookConfiguration", names.WEBHOOK_CONFIGURATION)["webhooks"]

    assert set(HOOKS) == {hook["name"] for hook in hooks}
    assert set(POLICIES) == names_of("ValidatingAdmissionPolicy")
    assert set(POLICIES) == names_of("ValidatingAdmissionPolicyBinding")


def test_agents_and_webhooks_are_found_by_their_labels() -> None:
    """The labels and the status port are those of the pods' templates."""
    for kind, name, label in (
        ("DaemonSet", "gpufence-agent", AGENT_LABEL),
        ("Deployment", names.WEBHOOK_SERVICE, WEBHOOK_LABEL),
    ):
        template = found(kind, name)["spec"]["template"]
        key, _, value = label.partition("=")

        assert value == template["metadata"]["labels"][key]
        assert STATUS_PORT == read_status_pod(template).port


def test_objects_the_doctor_asks_for_are_installed() -> None:
    """The kill switch and the namespace are part of the base."""
    assert names.POLICY_CONFIGMAP in names_of("ConfigMap")
    assert names.SYSTEM_NAMESPACE in names_of("Namespace")


def limiting(setting: str | None = "labelled", **changes: Any) -> Installation:
    """Return a healthy installation whose webhook has this setting, and what else is different."""
    env = [{"name": names.RESERVE, "value": "700Mi"}]
    env += [] if setting is None else [{"name": names.DRIVER_SETTING, "value": setting}]
    template = {"spec": {"containers": [{"name": "webhook", "env": env}]}}
    spec = {"replicas": 2, "template": template}
    whole = {**(FINE.deployment.value or {}), "spec": spec}
    return replace(FINE, deployment=MaybeHidden(whole), **changes)


def about_limits(installation: Installation) -> list[tuple[Level, str]]:
    found = examine(installation)
    return [(item.level, item.text) for item in found if item.subject == "driver limits"]


def stated(driver: str, **changes: Any) -> NodeCards:
    whole = seen_node().cards
    assert whole is not None
    return whole._replace(driver=driver, cards=tuple(c._replace(**changes) for c in whole.cards))


def labelled(**changes: Any) -> MaybeHidden[Any]:
    known = {"limits": True, "cards": stated("615.71.09"), **changes}
    return MaybeHidden({NODE: replace(seen_node(), **known)})


def carrying() -> SeenPod:
    """Build a pod for which the webhook wrote a limit."""
    raw = raw_pod()
    plan = json.loads(raw["metadata"]["annotations"][names.PLAN])
    setting = Setting(names.DRIVER_LIMIT, "", "driver", Done.SET, limit_bytes=GIB)
    for one in plan["containers"].values():
        one["settings"].append(json.loads(write_setting(setting)))
    raw["metadata"]["annotations"][names.PLAN] = json.dumps(plan)
    return see_pod(raw, seen_node().gpu)


def answering(*fences: str, trouble: str = "", **changes: Any) -> MaybeHidden[Any]:
    row = pod_row(*(use_row(fence=fence) for fence in fences))
    return MaybeHidden(by_node([agent(snapshot(row, limits_trouble=trouble, **changes))]))


HELD: dict[str, Any] = {"nodes": labelled(), "pods": MaybeHidden([carrying()])}
NO_START = "no container with a limit starts there"
NOT_SEEN = "1 node on which no agent has seen a driver hold a pod: gpu-1"


@pytest.mark.parametrize(
    ("installation", "expected"),
    [
        pytest.param(FINE, [], id="never heard of"),
        pytest.param(limiting(None), [], id="no setting"),
        pytest.param(limiting("off"), [], id="off"),
        pytest.param(
            limiting("off", nodes=labelled()),
            [(Level.LOOK, f"1 node labelled {LABEL}, and the webhook writes no limit")],
            id="labelled in vain",
        ),
        pytest.param(
            replace(FINE, deployment=verb_cases.HIDDEN, **HELD, agents=answering("driver")),
            [(Level.OK, "1 pod held, as agents read back, on 1 node")],
            id="hidden setting",
        ),
        pytest.param(replace(FINE, deployment=verb_cases.HIDDEN), [], id="hidden, no label"),
        pytest.param(
            limiting(agents=verb_cases.HIDDEN),
            [(Level.UNKNOWN, "you may not see it")],
            id="hidden agents",
        ),
        pytest.param(
            limiting(),
            [(Level.LOOK, "switched on (labelled), and no node has it: no pod gets such a limit")],
            id="no label",
        ),
        pytest.param(
            limiting(**HELD, agents=answering("driver")),
            [(Level.OK, "1 pod held, as agents read back, on 1 node")],
            id="held",
        ),
        pytest.param(
            limiting("on", **HELD, agents=answering("driver", "agent")),
            [
                (Level.LOOK, "written for 1 pod that no driver holds: team-a/trainer-0"),
                (Level.UNKNOWN, NOT_SEEN),
            ],
            id="not held",
        ),
        pytest.param(
            limiting(**HELD, agents=answering("driver", stale_seconds=99.0)),
            [(Level.UNKNOWN, NOT_SEEN), (Level.OK, "1 pod held, as agents read back, on 1 node")],
            id="stale",
        ),
        pytest.param(
            limiting("on", nodes=labelled()), [(Level.UNKNOWN, NOT_SEEN)], id="nothing seen"
        ),
        pytest.param(
            limiting("on", nodes=labelled(), agents=MaybeHidden({})),
            [(Level.UNKNOWN, NOT_SEEN)],
            id="no agent",
        ),
        pytest.param(
            limiting(nodes=labelled(), agents=answering("agent", trouble="containers fail")),
            [(Level.WRONG, "gpu-1: containers fail")],
            id="trouble",
        ),
        pytest.param(
            limiting(nodes=labelled(cards=stated("580.65"))),
            [(Level.WRONG, f"gpu-1: its driver is 580.65, before 615: {NO_START}")],
            id="old driver",
        ),
        pytest.param(
            limiting("on", nodes=labelled(cards=stated("", mig=Instance("GPU-0", "1g.5gb")))),
            [(Level.WRONG, "gpu-1: it has MIG instances, for which the driver takes no limit")],
            id="MIG",
        ),
        pytest.param(
            limiting(nodes=labelled(cards=None)), [(Level.UNKNOWN, NOT_SEEN)], id="no cards"
        ),
    ],
)
def test_limits_are_called_good_only_where_they_were_seen(
    installation: Installation, expected: list[tuple[Level, str]]
) -> None:
    """What is switched on is compared with nodes, and well only once a pod was seen held there."""
    assert expected == about_limits(installation)
