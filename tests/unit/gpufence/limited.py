"""
Works out the limits of a pod built by a test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpufence.annotations import read_namespace_options, read_pod_options
from gpufence.candidates import CandidateCard
from gpufence.dialects import Undeclared, Units, Unreadable
from gpufence.limits import Limits, read_limits
from gpufence.pods import read_pod
from gpufence.quantity import GIB
from tests.support.builders import T4_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping


def said(
    raw: dict[str, Any],
    *,
    namespace: Mapping[str, str] | None = None,
    units: Units | None = None,
    card_bytes: int | None = T4_BYTES,
) -> Limits | Undeclared | Unreadable:
    read = read_pod(raw)
    options = read_pod_options(read.annotations, frozenset(item.name for item in read.containers))
    card = CandidateCard(units or Units(), card_bytes)
    return read_limits(read, options, read_namespace_options(namespace or {}), card)


def limits(raw: dict[str, Any], **more: Any) -> Limits:
    found = said(raw, **more)
    assert isinstance(found, Limits), found
    return found


def unreadable(raw: dict[str, Any], **more: Any) -> str:
    found = said(raw, **more)
    assert isinstance(found, Unreadable), found
    return found.problem.sentence


def parts(found: Limits) -> dict[str, int | None]:
    return {part.container: part.limit_bytes for part in found.parts}


def gibibytes(found: Limits) -> dict[str, float]:
    """
    Return every part in GiB, and the pod's limit under an empty name.
    """
    amounts = {"": found.limit_bytes} | parts(found)
    return {name: amount / GIB for name, amount in amounts.items() if amount is not None}
