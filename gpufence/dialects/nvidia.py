"""
NVIDIA's device plugin and GKE: whole cards, shares of a card without an amount, and MIG slices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.dialects import hami
from gpufence.dialects.model import (
    WHOLE_CARD,
    Amount,
    Claim,
    Declared,
    Dialect,
    Units,
    requested,
)
from gpufence.errors import InvalidError, Problem
from gpufence.names import (
    GKE_CLIENTS,
    GKE_SHARING,
    NVIDIA_GPU,
    NVIDIA_GPU_SHARED,
    NVIDIA_MIG_PREFIX,
)
from gpufence.shape import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.pods import Pod


GPU = (NVIDIA_GPU, NVIDIA_GPU_SHARED)


def read_gpu(pod: Pod, units: Units) -> Declared | None:
    """
    Read `nvidia.com/gpu`: the card itself, or the share that its node's settings imply.
    """
    found = list(requested(pod, *GPU))
    if not found or hami.speaks(pod):
        return None
    selected, driver_caps = sharing_of(pod.node_selector)
    clients = selected or units.clients or 1
    if clients == 1:
        basis = "whole cards"
        claims = tuple(Claim(item.name, WHOLE_CARD, sum(count.values())) for item, count in found)
    else:
        basis = f"a card shared by {clients}"
        claims = tuple(
            Claim(item.name, Amount(share=(min(sum(count.values()), clients), clients)))
            for item, count in found
        )
    caps = clients > 1 and (driver_caps or units.driver_caps)
    return Declared(Dialect.NVIDIA, claims, basis, library_caps=caps, implied=True)


def read_mig(pod: Pod, _: Units) -> Declared | None:
    """
    Read MIG slices: the instance is the card, and hardware fences it.
    """
    profiles = {
        resource
        for item in pod.containers
        for resource in item.limits
        if resource.startswith(NVIDIA_MIG_PREFIX)
    }
    found = list(requested(pod, *sorted(profiles)))
    if not found:
        return None
    asked = {resource for _, count in found for resource in count}
    if len(asked) > 1:
        raise InvalidError(
            Problem(
                "resources.limits",
                ", ".join(sorted(asked)),
                "are MIG slices of several sizes in one pod",
                "ask for one profile in each pod",
            )
        )
    claims = tuple(Claim(item.name, WHOLE_CARD, sum(count.values())) for item, count in found)
    profile = asked.pop().removeprefix(NVIDIA_MIG_PREFIX).removesuffix(".shared")
    return Declared(
        Dialect.MIG, claims, f"MIG instances of {profile}", implied=True, profile=profile
    )


def sharing_of(labels: Mapping[str, str]) -> tuple[int | None, bool]:
    """
    Read how many pods GKE lets share a card, and whether MPS caps them, from labels or a selector.

    Auto-provisioned nodes say TIME_SHARING where others say time-sharing.
    """
    strategy = labels.get(GKE_SHARING, "").lower().replace("_", "-")
    text = labels.get(GKE_CLIENTS)
    clients = whole_number(text, f"nodeSelector[{GKE_CLIENTS}]") if text is not None else None
    return clients, strategy == "mps"
