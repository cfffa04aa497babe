"""
How far above what is promised to it a pod may go on a card: its limit, where it says a burst.

The request is what its sharing system counts, or its annotation says. The limit is never below
that, nor above card and ceilings; where no burst can work, both are one number.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.dialects import mig
from gpufence.dialects.spec import WHOLE_CARD
from gpufence.errors import annotation_problem
from gpufence.quantity import write_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpufence.annotations import NamespaceOptions, PodOptions
    from gpufence.dialects import Declared
    from gpufence.limits import Limits
    from gpufence.pods import Pod

WHOLE_PERCENT: Final = 100

_CEILINGS: Final = (names.MAX_BURST, names.MAX_MEMORY)
_MIG = ("is no use on a MIG instance, which is the pod's alone", "remove it")
_CAPPED = (
    "is no use where MPS or a library in the container holds it to its amount",
    "remove it, or ask for more",
)
_WHOLE = (
    "is no use for a pod that has whole cards",
    f"remove it, or say with {names.MEMORY} how much of a card is enough",
)
_NO_AMOUNT = (
    "has no amount to go above, since the pod declares none",
    f"write {names.MEMORY}",
)


class Burst(NamedTuple):
    """So many bytes of a card, or percent of the request; the whole card where neither is said."""

    bytes: int | None = None
    percent: int | None = None

    def on_card(self, request_bytes: int, card_bytes: int) -> int:
        """Return the limit that it means, which may be below the request or above the card."""
        if self.percent is not None:
            return request_bytes * self.percent // WHOLE_PERCENT
        return card_bytes if self.bytes is None else self.bytes


def with_burst(
    burst: Burst,
    found: Limits,
    declared: Declared,
    pod: Pod,
    options: PodOptions,
    namespace: NamespaceOptions,
    card_bytes: int | None,
) -> Limits:
    """
    Raise the limits of a pod that says a burst, and keep what they were as its request; on a card
    of unknown size they stay.
    """
    request = found.limit_bytes
    said = _obstacle(declared, found, options, namespace)
    if said is None and request is not None and card_bytes is not None and request < card_bytes:
        limit, said = _within(burst, request, card_bytes, namespace)
        if limit > request:
            found = _raised(found, request, limit)
    if said is None:
        return found
    note = annotation_problem(names.BURST, pod.annotations.get(names.BURST, ""), *said)
    return found._replace(notes=(*found.notes, note))


def _obstacle(
    declared: Declared, found: Limits, options: PodOptions, namespace: NamespaceOptions
) -> tuple[str, str] | None:
    """Return why no burst can work, and what to do; None where nothing is in the way."""
    if declared.dialect == mig.SPEC.name:
        return _MIG
    if declared.library_caps:
        return _CAPPED
    if not options.grants_memory:
        if all(claim.amount == WHOLE_CARD for claim in declared.claims):
            return _WHOLE
        if not found.enforced:
            return _NO_AMOUNT
    unreadable = [each.key for each in namespace.unreadable if each.key in _CEILINGS]
    if not unreadable:
        return None
    return f"does not count while the namespace's {unreadable[0]} cannot be read", "correct that"


def _within(
    burst: Burst, request: int, card_bytes: int, namespace: NamespaceOptions
) -> tuple[int, tuple[str, str] | None]:
    """Return the limit on a card, and what to say where that is not what the pod says."""
    wanted = min(burst.on_card(request, card_bytes), card_bytes)
    if wanted < request:
        reason = f"is below the request of {write_bytes(request)}, which counts"
        return request, (reason, "write more than that, or lower the request")
    key, ceiling = min(_ceilings(request, card_bytes, namespace), key=itemgetter(1))
    if wanted <= ceiling:
        return wanted, None
    counts = "the ceiling counts" if ceiling > request else "the request counts"
    reason = f"is above the namespace's {key} of {write_bytes(ceiling)}"
    return max(request, ceiling), (reason, f"{counts}; ask for less, or have the ceiling raised")


def _ceilings(
    request: int, card_bytes: int, namespace: NamespaceOptions
) -> Iterator[tuple[str, int]]:
    yield "card", card_bytes
    if namespace.max_burst is not None:
        yield names.MAX_BURST, namespace.max_burst.on_card(request, card_bytes)
    if namespace.max_memory_bytes is not None:
        yield names.MAX_MEMORY, namespace.max_memory_bytes


def _raised(found: Limits, request: int, limit: int) -> Limits:
    """Give each container as much more as the pod gets, so that together they stay within that."""
    parts = [
        part
        if part.limit_bytes is None
        else part._replace(limit_bytes=part.limit_bytes * limit // request)
        for part in found.parts
    ]
    return found._replace(limit_bytes=limit, parts=tuple(parts), promised_bytes=request)
