"""
What a simulated node is asked to be.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simulator.node.lifecycle import Pauses
from simulator.node.sharing import Sharing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from simulator.node.resources import Taint


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """
    One node. The kubeconfig should be the node's own: user `system:node:<name>`.

    `admin_kubeconfig` is needed where no controller manager runs, see `registration`. Without
    `state` and `proc` both are in a temporary folder, which goes with the node; `cards` are those
    of `state` where that exists, else as `python -m simulator nvml create` reads them. Pods run in
    the network of this machine, so the node's address is also theirs.
    """

    kubeconfig: Path
    name: str = "node-a"
    admin_kubeconfig: Path | None = None
    cards: str | None = None
    sharing: Sharing = field(default_factory=Sharing)
    gfd: bool = False
    write_cards: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    address: str = "127.0.0.1"
    state: Path | None = None
    proc: Path | None = None
    pauses: Pauses = field(default_factory=Pauses)
    heartbeat_seconds: float = 10.0
    stop_seconds: float = 2.0
