"""
PURE. What a container says already, which variables hold for it, and the value of each: ours, or
the user's where that asks for less.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.errors import shown
from gpufence.plan import Done
from gpufence.quantity import write_mebibytes
from webhook.frameworks.figures import Basis
from webhook.frameworks.table import (
    TABLE,
    XLA,
    XLA_NEW,
    XLA_NEW_BLANK,
    FixedRow,
    FrameworkRow,
    read_fraction,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.frameworks.engines import Engine
    from webhook.frameworks.figures import CardFigures, ContainerFigures, PodTerms
    from webhook.frameworks.launch import ServerLaunch

_HOOKED = frozenset((names.ENV_FRACTION, names.ENV_TF_FRACTION, names.ENV_LIMIT_BYTES))


class Variable(NamedTuple):
    """
    What a container says about one variable already.

    `user` is the user's own text, also where a pass before this one has replaced it. `points`
    marks a variable that reads a slot, `slot` is that slot if it can be used again. `hidden` marks
    a value that cannot be read (valueFrom, `$(VAR)`).
    """

    user: str | None = None
    slot: str = ""
    points: bool = False
    hidden: bool = False


class ContainerText(NamedTuple):
    """
    What one container says, as far as frameworks go. `framework` marks that one is named which
    keeps to what its variables say.
    """

    name: str
    variables: Mapping[str, Variable]
    launch: ServerLaunch | None = None
    env_from: bool = False
    framework: bool = False


ABSENT = Variable()


def table_rows(
    text: ContainerText, terms: PodTerms, *, aware: bool
) -> Iterator[FrameworkRow | FixedRow]:
    """Yield the rows of the table that hold for a container."""
    launch = text.launch
    for row in TABLE:
        if launch is not None and isinstance(row, FrameworkRow) and row.of_torch:
            points = terms.bound and text.variables.get(row.env, ABSENT).points
            if points or (aware and launch.pytorch and _heeded(launch, row.env, terms)):
                yield row if launch.pytorch else row._replace(basis=Basis.SHARE)
            continue
        if launch is not None and not _heeded(launch, row.env, terms):
            continue
        if row is XLA:
            yield from _xla_rows(text)
        elif row is not XLA_NEW_BLANK:
            yield row


def _heeded(launch: ServerLaunch, env: str, terms: PodTerms) -> bool:
    """Return whether anything in the container reads a variable of the table."""
    engine = launch.engine
    if engine is None or engine.heeds(env) or env in launch.refers:
        return True
    return terms.hook and engine.hooked and env in _HOOKED


def own_rows(
    engine: Engine, launch: ServerLaunch, *, told: bool
) -> Iterator[FrameworkRow | FixedRow]:
    """
    Yield the rows of a known program's own variables, and of the one that its flag reads, or could.
    """
    lever, heard = engine.lever, launch.overridden is None
    yield from (row for row in engine.rows if heard or lever is None or row is not lever.row)
    if lever is None or lever.row in engine.rows:
        return
    if (lever.appends and heard) or told or lever.row.env in launch.refers:
        yield lever.row


def _xla_rows(text: ContainerText) -> Iterator[FrameworkRow | FixedRow]:
    """
    Yield JAX's two names: the one that every version reads, and the other as blank.

    Where one of them cannot be read, setting the other could make both non-empty, so both stay.
    """
    old = text.variables.get(XLA.env, ABSENT)
    new = text.variables.get(XLA_NEW.env, ABSENT)
    if old.hidden or new.hidden:
        yield from (row for row, each in ((XLA, old), (XLA_NEW, new)) if each.hidden)
    else:
        yield from (XLA, XLA_NEW_BLANK)


class Value(NamedTuple):
    """
    A variable's value and how it came about.

    `readable` is False where the user's value is nothing the framework could act on.
    """

    text: str
    done: Done
    figures: CardFigures | None = None
    readable: bool = True


def value_for(
    row: FrameworkRow | FixedRow, figures: ContainerFigures, user: str | None
) -> Value | None:
    """
    Return a variable's value, or None where nothing can be written that its reader would bear.

    Without a card a fraction stays what the user wrote, or empty, which its readers take for unset.
    Readers of amounts choke on empty text, so without a limit there is no amount at all.
    """
    if isinstance(row, FixedRow):
        return _fixed(row, user)
    card = allowed(row, figures)
    if card is not None:
        return _smaller(row, card, user) if user else Value(row.write(card, ""), Done.SET, card)
    if user:
        return Value(user, Done.KEPT)
    return Value("", Done.SET) if row.of_card and not row.strict else None


def allowed(row: FrameworkRow, figures: ContainerFigures) -> CardFigures | None:
    """Return the figures of the card on which a row's value is the smallest."""
    smallest = figures.by_basis[row.basis]
    if row.left_free:
        return smallest.rest
    return smallest.fraction if row.of_card else smallest.amount


def lowered(row: FrameworkRow | FixedRow, value: Value, user: str, *, label: str = "") -> str:
    """Return the sentence that says that ours counts and not what the user wrote."""
    summary = f"{label or row.env} {shown(user)}"
    figures = value.figures
    if figures is None and value.text:
        without = row.without if isinstance(row, FixedRow) else "is no cap"
        return f"{summary} {without}; {shown(value.text)} counts"
    if figures is None:
        return (
            f"{summary} is unknown to older JAX, and beside {names.XLA_FRACTION} sends a newer one"
            f" to the CPU; {names.XLA_FRACTION} alone counts, with the smaller of both values"
        )
    what = "is no cap" if "$" not in user else "cannot be told before it runs"
    what = "is too much" if value.readable else what
    if isinstance(row, FrameworkRow) and row.left_free and value.readable:
        what = "leaves too little free"
    return f"{summary} {what}; this pod may use {_basis(figures)}, so {value.text} counts"


def smaller_share(one: str | None, other: str) -> str:
    """
    Return which of a user's two texts for one share asks for less, as far as they can be read.
    """
    known = [(share, text) for text in (one, other) if text and (share := read_fraction(text))]
    return min(known)[1] if known else other


def _fixed(row: FixedRow, user: str | None) -> Value:
    if not user:
        return Value(row.value, Done.SET)
    if row.yields or user == row.value:
        return Value(user, Done.KEPT)
    return Value(row.value, Done.LOWERED)


def _smaller(row: FrameworkRow, figures: CardFigures, user: str) -> Value:
    if not row.speaks(user):
        return Value(row.write(figures, user), Done.SET, figures)
    asked = row.read(user, figures.card_bytes) or Fraction(0)
    allowed = figures.ratio if row.of_card else figures.allowance_bytes
    if 0 < asked <= allowed:
        return Value(user, Done.KEPT, figures)
    return Value(row.write(figures, user), Done.LOWERED, figures, readable=asked > 0)


def _basis(figures: CardFigures) -> str:
    limit = write_mebibytes(figures.limit_bytes)
    if figures.card_bytes is None:
        return limit
    return f"{limit} of {write_mebibytes(figures.card_bytes)}"
