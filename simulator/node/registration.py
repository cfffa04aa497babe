"""
The node in the API: made, kept alive by heartbeats, and taken back.

A node's own identity may make its Node with labels, taints, annotations and resources, and renew
all of it but the taints. It may not remove a taint or its Node: the API server marks every new Node
as not ready, and normally the controller manager lifts that. Where none runs, an administrator's
client does it here.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from kube import ConflictError, ForbiddenError, KubeError, NotFoundError, PatchType, core, group
from simulator.node import clock
from simulator.node.resources import node_object, node_status

if TYPE_CHECKING:
    from collections.abc import Callable

    from kube import Client, JsonObject
    from simulator.node.resources import Machine

LEASES = ("namespaces", "kube-node-lease", "leases")
LEASE_SECONDS = 40
STATUS_SECONDS = 300.0
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
_SECONDS = 5.0


class Registration:
    """
    One Node object and its lease. `administrator` may be None: then others lift the taint.
    """

    def __init__(
        self,
        machine: Machine,
        client: Client,
        administrator: Client | None,
        say: Callable[[str], None],
        *,
        write_cards: bool,
    ) -> None:
        self._machine = machine
        self._client = client
        self._administrator = administrator
        self._say = say
        self._write_cards = write_cards
        self._node = core("nodes", machine.name)
        self._lease = group("coordination.k8s.io/v1", *LEASES, machine.name)
        self._status_due = 0.0
        self._since = clock.timestamp()

    def register(self) -> None:
        """
        Make the Node, or make an existing one of that name ours.
        """
        now = clock.timestamp()
        node: JsonObject = node_object(
            self._machine, cards_seen=now if self._write_cards else None, now=now
        )
        try:
            self._client.post(core("nodes"), node)
        except ConflictError:
            metadata = {name: node["metadata"][name] for name in ("labels", "annotations")}
            self._client.patch(self._node, {"metadata": metadata}, PatchType.MERGE)
            self._report_status()
        self._status_due = clock.monotonic() + STATUS_SECONDS
        self._lift_taints()
        self._renew_lease()

    def beat(self) -> None:
        """
        Renew the lease and, now and then or after trouble, the status.
        """
        try:
            self._renew_lease()
            if clock.monotonic() >= self._status_due:
                self._report_status()
                self._status_due = clock.monotonic() + STATUS_SECONDS
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
            self._client.delete(self._lease, timeout_seconds=_SECONDS)
        try:
            (self._administrator or self._client).delete(self._node, timeout_seconds=_SECONDS)
        except ForbiddenError:
            self._report_status(ready=False)
        except NotFoundError:
            return  # somebody was faster

    def _report_status(self, *, ready: bool = True) -> None:
        now = clock.timestamp()
        status = node_status(self._machine, now, self._since if ready else now, ready=ready)
        self._client.patch(
            f"{self._node}/status",
            {"status": status},
            PatchType.STRATEGIC,
            timeout_seconds=_SECONDS,
        )

    def _lift_taints(self) -> None:
        client = self._administrator or self._client
        node = client.get(self._node)
        taints: list[JsonObject] = node["spec"].get("taints", [])
        kept = [taint for taint in taints if taint["key"] not in {NOT_READY, UNREACHABLE}]
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
                f"{self._machine.name} stays tainted {NOT_READY} until a controller manager, or"
                " whoever may change taints, removes that; name an administrator's kubeconfig to"
                " have it done here"
            )

    def _renew_lease(self) -> None:
        spec: JsonObject = {
            "holderIdentity": self._machine.name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": clock.precise_timestamp(),
        }
        try:
            self._client.patch(
                self._lease, {"spec": spec}, PatchType.MERGE, timeout_seconds=_SECONDS
            )
        except NotFoundError:
            self._make_lease(spec)

    def _make_lease(self, spec: JsonObject) -> None:
        owner = self._client.get(self._node, timeout_seconds=_SECONDS)["metadata"]
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
        self._client.post(group("coordination.k8s.io/v1", *LEASES), lease, timeout_seconds=_SECONDS)
