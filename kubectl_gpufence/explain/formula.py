"""
PURE. The sum behind a value, with its numbers: docs/adr/0003-exact-fractions.md tells the rule.

A plan says L, C, T and A, not by which rule A came about: it is the one whose sum gives A.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence.annotations import Headroom
from gpufence.quantity import write_bytes
from gpufence.share import (
    AUTO_HEADROOM,
    FACTOR_TENTHS,
    LEAST_ALLOWANCE,
    ShareTerms,
    allowance,
    write_fraction,
)
from kubectl_gpufence.words import allowed, counted

if TYPE_CHECKING:
    from gpufence.plan import ContainerPlan, Setting


class Figures(NamedTuple):
    """
    L, C, T and A of one or several settings.
    """

    limit_bytes: int
    reserve_bytes: int
    card_bytes: int | None
    allowance_bytes: int


def figures_of(setting: Setting) -> Figures | None:
    """
    Return a setting's figures; None for one that is the same on every card.
    """
    if setting.limit_bytes is None or setting.allowance_bytes is None:
        return None
    return Figures(
        setting.limit_bytes,
        setting.reserve_bytes or 0,
        setting.card_bytes,
        setting.allowance_bytes,
    )


def formula(found: Figures, container: ContainerPlan) -> list[str]:
    """
    Write A with its sum, and F where the card is known.
    """
    count = container.processes
    limit = (
        found.limit_bytes if found.card_bytes is None else min(found.limit_bytes, found.card_bytes)
    )
    card = "unknown" if found.card_bytes is None else allowed(found.card_bytes)
    figures = (
        f"L = {_text(found.limit_bytes)}, its part; C = {allowed(found.reserve_bytes)}, for CUDA "
        f"itself; T = {card}, the card; n = {counted(count, 'process', 'processes')}"
    )
    rule = _rule(found, limit, container)
    lines = [figures, f"A = {rule} = {_text(found.allowance_bytes)}"]
    if found.card_bytes:
        lines.append(f"F = A / T = {_fraction(found, limit, container)}")
    return lines


def _rule(found: Figures, limit: int, container: ContainerPlan) -> str:
    """
    Find the rule whose sum gives A; a rule of another version is not guessed at.
    """
    count, reserve = container.processes, found.reserve_bytes
    contexts = count * reserve
    if not reserve and limit // count == found.allowance_bytes:
        return f"L / n = {allowed(limit)} / {count}"
    for headroom in (container.headroom, Headroom.FACTOR):
        may = allowance(limit, limit, ShareTerms(reserve, count, headroom))
        if may.bytes != found.allowance_bytes:
            continue
        if may.starved:
            return f"min(128Mi, L / n) = min({allowed(LEAST_ALLOWANCE)}, {allowed(limit // count)})"
        if headroom is Headroom.FACTOR:
            rest = f"min({allowed(limit * FACTOR_TENTHS // 10)}, {allowed(limit - contexts)})"
            return f"min(0.7 L, L - n C) / n = {rest} / {count}"
        rest_of_factor = allowed(limit * (10 - FACTOR_TENTHS) // 10)
        room = f"max({allowed(contexts)}, min({rest_of_factor}, {allowed(AUTO_HEADROOM)}))"
        return f"(L - max(n C, min(0.3 L, 1536Mi))) / n = ({allowed(limit)} - {room}) / {count}"
    return "(by a rule this plugin does not know)"


def _fraction(found: Figures, limit: int, container: ContainerPlan) -> str:
    """
    Divide A by T as it was divided: A exactly, where its rule is known, for F is rounded once.
    """
    card = found.card_bytes or limit
    for headroom in (container.headroom, Headroom.FACTOR):
        may = allowance(
            limit, limit, ShareTerms(found.reserve_bytes, container.processes, headroom)
        )
        if may.bytes == found.allowance_bytes:
            return may.fraction_of(card)
    return write_fraction(found.allowance_bytes, card)


def _text(amount: int) -> str:
    exact = write_bytes(amount, largest="Mi")
    return exact if exact.endswith("Mi") else f"{allowed(amount)} ({amount} bytes)"
