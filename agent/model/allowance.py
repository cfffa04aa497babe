"""
PURE. What the frameworks of a pod were told they may hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.model.pod import PodOnNode
    from agent.model.use import PodUse


def allowance_bytes(pod: PodOnNode, use: PodUse) -> int | None:
    """
    Add up what each container that holds memory on a card was told; None where any was told
    nothing, since then nothing caps the sum.
    """
    names = {process.container for process in use.processes}
    caps = [pod.caps.get(name) for name in names]
    known = [cap.cap_bytes for cap in caps if cap is not None]
    return sum(known) if known and len(known) == len(caps) else None
