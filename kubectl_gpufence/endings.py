"""PURE. How a pod's containers have ended in failure, and what that has to do with their caps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.annotations import Headroom
from gpufence.pods import out_of_memory
from gpufence.shape import as_integer, as_object, as_text, objects
from gpufence.share import ShareTerms, allowance
from kubectl_gpufence.view import allowed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpufence.plan import ContainerPlan, Plan
    from gpufence.shape import Object

_STATUSES = ("initContainerStatuses", "containerStatuses")


class Ending(NamedTuple):
    """
    The last failure of a container. `out_of_memory` are its own words for a GPU without memory,
    empty where it has left none; `waiting` is why it does not run again, such as CrashLoopBackOff.
    """

    container: str
    code: int
    reason: str
    at: str
    restarts: int
    waiting: str = ""
    out_of_memory: str = ""

    @property
    def sentence(self) -> str:
        reason = f" ({self.reason})" if self.reason not in ("", "Error") else ""
        often = "once" if self.restarts == 1 else f"{self.restarts} times"
        again = f", restarted {often}" if self.restarts else ""
        now = f", now {self.waiting}" if self.waiting else ""
        said = f'; it said "{self.out_of_memory}"' if self.out_of_memory else ""
        at = f" at {self.at}" if self.at else ""
        ended = f"container {self.container} ended with exit code {self.code}{reason}{at}"
        return f"{ended}{again}{now}{said}"


def read_endings(pod: Object) -> tuple[Ending, ...]:
    """
    Read which containers have failed when they ended last.

    Raises:
        InvalidError: it is no pod at all.
    """
    status = as_object(pod.get("status"), "status")
    return tuple(_endings(status))


def _endings(status: Object) -> Iterator[Ending]:
    for key in _STATUSES:
        for position, item in enumerate(objects(status.get(key), f"status.{key}")):
            field = f"status.{key}[{position}]"
            state = as_object(item.get("state"), f"{field}.state")
            ended = _terminated(state) or _terminated(as_object(item.get("lastState"), field))
            code = ended.get("exitCode")
            if not isinstance(code, int) or not code:
                continue
            waiting = as_object(state.get("waiting"), f"{field}.state.waiting")
            yield Ending(
                container=as_text(item.get("name"), f"{field}.name"),
                code=code,
                reason=as_text(ended.get("reason"), f"{field}.reason"),
                at=as_text(ended.get("finishedAt"), f"{field}.finishedAt"),
                restarts=as_integer(item.get("restartCount") or 0, f"{field}.restartCount"),
                waiting=as_text(waiting.get("reason"), f"{field}.state.waiting.reason"),
                out_of_memory=out_of_memory(as_text(ended.get("message"), f"{field}.message")),
            )


def _terminated(state: Object) -> Object:
    return as_object(state.get("terminated"), "terminated")


def what_helps(endings: Sequence[Ending], plan: Plan | None) -> Iterator[str]:
    """Return what to do about containers that have failed, where their caps may be why."""
    for ending in endings:
        container = None if plan is None else plan.containers.get(ending.container)
        capped = container if container is not None and container.cap_bytes is not None else None
        if ending.out_of_memory:
            yield _remedy(ending.container, capped)
        elif capped is not None and capped.kept:
            yield (
                f"Look why container {ending.container} ended: `kubectl logs --previous`. If GPU "
                f"memory was out: {_remedy(ending.container, capped)}"
            )


def _remedy(name: str, capped: ContainerPlan | None) -> str:
    if capped is None or capped.limit_bytes is None or capped.cap_bytes is None:
        return (
            f"Container {name} found too little memory on its card, which nothing here caps: "
            "`kubectl gpufence top cards` shows how full it is."
        )
    limit, cap = allowed(capped.limit_bytes), allowed(capped.cap_bytes)
    each = "each of its processes" if capped.processes > 1 else "its framework"
    return (
        f"Container {name} wanted more GPU memory than {each} may allocate, {cap} under its limit "
        f"of {limit} (the rest is kept for CUDA itself): request more, or set "
        f"{names.MEMORY}{_by_headroom(capped)}."
    )


def _by_headroom(capped: ContainerPlan) -> str:
    """Offer the smaller headroom where that would allow more."""
    reserves = [item.reserve_bytes for item in capped.settings if item.reserve_bytes is not None]
    if capped.headroom is Headroom.AUTO or not reserves or capped.limit_bytes is None:
        return ""
    terms = ShareTerms(max(reserves), capped.processes, Headroom.AUTO)
    more = allowance(capped.limit_bytes, capped.limit_bytes, terms).bytes
    if more <= (capped.cap_bytes or 0):
        return ""
    return f"; {names.HEADROOM}: {Headroom.AUTO} alone would allow {allowed(more)}"
