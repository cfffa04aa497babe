"""
An API server with objects of gpufence on it, as its administrator works with it.

What each kind of tests needs beside that is in a class of its own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, Self
from uuid import uuid4

from gpufence import names
from kube import ClientSettings, JsonObject, KubeError, NotFoundError, PatchType, connect, core
from simulator.controlplane import ControlPlane
from tests.support import objects
from tests.support.kubernetes import IMPERSONATION, running_minor
from tests.support.manifests import BASE, moved, plain_rights
from tests.support.manifests import objects as manifests

PATIENCE_SECONDS = 60.0
AGENT, CERTS, WEBHOOK = "gpufence-agent", "gpufence-certs", "gpufence-webhook"
RIGHTS = frozenset({"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})


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
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        self.kubectl("apply", "--server-side", "-f", "-", stdin=listed)

    def exists(self, path: str) -> bool:
        try:
            self.admin.get(path)
        except NotFoundError:
            return False
        return True

    def serves(self, path: str) -> bool:
        """
        Return whether the API server hands a kind out, which it begins to do a moment after that is
        defined.
        """
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
        """
        Lend a namespace that had its label from the beginning; its end is begun, not waited for.
        """
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
        """
        Return the agent's rights, where Kubernetes is too old for others those of its own account.
        """
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
