"""PURE. What the operator has decided about the pods of every namespace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from gpufence import names
from gpufence.candidates import CandidateCard
from gpufence.cards import LARGEST_MADE
from gpufence.dialects import SPECS, Units

if TYPE_CHECKING:
    from gpufence.reserves import ByModel

USUAL_SCHEDULERS = {spec.name: spec.scheduler for spec in SPECS if spec.scheduler}


Toleration: TypeAlias = Mapping[str, str]
"""As a pod has it; it stands in many pods, and is not to be changed."""


def toleration(key: str, value: str = "", effect: str = "") -> Toleration:
    """Tolerate a taint; without a value whatever its value, without an effect whatever that is."""
    written = {"key": key, "operator": "Equal" if value else "Exists"}
    written |= {"value": value} if value else {}
    return written | ({"effect": effect} if effect else {})


CARD_TAINT = toleration(names.NVIDIA_GPU, effect="NoSchedule")
"""
What clouds taint GPU nodes with. Kubernetes lets pods that request `nvidia.com/gpu` tolerate it,
but not those that request a share under another name.
"""


class DriverLimits(StrEnum):
    """Where the driver itself shall hold containers to their limit (docs/driver-limits.md)."""

    OFF = "off"
    ON = "on"  # all GPU nodes can, by the operator's word, and all that will come
    LABELLED = "labelled"  # those with the label can, and pods are kept to these
    AUTO = "auto"  # those with the label can; pods that may get another are held by no driver


@dataclass(frozen=True, slots=True)
class WebhookPolicy:
    """
    What holds for every pod.

    `default` is the card (and the units) to reckon with where no node tells and no pod is bound
    yet, `largest_bytes` the most that a card has whose node does not tell. `scheduler_names` has
    no entry for a dialect that leaves the scheduler alone. `reserve_override` replaces the whole
    table of context reserves, `measured` what it has for cards of some models. An empty
    `hook_source` means that there is no start-up hook to mount. Refusals and warnings end with a
    link to the page at `help_url`, if there is one.
    """

    default: CandidateCard = CandidateCard(Units(), None)  # noqa: RUF009 - frozen, so shared without harm
    scheduler_names: Mapping[str, str] = field(default_factory=lambda: dict(USUAL_SCHEDULERS))
    tolerations: tuple[Toleration, ...] = ()
    reserve_override: int | None = None
    measured: ByModel = ()
    hook_source: str = ""
    largest_bytes: int = LARGEST_MADE
    driver_limits: DriverLimits = DriverLimits.OFF
    help_url: str = ""
