"""
PURE. What the webhook made of the pod: each variable, its value, and the sum behind it.

docs/adr/0003-exact-fractions.md has the rule. A plan holds L, C, T and A, not by which rule A came
about: it is the one whose sum gives A.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.annotations import Headroom
from gpufence.errors import shown
from gpufence.mode import Mode
from gpufence.plan import DRIVER_FORM, Done, driver_bytes
from gpufence.quantity import MIB
from gpufence.share import (
    AUTO_HEADROOM,
    FACTOR_TENTHS,
    LEAST_ALLOWANCE,
    ShareTerms,
    allowance,
    write_fraction,
)
from gpufence.text import printable
from kubectl_gpufence.view import WIDTH, allowed, counted, readable, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpufence.plan import ContainerPlan, Setting
    from gpufence.share import Allowance
    from kubectl_gpufence.verbs.explain.record import PodRecord
    from kubectl_gpufence.view import Display

_VALUE_WIDTH = 36
_NEVER_SEEN = (
    "The webhook never saw this pod: it was created before its namespace got a mode, or while the "
    "webhook was away. Nothing was set, and it is evicted only under memory pressure."
)
_UNFENCED = "Nothing: its namespace has no mode, so gpufence never touches its pods."
_OPTED_OUT = (
    "Nothing, as the pod wished (gpufence.io/inject: disabled). It is measured and fenced all the "
    "same."
)
_NOTHING = "Nothing was set: there was nothing to set, or a library caps the pod by itself."
_OBSERVED = "Nothing was set: in mode observe the plan is only recorded."


class ShareFigures(NamedTuple):
    """L, C, T and A of one or several settings of a container, and its n."""

    limit_bytes: int
    reserve_bytes: int
    card_bytes: int | None
    allowance_bytes: int
    processes: int

    @property
    def usable_bytes(self) -> int:
        """Return L, which counts as no more than the card."""
        return min(self.limit_bytes, self.card_bytes or self.limit_bytes)

    def allowance(self, headroom: Headroom) -> Allowance | None:
        """Return A exactly by one rule; None where that is not the A of the plan."""
        terms = ShareTerms(self.reserve_bytes, self.processes, headroom)
        may = allowance(self.usable_bytes, self.usable_bytes, terms)
        return may if may.bytes == self.allowance_bytes else None


def injected(record: PodRecord, display: Display, *, sums: bool) -> Iterator[str]:
    """Write what was set, with the sums behind it where they are asked for, or why nothing was."""
    for text in _course(record):
        yield from wrapped(text, "    ", display, first="  ")
    pod = record.pod
    plan = pod.recorded.plan
    if plan is not None:
        verb = "would be allowed" if plan.mode is Mode.OBSERVE else "may allocate"
        for name, container in plan.containers.items():
            yield from wrapped(_title(name, verb, container), "    ", display, first="  ")
            yield from _settings(container, pod.annotations, display, sums=sums)
    elif pod.recorded.trouble:
        yield from _slots(pod.annotations)


def formula(figures: ShareFigures, headroom: Headroom, card_is: str = "the card") -> list[str]:
    """Write A with its sum, and F where the card, or what looks like it, is known."""
    part, reserve = readable(figures.limit_bytes), allowed(figures.reserve_bytes)
    card = allowed(figures.card_bytes, none="unknown")
    count = counted(figures.processes, "process", "processes")
    lines = [
        f"L = {part}, its part; C = {reserve}, for CUDA itself; T = {card}, {card_is}; n = {count}",
        f"A = {_rule(figures, headroom)} = {readable(figures.allowance_bytes)}",
    ]
    if figures.card_bytes:
        may = figures.allowance(headroom) or figures.allowance(Headroom.FACTOR)
        # A exactly, where its rule is known: F is rounded once.
        amount, parts = may[:2] if may else (figures.allowance_bytes, 1)
        lines.append(f"F = A / T = {write_fraction(amount, parts * figures.card_bytes)}")
    return lines


def _course(record: PodRecord) -> Iterator[str]:
    pod = record.pod
    plan = pod.recorded.plan
    if not pod.injected:
        yield _UNFENCED if record.mode == "" else _NEVER_SEEN
        return
    if pod.recorded.trouble:
        yield f"The plan on the pod cannot be read: {pod.recorded.trouble}."
        yield "What its containers read is here as it stands:"
        return
    if pod.injected == names.INJECTED_OPTED_OUT:
        yield _OPTED_OUT
    elif pod.injected == names.INJECTED_NOTHING:
        yield _OBSERVED if plan is not None and plan.mode is Mode.OBSERVE else _NOTHING
    if plan is not None and plan.containers:
        yield _exactness(pod.annotations, plan.mode)


def _exactness(annotations: Mapping[str, str], mode: Mode) -> str:
    """Return for which cards the figures hold."""
    card = annotations.get(names.CARD, "")
    if names.NODE in annotations:
        return f"Exact for node {annotations[names.NODE]} ({card or 'card unknown'})."
    if not card:
        return "No card's size was known: fractions are the user's own, or empty."
    if mode is Mode.OBSERVE:
        each = "the smallest of cards of" if "," in card else "a card of"
        return f"Planned for {each} {card}; in mode observe that stays so on every node."
    sizes = "those" if "," in card else "one"
    return (
        f"Conservative: the smallest values over the cards that the pod could have met ({sizes} of "
        f"{card}), because no node was certain when they were written."
    )


def _title(name: str, verb: str, container: ContainerPlan) -> str:
    limit = allowed(container.limit_bytes, none="unknown")
    cap = f", {verb} {allowed(container.cap_bytes)}" if container.cap_bytes is not None else ""
    each = counted(container.processes, "process", "processes")
    runs = f" runs {container.runs}" if container.runs else ""
    head = f"container {name}{runs}: limit {limit}{cap}"
    return f"{head}, {each} per card, headroom {container.headroom}"


def _settings(
    container: ContainerPlan, annotations: Mapping[str, str], display: Display, *, sums: bool
) -> Iterator[str]:
    """Write the settings, those with the same figures together, below their sum with `sums`."""
    groups: dict[ShareFigures | None, list[Setting]] = {}
    for setting in container.settings:
        groups.setdefault(_figures(setting, container.processes), []).append(setting)
    card_is = "the card" if driver_bytes(container) is None else "what the driver shows as the card"
    width = max((len(setting.env) for setting in container.settings), default=0)
    values = [len(_value(setting, annotations)) for setting in container.settings]
    room = min(max(values, default=0), _VALUE_WIDTH)
    for figures, settings in groups.items():
        lines = ["the same on every card:"]
        if figures is not None:
            lines = formula(figures, container.headroom, card_is)
        for line in lines if sums else ():
            yield from wrapped(line, "        ", display, first="    ")
        for setting in settings:
            cells = printable(setting.env), _value(setting, annotations), _origin(setting)
            yield from _fitting(cells, (width, room), display)


def _fitting(
    cells: tuple[str, str, str], widths: tuple[int, int], display: Display
) -> Iterator[str]:
    """Write name, value and origin on one line, or on as many as it takes."""
    (name, value, origin), (width, room) = cells, widths
    most = min(display.width or WIDTH, WIDTH)
    head, place = f"      {name:{width}}  {value}", 8 + width
    lines = f"{head:{place + room}}  {origin}", f"{head}  {origin}"
    if fitting := [line for line in lines if len(line) <= most]:
        yield fitting[0]
        return
    if len(head) > most:
        place = 8
        yield from (f"      {name}", f"        {value}")
    else:
        yield head
    yield from wrapped(origin, " " * place, display)


def _figures(setting: Setting, processes: int) -> ShareFigures | None:
    """Return a setting's figures; None for one that is the same on every card."""
    limit, may = setting.limit_bytes, setting.allowance_bytes
    if limit is None or may is None:
        return None
    return ShareFigures(limit, setting.reserve_bytes or 0, setting.card_bytes, may, processes)


