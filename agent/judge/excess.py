"""
PURE. What is worth saying about containers and processes while their pod may be within its limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.model.decision import ContainerExcess, Ineffective

if TYPE_CHECKING:
    from agent.model.pod import PodLimit, PodOnNode
    from agent.model.policy import Policy
    from agent.model.use import PodUse


def containers_over(use: PodUse, limit: PodLimit, policy: Policy) -> tuple[ContainerExcess, ...]:
    """
    Name the containers over their part of the pod's limit: an event, never an eviction.
    """
    if not limit.parts:
        return ()
    return tuple(
        ContainerExcess(name, used, limit.parts[name])
        for name, used in sorted((use.containers or {}).items())
        if name in limit.parts and used > limit.parts[name] + policy.report_margin_bytes
    )


def ineffective_caps(pod: PodOnNode, use: PodUse, policy: Policy) -> tuple[Ineffective, ...]:
    """
    Name the processes above what their framework was told, its context and some slack.
    """
    if not pod.caps:
        return ()
    found = []
    for process in use.processes:
        cap = pod.caps.get(process.container)
        if cap is None or process.used_bytes is None or not process.confirmed:
            continue
        allowed = cap.cap_bytes + cap.reserve_bytes
        if process.used_bytes > allowed + policy.cap_slack_bytes:
            found.append(Ineffective(process.container, process.pid, process.used_bytes, allowed))
    return tuple(found)
