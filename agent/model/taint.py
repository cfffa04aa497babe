"""PURE. Cards that shall take no more resource claims, and when that is so."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from gpufence.settings import setting


class Disorder(StrEnum):
    """Why a card shall take no more; the values of the taint are the same."""

    NONE = ""
    UNATTRIBUTED = "unattributed"  # memory that belongs to no pod
    OVERCOMMITTED = "overcommitted"  # limits that add up to more than the card


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintPolicy:
    """What stands in the cluster when the agent ends stays there, for the next one to take up."""

    enabled: bool = field(
        default=False,
        metadata=setting(
            "GPUFENCE_DEVICE_TAINTS",
            "whether such a card is tainted `NoSchedule` by a DeviceTaintRule, so that no more "
            "claims are placed there; needs Kubernetes >= 1.37 and component `device-taints`",
        ),
    )
    taint_seconds: float = field(
        default=30.0,
        metadata=setting(
            "GPUFENCE_TAINT_SECONDS",
            "for how long memory must belong to nobody (beyond the hold of its Event), or limits "
            "add up to more than the card, before that",
            most=86_400,
        ),
    )
    untaint_seconds: float = field(
        default=120.0,
        metadata=setting(
            "GPUFENCE_UNTAINT_SECONDS",
            "for how long a card must be in order before it takes claims again",
            most=86_400,
        ),
    )
