"""
The limit of a pod on a card and the part of each of its containers.

The one function that webhook and agent share: what the first writes into frameworks and what the
second enforces cannot drift apart. Bytes throughout, rounded down, and never zero, which most
frameworks read as "no limit".
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.burst import with_burst
from gpufence.dialects import (
    SPECS,
    Declared,
    Sum,
    Undeclared,
    Unreadable,
    declares,
    read_declaration,
)
from gpufence.dialects.annotation import by_annotation
from gpufence.errors import Problem, annotation_problem
from gpufence.pods import phase_sums, smallest_of_phases
from gpufence.quantity import MIB, write_bytes
from gpufence.text import listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.annotations import NamespaceOptions, PodOptions
    from gpufence.candidates import CandidateCard
    from gpufence.pods import Pod

_ALL: Final = Fraction(1)
_BY_ANNOTATIONS: Final = frozenset(spec.name for spec in SPECS if spec.annotation_keys)
_BY_CLAIMS: Final = frozenset(spec.name for spec in SPECS if spec.by_claims)


class Part(NamedTuple):
    """
    What one container may use on each card; None where only a card's size would tell. Of that its
    request is promised, which is less where the pod bursts.
    """

    container: str
    limit_bytes: int | None
    cards: int
    request_bytes: int | None


class Limits(NamedTuple):
    """
    What a pod may use on each card.

    `enforced` is False for an implied limit in a namespace that did not ask for those. `notes` are
    worth a warning each. `promised_bytes` is what others must leave to it, None for all of that.
    """

    dialect: str
    basis: str
    limit_bytes: int | None
    parts: tuple[Part, ...]
    enforced: bool
    library_caps: bool
    profile: str = ""
    notes: tuple[Problem, ...] = ()
    promised_bytes: int | None = None

    @property
    def request_bytes(self) -> int | None:
        """Return what others must leave to the pod on each card."""
        known = [each for each in (self.limit_bytes, self.promised_bytes) if each is not None]
        return min(known, default=None)


def read_limits(
    pod: Pod, options: PodOptions, namespace: NamespaceOptions, card: CandidateCard
) -> Limits | Undeclared | Unreadable:
    """
    Work out a pod's limits from what it declares, what its annotations say and what card it gets.
    """
    declaration = read_declaration(pod, card.units)
    return limits_on(declaration, pod, options, namespace, card.memory_bytes)


def limits_on(
    declaration: Declared | Undeclared | Unreadable,
    pod: Pod,
    options: PodOptions,
    namespace: NamespaceOptions,
    card_bytes: int | None,
) -> Limits | Undeclared | Unreadable:
    """
    Work out the limits of a declaration on one card: for those who compare cards of equal units.
    """
    if isinstance(declaration, Unreadable):
        return declaration
    if isinstance(declaration, Undeclared) or declaration.implied:
        broken = [each for each in options.unreadable if each.key.startswith(names.MEMORY)]
        if broken and not options.grants_memory:
            return Unreadable(broken[0])
    if isinstance(declaration, Undeclared):
        if not options.grants_memory or not pod.containers:
            return declaration
        declaration = by_annotation(pod, options)
    parts = _parts(declaration, pod, options, card_bytes)
    if isinstance(parts, Unreadable):
        return parts
    found = _limits(declaration, pod, parts, options, namespace)
    if declaration.promised is not None:
        found = found._replace(promised_bytes=declaration.promised.on_card(card_bytes))
    if options.burst is None:
        return found
    return with_burst(options.burst, found, declaration, pod, options, namespace, card_bytes)


def _parts(
    declared: Declared, pod: Pod, options: PodOptions, card_bytes: int | None
) -> dict[str, int | None] | Unreadable:
    """
    Give each container the smallest of what it declares, its own key and its share of the pod's.

    An amount that nobody wrote does not count beside one that somebody wrote.
    """
    granted = options.memory_of
    if options.memory_bytes is not None:
        shares = _shares(declared, pod, options)
        if isinstance(shares, Unreadable):
            return shares
        granted = {**shares, **granted}
    replaced = declared.implied and options.grants_memory
    parts: dict[str, int | None] = {}
    for container, amount, _ in declared.claims:
        own = granted.get(container)
        if not replaced:
            part = amount.on_card(card_bytes)
            if own is not None:
                part = own if part is None else min(own, part)
            parts[container] = 1 if part == 0 else part
        elif own is not None:
            parts[container] = own
        else:
            return _without_amount(container)
    return parts


def _shares(declared: Declared, pod: Pod, options: PodOptions) -> dict[str, int] | Unreadable:
    """Split the pod's amount equally among those who run together and have no key of their own."""
    total = options.memory_bytes or 0
    asking = {claim.container for claim in declared.claims}
    without = dict.fromkeys(asking.difference(options.memory_of), 1)
    named = {name: own for name, own in options.memory_of.items() if name in asking}
    each = [
        (total - own) // sharing if sharing else total
        for own, sharing in zip(phase_sums(pod, named), phase_sums(pod, without), strict=True)
    ]
    smallest = smallest_of_phases(pod, each)
    shares = {name: smallest[name] for name in without}
    starved = sorted(name for name, share in shares.items() if share < MIB)
    if not starved:
        return shares
    return Unreadable(
        annotation_problem(
            names.MEMORY,
            write_bytes(total),
            f"leaves under 1 MiB to {listed(starved)}",
            "raise it, or lower the amounts of the other containers",
        )
    )


