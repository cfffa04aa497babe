"""
Watches of kinds that a cluster may have or not, now or later: owners of pods that can be scaled or
stopped, and whatever scales them.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from controller.cluster.kept import keep_owner, keep_scaler
from controller.cluster.tree import OWN_GROUP
from controller.cluster.watches import is_current
from gpufence import names
from kube import ForbiddenError, KubeError, NotFoundError, Reflector, Source
from kube.informers.store import Store
from kube.owners import is_notebook, is_workload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.cluster.kept import KeptOwner, ScaleTarget
    from kube import Client, ReflectorState, WatchSettings
    from kube.discovery import Kinds
    from kube.informers.interning import Interner
    from kube.kinds import ApiKind

_log = logging.getLogger(__name__)

SCALERS: Final = frozenset(
    {("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject")}
)
MOST_KINDS: Final = 64
RETRY_SECONDS: Final = 2.0
GIVEN_UP_SECONDS: Final = 30.0
"""
A watch that fails for so long is ended, and it is asked whether the kind is still there and ours
to read.
"""
_REMEDY: Final = (
    f"a ClusterRole labelled {names.AGGREGATE}=true gives the controller rights to further kinds"
)

_Name: TypeAlias = "tuple[str, str]"


class _Followed(NamedTuple):
    kind: ApiKind
    store: Store[Any]
    reflector: Reflector[Any]


class KindsKnown(NamedTuple):
    """
    `complete` once it is known which kinds there are. `states` are of those without which nothing
    is decided. `blind` says why nobody knows who scales whom; `unread` the same of kinds of owners
    that may not be read, `stale` of those that cannot be at the moment.
    """

    complete: bool
    states: tuple[ReflectorState, ...]
    owners: Mapping[str, KeptOwner]
    scalers: Mapping[ScaleTarget, str]
    blind: str
    unread: Mapping[_Name, str]
    stale: Mapping[_Name, str]


class KindsWatch:
    """
    Follows each such kind from when it is found until it is gone; one that may not be read is asked
    for again each time.
    """

    def __init__(
        self, client: Client, kinds: Kinds, shared: Interner, pace: WatchSettings, seconds: float
    ) -> None:
        self._client = client
        self._kinds = kinds
        self._shared = shared
        self._pace = pace
        self._seconds = seconds
        self._stop = threading.Event()
        self._followed: dict[_Name, _Followed] = {}
        self._unread: Mapping[_Name, str] = {}
        self._failed: Mapping[_Name, str] = {}
        self._complete = False
        self._merged: tuple[object, Mapping[str, KeptOwner]] = ((), {})
        self._thread = threading.Thread(target=self._run, name="kinds", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(self._seconds)
        for each in list(self._followed.values()):
            each.reflector.stop()

    def known(self) -> KindsKnown:
        followed = dict(self._followed)
        unread = dict(self._unread)
        # Asked before what they know is read, which then is only newer.
        now = time.monotonic()
        stale = dict(self._failed)
        for name, each in followed.items():
            state = each.reflector.state
            if not _is_vital(name) and not is_current(state, now):
                stale[name] = _failing(each.kind, state.last_error or "it has not been read yet")
        blind = "; ".join(why for name, why in unread.items() if name in SCALERS)
        scalers: dict[ScaleTarget, str] = {}
        for name in SCALERS & followed.keys():
            for target, scaler in followed[name].store.items.values():
                scalers[target] = f"{name[1]} {scaler}"
        return KindsKnown(
            complete=self._complete,
            states=tuple(
                each.reflector.state for name, each in followed.items() if _is_vital(name)
            ),
            owners=self._owners(followed),
            scalers=scalers,
            blind=blind,
            unread=unread,
            stale=stale,
        )

    def _owners(self, followed: Mapping[_Name, _Followed]) -> Mapping[str, KeptOwner]:
        """Put the owners of all kinds together; the same mapping while nothing changes."""
        stores = [each.store for name, each in followed.items() if name not in SCALERS]
        parts = [store.items for store in stores]
        marks = [id(part) for part in parts]
        if self._merged[0] != marks:
            merged = {key: kept for part in parts for key, kept in part.items()}
            # The parts are kept too, so that none of them is another one at the same place.
            self._merged = marks, merged
            self._parts = parts
        return self._merged[1]

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._look()
                self._complete, pause = True, self._seconds
            except KubeError as error:
                _log.warning("it is not known which kinds there are: %s", error)
                self._complete, pause = False, RETRY_SECONDS
            if self._is_unwell():
                pause = min(pause, RETRY_SECONDS)
            self._stop.wait(pause * (1 + random.random() / 4))  # noqa: S311 (spreads load, guards nothing)

    def _look(self) -> None:
        """
        Follow what is new, end what is gone, begin anew what fails for good. Raises KubeError.
        """
        found = self._kinds.all(needed={group for group, _ in SCALERS})
        kinds = [kind for kind in found if _concerns(kind)]
        # Who scales, and what every cluster has, is never left out, however many kinds there are.
        kinds.sort(key=lambda kind: not _is_vital((kind.group, kind.kind)))
        wanted = {(kind.group, kind.kind): kind for kind in kinds[:MOST_KINDS]}
        for name in self._followed.keys() - wanted.keys():
            self._end(name)
        unread: dict[_Name, str] = {}
        failed: dict[_Name, str] = {}
        for name, kind in wanted.items():
            followed = self._followed.get(name)
            if followed is None or followed.kind != kind or _is_silent(followed):
                try:
                    why = self._begin(name, kind)
                except KubeError as error:
                    if _is_vital(name):
                        raise
                    failed[name] = _failing(kind, str(error))
                    continue
                if why:
                    unread[name] = why
        self._tell({**unread, **failed})
        self._unread, self._failed = unread, failed

    def _begin(self, name: _Name, kind: ApiKind) -> str:
        """
        Follow a kind, or say why that is not allowed. What was followed until then is known until
        something else is known instead. Raises KubeError.
        """
        try:
            self._client.page(kind.everywhere, lambda _: None, {"limit": 1})
        except ForbiddenError as error:
            why = f"{kind.plural}.{kind.group} cannot be read: {error.failure.message}; {_REMEDY}"
            self._unread = {**self._unread, name: why}
            self._end(name)
            return why
        except NotFoundError:
            self._end(name)
            return ""  # it is gone since we heard of it
        keep = keep_scaler if name in SCALERS else partial(_keep, kind=kind, shared=self._shared)
        store: Store[Any] = Store()
        source: Source[Any] = Source(path=kind.everywhere, keep=keep, from_cache=True)
        reflector: Reflector[Any] = Reflector(self._client, source, store, self._pace)
        reflector.start()
        before = self._followed.get(name)
        self._followed[name] = _Followed(kind, store, reflector)
        if before is not None:
            before.reflector.stop()
        _log.info("following %s", kind.everywhere)
        return ""

    def _end(self, name: _Name) -> None:
        each = self._followed.pop(name, None)
        if each is None:
            return
        each.reflector.stop()
        _log.info("no longer following %s", each.kind.everywhere)

    def _is_unwell(self) -> bool:
        followed = list(self._followed.items())
        return any(_is_vital(name) and each.reflector.state.failing for name, each in followed)

    def _tell(self, unread: Mapping[_Name, str]) -> None:
        for name, why in unread.items():
            if name not in self._unread and name not in self._failed:
                _log.warning("%s; their pods are left alone", why)


def _is_silent(each: _Followed) -> bool:
    state = each.reflector.state
    last = state.last_contact
    return state.failing and (last is None or time.monotonic() - last > GIVEN_UP_SECONDS)


def _is_vital(name: _Name) -> bool:
    """
    Return whether nothing is decided without a kind: what scales may scale anybody, and the way up
    from anybody's pods may lead through what Kubernetes has itself.
    """
    return name in SCALERS or name[0] == OWN_GROUP


def _failing(kind: ApiKind, trouble: str) -> str:
    return f"{kind.plural}.{kind.group} cannot be read at the moment: {trouble}"


def _concerns(kind: ApiKind) -> bool:
    """
    Return whether a kind matters: of the core there are ReplicationControllers, which nobody makes
    any more.
    """
    name = kind.group, kind.kind
    scalable = kind.scalable and bool(kind.group)
    return scalable or name in SCALERS or is_notebook(kind) or is_workload(kind)


def _keep(item: Any, kind: ApiKind, shared: Interner) -> tuple[str, KeptOwner | None]:  # noqa: ANN401 - JSON as it came
    return keep_owner(item, kind, shared)
