"""
PURE. What containers of a pod that bursts are told: the limit where memory can be given back, the
request where not, and by which amounts the start-up hook gives it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.quantity import GIB
from webhook.engines.words import keeps
from webhook.frameworks.table import FixedRow

if TYPE_CHECKING:
    from webhook.engines.launch import ServerLaunch
    from webhook.frameworks.figures import LimitOnCard, PodTerms

VARIABLES: Final = frozenset((names.ENV_REQUEST_BYTES, names.ENV_GIVE_BACK))

_TENTH: Final = 10
_OURS: Final = "is not the container's to say"


class BurstTold(NamedTuple):
    """
    The limits by which a container is configured, and why they are its requests, where they are.
    `rows` are the variables of the start-up hook.
    """

    cards: tuple[LimitOnCard, ...]
    why: str = ""
    rows: tuple[FixedRow, ...] = ()


def told(launch: ServerLaunch | None, cards: tuple[LimitOnCard, ...], terms: PodTerms) -> BurstTold:
    """Decide by what a container of a pod that bursts is configured."""
    rows = _rows(cards, terms.processes) if terms.gives_back else ()
    bursting = [(card.limit_bytes or 0, card.request_bytes or 0) for card in cards if card.bursts]
    engine = None if launch is None else launch.engine
    gives_back = launch is None or (engine is not None and engine.gives_back)
    if gives_back or terms.burst_servers or not bursting:
        return BurstTold(cards, rows=rows)
    requested = [
        card._replace(limit_bytes=card.request_bytes) if card.bursts else card for card in cards
    ]
    limit, request = min(bursting)
    return BurstTold(tuple(requested), keeps(engine, request, limit), rows)


def _rows(cards: tuple[LimitOnCard, ...], processes: int) -> tuple[FixedRow, ...]:
    """
    Return what the hook reads: each process's request, next to nothing while none is known, and of
    several cards what gives back soonest.
    """
    requests = [
        max((card.request_bytes or card.limit_bytes or 0) // processes, 1) for card in cards
    ]
    sizes = [card.card_bytes or 0 for card in cards]
    amounts = (min(requests), max(GIB, max(sizes) // _TENTH))
    named = zip((names.ENV_REQUEST_BYTES, names.ENV_GIVE_BACK), amounts, strict=True)
    return tuple([FixedRow(env, str(amount), without=_OURS) for env, amount in named])
