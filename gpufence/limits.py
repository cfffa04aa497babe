"""
The limit of a pod on a card and the part of each of its containers.

The one function that webhook and agent share: what the first writes into frameworks and what the
second enforces cannot drift apart. Bytes throughout, rounded down, and never zero, which most
frameworks read as "no limit".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.dialects import (
    Amount,
    Declared,
    Sum,
    Undeclared,
    Unreadable,
    read_declaration,
)
from gpufence.dialects.annotation import by_annotation
from gpufence.errors import annotation_problem
from gpufence.pods import Kind
from gpufence.quantity import MIB, write_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpufence.annotations import NamespaceOptions, PodOptions
    from gpufence.candidates import CandidateCard
    from gpufence.errors import Problem
    from gpufence.pods import Container, Pod


class Part(NamedTuple):
    """
    What one container may use on each card; None where only a card's size would tell.
    """

    container: str
    limit_bytes: int | None
    cards: int


class Limits(NamedTuple):
    """
    What a pod may use on each card.

    `enforced` is False for an implied limit in a namespace that did not ask for those. `notes` are
    worth a warning each.
    """

    dialect: str
    basis: str
    limit_bytes: int | None
    parts: tuple[Part, ...]
    enforced: bool
    library_caps: bool
    profile: str = ""
    notes: tuple[Problem, ...] = ()


def read_limits(
    pod: Pod, options: PodOptions, namespace: NamespaceOptions, card: CandidateCard
) -> Limits | Undeclared | Unreadable:
    """
    Work out a pod's limits from what it declares, what its annotations say and what card it gets.
    """
    said = read_declaration(pod, card.units)
    return limits_on(said, pod, options, namespace, card.memory_bytes)


def limits_on(
    said: Declared | Undeclared | Unreadable,
    pod: Pod,
    options: PodOptions,
    namespace: NamespaceOptions,
    card_bytes: int | None,
) -> Limits | Undeclared | Unreadable:
    """
    Work out the limits of a declaration on one card: for those who compare cards of equal units.
    """
    if isinstance(said, Unreadable):
        return said
    granted = options.memory_bytes is not None or bool(options.memory_of)
    broken = [problem for problem in options.unreadable if problem.key.startswith(names.MEMORY)]
    if isinstance(said, Undeclared):
        if broken and not granted:
            return Unreadable(broken[0])
        if not granted or not pod.containers:
            return said
        said = by_annotation(pod, options)
    elif said.implied and broken and not granted:
        return Unreadable(broken[0])
    parts = _parts(pod, options, said, card_bytes, granted=granted)
    if isinstance(parts, Unreadable):
        return parts
    return _fit(pod, said, parts, options, namespace)


def _parts(
    pod: Pod, options: PodOptions, said: Declared, card_bytes: int | None, *, granted: bool
) -> dict[str, int | None] | Unreadable:
    """
    Give each container the smallest of what it declares, its own key and its share of the pod's.
    """
    claims = {claim.container: claim.amount for claim in said.claims}
    phases = [[item.name for item in phase if item.name in claims] for phase in pod.phases]
    shares = _shares(options, phases) if options.memory_bytes is not None else {}
    if isinstance(shares, Unreadable):
        return shares
    parts: dict[str, int | None] = {}
    for name, amount in claims.items():
        word = options.memory_of.get(name, shares.get(name))
        if granted and said.implied and word is None:
            return _without_amount(name)
        parts[name] = _smaller(amount, word, card_bytes, implied=granted and said.implied)
    return parts


def _smaller(
    amount: Amount, word: int | None, card_bytes: int | None, *, implied: bool
) -> int | None:
    if implied:
        return word
    known = [value for value in (amount.on_card(card_bytes), word) if value is not None]
    return max(min(known), 1) if known else None


def _shares(options: PodOptions, phases: Sequence[Sequence[str]]) -> dict[str, int] | Unreadable:
    """
    Split the pod's amount equally among those who run together and have no key of their own.
    """
    total = options.memory_bytes or 0
    shares: dict[str, int] = {}
    for phase in phases:
        rest = total - sum(options.memory_of.get(name, 0) for name in phase)
        without = [name for name in phase if name not in options.memory_of]
        for name in without:
            shares[name] = min(rest // len(without), shares.get(name, rest))
    starved = sorted(name for name, share in shares.items() if share < MIB)
    if not starved:
        return shares
    return Unreadable(
        annotation_problem(
            names.MEMORY,
            write_bytes(total),
            f"leaves under 1 MiB to {', '.join(starved)}",
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


def _fit(
    pod: Pod,
    said: Declared,
    parts: Mapping[str, int | None],
    options: PodOptions,
    namespace: NamespaceOptions,
) -> Limits:
    granted = said.implied and (options.memory_bytes is not None or bool(options.memory_of))
    limit = _least(_pod_sum(pod, parts, said.sum), options.memory_bytes)
    notes = list(said.notes)
    ceiling = namespace.max_memory_bytes
    if granted and ceiling is not None and limit is not None and limit > ceiling:
        notes.append(
            annotation_problem(
                names.MEMORY,
                write_bytes(limit),
                f"is above the namespace's {names.MAX_MEMORY} of {write_bytes(ceiling)}",
                "the ceiling counts; ask for less, or have the ceiling raised",
            )
        )
        limit = ceiling
    scaled = _scaled(pod, parts, limit)
    cards = {claim.container: claim.cards for claim in said.claims}
    return Limits(
        dialect=said.dialect,
        basis=said.basis,
        limit_bytes=limit,
        parts=tuple(Part(name, scaled[name], cards[name]) for name in scaled),
        enforced=granted or not said.implied or namespace.implied_limits,
        library_caps=said.library_caps,
        profile=said.profile,
        notes=tuple(notes),
    )


def _pod_sum(pod: Pod, parts: Mapping[str, int | None], rule: Sum) -> int | None:
    """
    Add the parts up as the dialect's scheduler does.
    """
    regular = _total(parts, (item for item in pod.containers if item.kind is Kind.REGULAR))
    if rule is Sum.REGULAR and regular != 0:
        return regular
    if rule is Sum.LARGEST_INIT and regular is not None:
        first = (item for item in pod.containers if item.kind is not Kind.REGULAR)
        return max(regular, *(parts.get(item.name) or 0 for item in first), 0)
    sums = [_total(parts, phase) for phase in pod.phases]
    return None if None in sums else max(item for item in sums if item is not None)


def _total(parts: Mapping[str, int | None], containers: Iterable[Container]) -> int | None:
    amounts = [parts[item.name] for item in containers if item.name in parts]
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def _least(*amounts: int | None) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return min(known) if known else None


def _scaled(pod: Pod, parts: Mapping[str, int | None], limit: int | None) -> dict[str, int | None]:
    """
    Shrink the parts of containers that together exceed the pod's limit, in proportion.

    Each keeps at least one byte: a part of zero would read as no limit.
    """
    scaled = dict(parts)
    if limit is None:
        return scaled
    for phase in pod.phases:
        together = [item.name for item in phase if parts.get(item.name) is not None]
        total = sum(parts[name] or 0 for name in together)
        if total > limit:
            rest = limit - len(together)
            for name in together:
                scaled[name] = _least(scaled[name], 1 + (parts[name] or 0) * rest // total)
    return scaled
