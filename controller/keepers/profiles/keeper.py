"""
Keep one GPUMemoryProfile for each owner, as what the nodes remember says; whoever holds the Lease
writes. On a thread of its own, so that no release waits for it.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.keepers import Keeper
from controller.keepers.profiles.figures import (
    ProfileOwner,
    ProfileStep,
    RememberedNeeds,
    by_owner,
    change_of,
    first_day,
    needs_of,
    profiles_by_owner,
    project_need,
    project_profile,
    terms_of,
    today_of,
)
from controller.keepers.profiles.writes import GONE
from controller.pages import by_step, gauge
from gpufence import names
from gpufence.annotations import read_namespace_options
from gpufence.settings import setting
from gpufence.times import write_moment
from kube import ConflictError, ForbiddenError, InvalidRequestError, NotFoundError, core, group
from kube.informers import Interner, Store
from kube.repeating import Repeating
from kube.watch import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from controller.keepers.profiles.figures import NeedProjection, ProfileChange, ProfileProjection
    from controller.keepers.profiles.writes import ProfileWrites
    from kube.informers import Informers
    from kube.informers.views import NamespaceView
    from kube.owners import ApiOwner
    from service.exposition import Family

_log = logging.getLogger(__name__)

MINOR_SECONDS: Final = 3600.0  # how long what decides nothing waits for its write
REFUSED_SECONDS: Final = 600.0
SEEN_SECONDS: Final = 10.0  # by then a profile that was made is in view
GONE_SECONDS: Final = 3600.0
"""It is asked so often whether an owner is there that was not, where no watch tells of it."""
LOOKS_PER_WRITE: Final = 5
"""Most owners whose nodes have said something have needed no more than before."""
_NEEDS: Final = "needs"
_PROFILES: Final = "profiles"
_DAY: Final = len("2026-11-19")
_NOBODY: Final = RememberedNeeds()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSettings:
    """How fast profiles follow what the agents remember."""

    pass_seconds: float = field(
        default=10.0,
        metadata=setting(
            "GPUFENCE_PROFILE_SECONDS",
            "interval at which recorded needs are read",
            least=0.1,
            most=3600,
        ),
    )
    writes: int = field(
        default=100,
        metadata=setting(
            "GPUFENCE_PROFILE_WRITES",
            "most profiles written at a time; five times as many are computed",
            most=10_000,
        ),
    )


class _Wait(NamedTuple):
    """
    Of what nothing was made, until when that is left alone, for ever as long as it stays so, and
    whether its owner was not there.
    """

    seen: int
    until: float
    gone: bool = False


class ProfileSources(NamedTuple):
    """
    `left` tells for how many seconds the Lease is ours, `namespaces` what those say, `owners` most
    of those that are there.
    """

    left: Callable[[], float]
    namespaces: Callable[[], Mapping[str, NamespaceView]]
    owners: Callable[[], Iterable[ApiOwner]]


class ProfileKeeper(Keeper):
    """`outcomes` counts what became of writes, by step."""

    def __init__(
        self,
        informers: Informers,
        writes: ProfileWrites,
        sources: ProfileSources,
        settings: ProfileSettings,
        namespace: str,
    ) -> None:
        self._informers = informers
        self._writes = writes
        self._sources = sources
        self._settings = settings
        self._needs: Store[NeedProjection] = Store()
        self._profiles: Store[ProfileProjection] = Store()
        self._follow(namespace)
        self._repeating = Repeating("profiles", self._turn)
        self._waits: dict[ProfileOwner, _Wait] = {}
        self._written: dict[ProfileOwner, float] = {}
        self._damaged: dict[str, str] = {}
        self._next: ProfileOwner | None = None
        self._put_together: tuple[object, Mapping[ProfileOwner, RememberedNeeds]] = (None, {})
        self._there: tuple[object, Mapping[ProfileOwner, ProfileProjection]] = (None, {})
        self.outcomes: Counter[tuple[str, str]] = Counter()

    def families(self) -> Iterator[Family]:
        return families(len(self._needs), len(self._profiles), self.outcomes)

    def _follow(self, namespace: str) -> None:
        interner = Interner()
        of_needs = Source(
            path=core("namespaces", namespace, "configmaps"),
            keep=partial(project_need, shared=interner, today=today),
            query={"labelSelector": f"app.kubernetes.io/name={names.NEED_LABEL}"},
            page_size=8,
        )
        of_profiles = Source(
            path=group(names.PROFILE_GROUP, names.PROFILES),
            keep=partial(project_profile, shared=interner),
        )
        self._informers.follow(_NEEDS, of_needs, self._needs, optional=True, vital=False)
        self._informers.follow(_PROFILES, of_profiles, self._profiles, optional=True, vital=False)

    def start(self) -> None:
        self._repeating.start()

    def stop(self, seconds: float) -> None:
        self._repeating.stop(seconds)

    def _turn(self) -> float:
        self.turn(time.monotonic())
        return self._settings.pass_seconds

    def turn(self, now: float) -> None:
        """
        Bring as many profiles up to date as one pass may. Raises KubeError, and NotActingError.
        """
        synced = all(self._informers.state(name).synced for name in (_NEEDS, _PROFILES))
        if self._sources.left() <= 0 or not synced:
            # Somebody else may write them meanwhile.
            self._waits.clear()
            return
        needs = self._needs.items
        self._tell_damaged(needs)
        day = today_of(needs.values(), today())
        if self._put_together[0] is not needs:
            self._put_together = needs, by_owner(needs.values())
        self._keep_up(day, now)
        self._forget_old(needs, day)

    def _keep_up(self, day: str, now: float) -> None:
        remembered, profiles = self._put_together[1], self._profiles.items
        words = self._sources.namespaces()
        said = {name: read_namespace_options(each.annotations) for name, each in words.items()}
        ceilings = {name: each.max_memory_bytes for name, each in said.items()}
        if self._there[0] is not profiles:
            self._there = profiles, profiles_by_owner(profiles.values())
        there = self._there[1]
        every = there.keys() | remembered.keys()
        for known in (self._waits, self._written):
            for owner in known.keys() - every:
                del known[owner]
        self._look_for_gone()
        writes, looks = self._settings.writes, self._settings.writes * LOOKS_PER_WRITE
        for owner in self._in_turn(every):
            needs, before = remembered.get(owner, _NOBODY), there.get(owner)
            ceiling = ceilings.get(owner.namespace)
            seen = hash((needs.packed, needs.cards, ceiling, before and before.version, day))
            if self._waiting(owner, seen, now):
                continue
            if writes <= 0 or looks <= 0 or self._repeating.stopped:
                self._next = owner
                return
            looks -= 1
            terms = terms_of(before, ceiling)
            summaries = needs_of(owner, needs, terms, day)
            change = change_of(before, summaries, terms, write_moment(time.time()))
            writes -= self._carry_out(owner, before, change, seen, now)

    def _in_turn(self, every: Iterable[ProfileOwner]) -> list[ProfileOwner]:
        """
        Go on where the last pass came to its end: whoever has much to write lets others wait for a
        pass, not for ever.
        """
        ordered = sorted(every)
        start = 0 if self._next is None else bisect_left(ordered, self._next)
        self._next = None
        return ordered[start:] + ordered[:start]

    def _look_for_gone(self) -> None:
        """Wait no longer for owners that have been made anew."""
        gone = {owner for owner, wait in self._waits.items() if wait.gone}
        for each in self._sources.owners() if gone else ():
            owner = ProfileOwner(each.namespace, each.kind.kind, each.name)
            if owner in gone:
                self._waits.pop(owner, None)

    def _waiting(self, owner: ProfileOwner, seen: int, now: float) -> bool:
        wait = self._waits.get(owner)
        return wait is not None and wait.seen == seen and now < wait.until

    def _carry_out(
        self,
        owner: ProfileOwner,
        before: ProfileProjection | None,
        change: ProfileChange,
        seen: int,
        now: float,
    ) -> bool:
        """
        Write what is to be written, and return whether anything was; raises KubeError where nothing
        can be written at the moment.
        """
        if change.step is ProfileStep.NOTHING:
            self._waits[owner] = _Wait(seen, inf)
            return False
        if change.minor:
            due = self._written.setdefault(owner, now) + MINOR_SECONDS
            if now < due:
                self._waits[owner] = _Wait(seen, due)
                return False
        until = now + REFUSED_SECONDS
        try:
            outcome = self._writes.carry_out(owner, before, change)
        except ConflictError:
            outcome = "changed"  # looked at again once that is seen
        except (ForbiddenError, InvalidRequestError, NotFoundError, ValueError) as error:
            outcome = "refused"  # for good, by the server or since its name cannot be one
            _log.warning("profile of %s %s/%s: %s", owner.kind, owner.namespace, owner.name, error)
        else:
            until = now + GONE_SECONDS if outcome == GONE else inf
            if change.step is ProfileStep.CREATE and outcome != GONE:
                until = now + SEEN_SECONDS  # it may be deleted again before it is seen
            self._written[owner] = now
        self._waits[owner] = _Wait(seen, until, gone=outcome == GONE)
        self.outcomes[change.step, outcome] += 1
        return True

    def _forget_old(self, needs: Mapping[str, NeedProjection], day: str) -> None:
        """Delete what nodes remember of days that count no longer. Raises KubeError."""
        for need in needs.values():
            if need.trouble or not need.newest or need.newest >= first_day(day):
                continue
            try:
                self._writes.forget(need)
            except (ConflictError, NotFoundError):
                continue  # its agent writes again
            except (ForbiddenError, InvalidRequestError) as error:
                _log.warning("what %s remembers is old, and stays: %s", need.name, error)
                continue
            _log.info("forgotten: %s, whose last day was %s", need.name, need.newest)

    def _tell_damaged(self, needs: Mapping[str, NeedProjection]) -> None:
        """Say once of each what cannot be read."""
        damaged = {need.name: need for need in needs.values() if need.trouble}
        for name, need in damaged.items():
            if self._damaged.get(name) != need.version:
                _log.warning("ConfigMap %s counts for nothing: %s", name, need.trouble)
        self._damaged = {name: need.version for name, need in damaged.items()}


def families(needs: int, profiles: int, writes: Mapping[tuple[str, str], int]) -> Iterator[Family]:
    """Yield what `/metrics` says of profiles; `writes` by step and outcome."""
    yield gauge("needs", "Nodes with recorded needs", needs)
    yield gauge("profiles", "Watched GPUMemoryProfiles", profiles)
    about = "Writes of GPUMemoryProfiles, by step and outcome"
    yield by_step("profile_writes_total", about, writes)


def today() -> str:
    return write_moment(time.time())[:_DAY]
