"""PURE. The settings of what is decided about owners of idle GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpufence.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRules:
    """When an owner is released, and what stands against it."""

    idle_seconds: float = field(
        default=60.0,
        metadata=setting(
            "GPUFENCE_IDLE_SECONDS",
            "how long a pod has done nothing when its condition `gpufence.io/GPUIdle` becomes "
            "true: what the agents have in the variable of this name",
        ),
    )
    after_seconds: float = field(
        default=900.0,
        metadata=setting(
            "GPUFENCE_RELEASE_AFTER_SECONDS",
            "how long all pods of an owner must have been idle before it is released, where "
            "neither it nor its namespace says `gpufence.io/idle-after`",
            most=30 * 86400,
        ),
    )
    least_seconds: float = field(
        default=60.0,
        metadata=setting(
            "GPUFENCE_RELEASE_LEAST_SECONDS",
            "the shortest time that `gpufence.io/idle-after` and "
            "`gpufence.io/idle-after-contended` may say",
        ),
    )
    notice_seconds: float = field(
        default=300.0,
        metadata=setting(
            "GPUFENCE_RELEASE_NOTICE_SECONDS",
            "how long before its release an owner is announced; at most half of the time it must "
            "be idle",
        ),
    )
    warm_up_seconds: float = field(
        default=900.0,
        metadata=setting(
            "GPUFENCE_RELEASE_WARM_UP_SECONDS",
            "how long after its youngest pod became ready no owner is released",
        ),
    )
    peace_seconds: float = field(
        default=1800.0,
        metadata=setting(
            "GPUFENCE_RELEASE_PEACE_SECONDS",
            "how long after it came back an owner is not released again",
        ),
    )
    free_seconds: float = field(
        default=300.0,
        metadata=setting(
            "GPUFENCE_RELEASE_FREE_SECONDS",
            "how long nobody must wait and an owner must fit before `gpufence.io/wake: when-free` "
            "brings it back",
        ),
    )
    waiting_seconds: float = field(
        default=30.0,
        metadata=setting(
            "GPUFENCE_RELEASE_WAITING_SECONDS",
            "how long no node must have taken a pod before it counts as waiting",
        ),
    )
    per_minute: int = field(
        default=3,
        metadata=setting(
            "GPUFENCE_RELEASE_PER_MINUTE",
            "how many owners are released in a minute at most",
            most=1000,
        ),
    )
    suspend_percent: float = field(
        default=80.0,
        metadata=setting(
            "GPUFENCE_RELEASE_SUSPEND_PERCENT",
            "when so many of all measured pods turn idle at once, nobody is released for a time",
            most=100,
        ),
    )
    suspend_pods: int = field(
        default=5,
        metadata=setting(
            "GPUFENCE_RELEASE_SUSPEND_PODS",
            "the fewest measured pods that tell so",
            least=2,
            most=10000,
        ),
    )
    suspend_within_seconds: float = field(
        default=60.0,
        metadata=setting("GPUFENCE_RELEASE_SUSPEND_WITHIN_SECONDS", "what at once means", least=1),
    )
    suspend_seconds: float = field(
        default=3600.0,
        metadata=setting("GPUFENCE_RELEASE_SUSPEND_SECONDS", "how long that time is"),
    )
    contest_seconds: float = field(
        default=600.0,
        metadata=setting(
            "GPUFENCE_RELEASE_CONTEST_SECONDS",
            "somebody who brings an owner back so soon after its release contests it",
        ),
    )
    left_alone_seconds: float = field(
        default=86400.0,
        metadata=setting(
            "GPUFENCE_RELEASE_LEFT_ALONE_SECONDS",
            "how long an owner is left alone whose release was contested twice in that time",
            most=30 * 86400,
        ),
    )
