"""Every known way from a program's token to more than it should do, as requests to be tried."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from gpufence import names
from gpufence.need import need_configmap
from kube import Client, ForbiddenError, JsonObject, KubeError, PatchType, core, group
from tests.support.objects import pod
from tests.support.rights import HERE, PAGE

AGENT: Final = "gpufence-agent"
OWN, OTHER = "token-a", "token-b"
MINE, THEIRS, ASIDE = "mine", "theirs", "aside"
TEAM, RELEASING = "token-team", "token-releasing"
ACCOUNTS = ("webhook", "agent", "certs", "certs-install", "controller", "viewer", "doctor")
DRY = {"dryRun": "All"}
DELETING = {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}
RBAC, ADMISSION = "rbac.authorization.k8s.io/v1", "admissionregistration.k8s.io/v1"
ZERO = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 0}}


class Door(NamedTuple):
    """One request, as its sender would make it but for being a dry run."""

    method: str
    path: str
    body: JsonObject | list[JsonObject] | None = None
    patch: PatchType = PatchType.MERGE
    query: Mapping[str, str] = {}

    def open(self, client: Client) -> bool:
        """Return whether the API server lets this sender do it; what is wrong with it is no bar."""
        try:
            self._ask(client)
        except ForbiddenError:
            return False
        except KubeError:
            return True
        return True

    def _ask(self, client: Client) -> None:
        if self.method == "get":
            client.get(self.path, self.query)
        elif self.method == "delete":
            client.delete(self.path, DELETING)
        elif self.method == "patch":
            client.patch(self.path, self.body or {}, self.patch, DRY)
        elif self.method == "put":
            client.put(self.path, _one(self.body), DRY)
        else:
            client.post(self.path, _one(self.body), DRY)


def _one(body: JsonObject | list[JsonObject] | None) -> JsonObject:
    return body if isinstance(body, dict) else {}


def in_team(*more: str) -> str:
    return core("namespaces", TEAM, "pods", *more)


def ours(kind: str, *more: str) -> str:
    return core("namespaces", HERE, kind, *more)


def eviction(name: str) -> Door:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return Door("post", in_team(name, "eviction"), body)


def condition(name: str) -> Door:
    body = {"status": {"conditions": [{"type": names.GPU_IDLE, "status": "True"}]}}
    return Door("patch", in_team(name, "status"), body, PatchType.STRATEGIC)


def node(name: str, **change: Any) -> Door:
    return Door("patch", core("nodes", name), change, PatchType.STRATEGIC)


def labelled(name: str, value: str | None) -> Door:
    return node(name, metadata={"labels": {names.DRIVER_LIMITS: value}})


def configuration(name: str) -> Door:
    hook = {"op": "add", "path": "/webhooks/-", "value": {"name": "every.secret.example.com"}}
    path = group(ADMISSION, "mutatingwebhookconfigurations", name)
    return Door("patch", path, [hook], PatchType.JSON)


def token(account: str) -> Door:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return Door("post", ours("serviceaccounts", account, "token"), request)


def scale(namespace: str) -> Door:
    path = group("apps/v1", "namespaces", namespace, "deployments", "owner", "scale")
    metadata = {"name": "owner", "namespace": namespace}
    return Door("put", path, {**ZERO, "metadata": metadata})


def need(name: str) -> Door:
    return Door("post", ours("configmaps"), {"metadata": {"name": need_configmap(name)}})


def binding() -> Door:
    role = {"apiGroup": RBAC.partition("/")[0], "kind": "ClusterRole", "name": "cluster-admin"}
    body = {"metadata": {"name": "stolen"}, "roleRef": role, "subjects": []}
    return Door("post", group(RBAC, "clusterrolebindings"), body)


def signing() -> Door:
    spec = {
        "signerName": "kubernetes.io/kube-apiserver-client",
        "request": "eA==",
        "usages": ["client auth"],
    }
    path = group("certificates.k8s.io/v1", "certificatesigningrequests")
    return Door("post", path, {"metadata": {"name": "stolen"}, "spec": spec})


def bound() -> Door:
    metadata = {"name": ASIDE, "annotations": {names.MEMORY: "80Gi"}}
    target = {"apiVersion": "v1", "kind": "Node", "name": OTHER}
    return Door("post", in_team(ASIDE, "binding"), {"metadata": metadata, "target": target})


def told(host: str) -> Door:
    """Write an Event that says from which node it comes."""
    body = {
        "metadata": {"generateName": "stolen-", "namespace": TEAM},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": TEAM, "name": "x"},
        "reason": "Stolen",
        "source": {"component": "gpufence-agent", "host": host},
    }
    return Door("post", core("namespaces", TEAM, "events"), body)


IMAGE = {"spec": {"containers": [{"name": "main", "image": "other"}]}}
DEBUG = {"spec": {"ephemeralContainers": [{"name": "x", "image": "x"}]}}
TAINT = {"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}}
DOORS: Final[Mapping[str, Door]] = {
    "add a hook to our webhook configuration": configuration(names.WEBHOOK_CONFIGURATION),
    "add a hook to another one": configuration("other"),
    "change or delete a policy": Door(
        "delete", group(ADMISSION, "validatingadmissionpolicies", "gpufence-agent-need")
    ),
    "unbind a policy": Door(
        "delete", group(ADMISSION, "validatingadmissionpolicybindings", "gpufence-agent-need")
    ),
    "bind itself to cluster-admin": binding(),
    "change its role": Door("patch", group(RBAC, "clusterroles", AGENT), {"rules": []}),
    "delete its role": Door("delete", group(RBAC, "clusterroles", AGENT)),
    "act as a user": Door("get", core("namespaces")),
    "get a token of another program": token(AGENT),
    "get a token of the install": token(names.CERTS_INSTALL),
    "ask for a client certificate": signing(),
    "approve one": Door(
        "put",
        group("certificates.k8s.io/v1", "certificatesigningrequests", "x", "approval"),
        {"metadata": {"name": "x"}},
    ),
    "read Secrets": Door("get", core("namespaces", TEAM, "secrets")),
    "read the CA's key": Door("get", ours("secrets", names.CA_SECRET)),
    "replace what the webhook serves": Door("patch", ours("secrets", names.TLS_SECRET), {}),
    "make pods": Door("post", in_team(), pod("made")),
    "make pods in gpufence-system": Door("post", ours("pods"), pod("made")),
    "change what a pod runs": Door("patch", in_team(MINE), IMAGE, PatchType.STRATEGIC),
    "add a debugging container": Door(
        "patch", in_team(MINE, "ephemeralcontainers"), DEBUG, PatchType.STRATEGIC
    ),
    "run a command in a pod": Door("post", in_team(MINE, "exec")),
    "read a pod's log": Door("get", in_team(MINE, "log")),
    "bind a pod to a node": bound(),
    "read all pods": Door("get", core("pods")),
    "evict a pod of its own node": eviction(MINE),
    "evict a pod of another node": eviction(THEIRS),
    "delete a pod of its own node": Door("delete", in_team(MINE)),
    "delete a pod of another node": Door("delete", in_team(THEIRS)),
    "write the status of a pod of its own node": condition(MINE),
    "write the status of a pod of another node": condition(THEIRS),
    "say which cards its own Node has": node(OWN, metadata={"annotations": {names.CARDS: "x"}}),
    f"take `{names.DRIVER_LIMITS}` off its own Node": labelled(OWN, None),
    "say what its own Node's canary has shown": node(
        OWN, metadata={"annotations": {names.DRIVER_CANARY: "x"}}
    ),
    f"set `{names.DRIVER_LIMITS}` to another word on its own Node": labelled(OWN, "false"),
    f"take `{names.DRIVER_LIMITS}` off another Node": labelled(OTHER, None),
    "label its own Node": node(OWN, metadata={"labels": {"example.com/x": "y"}}),
    "cordon its own Node": node(OWN, spec={"unschedulable": True}),
    "taint its own Node": node(OWN, **TAINT),
    "change another Node": node(OTHER, metadata={"annotations": {names.CARDS: "x"}}),
    "reach a node's kubelet": Door("get", core("nodes", OWN, "proxy", "pods")),
    "ask a pod of gpufence-system": Door("get", ours("pods", "stolen", "proxy", "metrics")),
    "set a namespace's mode": Door(
        "patch", core("namespaces", TEAM), {"metadata": {"labels": {names.MODE: "off"}}}
    ),
    "turn the kill switch": Door(
        "patch", ours("configmaps", names.POLICY_CONFIGMAP), {"data": {"max-mode": "observe"}}
    ),
    "write what models of its own node have needed": need(OWN),
    "write what models of another node have needed": need(OTHER),
    "write Events of another node": told(OTHER),
    "scale an owner to zero where the namespace allows it": scale(RELEASING),
    "scale an owner to zero elsewhere": scale(TEAM),
    "change what an owner runs": Door(
        "patch",
        group("apps/v1", "namespaces", RELEASING, "deployments", "owner"),
        {"spec": {"template": {"metadata": {"labels": {"x": "y"}}}}},
    ),
    "delete the agents": Door("delete", group("apps/v1", "namespaces", HERE, "daemonsets", AGENT)),
    "delete an install's account": Door("delete", ours("serviceaccounts", names.CERTS_INSTALL)),
}


def doors_shown() -> dict[str, dict[str, bool]]:
    """Read for each account which doors the page says are open to it."""
    text = PAGE.read_text(encoding="utf-8").partition("\n| open to | doors |\n")[2]
    rows = [line.strip("| ").split(" | ") for line in text.partition("\n\n")[0].splitlines()[1:]]
    found: dict[str, dict[str, bool]] = {f"gpufence-{name}": {} for name in ACCOUNTS}
    for accounts, doors in rows:
        for account, shown in found.items():
            is_open = f"`{account.removeprefix('gpufence-')}`" in accounts.split(", ")
            shown.update(dict.fromkeys(doors.split("; "), is_open))
    return found
