"""
What of a profile is applied to pods that are made from now on: which amounts, and to which pods.

An amount begins where its target is sure, and then stays until a better one is known: what a cap
hides, or a pod that was away for weeks, is no reason to let go of what was measured before.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.dialects.spec import LARGEST_CARD
from gpufence.names import MEMORY, MEMORY_OF_CONTAINER
from gpufence.need.measured import Confidence
from gpufence.quantity import write_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpufence.need.summary import NeedSummary
    from gpufence.pods import Pod

LEAST_CHANGE_PERCENT: Final = 10
"""A target that differs by less is not worth another limit; the margin covers it."""

_ALL: Final = 100
_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


class AppliedProfile(NamedTuple):
    """
    A profile that is applied, as plans name it, and the amount of each of the owner's containers.
    """

    name: str
    generation: int
    amounts: Mapping[str, int] = _NOTHING

    def texts(self, pod: Pod) -> dict[str, str]:
        """
        Return the annotations that state a pod's needs as its template could have; none where that
        states any amount, or where not all of its containers are known that ask for a GPU.
        """
        if any(key.startswith(MEMORY) for key in pod.annotations):
            return {}
        wanted = _asking(self, pod)
        if not wanted or any(name not in self.amounts for name in wanted):
            return {}
        amounts = {name: write_bytes(self.amounts[name], largest="Mi") for name in wanted}
        if len(amounts) == 1:
            return {MEMORY: amounts[wanted[0]]}
        return {f"{MEMORY_OF_CONTAINER}{name}": text for name, text in amounts.items()}

    def holds(self, pod: Pod) -> bool:
        """Return whether a pod holds to these amounts, whatever wrote them there."""
        amounts = {key: text for key, text in pod.annotations.items() if key.startswith(MEMORY)}
        others = {key: text for key, text in pod.annotations.items() if key not in amounts}
        return bool(amounts) and amounts == self.texts(pod._replace(annotations=others))


def applied_amounts(
    before: Mapping[str, int], summaries: Sequence[NeedSummary], most_bytes: int | None
) -> dict[str, int]:
    """
    Return the amount of each container whose profile is to be applied, from those `before`.

    On which card a pod will run nobody knows when it is made: the largest target of all models of
    card counts, and for the first time only once all of them are sure.
    """
    amounts = dict(before)
    for container in sorted({item.key.container for item in summaries}):
        rows = [item for item in summaries if item.key.container == container]
        amount = _amount(before.get(container), rows)
        if amount is not None:
            amounts[container] = amount
    most = LARGEST_CARD if most_bytes is None else min(most_bytes, LARGEST_CARD)
    return {name: min(amount, most) for name, amount in amounts.items()}


def _asking(profile: AppliedProfile, pod: Pod) -> list[str]:
    """
    Return the containers that ask for a GPU; where the pod's annotations do so for them, those that
    the profile knows.
    """
    asking = [item.name for item in pod.containers if item.gpu]
    return asking or [item.name for item in pod.containers if item.name in profile.amounts]


def _amount(before: int | None, rows: Sequence[NeedSummary]) -> int | None:
    """Return what a container gets from now on; None where nothing sure is known yet."""
    targets = [item.target_bytes for item in rows if item.target_bytes is not None]
    sure = len(targets) == len(rows) and all(item.confidence is Confidence.HIGH for item in rows)
    if before is None:
        return max(targets) if sure else None
    # What is not known of one card is no reason to give less on all of them.
    target = max(targets, default=before) if sure else max([before, *targets])
    changes = abs(target - before) * _ALL >= before * LEAST_CHANGE_PERCENT
    return target if changes else before
