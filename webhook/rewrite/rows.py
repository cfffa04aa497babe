"""PURE. What a container says already, and which variables hold for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from webhook.frameworks.figures import Basis
from webhook.frameworks.table import (
    TABLE,
    XLA,
    XLA_NEW,
    XLA_NEW_BLANK,
    FixedRow,
    FrameworkRow,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.engines.catalog import Engine
    from webhook.engines.launch import ServerLaunch
    from webhook.frameworks.figures import PodTerms

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
