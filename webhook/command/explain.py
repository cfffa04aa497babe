"""
A result in words for a person.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from gpufence.quantity import write_mebibytes
from webhook.rewrite import Refusal, Unchanged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpufence.mode import Mode
    from gpufence.plan import ContainerPlan, Setting
    from webhook.command.result import Result
    from webhook.rewrite import Rewrite

_WIDTH = 100


def explain(result: Result, mode: Mode) -> str:
    """
    Tell what would happen to one pod, and why.
    """
    return "\n".join([f"{result.found.title}, mode {mode}", *_lines(result)]) + "\n"


def _lines(result: Result) -> Iterator[str]:
    outcome = result.outcome
    if isinstance(outcome, Refusal):
        yield from _wrapped(f"REFUSED: {outcome.message}", "  ")
        return
    if isinstance(outcome, Unchanged):
        yield from _wrapped(f"stays as it is: {outcome.reason}", "  ")
    else:
        yield from _wrapped(outcome.summary, "  ")
        yield from _containers(result, outcome)
        yield from _rest(result)
    for warning in outcome.warnings:
        yield from _wrapped(f"warning: {warning}", "  ")


def _containers(result: Result, outcome: Rewrite) -> Iterator[str]:
    environment = result.environment
    for name, plan in outcome.plan.containers.items():
        yield f"  container {name}: {_figures(plan)}"
        rows = [_row(item, environment.get(name, {})) for item in plan.settings]
        width = max((len(row[0]) for row in rows), default=0)
        known = max((len(row[1]) for row in rows), default=0)
        for env, value, done in rows:
            yield f"    {env:{width}}  {value:{known}}  {done}".rstrip()


def _figures(plan: ContainerPlan) -> str:
    limit = "unknown" if plan.limit_bytes is None else write_mebibytes(plan.limit_bytes)
    cap = "" if plan.cap_bytes is None else f", told {write_mebibytes(plan.cap_bytes)}"
    each = f" to each of {plan.processes} processes" if plan.processes > 1 and cap else ""
    return f"limit {limit}{cap}{each}"


def _row(setting: Setting, environment: dict[str, str]) -> tuple[str, str, str]:
    user = "" if setting.user is None else f' (was "{setting.user}")'
    return setting.env, environment.get(setting.env, "-") or '""', f"{setting.done}{user}"


def _rest(result: Result) -> Iterator[str]:
    """
    Name what else changes: scheduler, tolerations, volumes, arguments.
    """
    for operation in result.operations:
        path = str(operation["path"])
        if path.startswith("/spec") and "/env" not in path:
            yield f"  {operation['op']} {path}"


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=False
    )
