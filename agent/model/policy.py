"""PURE. Every number by which pods are judged, each with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from gpufence.errors import InvalidError, Problem
from gpufence.quantity import MIB
from gpufence.setting_kinds import parsed
from gpufence.settings import setting
from gpufence.share import CAP_SLACK


class EvictWhen(StrEnum):
    """When a pod over its limit has to go."""

    ALWAYS = "always"  # limits are promises, whoever is hurt today
    SHORT = "short"  # only while a neighbour is about to be hurt


class Budgets(StrEnum):
    """What a disruption budget may shield."""

    OVERRIDE = "override"  # no theft of another tenant's memory: deleted after enough refusals
    RESPECT = "respect"  # everything: the pod stays


class Mps(StrEnum):
    """What becomes of clients of the node's MPS server."""

    REPORT = "report"  # nothing: to kill one at work can wedge the card for all (CUDA <= 13.5)
    EVICT = "evict"  # what becomes of everybody


def _steps(text: str, variable: str) -> tuple[float, ...]:
    """Read a ladder of durations such as 60,300,1800."""
    try:
        steps = tuple(float(item) for item in text.split(","))
    except ValueError:
        steps = ()
    if not 0 < len(steps) <= _MOST_STEPS or not all(0 <= item <= _DAY_SECONDS for item in steps):
        reason = "is no list of seconds"
        remedy = f"write up to {_MOST_STEPS} seconds from 0 to 86400, such as 60,300,1800"
        raise InvalidError(Problem(variable, text, reason, remedy))
    return steps


MOST_LOOK_SECONDS: Final = 10.0
"""The longest look that says how far apart looks come; one that took longer was interrupted."""