def _rule(figures: ShareFigures, headroom: Headroom) -> str:
    """Find the rule whose sum gives A; a rule of another version is not guessed at."""
    limit, count = figures.usable_bytes, figures.processes
    contexts = count * figures.reserve_bytes
    if not contexts and limit // count == figures.allowance_bytes:
        return f"L / n = {allowed(limit)} / {count}"
    for rule in (headroom, Headroom.FACTOR):
        may = figures.allowance(rule)
        if may is None:
            continue
        if may.starved:
            least = f"{allowed(LEAST_ALLOWANCE)}, {allowed(limit // count)}"
            return f"min(128Mi, L / n) = min({least})"
        if rule is Headroom.FACTOR:
            rest = f"min({allowed(limit * FACTOR_TENTHS // 10)}, {allowed(limit - contexts)})"
            return f"min(0.7 L, L - n C) / n = {rest} / {count}"
        rest = allowed(limit * (10 - FACTOR_TENTHS) // 10)
        room = f"max({allowed(contexts)}, min({rest}, {allowed(AUTO_HEADROOM)}))"
        return f"(L - max(n C, min(0.3 L, 1536Mi))) / n = ({allowed(limit)} - {room}) / {count}"
    if max(limit - contexts, 0) // count == figures.allowance_bytes:
        return f"(L - n C) / n = {allowed(limit - contexts)} / {count}"
    return "(by a rule this plugin does not know)"


def _value(setting: Setting, annotations: Mapping[str, str]) -> str:
    """Return what the program reads; quotes make an empty value visible."""
    if setting.done is Done.LEFT:
        return "(yours)"
    if setting.form == DRIVER_FORM:
        return str((setting.limit_bytes or 0) // MIB)
    slot = f"{names.ENV_PREFIX}{setting.slot}"
    text = annotations.get(slot) if setting.slot else setting.user
    return "-" if text is None else printable(text) or '""'


def _origin(setting: Setting) -> str:
    """Return how the value came about."""
    user = "" if setting.user is None else printable(shown(setting.user))
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


def _slots(annotations: Mapping[str, str]) -> Iterator[str]:
    for key, text in sorted(annotations.items()):
        if key.startswith(names.ENV_PREFIX):
            value = printable(text) or '""'
            yield f"    {printable(key.removeprefix(names.ENV_PREFIX))}={value}"
