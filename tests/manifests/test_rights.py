"""Rights and requests are the same set: no rule that no code uses, no request that lacks a rule."""

from typing import Any

import pytest
import yaml

from gpufence import names
from kube.owners import NOTEBOOK, WORKLOAD
from kubectl_gpufence.verbs.doctor import read
from tests.manifests.calls import Module, Right, rights_of
from tests.support.tree import found
from tools import ROOT
from tools.manifests import BASE, COMPONENTS, components, objects

WORKLOADS = (WORKLOAD[0], "workloads")
NOTEBOOKS = (NOTEBOOK[0], "notebooks")
AS_NODE = "impersonate-on:associated-node:"
IMPERSONATE = Right("authentication.k8s.io", "nodes", "impersonate:associated-node")
OPTIONAL = dict.fromkeys(
    ("gpufence-webhook-profiles", "gpufence-webhook-quota"), "gpufence-webhook"
)
CERTS = "gpufence-certs"
HELD = {
    "gpufence-webhook": {"gpufence-webhook"},
    "gpufence-agent": {"gpufence-agent"},
    CERTS: {CERTS},
    names.CERTS_INSTALL: {CERTS, names.CERTS_INSTALL},
}
"""Which roles each account holds: the install what the daily run may, and for its time one more."""
TRUSTING = Right("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "patch")
BY_NODE = {
    Right("resource.k8s.io", "resourceclaims", "get"),
    Right("resource.k8s.io", "resourceslices", "list"),
}
OWN = frozenset({"namespaces", "configmaps"})
CARDS = Right("", "nodes", "patch")
"""As itself, since a node may label and cordon itself: a policy leaves one annotation of it."""
SAYS = {Right("", "events", "create")}
"""What the Event writer asks of whoever only says, and beside it of whoever counts."""
COUNTS = {*SAYS, Right("", "events", "patch")}
TRYING = ("trial_pod.py", "verify.py")
ABOVE_PODS = {
    *(
        Right("apps", kind, "get")
        for kind in ("deployments", "replicasets", "statefulsets", "daemonsets")
    ),
    *(Right("batch", kind, "get") for kind in ("jobs", "cronjobs")),
}
"""Found by climbing, by no path that is spelled out."""
# RBAC cannot limit creation to names; the Secrets come with the manifests, and where somebody
# deleted one, the refusal becomes a message that says so.
WITHHELD = {Right("", "secrets", "create")}


def granted(account: str) -> list[dict[str, Any]]:
    """Return the rules of every role of that name; two components add to the webhook's."""
    more = [
        item
        for component in ("need", "quota")
        for item in objects(COMPONENTS / component)
        if item["metadata"]["name"] in OPTIONAL
    ]
    roles = [
        item
        for item in [*objects(), *more]
        if item["kind"] in {"Role", "ClusterRole"}
        and OPTIONAL.get(item["metadata"]["name"], item["metadata"]["name"]) == account
    ]
    return [rule for role in roles for rule in role["rules"]]


def spelled(rules: list[dict[str, Any]]) -> list[Right]:
    return [
        Right(group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def test_the_event_writer_creates_and_counts() -> None:
    """What agent and controller have written is all that the writer they share asks for."""
    assert COUNTS == Module(ROOT / "kube" / "event_writer.py").read()


def test_the_webhook_may_do_what_it_does() -> None:
    """The roles of the webhook grant what its code asks, to the verb."""
    assert rights_of("webhook") == set(spelled(granted("gpufence-webhook")))


def test_the_install_alone_may_say_who_is_trusted() -> None:
    """Of what the certificates' code asks, one right is not the daily run's."""
    asked = rights_of("certs") - WITHHELD

    assert asked - {TRUSTING} == set(spelled(granted(CERTS)))
    assert [TRUSTING] == spelled(granted(names.CERTS_INSTALL))


@pytest.mark.parametrize("component", [None, *components()])
def test_nobody_else_writes_what_admits_objects(component: str | None) -> None:
    """No role of any component writes a webhook configuration or a policy, but the install's."""
    folder = BASE if component is None else COMPONENTS / component
    kinds = {TRUSTING.resource, "validatingwebhookconfigurations", "validatingadmissionpolicies"}
    writing = [
        (item["metadata"]["name"], right)
        for item in objects(folder)
        if item["kind"] in {"Role", "ClusterRole"}
        for right in spelled(item.get("rules") or [])
        if right.resource in kinds and right.verb not in {"get", "list", "watch"}
    ]

    assert [(names.CERTS_INSTALL, TRUSTING)] * (component is None) == writing


def test_the_agent_may_do_as_its_node_what_it_does() -> None:
    """The agent reads words and tells its cards as itself, and does all the rest as its node."""
    asked = rights_of("agent") | COUNTS
    expected = {
        right
        if right.resource in OWN or right == CARDS
        else Right(right.group, right.resource, f"{AS_NODE}{right.verb}")
        for right in asked
    } | {IMPERSONATE}

    assert expected == set(spelled(granted("gpufence-agent")))


def test_the_agent_of_an_older_cluster_may_do_the_same_plainly() -> None:
    """Component kubernetes-1.30 grants the same to the account itself, but for claims."""
    rules = (COMPONENTS / "kubernetes-1.30" / "rules.yaml").read_text(encoding="utf-8")
    (patch,) = yaml.safe_load(rules)
    role = spelled(found("Role", "gpufence-agent")["rules"])

    assert (rights_of("agent") | COUNTS) - BY_NODE == {*spelled(patch["value"]), *role}


OF_NEED = "gpufence.io"
READ_OWNERS = ("get", "list", "watch", "patch")
DYNAMIC = {
    *(
        Right("apps", kind, verb)
        for kind in ("deployments", "statefulsets", "replicasets")
        for verb in READ_OWNERS
    ),
    *(
        Right("apps", f"{kind}/scale", "update")
        for kind in ("deployments", "statefulsets", "replicasets")
    ),
    *(Right(*WORKLOADS, verb) for verb in READ_OWNERS),
    *(Right(*NOTEBOOKS, verb) for verb in READ_OWNERS),
    *(
        Right(group, kind, verb)
        for group, kind in (
            ("autoscaling", "horizontalpodautoscalers"),
            ("keda.sh", "scaledobjects"),
        )
        for verb in ("list", "watch")
    ),
}
"""What `kube.workloads` and the watches of kinds ask, by paths made of what discovery says."""


def test_the_controller_may_do_what_it_does() -> None:
    """Component idle-release grants what its code asks, beside the profiles of component need."""
    folder = COMPONENTS / "idle-release"
    rules = [
        rule
        for kind in ("Role", "ClusterRole")
        for rule in found(kind, names.CONTROLLER, folder)["rules"]
    ]

    asked = {right for right in rights_of("controller", "writes.py") if right.group != OF_NEED}
    asked |= SAYS

    assert sorted(asked | DYNAMIC) == sorted(spelled(rules))


def test_viewers_may_read_what_the_plugin_reads() -> None:
    """
    People are granted what `kubectl gpufence` asks for, and to see who owns pods in the end;
    `doctor` looks further, and says in its table of rights what it cannot do without. To release,
    and to try a pod or a driver, takes more.
    """
    table = {
        Right(
            each.get("group", ""),
            f"{each['resource']}/{each.get('subresource', '')}".rstrip("/"),
            each["verb"],
        )
        for each in read.RIGHTS.values()
    }

    asked = rights_of("kubectl_gpufence", "read.py", "release.py", *TRYING) | table

    assert asked | ABOVE_PODS == set(spelled(granted("gpufence-viewer")))


@pytest.mark.parametrize("name", list(HELD))
def test_no_right_is_granted_twice(name: str) -> None:
    """Each right stands in one rule."""
    rights = spelled(granted(name))

    assert len(set(rights)) == len(rights)


def test_nothing_is_granted_by_wildcard() -> None:
    """No rule says `*`, and none lets an account become another by the old verb."""
    rights = [
        right
        for item in objects()
        if item["kind"] in {"Role", "ClusterRole"}
        for right in spelled(item["rules"])
    ]

    assert not [right for right in rights if "*" in {right.group, right.resource, right.verb}]
    assert not [right for right in rights if right.verb == "impersonate"]


def test_each_account_holds_its_own_roles_alone() -> None:
    """Bindings name the accounts of ours that each role is for, and nobody else."""
    held: dict[str, set[str]] = {}
    for item in objects():
        for subject in item.get("subjects", []):
            where = (subject["kind"], subject["namespace"])

            assert ("ServiceAccount", names.SYSTEM_NAMESPACE) == where
            held.setdefault(subject["name"], set()).add(item["roleRef"]["name"])

    assert held == HELD


def test_rights_in_a_namespace_are_in_ours() -> None:
    """Every Role is one of our own namespace."""
    assert {names.SYSTEM_NAMESPACE} == {
        item["metadata"]["namespace"] for item in objects(BASE) if item["kind"] == "Role"
    }
