"""
PURE. Every number by which pods are judged, each with its unit and its reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gpufence.quantity import MIB
from gpufence.share import CAP_SLACK


class EvictWhen(StrEnum):
    """
    When a pod over its limit has to go.
    """

    ALWAYS = "always"  # limits are promises, whoever is hurt today
    SHORT = "short"  # only while a neighbour is about to be hurt


class Budgets(StrEnum):
    """
    What a disruption budget may shield.
    """

    OVERRIDE = "override"  # no theft of another tenant's memory: deleted after enough refusals
    RESPECT = "respect"  # everything: the pod stays


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    interval_seconds: float = 1.0
    """
    From one look at the cards to the next.
    """

    report_margin_bytes: int = 64 * MIB
    """
    Over the limit by more than this is said aloud; below lies what rounding and contexts cost.
    """

    evict_margin_bytes: int = 256 * MIB
    """
    Over the limit by more than this is a reason to evict: no framework counts to the byte.
    """

    evict_margin_percent: int = 3
    """
    The same as a share of the limit, where that is more: what is not counted grows with the work.
    """

    short_margin_bytes: int = 64 * MIB
    """
    The margin while a card is short: then every MiB over is a neighbour's.
    """

    short_floor_bytes: int = 512 * MIB
    """
    Free memory below which a card is short: the next context of a neighbour would not fit.
    """

    hold_seconds: float = 30.0
    """
    Time over the limit before an eviction: longer than any peak of loading a model.
    """

    short_hold_seconds: float = 3.0
    """
    The same while the card is short: a neighbour fails within seconds.
    """

    grace_seconds: float = 120.0
    """
    From a pod's first sample on: frameworks probe, compile and tune when they start.
    """

    start_pause_seconds: float = 60.0
    """
    From the agent's start on nobody is evicted: pods, owners and limits are still arriving.
    """

    node_evictions_per_minute: int = 6
    """
    So that no mistake of ours empties a node before a person has looked.
    """

    namespace_evictions_per_minute: int = 3
    """
    The same for one team's pods on this node.
    """

    suspend_namespaces: int = 3
    """
    More than half of the fenced pods at once over their limits, of at least so many namespaces:
    rather a wrong unit than a conspiracy, so nobody is evicted.
    """

    repeated_hold_seconds: tuple[float, ...] = (60.0, 300.0, 1800.0)
    """
    The hold for an owner evicted here before, by how often: eviction does not cure it.
    """

    repeated_memory_seconds: float = 86_400.0
    """
    After so long an owner's evictions are forgotten.
    """

    termination_seconds: float = 40.0
    """
    How long a terminating pod holds up other evictions on its card: its grace and ten seconds.
    """

    eviction_grace_seconds: int = 30
    """
    The most an evicted pod is given to end; what it holds is somebody else's.
    """

    refused_backoff_seconds: float = 5.0
    """
    The wait after the first refusal, doubled by each further one.
    """

    refused_backoff_limit_seconds: float = 60.0
    """
    Budgets open when pods become ready, which takes seconds to minutes.
    """

    refusals_before_delete: int = 3
    """
    Refusals on a short card after which the pod is deleted, unless budgets are respected.
    """

    budgets: Budgets = Budgets.OVERRIDE
    evict_when: EvictWhen = EvictWhen.ALWAYS

    last_resort_kill: bool = False
    """
    SIGKILL to the GPU processes of a pod that does not end; needs a capability, hence an overlay.
    """

    cap_slack_bytes: int = CAP_SLACK
    """
    A process above its cap and its context reserve by more than this ignores its cap.
    """

    unattributed_floor_bytes: int = 256 * MIB
    """
    Memory of processes of no pod that is worth an event; monitors hold less.
    """

    unattributed_hold_seconds: float = 30.0
    """
    How long it must stay: a container is a few seconds older than the API server's word of it.
    """

    @property
    def gap_seconds(self) -> float:
        """
        Return how far apart two samples may be for the time between them to count as seen.
        """
        return 3 * self.interval_seconds
