"""An API server with objects of gpufence on it, as its administrator works with it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol, Self
from uuid import uuid4

import pytest

from gpufence import names
from kube import (
    ClientSettings,
    InvalidRequestError,
    JsonObject,
    KubeError,
    NotFoundError,
    PatchType,
    connect,
    core,
    group,
)
from simulator.controlplane import Assets, ControlPlane
from simulator.controlplane.programs import API_SERVER
from tests.support import objects
from tests.support.observing import wait_until
from tests.support.tree import moved, plain_rights
from tools.manifests import BASE
from tools.manifests import objects as manifests

PATIENCE_SECONDS = 60.0
AGENT, CERTS, WEBHOOK = "gpufence-agent", "gpufence-certs", "gpufence-webhook"
CLUSTER_WIDE = {
    *("Namespace", "Node", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "DeviceClass"),
    *("MutatingWebhookConfiguration", "PriorityClass"),
}
RIGHTS = frozenset({"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})


def path_of(item: JsonObject) -> str:
    """Return where an object is, of the kinds that tests apply."""
    kind, metadata = item["kind"], item["metadata"]
    plural = f"{kind.lower().removesuffix('y')}ies" if kind.endswith("y") else f"{kind.lower()}s"
    place = () if kind in CLUSTER_WIDE else ("namespaces", metadata.get("namespace", "default"))
    rest = (*place, plural, metadata["name"])
    version = item["apiVersion"]
    return core(*rest) if version == "v1" else group(version, *rest)


class Kubectl(Protocol):
    """Runs the real kubectl as administrator."""

    def __call__(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]: ...


class Site:
    """Use it as a context manager, which closes the administrator's client."""

    def __init__(self, kubeconfig: Path, kubectl: Kubectl) -> None:
        self.kubeconfig = kubeconfig
        self.kubectl = kubectl
        self.admin = connect(ClientSettings(kubeconfig=str(kubeconfig)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.admin.close()

    def apply(self, *items: JsonObject) -> None:
        """Apply as kubectl does, without a process that first reads all that the server can do."""
        query = {"fieldManager": "kubectl", "fieldValidation": "Strict"}
        for item in items:
            self.admin.patch(path_of(item), item, PatchType.APPLY, query)

    def exists(self, path: str) -> bool:
        try:
            self.admin.get(path)
        except NotFoundError:
            return False
        return True

    def serves(self, path: str) -> bool:
        """Return whether the API server serves a kind, a moment after it is defined."""
        try:
            self.admin.get(path)
        except KubeError:
            return False
        return True

    def drop(self, path: str, query: dict[str, Any] | None = None) -> None:
        """Delete an object if it is there."""
        with suppress(NotFoundError):
            self.admin.delete(path, query)

    @contextmanager
    def namespace(self, mode: str | None = None, **annotations: str) -> Iterator[str]:
        """Lend a namespace that has its label from the start; its end is begun, not awaited."""
        name = f"team-{uuid4().hex[:8]}"
        self.admin.post(core("namespaces"), objects.namespace(name, mode, **annotations))
        try:
            yield name
        finally:
            self.admin.delete(core("namespaces", name))

    def label(self, namespace: str, mode: str) -> None:
        body = {"metadata": {"labels": {names.MODE: mode}}}
        self.admin.patch(core("namespaces", namespace), body, PatchType.MERGE)

    def pod(self, namespace: str, name: str = "a") -> JsonObject:
        return self.admin.get(core("namespaces", namespace, "pods", name))

    def plugin(
        self, *arguments: str, kubeconfig: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the kubectl plugin as a program of its own."""
        command = (sys.executable, "-m", "kubectl_gpufence", *arguments)
        return run(command, {"KUBECONFIG": str(kubeconfig or self.kubeconfig), **environment})


class PlaneSite(Site):
    """The same on a control plane, where programs run with the rights of their ServiceAccounts."""

    def __init__(self, plane: ControlPlane, system: str = names.SYSTEM_NAMESPACE) -> None:
        super().__init__(plane.kubeconfig(), plane.kubectl)
        self.plane = plane
        self.system = system

    def shipped(self, component: str, kinds: frozenset[str] = RIGHTS) -> list[JsonObject]:
        """Return a component's objects as they are in the tree, but in our namespace."""
        items = manifests(BASE / component)
        return [moved(item, self.system) for item in items if item["kind"] in kinds]

    def shipped_agent(self, *, plain: bool = False) -> list[JsonObject]:
        """Return the agent's rights, on an older Kubernetes those of its own account."""
        items = self.shipped("agent")
        if not plain and running_minor() >= IMPERSONATION:
            return items
        text = json.dumps(plain_rights(items)).replace(names.SYSTEM_NAMESPACE, self.system)
        found: list[JsonObject] = json.loads(text)
        return found

    def kubeconfig_of(self, account: str, token: str | None = None) -> Path:
        """Return a kubeconfig with a token of a ServiceAccount, by default a fresh one."""
        token = token or self.plane.service_account_token(self.system, account)
        return self.plane.token_kubeconfig(f"{account}-{uuid4().hex[:8]}", token)

    def token_of_agent(self, node: str) -> str:
        """Return a token that is bound to a new pod on the node, as an agent's is."""
        pod = f"{AGENT}-{uuid4().hex[:8]}"
        self.admin.post(core("namespaces", self.system, "pods"), objects.agent_pod(pod, node))
        return self.plane.service_account_token(self.system, AGENT, pod=pod)

    def set_policy(self, mode: str | None) -> None:
        """Turn the kill switch; None takes it away."""
        if mode is None:
            self.admin.delete(core("namespaces", self.system, "configmaps", names.POLICY_CONFIGMAP))
        else:
            self.apply(objects.policy(self.system, mode))


def run(
    command: tuple[str, ...], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a person's command to its end, our programs on the PATH."""
    return subprocess.run(
        command,
        env=surroundings(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def surroundings(environment: Mapping[str, str]) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONIOENCODING": "utf-8", **environment}


SINCE: Final = "since"
IMPERSONATION: Final = 36  # constrained impersonation: before it agents act by their own account
AS_ITS_NODE: Final = (IMPERSONATION, "agents act as the node they run on, and as no other")
DAMAGED: Final = (34, "a webhook whose patch is no JSON stops nobody (`failurePolicy: Ignore`)")
BY_CLAIMS: Final = (34, "nodes publish cards for resource claims (`resource.k8s.io/v1`)")
BY_MEMORY: Final = (36, "the scheduler counts the memory of a card that claims share")


def minor_of(version: str) -> int:
    found = re.search(r"v1\.(\d+)\.", version)
    assert found, version
    return int(found.group(1))


@cache
def running_minor() -> int:
    """Ask the API server of KUBEBUILDER_ASSETS; without one it is that of our own build."""
    assets = Assets.from_environment(os.environ)
    given = assets.given / API_SERVER if assets.given else None
    if given is None or not given.is_file():
        return minor_of(assets.recipe.kubernetes)
    said = subprocess.run([given, "--version"], capture_output=True, text=True, check=True)
    return minor_of(said.stdout)


def expect_what_is_missing(items: Iterable[pytest.Item]) -> None:
    """Note what each test shows, and expect it to fail where its Kubernetes is too old for that."""
    for item in items:
        marker = item.get_closest_marker(SINCE)
        if marker is None:
            continue
        minor, what = marker.args
        item.user_properties.append((SINCE, what))
        if minor > running_minor():
            reason = f"since 1.{minor}: {what}"
            missing = pytest.mark.xfail(reason=reason, strict=True)
            skipped = pytest.mark.skip(reason=reason)
            item.add_marker(skipped if marker.kwargs.get("skip") else missing)


ADMISSION: Final = "admissionregistration.k8s.io/v1"
KINDS: Final = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


def policy_path(item: JsonObject) -> str:
    """Return where a policy or binding is."""
    return group(ADMISSION, KINDS[item["kind"]], item["metadata"]["name"])


def wait_until_enforced(site: Site) -> None:
    """Wait until all policies are enforced: one more is made, and taken up with the others."""
    name = f"marker-{uuid4().hex[:8]}"
    made = _refusing(name)
    site.apply(*made)
    try:
        wait_until(lambda: _is_refused(site, name), "policies are not enforced")
    finally:
        for item in made:
            site.drop(policy_path(item))


def _refusing(name: str) -> tuple[JsonObject, JsonObject]:
    configmaps = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["configmaps"],
    }
    refusal = {"expression": f"object.metadata.name != '{name}'"}
    specs: tuple[JsonObject, JsonObject] = (
        {"matchConstraints": {"resourceRules": [configmaps]}, "validations": [refusal]},
        {"policyName": name, "validationActions": ["Deny"]},
    )
    policy, binding = (
        {"apiVersion": ADMISSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, spec in zip(KINDS, specs, strict=True)
    )
    return policy, binding


def _is_refused(site: Site, name: str) -> bool:
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    try:
        site.admin.post(core("namespaces", "default", "configmaps"), item, {"dryRun": "All"})
    except InvalidRequestError:
        return True
    return False
