"""
The part of a DRA driver that others see: a ResourceSlice with the node's cards, and which of them a
pod's claims were given. Kubernetes' own scheduler does the rest.

Cards are published as NVIDIA's driver does with consumable shares of memory: claims may share them,
and what they ask for is rounded up.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.quantity import MIB, write_bytes
from kube import Client, ForbiddenError, KubeError, NotFoundError, core, group
from simulator.node.machine import Placement

if TYPE_CHECKING:
    from gpufence.cards import Card
    from kube import JsonObject
    from simulator.node.machine import GpuMachine
    from simulator.node.pod import NodePod

STEP_BYTES = 256 * MIB
DEFAULT_BYTES = 1024 * MIB
_SLICES = group(names.RESOURCE_GROUP, "resourceslices")
_SECONDS = 5.0


class Driver:
    """Speaks as the node, which may write its own slices and read the claims of its pods."""

    def __init__(self, client: Client, machine: GpuMachine) -> None:
        self._client = client
        self._machine = machine
        self._name = f"{machine.name}-{names.DRA_DRIVER}"

    def publish(self) -> None:
        """List the cards; a slice that a node of this name has left behind is replaced."""
        self.withdraw()
        node = self._client.get(core("nodes", self._machine.name), timeout_seconds=_SECONDS)
        body = slice_object(self._machine, self._name, node["metadata"]["uid"])
        self._client.post(_SLICES, body, timeout_seconds=_SECONDS)

    def withdraw(self) -> None:
        with suppress(NotFoundError, ForbiddenError):  # what is not there is nobody's to a node
            self._client.delete(f"{_SLICES}/{self._name}", timeout_seconds=_SECONDS)

    def place(self, pod: NodePod) -> Placement:
        """Return the cards of a pod's claims; none where nobody can say."""
        cards = {device_name(card): card for card in self._machine.cards}
        found: dict[str, Card] = {}
        for claim in pod.claims:
            path = group(names.RESOURCE_GROUP, "namespaces", pod.namespace, "resourceclaims", claim)
            try:
                said = self._client.get(path, timeout_seconds=_SECONDS)
            except KubeError:
                continue
            allocation = said.get("status", {}).get("allocation", {})
            for result in allocation.get("devices", {}).get("results", []):
                card = cards.get(result["device"])
                if card is not None and result["driver"] == names.DRA_DRIVER:
                    found[card.uuid] = card
        return Placement(tuple(found.values()))


def device_name(card: Card) -> str:
    """Name a card as NVIDIA's driver does."""
    return f"gpu-{card.index}"


def slice_object(machine: GpuMachine, name: str, node_uid: str) -> JsonObject:
    """Describe the whole cards of a machine; one that is cut into instances is left out."""
    return {
        "apiVersion": names.RESOURCE_GROUP,
        "kind": "ResourceSlice",
        "metadata": {
            "name": name,
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": machine.name, "uid": node_uid}
            ],
        },
        "spec": {
            "driver": names.DRA_DRIVER,
            "nodeName": machine.name,
            "pool": {"name": machine.name, "generation": 1, "resourceSliceCount": 1},
            "devices": [_device(card) for card in machine.whole_cards],
        },
    }


def _device(card: Card) -> JsonObject:
    major, minor = card.compute_capability or (0, 0)
    policy = {
        "default": write_bytes(DEFAULT_BYTES),
        "validRange": {"min": write_bytes(STEP_BYTES), "step": write_bytes(STEP_BYTES)},
    }
    return {
        "name": device_name(card),
        "allowMultipleAllocations": True,
        "attributes": {
            "type": {"string": "gpu"},
            "uuid": {"string": card.uuid},
            "index": {"int": card.index},
            "productName": {"string": card.model},
            "cudaComputeCapability": {"version": f"{major}.{minor}.0"},
        },
        "capacity": {
            names.DRA_MEMORY: {
                "value": write_bytes(card.memory_bytes, largest="Mi"),
                "requestPolicy": policy,
            }
        },
    }
