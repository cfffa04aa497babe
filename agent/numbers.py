"""
The numbers of the agent as variables: one row for each, of which reading and help are made.

What each number is for, and why it is what it is, stands beside its field in the value it belongs
to; the row adds the variable's name and its bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent.events import Damping
from agent.model.policy import Policy
from agent.nvml.settings import SamplerSettings
from gpufence.errors import InvalidError, Problem
from gpufence.quantity import write_bytes

if TYPE_CHECKING:
    from agent.reader import Reader

V = TypeVar("V", Policy, Damping, SamplerSettings)
_MOST_STEPS = 10
_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Row:
    """
    One variable and the field it sets; `least` and `most` bound numbers.
    """

    variable: str
    field: str
    text: str
    least: float = 0.0
    most: float = _DAY_SECONDS


POLICY: Final = (
    Row("GPUFENCE_INTERVAL_SECONDS", "interval_seconds", "from one look to the next", 0.05, 60),
    Row("GPUFENCE_HOLD_SECONDS", "hold_seconds", "time over the limit before an eviction"),
    Row("GPUFENCE_SHORT_HOLD_SECONDS", "short_hold_seconds", "the same while the card is short"),
    Row("GPUFENCE_GRACE_SECONDS", "grace_seconds", "peace from a pod's first sample on"),
    Row(
        "GPUFENCE_START_PAUSE_SECONDS",
        "start_pause_seconds",
        "no evictions for so long after the agent's start",
    ),
    Row("GPUFENCE_REPORT_MARGIN", "report_margin_bytes", "over the limit by more: an Event"),
    Row("GPUFENCE_EVICT_MARGIN", "evict_margin_bytes", "over the limit by more: time counts"),
    Row(
        "GPUFENCE_EVICT_MARGIN_PERCENT",
        "evict_margin_percent",
        "the same as a share of the limit; the larger of the two holds",
        most=100,
    ),
    Row("GPUFENCE_SHORT_MARGIN", "short_margin_bytes", "the same while the card is short"),
    Row("GPUFENCE_SHORT_FLOOR", "short_floor_bytes", "free memory below which a card is short"),
    Row(
        "GPUFENCE_NODE_EVICTIONS_PER_MINUTE",
        "node_evictions_per_minute",
        "most evictions of one agent",
        1,
        1000,
    ),
    Row(
        "GPUFENCE_NAMESPACE_EVICTIONS_PER_MINUTE",
        "namespace_evictions_per_minute",
        "the same in one namespace",
        1,
        1000,
    ),
    Row(
        "GPUFENCE_SUSPEND_NAMESPACES",
        "suspend_namespaces",
        "over half of all fenced pods at once, in so many namespaces: nobody is evicted",
        1,
        10_000,
    ),
    Row(
        "GPUFENCE_REPEATED_HOLD_SECONDS",
        "repeated_hold_seconds",
        "the hold of an owner evicted here before: once, twice, ...",
    ),
    Row(
        "GPUFENCE_REPEATED_MEMORY_SECONDS",
        "repeated_memory_seconds",
        "after so long an owner's evictions are forgotten",
        most=31_536_000,
    ),
    Row(
        "GPUFENCE_TERMINATION_SECONDS",
        "termination_seconds",
        "how long a pod that is going holds up others on its card",
    ),
    Row(
        "GPUFENCE_EVICTION_GRACE_SECONDS",
        "eviction_grace_seconds",
        "the most an evicted pod is given to end",
        1,
        3600,
    ),
    Row("GPUFENCE_EVICT_WHEN", "evict_when", "always, or short: only while a neighbour is hurt"),
    Row(
        "GPUFENCE_BUDGETS",
        "budgets",
        "override: a disruption budget may not shield theft for ever; or respect",
    ),
    Row(
        "GPUFENCE_REFUSED_BACKOFF_SECONDS",
        "refused_backoff_seconds",
        "the wait after a refused eviction, doubled by each further one",
        0.1,
    ),
    Row(
        "GPUFENCE_REFUSED_BACKOFF_LIMIT_SECONDS",
        "refused_backoff_limit_seconds",
        "the longest such wait",
        0.1,
    ),
    Row(
        "GPUFENCE_REFUSALS_BEFORE_DELETE",
        "refusals_before_delete",
        "refusals on a short card before the pod is deleted, unless budgets are respected",
        1,
        1000,
    ),
    Row(
        "GPUFENCE_LAST_RESORT_KILL",
        "last_resort_kill",
        "SIGKILL to the GPU processes of a pod that does not end; needs the capability KILL",
    ),
    Row("GPUFENCE_CAP_SLACK", "cap_slack_bytes", "above its cap by more: the cap does not bite"),
    Row(
        "GPUFENCE_UNATTRIBUTED_FLOOR",
        "unattributed_floor_bytes",
        "memory of no pod that is worth an Event",
    ),
    Row(
        "GPUFENCE_UNATTRIBUTED_HOLD_SECONDS",
        "unattributed_hold_seconds",
        "how long it must stay",
    ),
)

DAMPING: Final = (
    Row(
        "GPUFENCE_EVENT_REPEAT_SECONDS",
        "repeat_seconds",
        "from one count of a lasting Event to the next",
        1,
    ),
    Row("GPUFENCE_EVENT_BURST", "burst", "new Events that may be written at once", 1, 10_000),
    Row(
        "GPUFENCE_EVENT_REFILL_SECONDS",
        "refill_seconds",
        "one more new Event may be written after so long",
        0.01,
    ),
)

SAMPLER: Final = (
    Row("GPUFENCE_LIST_SECONDS", "list_seconds", "oldest list of a card's processes", 0.05, 600),
    Row(
        "GPUFENCE_LIST_MOVED",
        "moved_bytes",
        "a card's use that moved by more makes a new list",
    ),
    Row(
        "GPUFENCE_NVML_DEADLINE_SECONDS",
        "deadline_seconds",
        "the most that one look takes; half of it without an answer is a hang",
        0.1,
        60,
    ),
    Row(
        "GPUFENCE_NVML_START_SECONDS",
        "start_seconds",
        "the most that opening NVML takes",
        1,
        600,
    ),
    Row(
        "GPUFENCE_NVML_RESTART_SECONDS",
        "restart_seconds",
        "the pause before a second new child that measures, doubled by each further one",
        0.01,
        600,
    ),
    Row(
        "GPUFENCE_NVML_RESTART_LIMIT_SECONDS",
        "restart_limit_seconds",
        "the longest such pause",
        0.01,
        3600,
    ),
    Row(
        "GPUFENCE_NVML_AVOID_SECONDS",
        "avoid_seconds",
        "how long a card is left alone that hung or crashed two children, then doubled",
        0.1,
    ),
    Row("GPUFENCE_NVML_LIBRARY", "library_path", "path of libnvidia-ml.so.1"),
)


def read_rows(reader: Reader, rows: tuple[Row, ...], default: V) -> V:
    """
    Return the value with every field as its variable says; mistakes stay with the reader.
    """
    found = {row.field: _read(reader, row, getattr(default, row.field)) for row in rows}
    # Each reader returns what it was given as default: the type of the field.
    kept = {item.name: getattr(default, item.name) for item in fields(default)}
    return type(default)(**kept | found)


def help_of(rows: tuple[Row, ...], default: Policy | Damping | SamplerSettings) -> dict[str, str]:
    """
    Describe each variable with its default in brackets.
    """
    return {row.variable: f"{row.text} ({shown(row, getattr(default, row.field))})" for row in rows}


def shown(row: Row, value: object) -> str:
    """
    Write a value as the variable takes it.
    """
    if value is None:
        return "the dynamic linker's"
    if isinstance(value, bool):
        return str(value).lower()
    if row.field.endswith("_bytes") and isinstance(value, int):
        return write_bytes(value)
    if isinstance(value, tuple):
        return ",".join(f"{item:g}" for item in value)
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def _read(reader: Reader, row: Row, default: Any) -> Any:  # noqa: ANN401 - the field's own type
    name = row.variable
    if isinstance(default, bool):
        return reader.boolean(name, default=default)
    if isinstance(default, StrEnum):
        kind = type(default)
        return kind(reader.choice(name, str(default), tuple(str(item) for item in kind)))
    if row.field.endswith("_bytes"):
        return reader.memory(name, default)
    if isinstance(default, int):
        return reader.integer(name, default, least=int(row.least), most=int(row.most))
    if isinstance(default, float):
        return reader.seconds(name, default, least=row.least, most=row.most)
    if isinstance(default, tuple):
        return reader.parsed(name, shown(row, default), _steps, default)
    text = reader.text(name, "")
    return Path(text) if text else None


def _steps(text: str, field: str) -> tuple[float, ...]:
    """
    Read a ladder of durations such as 60,300,1800.
    """
    try:
        found = tuple(float(item) for item in text.split(","))
    except ValueError:
        found = ()
    if not 0 < len(found) <= _MOST_STEPS or not all(0 <= item <= _DAY_SECONDS for item in found):
        reason = "is no list of seconds"
        remedy = f"write up to {_MOST_STEPS} seconds from 0 to 86400, such as 60,300,1800"
        raise InvalidError(Problem(field, text, reason, remedy))
    return found
