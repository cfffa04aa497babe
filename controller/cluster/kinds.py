"""
Kinds that a cluster may have or not, now or later: owners of pods that can be scaled or stopped,
and whatever scales them.
"""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from controller.cluster.projections import keep_owner, keep_scaler
from controller.cluster.tree import OWN_GROUP
from gpufence import names
from gpufence.backoff import Backoff
from kube import ForbiddenError, Source
from kube.informers import Store, is_current
from kube.owners import is_notebook, is_workload
from kube.repeating import Repeating

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from controller.cluster.projections import KeptOwner, ScaleTarget
    from kube.discovery import Kinds
    from kube.informers import Informers, Interner
    from kube.kinds import ApiKind

_log = logging.getLogger(__name__)

SCALERS: Final = frozenset(
    {("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject")}
)
MOST_KINDS: Final = 64
RETRY_SECONDS: Final = 2.0
_REMEDY: Final = (
    f"a ClusterRole labelled {names.AGGREGATE}=true gives the controller rights to further kinds"
)

_Name: TypeAlias = "tuple[str, str]"


class _FollowedKind(NamedTuple):
    kind: ApiKind
    store: Store[Any]

    @property
    def key(self) -> str:
        """Return the name under which the informers follow it."""
        return f"{self.kind.plural}.{self.kind.group}"


class KnownKinds(NamedTuple):
    """
    `blind` says why nobody knows who scales whom; `unread` the same of kinds of owners that may not
    be read, `stale` of those that cannot be at the moment.
    """

    owners: Mapping[str, KeptOwner]
    scalers: Mapping[ScaleTarget, str]
    blind: str
    unread: Mapping[_Name, str]
    stale: Mapping[_Name, str]


class FollowedKinds:
    """Has each such kind followed from when discovery tells of it until it is gone."""

    def __init__(
        self, informers: Informers, kinds: Kinds, interner: Interner, seconds: float
    ) -> None:
        self._informers = informers
        self._kinds = kinds
        self._interner = interner
        self._seconds = seconds
        self._lock = threading.Lock()
        self._followed: dict[_Name, _FollowedKind] = {}
        self._parts: list[Mapping[str, KeptOwner]] = []
        self._merged: Mapping[str, KeptOwner] = {}
        self._told: frozenset[_Name] = frozenset()
        self._found = False
        steady = Backoff(RETRY_SECONDS, RETRY_SECONDS)
        self._repeating = Repeating("discovery of kinds", self._turn, backoff=steady)

    def start(self) -> None:
        self._repeating.start()

    def stop(self) -> None:
        self._repeating.stop()

    @property
    def complete(self) -> bool:
        """Return whether it is known which kinds there are."""
        return self._found and not self._repeating.trouble

    def known(self) -> KnownKinds:
        with self._lock:
            # Asked before what they know is read, which then is only newer.
            unread, stale = dict(self._unread()), dict(self._stale())
            scalers: dict[ScaleTarget, str] = {}
            for name in SCALERS & self._followed.keys():
                for target, scaler in self._followed[name].store.items.values():
                    scalers[target] = f"{name[1]} {scaler}"
            return KnownKinds(
                owners=self._owners(),
                scalers=scalers,
                blind="; ".join(why for name, why in unread.items() if name in SCALERS),
                unread=unread,
                stale=stale,
            )

    def _unread(self) -> Iterator[tuple[_Name, str]]:
        for name, each in self._followed.items():
            absent = self._informers.absent(each.key)
            if isinstance(absent, ForbiddenError):
                yield name, f"{each.key} cannot be read: {absent.failure.message}; {_REMEDY}"

    def _stale(self) -> Iterator[tuple[_Name, str]]:
        now = time.monotonic()
        for name, each in self._followed.items():
            state = self._informers.state(each.key)
            there = self._informers.absent(each.key) is None
            if there and not _is_vital(name) and not is_current(state, now):
                trouble = state.last_error or "it has not been read yet"
                yield name, f"{each.key} cannot be read at the moment: {trouble}"

    def _owners(self) -> Mapping[str, KeptOwner]:
        """Put the owners of all kinds together; the same mapping while nothing changes."""
        followed = self._followed.items()
        parts = [each.store.items for name, each in followed if name not in SCALERS]
        if len(parts) != len(self._parts) or any(map(_is_other, parts, self._parts)):
            self._parts = parts
            self._merged = {uid: kept for part in parts for uid, kept in part.items()}
        return self._merged

    def _turn(self) -> float:
        """Follow what is new, end what is gone. Raises KubeError."""
        wanted = self._wanted()
        with self._lock:
            for name, each in list(self._followed.items()):
                if wanted.get(name) != each.kind:
                    del self._followed[name]
                    self._informers.end(each.key)
            for name, kind in wanted.items():
                if name not in self._followed:
                    self._follow(name, kind)
            self._found = True
            self._tell({**dict(self._unread()), **dict(self._stale())})
            settled = all(self._informers.settled(each.key) for each in self._followed.values())
        return self._seconds if settled else min(self._seconds, RETRY_SECONDS)

    def _wanted(self) -> dict[_Name, ApiKind]:
        found = self._kinds.all(needed={group for group, _ in SCALERS})
        kinds = [kind for kind in found if _concerns(kind)]
        # Who scales, and what every cluster has, is never left out, however many kinds there are.
        kinds.sort(key=lambda kind: not _is_vital((kind.group, kind.kind)))
        return {(kind.group, kind.kind): kind for kind in kinds[:MOST_KINDS]}

    def _follow(self, name: _Name, kind: ApiKind) -> None:
        keep = partial(keep_owner, kind=kind, shared=self._interner)
        source: Source[Any] = Source(
            path=kind.everywhere, keep=keep_scaler if name in SCALERS else keep, from_cache=True
        )
        self._followed[name] = each = _FollowedKind(kind, Store())
        vital = _is_vital(name)
        self._informers.follow(each.key, source, each.store, optional=True, vital=vital)

    def _tell(self, unknown: Mapping[_Name, str]) -> None:
        for name in unknown.keys() - self._told:
            _log.warning("%s; their pods are left alone", unknown[name])
        self._told = frozenset(unknown)


def _is_other(one: object, other: object) -> bool:
    return one is not other


def _is_vital(name: _Name) -> bool:
    """
    Return whether nothing is decided without a kind: what scales may scale anybody, and the way up
    from anybody's pods may lead through what Kubernetes has itself.
    """
    return name in SCALERS or name[0] == OWN_GROUP


def _concerns(kind: ApiKind) -> bool:
    """
    Return whether a kind matters: of the core there are ReplicationControllers, which nobody makes
    any more.
    """
    name = kind.group, kind.kind
    scalable = kind.scalable and bool(kind.group)
    return scalable or name in SCALERS or is_notebook(kind) or is_workload(kind)