def _without_amount(container: str) -> Unreadable:
    return Unreadable(
        annotation_problem(
            f"{names.MEMORY_OF_CONTAINER}{container}",
            "",
            "is missing while other containers of the pod have an amount",
            f"add it, or set {names.MEMORY} for the pod",
        )
    )


def _limits(
    declared: Declared,
    pod: Pod,
    parts: dict[str, int | None],
    options: PodOptions,
    namespace: NamespaceOptions,
) -> Limits:
    """Sum the parts up, hold the sum to what pod and namespace allow, and the parts to the sum."""
    most = declared.most_bytes
    limit = _pod_sum(declared.sum, pod, parts) if most is None else most
    if options.memory_bytes is not None:
        limit = options.memory_bytes if limit is None else min(options.memory_bytes, limit)
    granted = declared.implied and options.grants_memory
    notes = declared.notes
    above = _above_ceiling(declared, pod, namespace, limit, granted=granted)
    if above is not None:
        notes, limit = (*notes, above), namespace.max_memory_bytes
    if limit not in (None, most) and sum([part or 0 for part in parts.values()]) > limit:
        _shrink(parts, pod, limit)
    cards = {claim.container: claim.cards for claim in declared.claims}
    return Limits(
        dialect=declared.dialect,
        basis=declared.basis,
        limit_bytes=limit,
        parts=tuple([Part(name, part, cards[name], part) for name, part in parts.items()]),
        enforced=granted or not declared.implied or namespace.implied_limits,
        library_caps=declared.library_caps and not granted,
        profile=declared.profile,
        notes=notes,
    )


def _above_ceiling(
    declared: Declared,
    pod: Pod,
    namespace: NamespaceOptions,
    limit: int | None,
    *,
    granted: bool,
) -> Problem | None:
    """
    Return what to say of a limit above the namespace's ceiling, which holds down what pods grant
    themselves and what only their nodes imply, but not what a scheduler has counted.
    """
    ceiling = namespace.max_memory_bytes
    if ceiling is None or limit is None or limit <= ceiling:
        return None
    reason = f"is above the namespace's {names.MAX_MEMORY} of {write_bytes(ceiling)}"
    remedy = "the ceiling counts; ask for less, or have the ceiling raised"
    amount = write_bytes(limit)
    if declared.dialect in _BY_ANNOTATIONS and not granted:  # what no node offers, none has counted
        key = next(key for key in pod.annotations if declares(key))
        return annotation_problem(key, amount, reason, remedy)
    if granted:
        return annotation_problem(names.MEMORY, amount, reason, remedy)
    if not (declared.implied and namespace.implied_limits):
        return None
    field = "spec.resourceClaims" if declared.dialect in _BY_CLAIMS else "resources.limits"
    implied = f"({declared.basis}) {reason}"
    return Problem(field, amount, implied, f"write {names.MEMORY}, or have the ceiling raised")


def _pod_sum(rule: Sum, pod: Pod, parts: Mapping[str, int | None]) -> int | None:
    """Add the parts up as the dialect's scheduler does; None where one of them is unknown."""
    known = {name: part for name, part in parts.items() if part is not None}
    if len(known) < len(parts):
        return None
    if len(pod.containers) == 1:
        return known.get(pod.containers[0].name, 0)
    if rule is not Sum.KUBERNETES:
        regular = sum([known.get(item.name, 0) for item in pod.containers if item.regular])
        if rule is Sum.REGULAR and regular:
            return regular
        if rule is Sum.LARGEST_INIT:
            others = [item.name for item in pod.containers if not item.regular]
            return max(regular, *[known.get(name, 0) for name in others], 0)
    return max(phase_sums(pod, known))


def _shrink(parts: dict[str, int | None], pod: Pod, limit: int) -> None:
    """
    Shrink the parts of containers that together exceed the pod's limit, in proportion.

    Each keeps at least one byte: a part of zero would read as no limit.
    """
    known = {name: part for name, part in parts.items() if part}
    left = [
        Fraction(limit - together, total) if total > limit else _ALL
        for total, together in zip(
            phase_sums(pod, known), phase_sums(pod, dict.fromkeys(known, 1)), strict=True
        )
    ]
    smallest = smallest_of_phases(pod, left)
    for name, part in known.items():
        parts[name] = min(part, 1 + part * smallest[name] // 1)
