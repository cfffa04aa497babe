"""
The token of each program, stolen: what it may do by RBAC, and every door known, tried.

What is expected is read from the two tables of docs/isolation.md.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from gpufence import names
from kube import (
    Client,
    ClientSettings,
    connect,
    group,
)
from simulator.controlplane import ControlPlane
from tests.integration.deploy.doors import (
    AGENT,
    ASIDE,
    DOORS,
    MINE,
    OTHER,
    OWN,
    RBAC,
    RELEASING,
    TEAM,
    THEIRS,
    doors_shown,
    labelled,
)
from tests.integration.deploy.rendering import WORKLOADS, listed, rendered
from tests.support.objects import pod
from tests.support.observing import eventually
from tests.support.programs import Helm
from tests.support.rights import EVERYWHERE, HERE, VIEWER, Held, shown
from tests.support.site import AS_ITS_NODE
from tools.manifests import all_of, components, own_overlay

pytestmark = pytest.mark.since(*AS_ITS_NODE, skip=True)

# Rights of older Kubernetes and certificates of others have tests of their own.
APART = {"kubernetes-1.30", "cert-manager", "simulated"}
NOBODY: Final = "nobody"


class Token(NamedTuple):
    """An account as its thief has it: as itself, and where it may be another, as that."""

    client: Client
    as_node: Client | None

    def opens(self, what: str) -> bool:
        door = DOORS[what]
        if what == "act as a user":
            return door.open(self.client.impersonating("admin"))
        return any(door.open(each) for each in (self.client, self.as_node) if each is not None)


SHOWN: Final = doors_shown()
DOCTOR: Final = "gpufence-doctor"
HELD: Final = [account for account in SHOWN if account != DOCTOR]
"""Whose rights are in the manifests; the doctor's are in the chart, for as long as it looks."""
OF_DOCTOR: Final = {
    Held(DOCTOR, where, verb, resource, "")
    for where, verb, resources in (
        (
            EVERYWHERE,
            "get",
            (
                "mutatingwebhookconfigurations.admissionregistration.k8s.io",
                "validatingadmissionpolicies.admissionregistration.k8s.io",
                "validatingadmissionpolicybindings.admissionregistration.k8s.io",
            ),
        ),
        (EVERYWHERE, "list", ("scaledobjects.keda.sh",)),
        (HERE, "get", ("deployments.apps", "configmaps")),
        (HERE, "list", ("endpointslices.discovery.k8s.io",)),
    )
    for resource in resources
}


def installed(plane: ControlPlane, folder: Path, helm: Helm) -> list[dict[str, Any]]:
    """Return all but workloads, with every component that goes together, and `helm test`."""
    shown_only = ("--show-only=templates/doctor.yaml", f"--namespace={HERE}")
    doctors = [item for item in all_of(helm.template(*shown_only)) if item["kind"] != "Pod"]
    parts = [name for name in components() if name not in APART]
    items = rendered(plane, own_overlay(folder, parts)).values()
    bindings: list[dict[str, Any]] = [
        {
            "apiVersion": RBAC,
            "kind": f"{kind}Binding",
            "metadata": {"name": VIEWER, "namespace": HERE} if kind == "Role" else {"name": VIEWER},
            "roleRef": {"apiGroup": RBAC.partition("/")[0], "kind": kind, "name": VIEWER},
            "subjects": [{"kind": "ServiceAccount", "name": VIEWER, "namespace": HERE}],
        }
        for kind in ("Role", "ClusterRole")
    ]
    accounts: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": HERE},
        }
        for name in (VIEWER, NOBODY)
    ]
    ours = [one for one in items if one["kind"] not in WORKLOADS]
    return [*ours, *accounts, *bindings, *doctors]


