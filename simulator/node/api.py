"""
What the node asks of the API server: its own Node and lease, and its pods, with a kubelet's rights.

A node's own identity may make its Node with labels and resources, and renew them. It may not remove
a taint or its Node: the API server marks every new Node as not ready, and normally the controller
manager lifts that. Where none runs, an administrator's client does it here.
"""

from __future__ import annotations

import base64
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kube import (
    Client,
    ConflictError,
    ForbiddenError,
    KubeError,
    NotFoundError,
    PatchType,
    core,
    group,
)
from simulator.node.environment import CONFIG_MAP, SECRET, Reference
from simulator.node.machine import gpu_capacity, labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kube import JsonObject
    from simulator.node.machine import GpuMachine
    from simulator.node.pod import NodePod

REQUEST_SECONDS = 5.0
_RESOURCES = {CONFIG_MAP: "configmaps", SECRET: "secrets"}
LEASES = ("namespaces", "kube-node-lease", "leases")
LEASE_SECONDS = 40
STATUS_SECONDS = 300.0
UNREADY_TAINTS = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
READY = ("True", "KubeletReady", "simulated node is ready")
STOPPED = ("False", "SimulatorStopped", "the simulator of this node was stopped")


def timestamp(form: str = "%Y-%m-%dT%H:%M:%SZ") -> str:
    return datetime.now(UTC).strftime(form)


class NodeApi:
    def __init__(self, client: Client) -> None:
        self._client = client

    def report(self, pod: NodePod, status: dict[str, object]) -> None:
        """Write a pod's status; a successor of the same name is refused by its uid."""
        path = core("namespaces", pod.namespace, "pods", pod.name, "status")
        body: JsonObject = {"metadata": {"uid": pod.uid}, "status": status}
        self._client.patch(path, body, PatchType.STRATEGIC, timeout_seconds=REQUEST_SECONDS)

    def remove(self, pod: NodePod) -> None:
        """Take a deleted pod, all of whose processes have ended, out of the API."""
        options: JsonObject = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}}
        path = core("namespaces", pod.namespace, "pods", pod.name)
        self._client.delete(path, options, timeout_seconds=REQUEST_SECONDS)

    def read(
        self, namespace: str, references: Iterable[Reference]
    ) -> dict[Reference, dict[str, str]]:
        """Read ConfigMaps and Secrets; those that do not exist are left out."""
        objects: dict[Reference, dict[str, str]] = {}
        for reference in references:
            path = core("namespaces", namespace, _RESOURCES[reference.kind], reference.name)
            try:
                answer = self._client.get(path, timeout_seconds=REQUEST_SECONDS)
            except NotFoundError:
                continue
            data: dict[str, str] = answer.get("data") or {}
            if reference.kind == SECRET:
                data = {key: base64.b64decode(value).decode() for key, value in data.items()}
            objects[reference] = data
        return objects


def node_object(machine: GpuMachine) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": machine.name, "labels": labels(machine)},
        "status": node_status(machine, timestamp()),
    }


def node_status(machine: GpuMachine, since: str, ready: tuple[str, str, str] = READY) -> JsonObject:
    """Build the status, which is also what a heartbeat repeats."""
    offered = {
        "cpu": "64",
        "memory": "256Gi",
        "ephemeral-storage": "100Gi",
        "pods": "250",
        **gpu_capacity(machine),
    }
    status, reason, message = ready
    return {
        "capacity": offered,
        "allocatable": offered,
        "conditions": [
            {
                "type": "Ready",
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": timestamp(),
                "lastTransitionTime": since,
            }
        ],
        "addresses": [
            {"type": "InternalIP", "address": machine.address},
            {"type": "Hostname", "address": machine.name},
        ],
    }


class Registration:
    """One Node object and its lease. `administrator` may be None: then others lift the taint."""

    def __init__(
        self,
        machine: GpuMachine,
        client: Client,
        administrator: Client | None,
        say: Callable[[str], None],
    ) -> None:
        self._machine = machine
        self._client = client
        self._administrator = administrator
        self._say = say
        self._node = core("nodes", machine.name)
        self._lease = group("coordination.k8s.io/v1", *LEASES, machine.name)
        self._status_due = 0.0
        self._since = timestamp()

    def register(self) -> None:
        """Make the Node, or make an existing one of that name ours."""
        node = node_object(self._machine)
        try:
            self._client.post(core("nodes"), node)
        except ConflictError:
            metadata = {"metadata": {"labels": node["metadata"]["labels"]}}
            self._client.patch(self._node, metadata, PatchType.MERGE)
            self._report_status()
        self._status_due = time.monotonic() + STATUS_SECONDS
        self._lift_taints()
        self._renew_lease()

    def beat(self) -> None:
        """Renew the lease and, now and then or after trouble, the status."""
        try:
            self._renew_lease()
            if time.monotonic() >= self._status_due:
                self._report_status()
                self._status_due = time.monotonic() + STATUS_SECONDS
        except NotFoundError:
            self._say("the Node is gone from the API; registering it again")
            self.register()
        except KubeError as error:
            self._status_due = 0.0
            self._say(f"heartbeat failed: {error}")

    def leave(self) -> None:
        """
        Delete the Node where that is allowed; otherwise leave it as a node that was switched off.
        """
        with suppress(NotFoundError):
            self._client.delete(self._lease, timeout_seconds=REQUEST_SECONDS)
        try:
            (self._administrator or self._client).delete(
                self._node, timeout_seconds=REQUEST_SECONDS
            )
        except ForbiddenError:
            self._since = timestamp()
            self._report_status(STOPPED)
        except NotFoundError:
            return  # somebody was faster

    def _report_status(self, ready: tuple[str, str, str] = READY) -> None:
        status = node_status(self._machine, self._since, ready)
        self._client.patch(
            f"{self._node}/status",
            {"status": status},
            PatchType.STRATEGIC,
            timeout_seconds=REQUEST_SECONDS,
        )

    def _lift_taints(self) -> None:
        client = self._administrator or self._client
        node = client.get(self._node)
        taints: list[JsonObject] = node["spec"].get("taints", [])
        kept = [taint for taint in taints if taint["key"] not in UNREADY_TAINTS]
        if kept == taints:
            return
        body: JsonObject = {
            "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
            "spec": {"taints": kept},
        }
        try:
            client.patch(self._node, body, PatchType.MERGE)
        except ConflictError:
            self._lift_taints()
        except ForbiddenError:
            self._say(
                f"{self._machine.name} stays tainted as not ready until a controller manager, or"
                " whoever may change taints, removes that; name an administrator's kubeconfig to"
                " have it done here"
            )

    def _renew_lease(self) -> None:
        spec: JsonObject = {
            "holderIdentity": self._machine.name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": timestamp("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        try:
            self._client.patch(
                self._lease, {"spec": spec}, PatchType.MERGE, timeout_seconds=REQUEST_SECONDS
            )
        except NotFoundError:
            self._make_lease(spec)

    def _make_lease(self, spec: JsonObject) -> None:
        owner = self._client.get(self._node, timeout_seconds=REQUEST_SECONDS)["metadata"]
        lease: JsonObject = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": self._machine.name,
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Node", "name": owner["name"], "uid": owner["uid"]}
                ],
            },
            "spec": spec,
        }
        path = group("coordination.k8s.io/v1", *LEASES)
        self._client.post(path, lease, timeout_seconds=REQUEST_SECONDS)
