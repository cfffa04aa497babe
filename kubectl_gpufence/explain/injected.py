"""
PURE. What the webhook made of the pod: each variable, its value, and the sum behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence import names
from gpufence.errors import shown
from gpufence.mode import Mode
from gpufence.plan import Done
from kubectl_gpufence.explain.formula import figures_of, formula
from kubectl_gpufence.table import WIDTH, wrapped
from kubectl_gpufence.words import allowed, counted, safe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpufence.plan import ContainerPlan, Setting
    from kubectl_gpufence.explain.formula import Figures
    from kubectl_gpufence.explain.story import Story
    from kubectl_gpufence.table import Look

_INDENT = "    "
_VALUE_WIDTH = 36
_NEVER_SEEN = (
    "The webhook never saw this pod: it was created before its namespace got a mode, or while the "
    "webhook was away. Nothing was set, and it is evicted only if that cures a shortage."
)
_UNFENCED = "Nothing: its namespace has no mode, so gpufence never touches its pods."
_OPTED_OUT = (
    "Nothing, as the pod wished (gpufence.io/inject: disabled). It is measured and fenced all the "
    "same."
)
_NOTHING = "Nothing was set: there was nothing to set, or a library caps the pod by itself."
_OBSERVED = "Nothing was set: in mode observe the plan is only recorded."


def injected(story: Story, look: Look) -> Iterator[str]:
    """
    Tell what was set, or why nothing was.
    """
    for text in _course(story):
        yield from wrapped(safe(text), _INDENT, look, first="  ")
    pod = story.pod
    plan = pod.words.plan
    if plan is not None:
        for name, container in plan.containers.items():
            verb = "would be told" if plan.mode is Mode.OBSERVE else "told"
            yield from _container(f"container {name}", verb, container, pod.annotations, look)
    elif pod.words.trouble:
        yield from _raw(pod.annotations)


def _course(story: Story) -> Iterator[str]:
    pod = story.pod
    if not pod.injected:
        yield _UNFENCED if story.mode == "" else _NEVER_SEEN
        return
    if pod.words.trouble:
        yield f"The plan on the pod cannot be told: {pod.words.trouble}."
        yield "What its containers read is here as it stands:"
        return
    plan = pod.words.plan
    if pod.injected == names.INJECTED_OPTED_OUT:
        yield _OPTED_OUT
    elif pod.injected == names.INJECTED_NOTHING:
        yield _OBSERVED if plan is not None and plan.mode is Mode.OBSERVE else _NOTHING
    if plan is not None and plan.containers:
        yield _exactness(story)


def _exactness(story: Story) -> str:
    """
    Say for which cards the figures hold.
    """
    said = story.pod.annotations
    card = said.get(names.CARD, "")
    if story.pod.exact:
        return f"Exact for node {said[names.NODE]} ({card or 'card unknown'})."
    if not card:
        return "No card's size was known: fractions are the user's own, or empty."
    sizes = "those" if "," in card else "one"
    return (
        f"Conservative: the smallest values over the cards that the pod could have met ({sizes} of "
        f"{card}), because no node was certain when they were written."
    )


def _container(
    title: str, verb: str, container: ContainerPlan, values: Mapping[str, str], look: Look
) -> Iterator[str]:
    limit = allowed(container.limit_bytes, none="unknown")
    cap = f", {verb} {allowed(container.cap_bytes)}" if container.cap_bytes is not None else ""
    each = counted(container.processes, "process", "processes")
    text = f"{title}: limit {limit}{cap}, {each} per card, headroom {container.headroom}"
    yield from wrapped(safe(text), _INDENT, look, first="  ")
    groups: dict[Figures | None, list[Setting]] = {}
    for setting in container.settings:
        groups.setdefault(figures_of(setting), []).append(setting)
    width = max((len(setting.env) for setting in container.settings), default=0)
    texts = (len(_read(setting, values)) for setting in container.settings)
    read = min(max(texts, default=0), _VALUE_WIDTH)
    for figures, settings in groups.items():
        lines = ["the same on every card:"] if figures is None else formula(figures, container)
        for line in lines:
            yield from wrapped(line, "        ", look, first="    ")
        for setting in settings:
            head = f"      {safe(setting.env):{width}}  {_read(setting, values)}"
            line = f"{head:{8 + width + read}}  {_done(setting)}"
            if len(line) <= (look.width or WIDTH):
                yield line
            else:
                yield from (head, f"{'':{8 + width}}{_done(setting)}")


def _read(setting: Setting, values: Mapping[str, str]) -> str:
    """
    Say what the program reads; quotes make an empty value visible.
    """
    if setting.done is Done.LEFT:
        return "(yours)"
    text = values.get(f"{names.ENV_PREFIX}{setting.slot}") if setting.slot else setting.user
    return "-" if text is None else safe(text) or '""'


def _done(setting: Setting) -> str:
    """
    Say how the value came about.
    """
    user = "" if setting.user is None else safe(shown(setting.user))
    match setting.done:
        case Done.LOWERED:
            return f"lowered: yours was {user}"
        case Done.KEPT:
            return "kept: yours is within the share"
        case Done.LEFT:
            return "left: its value cannot be read, so it stays as it is"
        case Done.PLANNED:
            return "planned only"
        case _:
            return "set" + (f", added to yours {user}" if user else "")


def _raw(values: Mapping[str, str]) -> Iterator[str]:
    """
    List the slots in the order in which they were given out: s2 before s10.
    """
    slots = [key for key in values if key.startswith(names.ENV_PREFIX)]
    for key in sorted(slots, key=lambda slot: (len(slot), slot)):
        text = safe(values[key]) or '""'
        yield f"    {safe(key.removeprefix(names.ENV_PREFIX)):4}  {text}"
