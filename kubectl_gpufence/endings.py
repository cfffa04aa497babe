"""PURE. How a pod's containers have ended in failure, and what that has to do with their caps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence import capped
from gpufence.capped import Capped, Ending, Why, given_of
from gpufence.errors import InvalidError
from gpufence.times import read_moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gpufence.plan import Plan
    from gpufence.snapshot import PodRow

ENDS: Final = {str(why): str(why) for why in Why} | {str(Why.REFUSED): "cannot start"}
PERHAPS: Final = "perhaps capped"
CRASH_LOOP: Final = "crash loop"
RESTARTED: Final = "restarted"
_LATELY_SECONDS: Final = 600.0
_NO_PEAKS: Mapping[str, int] = {}


def at_cap(
    endings: Iterable[Ending], plan: Plan | None, peaks: Mapping[str, int] = _NO_PEAKS
) -> Iterator[Capped]:
    """Yield the failures that have to do with GPU memory; `peaks` are of containers, by name."""
    for ending in endings:
        container = None if plan is None else plan.containers.get(ending.container)
        given = None if container is None else given_of(container)
        found = capped.capped(ending, given, peaks.get(ending.container, 0))
        if found is not None:
            yield found


def how_it_ended(
    row: PodRow | None, endings: Iterable[Ending] = (), plan: Plan | None = None, phase: str = ""
) -> str:
    """
    Return in a word how a pod stands that failed for want of GPU memory, empty where it has not or
    has run well since; its agent knows that best, but its status alone says it, too.
    """
    if row is not None:
        found = [(item.reason, item.certain) for item in row.ended]
    else:
        stays = [each for each in endings if each.waiting or phase == "Failed"]
        found = [(str(end.why), end.certain) for end in at_cap(stays, plan)]
    words = [ENDS.get(reason, reason) for reason, certain in found if certain]
    return words[0] if words else PERHAPS if found else ""


def stumbling(endings: Iterable[Ending], now: str) -> str:
    """Return in a word that a container failed and waits, or has just run anew, whatever for."""
    found = list(endings)
    if any(ending.waiting == "CrashLoopBackOff" for ending in found):
        return CRASH_LOOP
    lately = any(each.restarts and _seconds(each.at, now) < _LATELY_SECONDS for each in found)
    return RESTARTED if lately else ""


def _seconds(at: str, now: str) -> float:
    """Return the time in between; what has no date was long ago."""
    try:
        return read_moment(now, "at") - read_moment(at, "finishedAt")
    except InvalidError:
        return _LATELY_SECONDS


def what_helps(
    endings: Iterable[Ending], plan: Plan | None, peaks: Mapping[str, int] = _NO_PEAKS
) -> Iterator[str]:
    """Return what to do about containers that have failed, where their caps may be why."""
    for ending in endings:
        name = ending.container
        found = next(at_cap([ending], plan, peaks), None)
        if found is not None:
            helps = " ".join(capped.what_helps(found))
            yield f"Container {name}: {capped.what_happened(found)} {helps}"
        elif ending.out_of_memory:
            yield (
                f"Container {name} found too little memory on its card, which nothing here caps: "
                "`kubectl gpufence top cards` shows how full it is."
            )
        elif plan is not None and name in plan.containers:
            yield f"Look why container {name} ended: `kubectl logs --previous -c {name}`."
