"""
What a pod asks for by annotations, which no quota of Kubernetes counts: those see resources only.

Amounts that stand in resources or resource claims are left to them, or they would count twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.annotations import NamespaceOptions, read_namespace_options, read_pod_options
from gpufence.candidates import CandidateCard
from gpufence.dialects import SPECS, Declared, Undeclared, Units, declares, read_declaration
from gpufence.dialects.annotation import SPEC as BY_ANNOTATION
from gpufence.dialects.spec import LARGEST_CARD
from gpufence.errors import GpufenceError
from gpufence.held import held_limits
from gpufence.limits import Limits
from gpufence.plan import read_plan
from gpufence.pods import phase_sums

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.annotations import PodOptions
    from gpufence.dialects import Unreadable
    from gpufence.pods import Pod

ENDED: Final = ("Succeeded", "Failed")
"""Phases of pods that hold nothing any more."""

_SAID: Final = {BY_ANNOTATION.name, *(spec.name for spec in SPECS if spec.annotation_keys)}
_NO_WORDS: Final = NamespaceOptions()
_UNITS: Final = Units()  # what annotations count is the same on every node


class AskedMemory(NamedTuple):
    """
    Bytes on each of so many cards; with a `share` (numerator, denominator) that part of a card, and
    no more than the bytes.
    """

    most_bytes: int
    cards: int = 1
    share: tuple[int, int] | None = None

    def on(self, card_bytes: int) -> int:
        """Return the bytes on all its cards, each of which has so many."""
        each = self.most_bytes
        if self.share is not None:
            each = min(each, card_bytes * self.share[0] // self.share[1])
        return each * self.cards


def asked_of(pod: Pod) -> AskedMemory | None:
    """
    Return what a pod asks for by annotations alone; None where it asks for nothing, or by resources
    too. What cannot be read counts as the smallest amount that can, a burst as what is promised.
    """
    if not any(map(_is_amount, pod.annotations)):
        return None
    options = read_pod_options(pod.annotations, frozenset([item.name for item in pod.containers]))
    declaration = read_declaration(pod, _UNITS)
    share = _share(declaration)
    card = CandidateCard(_UNITS, LARGEST_CARD if share else None)
    found = held_limits(pod, options, _words_on(pod), card)
    if not isinstance(found, Limits) or not _is_said(found, declaration, options):
        return None
    if len(found.parts) <= 1:
        cards = max([part.cards for part in found.parts], default=1)
        return AskedMemory(found.request_bytes or 0, cards, share)
    parts = {part.container: (part.request_bytes or 0) * part.cards for part in found.parts}
    return AskedMemory(max(phase_sums(pod, parts)))


def amount_key(annotations: Mapping[str, str]) -> str:
    """Return the first annotation by which a pod asks for an amount."""
    return next(filter(_is_amount, sorted(annotations)), names.MEMORY)


def _is_amount(key: str) -> bool:
    return key == names.MEMORY or key.startswith(names.MEMORY_OF_CONTAINER) or declares(key)


def _share(declaration: Declared | Undeclared | Unreadable) -> tuple[int, int] | None:
    if not isinstance(declaration, Declared) or declaration.dialect not in _SAID:
        return None
    return declaration.claims[0].amount.share


def _is_said(
    found: Limits, declaration: Declared | Undeclared | Unreadable, options: PodOptions
) -> bool:
    """Return whether annotations alone make a limit."""
    if found.dialect in _SAID:
        return True
    implied = isinstance(declaration, Declared) and declaration.implied
    return implied and options.grants_memory


def _words_on(pod: Pod) -> NamespaceOptions:
    """Return the namespace's words that counted when the pod was made, as its plan has them."""
    try:
        said = read_plan(pod.annotations[names.PLAN]).namespace
    except (GpufenceError, KeyError):
        return _NO_WORDS
    return read_namespace_options(said)._replace(evicts_undeclared=False)
