"""
PURE. The value of one variable: ours, or the user's where that asks for less.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from gpufence.plan import Done, Form
from gpufence.quantity import MIB
from webhook.frameworks.table import FRACTIONS
from webhook.frameworks.wanted import names_pytorch_fraction, ours, wanted, with_pytorch_fraction

if TYPE_CHECKING:
    from webhook.frameworks.figures import Figures, Smallest
    from webhook.frameworks.table import Row


@dataclass(frozen=True, slots=True)
class Settled:
    """
    A variable's value and how it came about.

    `readable` is False where the user's value is nothing the framework could act on.
    """

    text: str
    done: Done
    figures: Figures | None = None
    readable: bool = True


def settle(row: Row, found: Smallest, user: str | None) -> Settled | None:
    """
    Return a variable's value, or None where nothing can be said that its reader would bear.

    Without a card a fraction stays what the user wrote, or empty, which its readers take for unset.
    Readers of amounts choke on empty text, so without a limit there is no amount at all.
    """
    if row.form is Form.FIXED:
        return _fixed(row, user)
    figures = found.fraction if row.form in FRACTIONS else found.amount
    if figures is not None:
        return _smaller(row.form, figures, user)
    if user:
        return Settled(user, Done.KEPT)
    return Settled("", Done.SET) if row.form in FRACTIONS else None


def value_of(form: Form, figures: Figures) -> str:
    """
    Write our own value.
    """
    allowed = figures.allowance_bytes
    match form:
        case Form.FRACTION | Form.SHARE:
            return figures.fraction
        case Form.PYTORCH:
            return ours(figures.fraction)
        case Form.MEBIBYTES:
            return str(max(allowed // MIB, 1))  # zero would be no limit
        case Form.JULIA:
            return f"{max(allowed // MIB, 1)}MiB"
        case _:
            return str(allowed)


def _fixed(row: Row, user: str | None) -> Settled:
    if not user:
        return Settled(row.fixed, Done.SET)
    if row.yields or user == row.fixed:
        return Settled(user, Done.KEPT)
    return Settled(row.fixed, Done.LOWERED)


def _smaller(form: Form, figures: Figures, user: str | None) -> Settled:
    if not user:
        return Settled(value_of(form, figures), Done.SET, figures)
    if form is Form.PYTORCH and not names_pytorch_fraction(user):
        fraction = value_of(Form.FRACTION, figures)
        return Settled(with_pytorch_fraction(user, fraction), Done.SET, figures)
    asked = wanted(form, user, figures.card_bytes)
    allowed = figures.ratio if form in FRACTIONS else Fraction(figures.allowance_bytes)
    if asked is not None and asked <= allowed:
        return Settled(user, Done.KEPT, figures)
    text = value_of(form, figures)
    if form is Form.PYTORCH:
        text = with_pytorch_fraction(user, value_of(Form.FRACTION, figures))
    return Settled(text, Done.LOWERED, figures, readable=asked is not None)
