"""
PURE. What the operator has decided about the pods of every namespace.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.candidates import CandidateCard
from gpufence.cards import read_capability
from gpufence.dialects import Dialect, Units
from gpufence.errors import InvalidError, Problem
from gpufence.quantity import UNIT_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.settings import Reader

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_TAINT = re.compile(rf"((?:[a-z0-9.-]+/)?{_NAME})(?:=({_NAME})?)?(?::([A-Za-z]+))?")
_SCHEDULER = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")
_USUAL_SCHEDULERS = {
    Dialect.VOLCANO: "volcano",
    Dialect.VOLCANO_VGPU: "volcano",
    Dialect.KAI: "kai-scheduler",
}


class Toleration(NamedTuple):
    """
    A taint that GPU pods shall tolerate; without a value whatever its value, without an effect
    whatever its effect.
    """

    key: str
    value: str = ""
    effect: str = ""


CARD_TAINT = Toleration(names.NVIDIA_GPU, effect="NoSchedule")
"""
What clouds taint GPU nodes with. Kubernetes lets pods that request `nvidia.com/gpu` tolerate it,
but not those that request a share under another name.
"""


@dataclass(frozen=True, slots=True)
class Policy:
    """
    What holds for every pod.

    `default` is the card (and the units) to reckon with where no node tells. `scheduler_names` has
    no entry for a dialect that leaves the scheduler alone. `reserve_override` replaces the whole
    table of context reserves. An empty `hook_source` means that there is no start-up hook to mount.
    """

    default: CandidateCard = CandidateCard(Units(), None)  # noqa: RUF009 - frozen, so shared without harm
    scheduler_names: Mapping[Dialect, str] = field(default_factory=lambda: dict(_USUAL_SCHEDULERS))
    tolerations: tuple[Toleration, ...] = ()
    reserve_override: int | None = None
    hook_source: str = ""


def read_policy(reader: Reader, hook_source: str = "") -> Policy:
    """
    Read the operator's settings; the reader keeps what is wrong for `check`.
    """
    unit = reader.choice(names.GPUSHARE_UNIT, "GiB", tuple(UNIT_BYTES))
    units = Units(
        gpushare_bytes=UNIT_BYTES[unit],
        volcano_factor=reader.integer(names.VOLCANO_FACTOR, 1, least=1, most=2**20),
    )
    memory = reader.memory(names.DEFAULT_CARD, None)
    capability = reader.parsed(names.DEFAULT_CAPABILITY, "", _capability, None)
    return Policy(
        default=CandidateCard(units, memory or None, capability),
        scheduler_names=_schedulers(reader),
        tolerations=reader.parsed(names.TOLERATIONS, "", _tolerations, ()),
        reserve_override=reader.memory(names.RESERVE, None),
        hook_source=hook_source,
    )


def scheduler_setting(dialect: Dialect) -> str:
    """
    Return the name of the setting that says who schedules a dialect's pods.
    """
    return names.SCHEDULER_PREFIX + dialect.name


def _schedulers(reader: Reader) -> dict[Dialect, str]:
    chosen = {}
    for dialect in Dialect:
        usual = _USUAL_SCHEDULERS.get(dialect, names.DEFAULT_SCHEDULER)
        name = reader.parsed(scheduler_setting(dialect), usual, _scheduler, usual)
        if name != names.DEFAULT_SCHEDULER:
            chosen[dialect] = name
    return chosen


def _scheduler(text: str, setting: str) -> str:
    if _SCHEDULER.fullmatch(text):
        return text
    remedy = f"write a schedulerName such as volcano, or {names.DEFAULT_SCHEDULER} for no change"
    raise InvalidError(Problem(setting, text, "is no name of a scheduler", remedy))


def _capability(text: str, setting: str) -> tuple[int, int] | None:
    capability = read_capability(text)
    if capability is None and text:
        remedy = "write major.minor, such as 7.5"
        raise InvalidError(Problem(setting, text, "is no compute capability", remedy))
    return capability


def _tolerations(text: str, setting: str) -> tuple[Toleration, ...]:
    """
    Read `key`, `key=value` and `key=value:Effect`, separated by commas.
    """
    items = [item.strip() for item in text.split(",")]
    return tuple(_toleration(item, setting) for item in items if item)


def _toleration(text: str, setting: str) -> Toleration:
    match = _TAINT.fullmatch(text)
    if match and (match[3] is None or match[3] in _EFFECTS):
        return Toleration(match[1], match[2] or "", match[3] or "")
    remedy = f"write key=value:Effect, where Effect is one of {', '.join(_EFFECTS)}"
    raise InvalidError(Problem(setting, text, "is no toleration", remedy))
