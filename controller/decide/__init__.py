"""
What becomes of owners whose pods do not use their GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.model import (
        ClusterState,
        LastLook,
        OwnerState,
        PodState,
        ReleaseDecision,
        ReleaseMemory,
    )
    from controller.rules import ReleaseRules
    from gpufence.snapshot import Snapshot

__all__ = ["decide", "last_look", "room"]


def decide(world: ClusterState, memory: ReleaseMemory, rules: ReleaseRules) -> ReleaseDecision:
    """
    Return how each owner stands, and what is done about it now.
    """
    raise NotImplementedError


def room(template: PodState, world: ClusterState) -> int:
    """
    Return how many more pods like this one fit at the moment on the nodes it allows.
    """
    raise NotImplementedError


def last_look(owner: OwnerState, snapshots: Mapping[str, Snapshot | None]) -> LastLook:
    """
    Return what the agents of its nodes say of an owner's pods.
    """
    raise NotImplementedError
