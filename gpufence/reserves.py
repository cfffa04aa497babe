"""
What an operator has measured of contexts: `GPUFENCE_RESERVE` as an amount for every card, an amount
for each model, or both.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from gpufence.errors import InvalidError, Problem
from gpufence.quantity import read_bytes, write_bytes
from gpufence.setting_kinds import split_items

if TYPE_CHECKING:
    from collections.abc import Mapping

ByModel: TypeAlias = tuple[tuple[str, int], ...]
"""The reserve of each model of card, an MIG instance's with its profile."""

_ONCE: Final = "name each card once, and at most one amount for all others"
_EXAMPLE: Final = "write MODEL=AMOUNT as gpufence-agent verify prints it, such as Tesla T4=300Mi"
_SEVERAL: Final = re.compile(r"[^a-z0-9.+]+")


class Reserves(NamedTuple):
    """
    `every` replaces the whole table of reserves, `by_model` what it has for cards of that model.
    """

    every: int | None = None
    by_model: ByModel = ()

    def of(self, model: str) -> int | None:
        """Return what is set for a card's context, None where the table counts."""
        own = reserve_of(model, self.by_model)
        return self.every if own is None else own

    def with_models(self, measured: Mapping[str, int]) -> Reserves:
        """Return the same where these models have other reserves."""
        every = {_plain(key): (key, each) for key, each in (*self.by_model, *measured.items())}
        return self._replace(by_model=tuple(every.values()))


def read_reserves(text: str, variable: str) -> Reserves:
    """
    Read `700Mi`, `Tesla T4=300Mi,NVIDIA L4=400Mi`, or both in one list.

    Raises:
        InvalidError: it is neither, or a card is named twice.
    """
    found: dict[str, tuple[str, int]] = {}
    for item in split_items(text):
        model, separator, amount = (each.strip() for each in item.rpartition("="))
        if separator and not _plain(model):
            raise InvalidError(Problem(variable, item, "names no card", _EXAMPLE))
        if _plain(model) in found:
            raise InvalidError(Problem(variable, item, "is set twice", _ONCE))
        field = f"{variable}[{model}]" if model else variable
        found[_plain(model)] = model, read_bytes(amount, field)
    every = found.pop("", ("", None))[1]
    return Reserves(every, tuple(found.values()))


def write_reserves(reserves: Reserves) -> str:
    every = [] if reserves.every is None else [write_bytes(reserves.every)]
    return ",".join([*every, *(f"{key}={write_bytes(each)}" for key, each in reserves.by_model)])


def reserve_of(model: str, by_model: ByModel) -> int | None:
    """
    Return what was measured of a model, None where nothing was. Labels of nodes write blanks of a
    model as dashes.
    """
    wanted: Mapping[str, int] = {_plain(key): each for key, each in by_model}
    return wanted.get(_plain(model))


def _plain(model: str) -> str:
    return _SEVERAL.sub("-", model.lower()).strip("-")
