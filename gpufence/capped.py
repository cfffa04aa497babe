"""
How a container has failed, and whether the cap that it was given is why.

Its own words are proof: what frameworks and servers write when GPU memory is out. Without any, use
that came to all that was given makes it likely. What a framework is given leaves the CUDA context
out, which nobody can measure by itself: the least that there is of it is taken off the use.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.annotations import Headroom
from gpufence.event_text import would_do
from gpufence.plan import Done, driver_bytes
from gpufence.pods import limits_refused, out_of_memory
from gpufence.quantity import MIB
from gpufence.shape import as_object, as_text, objects
from gpufence.share import ShareTerms, allowance
from gpufence.target import MostHeld, TargetTerms, least_context, target_for
from gpufence.text import limit_mebibytes, mebibytes, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpufence.plan import ContainerPlan
    from gpufence.shape import Object

FULL_PERCENT: Final = 97
"""Of what a process was given: use that came so close may have wanted more."""

OTHER_WORDS: Final = "?"
"""What stands for a message that says nothing about GPU memory, where it is not kept."""

_STATUSES: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_SIGNALS: Final = frozenset({130, 137, 143})  # ended from outside: interrupted, killed, terminated
_OUTSIDE: Final = frozenset({"OOMKilled", "DeadlineExceeded"})
_TOLD: Final = frozenset({Done.SET, Done.LOWERED, Done.KEPT})
_MOST_CHARACTERS: Final = 16 * 1024
_ALL: Final = 100
_ROUNDED: Final = 16 * MIB  # hundredths of a GiB are what PyTorch shows
_MOST_QUOTED: Final = 240
_UNITS: Final = {"bytes": 1, "KiB": 1024, "MiB": MIB, "GiB": 1024 * MIB}

_TOO_SMALL = re.compile(
    r"No available memory for the cache blocks"  # vLLM
    r"|larger than the available KV cache memory"  # vLLM
    r"|larger than the maximum number of tokens that can be stored in KV cache"  # older vLLM
    r"|Not enough memory\. Please try to increase --mem-fraction-static"  # SGLang
    r"|Not enough memory to handle \d{1,9} prefill tokens"  # TGI
)
_CARD_FULL = re.compile(
    r"Free memory on device [^\n]{0,80}on startup is less than desired GPU memory utilization"
)
_ABOVE = re.compile(
    r"See root cause above|Engine core initialization failed"  # vLLM
    r"|torch\.distributed\.elastic\.multiprocessing\.errors\.ChildFailedError"  # torchrun
)
_AMOUNT: Final = r"(\d{1,9}(?:\.\d{1,2})?) (bytes|KiB|MiB|GiB)"
_FIGURES = re.compile(
    rf"Tried to allocate {_AMOUNT}"
    rf"(?:\. GPU \d{{1,3}} has a total capacity of {_AMOUNT} of which {_AMOUNT} is free)?"
)


class Why(StrEnum):
    """What a failure has to do with GPU memory."""

    CAPPED = "capped"  # its framework allocates no more
    TOO_SMALL = "too small"  # its server does not start with so little
    CARD_FULL = "card full"  # less was free than it may have: others hold the rest
    REFUSED = "refused"  # the runtime could not set the driver's limit


class Ending(NamedTuple):
    """
    The last failure of a container. `out_of_memory` are its own words about GPU memory, empty where
    it has left none; it is `silent` if no message says why. `refused` says how its start failed for
    the driver's limit, `waiting` why it does not run again, such as CrashLoopBackOff.
    """

    container: str
    code: int
    reason: str = ""
    at: str = ""
    restarts: int = 0
    waiting: str = ""
    out_of_memory: str = ""
    silent: bool = True
    refused: str = ""

    @property
    def sentence(self) -> str:
        reason = f" ({self.reason})" if self.reason not in ("", "Error") else ""
        often = "once" if self.restarts == 1 else f"{self.restarts} times"
        again = f", restarted {often}" if self.restarts else ""
        now = f", now {self.waiting}" if self.waiting else ""
        words = printable(self.out_of_memory or self.refused, _MOST_QUOTED)
        said = f'; it said "{words}"' if words else ""
        at = f" at {self.at}" if self.at else ""
        how = f"ended with exit code {self.code}" if self.code else "could not be started"
        ended = f"container {self.container} {how}{reason}{at}"
        return f"{ended}{again}{now}{said}"


class Given(NamedTuple):
    """
    What a container asked for on each card, and what each of its `processes` may allocate of that;
    `auto_bytes` is what the smaller headroom would allow, 0 where that is not more.
    """

    asked_bytes: int
    given_bytes: int
    reserve_bytes: int = 0
    processes: int = 1
    auto_bytes: int = 0
    by_driver: bool = False


class Capped(NamedTuple):
    """
    A failure that has to do with GPU memory: `certain` by its own words, else only likely.
    `wanted_bytes` is what it tried to allocate last, `peak_bytes` the most that one process was
    seen to hold; 0 where nothing says so.
    """

    ending: Ending
    why: Why
    certain: bool
    given: Given | None = None
    wanted_bytes: int = 0
    peak_bytes: int = 0

    @property
    def enough_bytes(self) -> int:
        """Return a limit to try next: what it wanted by the share rule, at least a quarter more."""
        if self.given is None:
            return 0
        asked, given, reserve, processes, *_ = self.given
        process = given + self.wanted_bytes + least_context(reserve)
        most = MostHeld(process * processes, processes, process, processes)
        return target_for([most], asked, TargetTerms(reserve, margin_percent=0)).limit_bytes


def capped(ending: Ending, given: Given | None, peak_bytes: int = 0) -> Capped | None:
    """Decide whether GPU memory is why a container failed; without `given` it is not capped."""
    if ending.refused:
        return Capped(ending, Why.REFUSED, certain=True, given=given)
    wanted, total, free = _figures(ending.out_of_memory)
    of_limit = given is not None and given.by_driver and total <= given.given_bytes + _ROUNDED
    if _CARD_FULL.search(ending.out_of_memory) or (free < wanted and not of_limit):
        return Capped(ending, Why.CARD_FULL, certain=True, given=given, wanted_bytes=wanted)
    if given is None:
        return None
    if not ending.out_of_memory and not _may_be_full(ending, given, peak_bytes):
        return None
    why = Why.TOO_SMALL if _TOO_SMALL.search(ending.out_of_memory) else Why.CAPPED
    return Capped(ending, why, bool(ending.out_of_memory), given, wanted, peak_bytes)


def _may_be_full(ending: Ending, given: Given, peak_bytes: int) -> bool:
    """Return whether it ended by itself and held all that it was given."""
    if ending.code in _SIGNALS or ending.reason in _OUTSIDE:
        return False
    allocated = peak_bytes - (0 if given.by_driver else least_context(given.reserve_bytes))
    return peak_bytes > 0 and allocated * _ALL >= given.given_bytes * FULL_PERCENT


def _figures(words: str) -> tuple[int, int, int]:
    """
    Return what PyTorch tried to allocate, how large the card is, which may be the driver's limit,
    and how much of it was free; without those figures as much as was wanted.
    """
    found = _FIGURES.search(words)
    if found is None:
        return 0, 0, 0
    wanted = _bytes(found[1], found[2])
    if found[5] is None:
        return wanted, 0, wanted
    return wanted, _bytes(found[3], found[4]), _bytes(found[5], found[6])


def _bytes(number: str, unit: str) -> int:
    whole, _, part = number.partition(".")
    return (int(whole) * _ALL + int(part.ljust(2, "0") or 0)) * _UNITS[unit] // _ALL


def what_happened(found: Capped) -> str:
    """Return in a sentence what GPU memory has to do with a failure."""
    if found.why is Why.REFUSED:
        return "It did not start: its node cannot hold it to the driver's limit."
    if found.why is Why.CARD_FULL:
        return "Its card had less free than it may allocate: others hold the rest."
    if found.given is None or found.given.by_driver:
        return "Out of GPU memory at its limit: the driver refuses more."
    share = _share(found.given)
    if found.why is Why.TOO_SMALL:
        return f"Too little GPU memory for its server to start: {share}."
    if not found.certain:
        held = mebibytes(found.peak_bytes, unit="Mi")
        return f"Perhaps out of GPU memory, it held {held} when it failed: {share}."
    wanted = f"{mebibytes(found.wanted_bytes, unit='Mi')} more" if found.wanted_bytes else "more"
    return f"Out of GPU memory at its cap: {share}, and wanted {wanted}."


def _share(given: Given) -> str:
    each = "each of its processes may" if given.processes > 1 else "it may"
    asked, allowed = (limit_mebibytes(item, unit="Mi") for item in given[:2])
    return f"of {asked} asked for, {each} allocate {allowed} (the rest is kept for CUDA)"


def what_helps(found: Capped) -> tuple[str, ...]:
    """Return what to do about it, and by which amount, the best first."""
    if found.why is Why.REFUSED:
        return ("Show an administrator docs/runbooks/GpufenceLimitsUnsupported.md.",)
    if found.why is Why.CARD_FULL or found.given is None:
        return ("`kubectl gpufence top cards` shows how full its card is.",)
    auto = limit_mebibytes(found.given.auto_bytes, unit="Mi")
    smaller = (f"{names.HEADROOM}: auto allows {auto}.",) if found.given.auto_bytes else ()
    return (would_do(found.enough_bytes), *smaller)


def last_words(message: str) -> str:
    """
    Return what a container's message says about GPU memory, a few words of it; empty where it says
    nothing, whatever else is in it.
    """
    text = message[-_MOST_CHARACTERS:]
    found = _TOO_SMALL.search(text) or _CARD_FULL.search(text)
    if found is not None:
        return found[0]
    words = out_of_memory(text)
    figures = _FIGURES.search(text) if words else None
    return words if figures is None else f"CUDA out of memory. {figures[0]}"


def is_silent(message: str) -> bool:
    """Return whether a message leaves open why its container failed, or says it further above."""
    return not message.strip() or _ABOVE.search(message[-_MOST_CHARACTERS:]) is not None


def given_of(plan: ContainerPlan) -> Given | None:
    """Return what a container was given; None where its plan caps nothing."""
    held, limit = driver_bytes(plan), plan.limit_bytes
    if held is not None:
        return Given(held, held, processes=plan.processes, by_driver=True)
    rows = [item for item in plan.settings if item.done in _TOLD]
    caps = [item.allowance_bytes for item in rows if item.allowance_bytes is not None]
    if plan.cap_bytes is None or limit is None or not caps:
        return None
    given = max(plan.cap_bytes, *caps)
    reserve = max((item.reserve_bytes or 0 for item in rows), default=0)
    auto = 0
    if plan.headroom is not Headroom.AUTO and reserve:
        auto = allowance(limit, limit, ShareTerms(reserve, plan.processes, Headroom.AUTO)).bytes
    return Given(limit, given, reserve, plan.processes, auto if auto > given else 0)


def read_endings(status: Object) -> Iterator[Ending]:
    """
    Yield which containers of a pod's status failed when they ended last, or were to start.

    Raises:
        InvalidError: it is no pod's status at all.
    """
    for key in _STATUSES:
        for position, item in enumerate(objects(status.get(key), f"status.{key}")):
            field = f"status.{key}[{position}]"
            state = as_object(item.get("state"), f"{field}.state")
            last = as_object(item.get("lastState"), f"{field}.lastState")
            waiting = as_object(state.get("waiting"), f"{field}.state.waiting")
            ended = as_object(state.get("terminated") or last.get("terminated"), field)
            refused = "" if "running" in state else _refusal(waiting) or _refusal(ended)
            code = ended.get("exitCode")
            if (not isinstance(code, int) or not code) and not refused:
                continue
            message = as_text(ended.get("message"), f"{field}.message")
            restarts = item.get("restartCount")
            yield Ending(
                container=as_text(item.get("name"), f"{field}.name"),
                code=code if isinstance(code, int) else 0,
                reason=as_text(ended.get("reason"), f"{field}.reason"),
                at=as_text(ended.get("finishedAt"), f"{field}.finishedAt"),
                restarts=restarts if isinstance(restarts, int) else 0,
                waiting=as_text(waiting.get("reason"), f"{field}.state.waiting.reason"),
                out_of_memory="" if refused else last_words(message),
                silent=is_silent(message),
                refused=refused,
            )


def _refusal(words: Object) -> str:
    reason, message = (as_text(words.get(key), key) for key in ("reason", "message"))
    return limits_refused(reason, message)
