"""
PURE. What is asked about one container, and what is answered: plain values, both of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gpufence.plan import ContainerPlan
    from webhook.frameworks.figures import Reckoning
    from webhook.frameworks.servers import Launch


class How(Enum):
    """
    What is to become of the settings.
    """

    SET = "set"
    PLAN = "plan"  # observe: only said
    GROW = "grow"  # observe with growth: said, and grow-on-demand set
    NOTHING = "nothing"  # opted out, or nothing to inject


class Word(NamedTuple):
    """
    What a container says about one variable already.

    `user` is the user's own text, also where a pass before this one has replaced it. `points`
    marks a variable that reads a slot, `slot` is that slot if it can be used again. `hidden` marks
    a value that cannot be read (valueFrom, `$(VAR)`).
    """

    env: str
    user: str | None = None
    slot: str = ""
    points: bool = False
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """
    One container, and all that its settings depend on.

    `first_slot` is the first number free; `fenced` is False where nothing enforces the limit;
    `bound` is True when the variables stand as they are and only their values can change.
    """

    container: str
    reckoning: Reckoning
    words: tuple[Word, ...] = ()
    launch: Launch | None = None
    first_slot: int = 0
    how: How = How.SET
    fenced: bool = True
    bound: bool = False
    args: bool = False
    hook: bool = False
    env_from: bool = False


@dataclass(frozen=True, slots=True)
class Injection:
    """
    What becomes of one container.

    `slots` are variables to point at their slots, `values` what stands in those; `restored` are
    variables that an earlier pass pointed at a slot and that get their own text back, or go;
    `argument` is to be appended where there is one.
    """

    container: str
    plan: ContainerPlan
    text: str
    slots: tuple[tuple[str, str], ...]
    values: tuple[tuple[str, str], ...]
    restored: tuple[tuple[str, str | None], ...]
    warnings: tuple[str, ...]
    next_slot: int
    argument: str = ""
    too_small: TooSmall | None = None


@dataclass(frozen=True, slots=True)
class TooSmall:
    """
    A limit that leaves a framework no room on any card, and the smallest one that would.
    """

    limit_bytes: int
    reserve_bytes: int
    sufficient_bytes: int
