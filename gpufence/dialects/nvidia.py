"""NVIDIA's device plugin and GKE: whole cards, and shares of a card without an amount."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.dialects.spec import WHOLE_CARD, Amount, Claim, Declared, DialectSpec
from gpufence.names import GKE_CLIENTS, GKE_SHARING, MEMORY, NVIDIA_GPU, NVIDIA_GPU_SHARED
from gpufence.shape import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpufence.dialects.spec import GpuRequest, Units
    from gpufence.pods import Pod


def read(pod: Pod, requests: Sequence[GpuRequest], units: Units) -> Declared:
    """Read `nvidia.com/gpu`: the card itself, or the share that its node's settings imply."""
    selected, driver_caps = sharing_of(pod.node_selector)
    clients = selected or units.clients or 1
    counts = [
        (container.name, asked.get(NVIDIA_GPU, 0) + asked.get(NVIDIA_GPU_SHARED, 0))
        for container, asked in requests
    ]
    if clients == 1:
        claims = [Claim(name, WHOLE_CARD, count) for name, count in counts if count]
        return Declared(SPEC.name, tuple(claims), "whole cards", implied=True)
    claims = [
        Claim(name, Amount(share=(min(count, clients), clients))) for name, count in counts if count
    ]
    return Declared(
        SPEC.name,
        tuple(claims),
        f"a card shared by {clients}",
        library_caps=driver_caps or units.driver_caps,
        implied=True,
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


SPEC = DialectSpec(
    name="nvidia",
    system="NVIDIA time-slicing, GKE time-sharing",
    unit=f"a card or a share of one; its amount by `{MEMORY}`, else card / clients, reported only",
    read=read,
    resources=(NVIDIA_GPU, NVIDIA_GPU_SHARED),
)
