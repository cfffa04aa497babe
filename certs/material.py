"""PURE. What is stored and what must be true of it: certificates and keys as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpufence.settings import setting

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ServiceNames:
    """Under which names the API server calls the webhook."""

    service: str
    namespace: str
    addresses: tuple[str, ...] = ()

    def dns(self) -> Iterator[str]:
        """Yield every spelling of the Service; `<service>.<namespace>.svc` is the one verified."""
        yield self.verified
        yield self.service
        yield f"{self.service}.{self.namespace}"
        yield f"{self.verified}.cluster.local"

    @property
    def verified(self) -> str:
        return f"{self.service}.{self.namespace}.svc"

    @property
    def all(self) -> frozenset[str]:
        return frozenset((*self.dns(), *self.addresses))


@dataclass(frozen=True, slots=True)
class WaitSettings:
    """
    `settle_seconds` is what others get to see a change; `wait_seconds` what replicas get to serve
    a new leaf: a kubelet takes about a minute to bring it.
    """

    settle_seconds: float = field(
        default=5.0,
        metadata=setting(
            "GPUFENCE_CERTS_SETTLE_SECONDS",
            "seconds the API servers get to see a new CA",
            most=600,
        ),
    )
    wait_seconds: float = field(
        default=120.0,
        metadata=setting(
            "GPUFENCE_CERTS_WAIT_SECONDS",
            "seconds to wait for replicas to serve a new leaf",
            most=3600,
        ),
    )


@dataclass(frozen=True, slots=True)
class Facts:
    """
    What one stored pair turned out to be, as far as renewal cares; times are seconds since 1970.

    `signed` says whether the CA in its own Secret has signed it (for a CA: itself), `complete`
    whether that CA also stands beside it, `fit` whether it is of the kind that we issue.
    """

    not_before: float
    not_after: float
    names: frozenset[str]
    key_matches: bool
    signed: bool
    complete: bool = True
    fit: bool = True


@dataclass(frozen=True, slots=True)
class Stored:
    """What the two Secrets hold: None where nothing is, `Facts` where it can be read."""

    ca: Facts | BadMaterial | None
    leaf: Facts | BadMaterial | None


@dataclass(frozen=True, slots=True)
class BadMaterial:
    """Something is there, but it is no certificate or no key."""

    reason: str