def surroundings() -> list[dict[str, Any]]:
    """Return two nodes, two teams with an owner each, and pods on both nodes."""
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod("x")["spec"]}
    selector = {"matchLabels": {"app": "x"}}
    spec = {"replicas": 1, "paused": True, "selector": selector, "template": template}
    items: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {names.DRIVER_LIMITS: "true"}},
        }
        for name in (OWN, OTHER)
    ]
    for team, labels in ((TEAM, {names.MODE: "evict"}), (RELEASING, {names.IDLE: "release"})):
        metadata = {"name": team, "labels": labels}
        items.append({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        owner = {"name": "owner", "namespace": team}
        items.append(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": owner, "spec": spec}
        )
    return items


@pytest.fixture(scope="module")
def everything(
    plane: ControlPlane, helm_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    helm = Helm(helm_program, tmp_path_factory.mktemp("helm"))
    items = listed(installed(plane, tmp_path_factory.mktemp("all"), helm))
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=items)
    around = listed(surroundings())
    plane.kubectl("apply", "-f", "-", stdin=around)
    for team in (TEAM, RELEASING):
        plane.kubectl(
            *("wait", "serviceaccount/default", "-n", team, "--for=create", "--timeout=30s")
        )
    pods = [(MINE, OWN, TEAM), (THEIRS, OTHER, TEAM), (ASIDE, "", TEAM), ("stolen", OWN, HERE)]
    for name, where, namespace in pods:
        body = pod(name)
        if where:
            body["spec"]["nodeName"] = where
        if namespace == HERE:
            body["spec"]["serviceAccountName"] = AGENT
        plane.kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(body))
    yield
    for name, _, namespace in pods:
        plane.kubectl("delete", "pod", name, "-n", namespace, "--force", "--ignore-not-found")
    plane.kubectl("delete", "-f", "-", "--ignore-not-found", "--timeout=50s", stdin=around)
    plane.kubectl("delete", "-f", "-", "--ignore-not-found", "--timeout=50s", stdin=items)


@pytest.fixture(scope="module")
def tokens(plane: ControlPlane, everything: None) -> dict[str, Token]:
    """Steal the token of each account; an agent's is bound to its pod, and so to its node."""
    del everything
    found = {}
    for account in (*SHOWN, NOBODY):
        bound_to = "stolen" if account == AGENT else None
        text = plane.service_account_token(HERE, account, pod=bound_to)
        config = plane.token_kubeconfig(f"{account}-stolen", text)
        client = connect(ClientSettings(kubeconfig=str(config)))
        node = client.impersonating(f"system:node:{OWN}") if bound_to else None
        found[account] = Token(client, node)
    return found


def by_rules(client: Client, namespace: str) -> set[tuple[str, str, str]]:
    """Ask the API server which verbs an account has on what in a namespace, and everywhere."""
    review = {"spec": {"namespace": namespace}}
    path = group("authorization.k8s.io/v1", "selfsubjectrulesreviews")
    rules = client.post(path, review)["status"]["resourceRules"]
    return {
        (verb, f"{resource}.{api}".rstrip("."), name)
        for rule in rules
        for verb in rule["verbs"]
        for api in rule.get("apiGroups", [""])
        for resource in rule["resources"]
        for name in rule.get("resourceNames") or [""]
    }


def granted(tokens: dict[str, Token], account: str) -> set[Held]:
    client, nobody = tokens[account].client, tokens[NOBODY].client
    cluster = by_rules(client, TEAM) - by_rules(nobody, TEAM)
    here = by_rules(client, HERE) - by_rules(nobody, HERE) - cluster
    found = {Held(account, EVERYWHERE, *right) for right in cluster}
    return found | {Held(account, HERE, *right) for right in here}


@pytest.mark.parametrize("account", HELD)
def test_rbac_grants_what_the_page_shows_and_no_more(
    tokens: dict[str, Token], account: str
) -> None:
    """All verbs of all resources, as the API server has them, are those of the page's table."""
    found = granted(tokens, account)

    assert sorted(_alike(shown(), account)) == sorted(_alike(found, account))


def test_the_doctor_reads_what_viewers_do_and_how_it_is_installed(
    tokens: dict[str, Token],
) -> None:
    """The account of `helm test` reads, and nothing of tenants that a viewer does not."""
    expected = {right._replace(account=DOCTOR) for right in shown() if right.account == VIEWER}

    assert sorted(_alike(expected | OF_DOCTOR, DOCTOR)) == sorted(
        _alike(granted(tokens, DOCTOR), DOCTOR)
    )


def _alike(held: set[Held], account: str) -> set[Held]:
    """What is granted everywhere is granted here, too, and shows once."""
    mine = {right for right in held if right.account == account}
    return {
        right
        for right in mine
        if right.where == EVERYWHERE or right._replace(where=EVERYWHERE) not in mine
    }


@pytest.mark.parametrize("account", list(SHOWN))
def test_every_door_is_as_the_page_says(tokens: dict[str, Token], account: str) -> None:
    """Each known way to more is tried for real with each token, and ends as the page says."""
    expected = SHOWN[account]
    stolen = tokens[account]
    # Policies count a moment after they are made.
    eventually(lambda: expected == {what: stolen.opens(what) for what in DOORS}, 15)

    assert expected == {what: stolen.opens(what) for what in DOORS}


@pytest.mark.parametrize(
    ("there", "said", "opens"),
    [
        (None, "true", True),
        ("true", None, True),
        (None, "false", False),
        ("true", "false", False),
        ("false", "true", False),
    ],
)
def test_an_agent_says_of_its_node_that_it_can_and_nothing_else(
    plane: ControlPlane,
    tokens: dict[str, Token],
    there: str | None,
    said: str | None,
    opens: bool,  # noqa: FBT001 - a row of the table
) -> None:
    """Where a label is, by whomever, the agent can only take it away."""
    change = f"{names.DRIVER_LIMITS}={there}" if there else f"{names.DRIVER_LIMITS}-"
    plane.kubectl("label", "node", OWN, change, "--overwrite")
    try:
        assert eventually(lambda: opens == labelled(OWN, said).open(tokens[AGENT].client), 15)
    finally:
        plane.kubectl("label", "node", OWN, f"{names.DRIVER_LIMITS}=true", "--overwrite")


VERBS = (
    *("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
    *("bind", "escalate", "impersonate", "approve", "sign", "use", "proxy", "attest"),
)


def discovered(client: Client) -> list[tuple[str, str]]:
    """Return every resource and subresource that the API server knows, with its group."""
    groups = client.get("/apis")["groups"]
    roots = {each["name"]: f"/apis/{each['preferredVersion']['groupVersion']}" for each in groups}
    return [
        (api, item["name"])
        for api, root in {"": "/api/v1", **roots}.items()
        for item in client.get(root)["resources"]
    ]


def may(admin: Client, account: str, namespace: str, verb: str, what: tuple[str, str]) -> bool:
    api, resource = what
    kind, _, sub = resource.partition("/")
    asked = {"namespace": namespace, "verb": verb, "group": api, "resource": kind}
    user = f"system:serviceaccount:{HERE}:{account}"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{HERE}", "system:authenticated"]
    spec = {
        "user": user,
        "groups": groups,
        "resourceAttributes": {**asked, "subresource": sub, "version": "*"},
    }
    path = group("authorization.k8s.io/v1", "subjectaccessreviews")
    return bool(admin.post(path, {"spec": spec})["status"]["allowed"])


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("account", HELD)
def test_no_verb_on_anything_known_is_allowed_beside(
    plane: ControlPlane, tokens: dict[str, Token], account: str
) -> None:
    """Asked one by one, each verb on each resource there is has the answer that the page has."""
    held = {right[1:4] for right in shown() if right.account == account and not right.name}
    wrong = []
    with connect(ClientSettings(kubeconfig=str(plane.kubeconfig()))) as admin:
        for api, resource in discovered(admin):
            for verb in VERBS:
                if may(admin, NOBODY, HERE, verb, (api, resource)):
                    continue
                right = (verb, f"{resource}.{api}".rstrip("."))
                everywhere = (EVERYWHERE, *right) in held
                here = everywhere or (HERE, *right) in held
                for where, expected in ((TEAM, everywhere), (HERE, here)):
                    if expected != may(admin, account, where, verb, (api, resource)):
                        wrong.append((where, *right))

    assert tokens
    assert [] == wrong