_MOST_STEPS = 10
_DAY_SECONDS = 86_400
_STEPS = parsed(_steps, lambda steps: ",".join(f"{item:g}" for item in steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionPolicy:
    interval_seconds: float = field(
        default=1.0,
        metadata=setting(
            "GPUFENCE_INTERVAL_SECONDS",
            "longest interval between two looks; each comes up to half of it sooner, at random, "
            "or when an eviction is due",
            least=0.05,
            most=60,
        ),
    )
    # Longer than any peak of loading a model.
    hold_seconds: float = field(
        default=30.0,
        metadata=setting(
            "GPUFENCE_HOLD_SECONDS", "threshold duration: time over the limit before an eviction"
        ),
    )
    # A neighbour fails within seconds.
    short_hold_seconds: float = field(
        default=3.0,
        metadata=setting(
            "GPUFENCE_SHORT_HOLD_SECONDS", "the same while less than `GPUFENCE_SHORT_FLOOR` is free"
        ),
    )
    # Frameworks probe, compile and tune when they start.
    grace_seconds: float = field(
        default=120.0,
        metadata=setting("GPUFENCE_GRACE_SECONDS", "grace from a pod's first sample on"),
    )
    # No framework's overhead is so large; what takes it takes a neighbour's share.
    fast_excess_bytes: int = field(
        default=2560 * MIB,
        metadata=setting(
            "GPUFENCE_FAST_EXCESS",
            "excess above which time counts faster in proportion, down to "
            "`GPUFENCE_SHORT_HOLD_SECONDS`",
            least=1,
        ),
    )
    # Pods, owners and limits are still arriving.
    start_pause_seconds: float = field(
        default=60.0,
        metadata=setting(
            "GPUFENCE_START_PAUSE_SECONDS", "no evictions for so long after the agent's start"
        ),
    )
    # Below lies what rounding and contexts cost.
    report_margin_bytes: int = field(
        default=64 * MIB,
        metadata=setting("GPUFENCE_REPORT_MARGIN", "excess above which there is an Event"),
    )
    # No framework counts to the byte.
    evict_margin_bytes: int = field(
        default=256 * MIB,
        metadata=setting("GPUFENCE_EVICT_MARGIN", "excess above which time counts"),
    )
    # What is not counted grows with the work.
    evict_margin_percent: int = field(
        default=3,
        metadata=setting(
            "GPUFENCE_EVICT_MARGIN_PERCENT",
            "the same as a share of the limit; the larger of the two counts",
            most=100,
        ),
    )
    # Then every MiB over is a neighbour's.
    short_margin_bytes: int = field(
        default=64 * MIB,
        metadata=setting(
            "GPUFENCE_SHORT_MARGIN", "the same while less than `GPUFENCE_SHORT_FLOOR` is free"
        ),
    )
    # The next context of a neighbour would not fit.
    short_floor_bytes: int = field(
        default=512 * MIB,
        metadata=setting("GPUFENCE_SHORT_FLOOR", "free memory below which a card is nearly full"),
    )
    # So that no mistake of ours empties a node before a person has looked.
    node_evictions_per_minute: int = field(
        default=6,
        metadata=setting(
            "GPUFENCE_NODE_EVICTIONS_PER_MINUTE", "most evictions of one agent", least=1, most=1000
        ),
    )
    namespace_evictions_per_minute: int = field(
        default=3,
        metadata=setting(
            "GPUFENCE_NAMESPACE_EVICTIONS_PER_MINUTE",
            "the same in one namespace",
            least=1,
            most=1000,
        ),
    )
    # That is rather a wrong unit than a conspiracy.
    suspend_namespaces: int = field(
        default=3,
        metadata=setting(
            "GPUFENCE_SUSPEND_NAMESPACES",
            "over half of the pods of one dialect and unit at once, in so many namespaces: none "
            "of them is evicted but to end memory pressure",
            least=1,
            most=10_000,
        ),
    )
    # Eviction does not cure such an owner.
    repeated_hold_seconds: tuple[float, ...] = field(
        default=(60.0, 300.0, 1800.0),
        metadata=setting(
            "GPUFENCE_REPEATED_HOLD_SECONDS",
            "threshold duration of an owner evicted here before: once, twice, ...",
            kind=_STEPS,
        ),
    )
    repeated_memory_seconds: float = field(
        default=86_400.0,
        metadata=setting(
            "GPUFENCE_REPEATED_MEMORY_SECONDS",
            "after so long an owner's evictions are forgotten",
            most=31_536_000,
        ),
    )
    # Its grace and ten seconds.
    termination_seconds: float = field(
        default=40.0,
        metadata=setting(
            "GPUFENCE_TERMINATION_SECONDS",
            "how long terminating pods may delay evictions on their card, in an hour in all",
        ),
    )
    # A pause between two requests is no end of work.
    lend_after_seconds: float = field(
        default=600.0,
        metadata=setting(
            "GPUFENCE_LEND_AFTER",
            "seconds a pod must have been idle, and not have grown, for other pods to borrow what "
            "is reserved for it; 0: nothing is lent",
        ),
    )
    # The start-up hook takes a second or two.
    give_back_seconds: float = field(
        default=15.0,
        metadata=setting(
            "GPUFENCE_GIVE_BACK",
            "seconds a pod that borrows has to give back what other pods need before it is evicted",
        ),
    )
    # What it holds is somebody else's.
    eviction_grace_seconds: int = field(
        default=30,
        metadata=setting(
            "GPUFENCE_EVICTION_GRACE_SECONDS",
            "longest termination grace period of an evicted pod",
            least=1,
            most=3600,
        ),
    )
    evict_when: EvictWhen = field(
        default=EvictWhen.ALWAYS,
        metadata=setting(
            "GPUFENCE_EVICT_WHEN",
            "`always`, or `short`: only under memory pressure",
        ),
    )
    budgets: Budgets = field(
        default=Budgets.OVERRIDE,
        metadata=setting(
            "GPUFENCE_BUDGETS",
            "`override`: under memory pressure a pod is deleted after refusals by a disruption "
            "budget; `respect`: it is not",
        ),
    )
    mps: Mps = field(
        default=Mps.REPORT,
        metadata=setting(
            "GPUFENCE_MPS",
            "`report`: clients of the node's own MPS server are only reported, since killing one "
            "at work can wedge the card for all of them (CUDA <= 13.5); `evict`: they are "
            "evicted by the driver's figures",
        ),
    )
    refused_backoff_seconds: float = field(
        default=5.0,
        metadata=setting(
            "GPUFENCE_REFUSED_BACKOFF_SECONDS",
            "the wait after a refused eviction, doubled by each further one",
            least=0.1,
        ),
    )
    # Budgets open when pods become ready, which takes seconds to minutes.
    refused_backoff_limit_seconds: float = field(
        default=60.0,
        metadata=setting(
            "GPUFENCE_REFUSED_BACKOFF_LIMIT_SECONDS", "the longest such wait", least=0.1
        ),
    )
    refusals_before_delete: int = field(
        default=3,
        metadata=setting(
            "GPUFENCE_REFUSALS_BEFORE_DELETE",
            "refusals under memory pressure before the pod is deleted, unless budgets are "
            "respected",
            least=1,
            most=1000,
        ),
    )
    last_resort_kill: bool = field(
        default=False,
        metadata=setting(
            "GPUFENCE_LAST_RESORT_KILL",
            "SIGKILL to the GPU processes of a pod that does not end; needs the capability KILL",
        ),
    )
    cap_slack_bytes: int = field(
        default=CAP_SLACK,
        metadata=setting(
            "GPUFENCE_CAP_SLACK", "excess above a cap at which it counts as ineffective"
        ),
    )
    # Monitors hold less.
    unattributed_floor_bytes: int = field(
        default=256 * MIB,
        metadata=setting(
            "GPUFENCE_UNATTRIBUTED_FLOOR",
            "unattributed or missing memory of a card above which there is an Event",
        ),
    )
    # A container is a few seconds older than the API server's word of it.
    unattributed_hold_seconds: float = field(
        default=30.0,
        metadata=setting("GPUFENCE_UNATTRIBUTED_HOLD_SECONDS", "how long it must last"),
    )

    @property
    def gap_seconds(self) -> float:
        """Return how far apart quick looks may be for the time between them to count as seen."""
        return 3 * self.interval_seconds

    def gap_after(self, look_seconds: float) -> float:
        """Return the same of looks that take so long: the driver is slow, but nobody looks away."""
        slow = 2 * min(look_seconds, MOST_LOOK_SECONDS) + self.interval_seconds
        return max(3 * self.interval_seconds, slow)

    def evict_threshold(self, limit_bytes: int) -> int:
        """Return the use above which time counts, on a card with free memory."""
        by_share = limit_bytes * self.evict_margin_percent // 100
        return limit_bytes + max(self.evict_margin_bytes, by_share)

    def speed(self, excess_bytes: int) -> float:
        """Return how fast time over the limit counts: who takes more has less time."""
        least_hold = max(self.short_hold_seconds, self.interval_seconds)
        fastest = max(self.hold_seconds / least_hold, 1.0)
        return min(max(excess_bytes / self.fast_excess_bytes, 1.0), fastest)
