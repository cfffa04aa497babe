"""
PURE. What somebody should do about a pod, if anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence import names
from gpufence.mode import MODES
from gpufence.plan import Done
from gpufence.share import CAP_SLACK, reserve_bytes
from kubectl_gpufence.suggest import suggested_limit
from kubectl_gpufence.words import allowed, held

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpufence.plan import ContainerPlan, Setting
    from gpufence.snapshot import UseRow
    from kubectl_gpufence.explain.story import Story

_NOTHING: Final = "Nothing."


def to_do(story: Story) -> tuple[str, ...]:
    """
    Return one sentence for each thing to do.
    """
    found = (*_about_plan(story), *_about_limit(story), *_about_use(story))
    return tuple(dict.fromkeys(found)) or (_NOTHING,)


def _about_plan(story: Story) -> Iterator[str]:
    pod = story.pod
    if pod.words.newer:
        yield "Upgrade this plugin to the version of the webhook."
    elif pod.words.trouble:
        yield f"Delete the pod, so that its controller makes it anew: its {names.PLAN} is damaged."
    if not pod.injected and story.mode in MODES:
        yield (
            "Delete the pod, so that its controller makes it anew and the webhook sees it; "
            "if that changes nothing, run `kubectl gpufence doctor`."
        )
    if not pod.injected and story.mode == "":
        yield (
            f"To have its memory fenced, label the namespace {names.MODE}=observe and look again."
        )
    for name, _, setting in _settings(story):
        if setting.done is Done.LOWERED:
            yield (
                f"{setting.env} of container {name} was lowered to what its limit allows: "
                "ask for more memory, or set a smaller value yourself."
            )
        elif setting.done is Done.LEFT:
            yield (
                f"{setting.env} of container {name} comes from elsewhere and was left: see that it "
                f"is within {allowed(pod.limit_bytes, none='the limit')}."
            )


def _about_limit(story: Story) -> Iterator[str]:
    said, row = story.pod.declaration, story.row
    undeclared = row is not None and bool(row.undeclared)
    if undeclared or not said.enforced or story.pod.limit_bytes is None:
        yield (
            f"Request an amount of GPU memory, or set the annotation {names.MEMORY}, "
            "such as 6Gi, on the pod's template."
        )


def _about_use(story: Story) -> Iterator[str]:
    row = story.row
    for use in () if row is None else row.uses:
        used, limit = use.used_bytes, use.limit_bytes
        count = len(use.processes)
        if used is not None and limit is not None and used > limit:
            enough = suggested_limit(used, count, _reserve(story))
            yield (
                f"It holds {held(used)}, {held(used - limit)} over its limit: let its framework "
                f"use less, or give it about {allowed(enough)} ({names.MEMORY}, or the amount it "
                "requests)."
            )
        yield from _about_processes(story, use)


def _about_processes(story: Story, use: UseRow) -> Iterator[str]:
    plan = story.pod.words.plan
    if plan is None:
        return
    for name, container in plan.containers.items():
        own = [process for process in use.processes if process.container == name]
        if len(own) > container.processes:
            yield (
                f"{len(own)} processes of container {name} share a card, the plan counts on "
                f"{container.processes}: set {names.PROCESSES_PER_CARD} to {len(own)}."
            )
        most = _most(container)
        above = [item for item in own if most is not None and (item.used_bytes or 0) > most]
        if above:
            yield (
                f"Process {above[0].pid} of container {name} holds {held(above[0].used_bytes)}, "
                f"more than it was told to allocate ({allowed(container.cap_bytes)}) with its "
                f"context: it ignores its settings, see docs/frameworks.md."
            )


def _most(container: ContainerPlan) -> int | None:
    """
    Return what a process that keeps to its settings can hold at most.
    """
    told = [
        item.allowance_bytes + (item.reserve_bytes or 0)
        for item in container.settings
        if item.allowance_bytes is not None and item.done not in (Done.LEFT, Done.PLANNED)
    ]
    return max(told) + CAP_SLACK if told and container.cap_bytes is not None else None


def _reserve(story: Story) -> int:
    """
    Return the context's reserve that the plan reckoned with, else the usual one.
    """
    known = [item.reserve_bytes for _, _, item in _settings(story) if item.reserve_bytes]
    return min(known, default=reserve_bytes(None))


def _settings(story: Story) -> Iterator[tuple[str, ContainerPlan, Setting]]:
    plan = story.pod.words.plan
    for name, container in ({} if plan is None else plan.containers).items():
        for setting in container.settings:
            yield name, container, setting
