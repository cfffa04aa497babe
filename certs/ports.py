"""
What a run needs of the world, an API server, time, and replicas that say what they serve; and what
can stop it.

GpufenceError
└── CertsError
    ├── MissingObjectError   an object is not there and is not ours to create: apply the manifests
    ├── ContendedError       others kept writing at the same time: run again
    ├── NeedsInstallError    what has to be done is the install's to do, or an administrator's
    └── OvertakenError       another run is ahead of this one: read again, then decide again
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gpufence.errors import GpufenceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kube import JsonObject, Listing, PatchType


@dataclass(frozen=True, slots=True)
class Replica:
    """Where one replica listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Served:
    """What one endpoint answered: its certificate as DER, or why there is none."""

    endpoint: Replica
    certificate: bytes | None
    trouble: str = ""


class Api(Protocol):
    """The part of `kube.Client` that certificates need, with its errors."""

    def get(self, path: str) -> JsonObject: ...

    def list(
        self, path: str, query: Mapping[str, str | int] | None = None
    ) -> Listing[JsonObject]: ...

    def post(self, path: str, body: JsonObject) -> JsonObject: ...

    def patch(
        self, path: str, body: JsonObject | Sequence[JsonObject], patch_type: PatchType
    ) -> JsonObject: ...

    def delete(self, path: str, body: JsonObject | None = None) -> JsonObject: ...


class RunClock(Protocol):
    """The time of day for certificates, a steady one for patience, and a way to let time pass."""

    def now(self) -> float: ...

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...

    def chance(self) -> float:
        """Draw a number in [0, 1)."""
        ...


@dataclass(frozen=True, slots=True)
class World:
    """All of it; `ask` calls endpoints under the name that the API server verifies."""

    api: Api
    clock: RunClock
    ask: Callable[[Sequence[Replica], str], tuple[Served, ...]]


class CertsError(GpufenceError):
    """Anything that stops a run and that a person can do something about."""


class MissingObjectError(CertsError):
    """Raised when an object is absent and our account may not create it."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} does not exist; apply the manifests of gpufence, which bring it")


class ContendedError(CertsError):
    """Raised when every attempt met somebody else's newer write."""

    def __init__(self, attempts: int) -> None:
        super().__init__(
            f"{attempts} attempts in a row met newer writes of somebody else; run it again, and "
            "find out who else writes the Secrets or the webhook configuration of gpufence"
        )


class NeedsInstallError(CertsError):
    """Raised by a run that may renew the leaf alone, where the CA or the trust in it is amiss."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}; this run may renew the leaf alone: apply the manifests of gpufence again "
            "(with Helm: `helm upgrade`), whose install job puts that right"
        )


class OvertakenError(CertsError):
    """Raised when another run has changed the CA while this one was about to end an overlap."""
