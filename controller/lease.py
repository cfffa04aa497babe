"""
Who of several acts: the holder of a Lease, as Kubernetes' own controllers agree on it.

The holder stops acting well before anybody else may begin: it counts from before it asked for its
last renewal, the others from after they saw it. Nobody compares the clocks of two machines.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.errors import GpufenceError
from gpufence.times import write_moment
from kube import ConflictError, KubeError, group
from kube.repeating import Repeating
from kube.transport import boottime

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.settings import LeaseSettings
    from kube import Client, JsonObject

_log = logging.getLogger(__name__)
_JITTER: Final = 0.2
_MICROSECONDS: Final = 10**6


class _Observed(NamedTuple):
    """What the Lease said, and when we first saw that."""

    version: str
    holder: str
    held_seconds: float
    at: float


class NotActingError(GpufenceError):
    """Raised before a write when somebody else may act by the time it arrives."""


def check_lease(left: Callable[[], float], seconds: float) -> None:
    """Raise NotActingError unless the Lease is ours for longer than a request may take."""
    if left() <= seconds:
        raise NotActingError(f"the Lease is ours for {max(left(), 0.0):.1f} s only")


class LeaderLease:
    """
    Tries for the Lease, and renews it, on a thread of its own; it must be there already, since the
    right to make one would be a right to make any.
    """

    def __init__(
        self,
        client: Client,
        where: tuple[str, str],
        holder: str,
        settings: LeaseSettings,
        request_seconds: float,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self._namespace, self._name = where
        self._client = client
        self._holder = holder
        self._settings = settings
        self._request_seconds = min(request_seconds, settings.renew_within_seconds)
        self._clock = clock
        self._repeating = Repeating("lease", self._turn, jitter=_JITTER)
        self._observed: _Observed | None = None
        self._until: float | None = None
        self.term = 0

    def start(self) -> None:
        self._repeating.start()

    def stop(self) -> None:
        """Give the Lease back, so that somebody else need not wait."""
        self._repeating.stop(self._request_seconds)
        if self.left() > 0:
            self._give_back()

    def left(self) -> float:
        """Return for how many seconds we may still act; 0 or less where we may not."""
        until = self._until
        return 0.0 if until is None else until - self._clock()

    def _path(self) -> str:
        return group("coordination.k8s.io/v1", "namespaces", self._namespace, "leases", self._name)

    def _turn(self) -> float:
        self.turn()
        return self._settings.retry_seconds

    def turn(self) -> None:
        """
        Renew the Lease, or take it where nobody holds it. It comes again as soon whatever the API
        server answers: a pause that grows would lose the Lease.
        """
        before = self._clock()
        held = self.left() > 0
        try:
            lease = self._client.get(self._path(), timeout_seconds=self._request_seconds)
            if not self._may_take(lease):
                self._step_down("another holds the Lease")
                return
            written = self._client.put(
                self._path(), self._claimed(lease), timeout_seconds=self._request_seconds
            )
            self._see(written)
        except ConflictError:
            self._step_down("another was faster")
            return
        except KubeError as error:
            _log.warning("the Lease %s cannot be had: %s", self._name, error)
            return
        if not held:
            self.term += 1
            _log.info("acting: the Lease %s is held by %s", self._name, self._holder)
        # From before the request: whoever sees it, sees it later.
        self._until = before + self._settings.renew_within_seconds

    def _may_take(self, lease: JsonObject) -> bool:
        observed = self._see(lease)
        if observed.holder in {"", self._holder}:
            return True
        return self._clock() - observed.at > observed.held_seconds

    def _see(self, lease: JsonObject) -> _Observed:
        version = str(lease.get("metadata", {}).get("resourceVersion", ""))
        if self._observed is None or self._observed.version != version:
            spec = lease.get("spec") or {}
            seconds = spec.get("leaseDurationSeconds")
            held = seconds if isinstance(seconds, int) else 0
            holder = str(spec.get("holderIdentity") or "")
            # Never sooner than we ourselves would give it up, whatever somebody wrote there.
            least = self._settings.held_seconds
            self._observed = _Observed(version, holder, max(held, least), self._clock())
        return self._observed

    def _claimed(self, lease: JsonObject) -> JsonObject:
        spec = dict(lease.get("spec") or {})
        now = _micro_time(time.time())
        if spec.get("holderIdentity") != self._holder:
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
            spec["acquireTime"] = now
        spec |= {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": max(int(self._settings.held_seconds), 1),
            "renewTime": now,
        }
        return {**lease, "spec": spec}

    def _step_down(self, why: str) -> None:
        if self._until is not None:
            _log.info("no longer acting: %s", why)
        self._until = None

    def _give_back(self) -> None:
        self._until = None
        try:
            lease = self._client.get(self._path(), timeout_seconds=self._request_seconds)
            spec = lease.get("spec") or {}
            if spec.get("holderIdentity") == self._holder:
                lease["spec"] = {**spec, "holderIdentity": "", "leaseDurationSeconds": 1}
                self._client.put(self._path(), lease, timeout_seconds=self._request_seconds)
        except KubeError as error:
            _log.warning("the Lease %s could not be given back: %s", self._name, error)


def _micro_time(moment: float) -> str:
    micro = int(moment % 1 * _MICROSECONDS)
    return f"{write_moment(moment)[:-1]}.{micro:06d}Z"
